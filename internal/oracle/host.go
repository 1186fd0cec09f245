// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// SetHostValue is a door for tests: it attaches a host value to a node that
// has none for the component, whatever else holds. The node joins the host
// list where rule N-8 wants it there.
func (o *Oracle) SetHostValue(id tree.NodeID, c tree.Component, slots tree.Slots) error {
	const op = "SetHostValue"
	n, err := o.resolve(op, id)
	if err != nil {
		return err
	}
	if !o.has(c) || n == o.root {
		return &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("node %d takes no host value of %v", id, c)}
	}
	list, err := slotList(op, "slots", slots)
	if err != nil {
		return err
	}
	if len(list) == 0 || n.host[c] != nil {
		return &tree.ArgumentError{Op: op, Field: "slots", Problem: "none are given, or the node has a host value already"}
	}
	n.host[c] = list
	if c != tree.Full && n.device[c] == nil && n.hostLocks[c] == 0 {
		o.host[c].toFront(n)
	}
	return nil
}

// SetPending is a door for tests: it sets the id of the node's pending
// write-through; 0: none.
func (o *Oracle) SetPending(id tree.NodeID, ack int64) error {
	n, err := o.resolve("SetPending", id)
	if err != nil {
		return err
	}
	n.writePending = ack
	return nil
}

// needsIncrementalBackup says whether an insert that ended on a backed-up node
// asks for a backup of aux data that is on the device only (rules I-34, BK-4).
func (o *Oracle) needsIncrementalBackup(n *node) bool {
	if !o.switches.HostTier || o.switches.HostBufferOnly || !n.backedUp() || n.writePending != 0 {
		return false
	}
	if o.has(tree.SWA) && o.windowNeedsBackup(n) {
		return true
	}
	// BK-4: with write-back only SWA is asked.
	return o.has(tree.Mamba) && !o.switches.WriteBack && n.device[tree.Mamba] != nil && n.host[tree.Mamba] == nil
}

// windowNeedsBackup reports whether some node of the window above n has SWA on
// the device only (rules BK-8, BK-9).
func (o *Oracle) windowNeedsBackup(n *node) bool {
	if !o.switches.SWAHostPool {
		return false
	}
	covered := 0
	for ; n != o.root && covered < o.window && n.writePending == 0; n = n.parent {
		switch {
		case n.device[tree.SWA] != nil && n.host[tree.SWA] == nil:
			return true
		case n.device[tree.SWA] != nil:
			covered += len(n.device[tree.SWA])
		case n.host[tree.SWA] != nil:
			covered += len(n.host[tree.SWA])
		default:
			return false
		}
	}
	return false
}
