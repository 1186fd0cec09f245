// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// DropSubtreeNoHost deletes a D-leaf that could not be backed up, and what is
// on the host below it (rule WB-2).
func (o *Oracle) DropSubtreeNoHost(id tree.NodeID) (tree.Evicted, bool, error) {
	const op = "DropSubtreeNoHost"
	n, err := o.resolve(op, id)
	if err != nil {
		return tree.Evicted{}, false, err
	}
	if !o.isDeviceLeaf(n) || n.backedUp() || n.writePending != 0 {
		return tree.Evicted{}, false, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is no device-evictable leaf, or backed up, or pending", id)}
	}
	if !o.mayDropSubtree(n) {
		return tree.Evicted{}, false, nil
	}
	var out dropped
	o.dropSubtree(n, &out)
	return out.evicted(), true, nil
}

// mayDropSubtree: nothing of the leaf and what is below it is locked, and the
// leaf is not part of a write.
func (o *Oracle) mayDropSubtree(n *node) bool {
	for _, c := range allComponents {
		if n.hostLocks[c] > 0 {
			return false
		}
		for _, m := range o.postorder(n) {
			if m.locks[c] > 0 || m.hostLocks[c] > 0 {
				return false
			}
		}
	}
	return n.writePending == 0
}

// dropSubtree deletes a leaf without a host copy, and before it what is below.
func (o *Oracle) dropSubtree(n *node, out *dropped) {
	for _, m := range o.postorder(n) {
		o.deleteHostOnly(m, false, out)
	}
	o.deleteNode(n, out)
}

// postorder returns the proper descendants, each after its own descendants,
// siblings in edge order.
func (o *Oracle) postorder(n *node) []*node {
	var all []*node
	for _, child := range n.children {
		all = append(all, o.postorder(child)...)
		all = append(all, child)
	}
	return all
}
