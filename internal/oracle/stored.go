// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// MarkStored marks the path from the node up to until, which is left out (rule
// XL-8).
func (o *Oracle) MarkStored(from, until tree.NodeID) error {
	const op = "MarkStored"
	n, err := o.resolve(op, from)
	if err != nil {
		return err
	}
	end, err := o.resolve(op, until)
	if err != nil {
		return err
	}
	if n != end && !end.isAncestorOf(n) {
		return &tree.ArgumentError{Op: op, Field: "until", Problem: fmt.Sprintf("node %d does not lie above node %d", until, from)}
	}
	for n != end {
		n.stored = true
		n = n.parent
	}
	return nil
}

// reclaimStored gives up the host copies of nodes that are on the device and in
// storage (case C-022), from the leaves of the host tier up: pass after pass
// over the registry, until one finds nothing.
func (o *Oracle) reclaimStored(n int, out *dropped) {
	for found := true; found; {
		found = false
		for _, m := range o.settledDuplicates() {
			if out.freed[tree.Full] >= n {
				return
			}
			if !m.stored || o.carriesHost(m) {
				continue
			}
			found = true
			o.recordRemoved(m, tree.MediumHost)
			for _, c := range o.components {
				if m.host[c] != nil {
					o.dropHost(m, c, true, out)
				}
			}
		}
	}
}

// carriesHost: somebody needs the node's host copy: a host lock is on it, or a
// child is backed up (ND-6).
func (o *Oracle) carriesHost(n *node) bool {
	for _, c := range allComponents {
		if n.hostLocks[c] > 0 {
			return true
		}
	}
	for _, child := range n.children {
		if child.backedUp() {
			return true
		}
	}
	return false
}
