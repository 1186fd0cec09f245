// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// SetHostValue is a door for tests: it attaches a host value to a node that
// has none for the component, whatever else holds. The node joins the host
// list where rule N-8 wants it there, and the registry of duplicates.
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
	o.putHost(n, c, list)
	if c == tree.Full {
		o.enterDuplicate(n)
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
	n.awaitsAck = n.awaitsAck || !o.isTracked(n)
	return nil
}

// needsIncrementalBackup says whether an insert that ended on a backed-up node
// asks for a backup of aux data that is on the device only (rules I-34, BK-4).
func (o *Oracle) needsIncrementalBackup(n *node) bool {
	if !o.switches.HostTier || o.switches.HostBufferOnly || !n.backedUp() || n.writePending != 0 {
		return false
	}
	if len(o.backupWindow(n)) > 0 {
		return true
	}
	// BK-4: with write-back only SWA is asked.
	return o.has(tree.Mamba) && !o.switches.WriteBack && n.device[tree.Mamba] != nil && n.host[tree.Mamba] == nil
}

// putHost stores a host value. An aux value without one on the device puts the
// node at the MRU end of the host list, unless it is host-locked (ND-13).
func (o *Oracle) putHost(n *node, c tree.Component, slots []tree.Slot) {
	n.host[c] = clone(slots)
	o.joinHostList(n, c)
}

// joinHostList puts the node at the MRU end of the host list if it belongs there.
func (o *Oracle) joinHostList(n *node, c tree.Component) {
	if c != tree.Full && n.host[c] != nil && n.device[c] == nil && n.hostLocks[c] == 0 {
		o.host[c].toFront(n)
	}
}
