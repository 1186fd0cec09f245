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
	below := o.postorder(n)
	for _, c := range allComponents {
		if n.hostLocks[c] > 0 {
			return tree.Evicted{}, false, nil
		}
		for _, m := range below {
			if m.locks[c] > 0 || m.hostLocks[c] > 0 {
				return tree.Evicted{}, false, nil
			}
		}
	}

	var out dropped
	for _, m := range below {
		o.deleteHostOnly(m, false, &out)
	}
	o.recordRemoved(n, tree.MediumDevice)
	for i := len(o.components) - 1; i >= 0; i-- { // as in deleteNode
		c := o.components[i]
		if n.device[c] != nil {
			o.dropDevice(n, c, &out)
		}
		if n.host[c] != nil {
			o.dropHost(n, c, false, &out)
		}
	}
	o.forgetSessions(n)
	parent := n.parent
	o.unlink(n)
	o.dropChildless(parent, &out)
	return out.evicted(), true, nil
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
