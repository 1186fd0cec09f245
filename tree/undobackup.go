// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// UndoBackup takes back what a backup has attached to a node whose copy failed:
// the host values of the given components, and the node's mark if it is that of
// the write ack (rule FL-11). Where Full goes, and the policy is not write-back,
// all host values go. The slots are the caller's to free. A node without Full on
// the device would be left with nothing, and a parent must not lose its copy
// while a child keeps one, unless write-back has allowed that since the reset:
// both are an *OrderError.
func (c *Core) UndoBackup(id NodeID, components ComponentSet, ack int64) (Frees, error) {
	const op = "UndoBackup"
	if c.log != nil {
		c.log.undoBackup(id, components, ack)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return Frees{}, err
	}
	if n == c.root || n.evicted() {
		return Frees{}, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has no Full on the device", id)}
	}
	if components.Has(Full) && !c.switches.WriteBack {
		for child := n.firstChild; child != nil && !c.looseHost; child = child.next {
			if child.backedUp() {
				return Frees{}, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has the copy of its child %d on it: undo that first", id, child.id)}
			}
		}
		components = c.opts.Components
	}
	if ack != 0 && n.writeThroughPending() == ack {
		n.ext.writeThroughPending = 0
	}
	var out Evicted
	for _, h := range c.comps {
		if components.Has(h.id()) && n.state[h.id()].host != nil {
			c.dropHost(n, h.id(), &out)
		}
	}
	c.trackDuplicate(n) // its mark may have kept it out
	c.refreshLeaf(n)
	return out.Frees, nil
}
