// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// dropped collects what a call drops. Slots of one component stand in the
// order of their eviction (rule E-11).
type dropped struct {
	device, host [tree.NumComponents][]tree.Slot
	freed        tree.Units
	unbacked     int
}

func (d *dropped) evicted() tree.Evicted {
	e := tree.Evicted{Freed: d.freed, Unbacked: d.unbacked}
	for _, c := range allComponents {
		e.Frees.Device[c] = runs(d.device[c])
		e.Frees.Host[c] = runs(d.host[c])
	}
	return e
}

func (d *dropped) empty() bool {
	for _, c := range allComponents {
		if len(d.device[c]) > 0 || len(d.host[c]) > 0 {
			return false
		}
	}
	return true
}

// dropDevice drops one component's device value (rule E-24). SWA's payload is
// the node's Full slots, so Full has to be dropped after it.
func (o *Oracle) dropDevice(n *node, c tree.Component, out *dropped) {
	payload := n.device[c]
	if c == tree.SWA {
		payload = n.device[tree.Full]
	}
	out.device[c] = append(out.device[c], payload...)
	out.freed[c] += len(n.device[c])
	if c == tree.Full {
		if !n.backedUp() { // E-23
			out.unbacked += len(n.device[c])
		}
		n.device[c] = nil
		o.leaveDuplicates(n)
		return
	}
	n.device[c] = nil
	o.device[c].remove(n)
	if n.host[c] != nil && n.hostLocks[c] == 0 {
		o.host[c].toFront(n)
	}
}

// dropHost drops one component's host value (rule E-25). Host units count only
// if no device units do (rule E-22), which countUnits says.
func (o *Oracle) dropHost(n *node, c tree.Component, countUnits bool, out *dropped) {
	out.host[c] = append(out.host[c], n.host[c]...)
	if countUnits {
		out.freed[c] += len(n.host[c])
	}
	n.host[c] = nil
	o.host[c].remove(n)
	if c == tree.Full {
		o.leaveDuplicates(n)
	}
}

// dropAll drops everything of one component on a node that goes from the device.
// What is freed counts on the device only (rules EV-2, EV-6): a device walk must
// not end because host slots came back.
func (o *Oracle) dropAll(n *node, c tree.Component, out *dropped) {
	if n.device[c] != nil {
		o.dropDevice(n, c, out)
	}
	if n.host[c] != nil {
		o.dropHost(n, c, false, out)
	}
}

// cascade returns the other components that go when the trigger's device value
// is dropped (rules E-26, E-27), in component order. It changes nothing.
func (o *Oracle) cascade(op string, n *node, trigger tree.Component, isLeaf bool) ([]tree.Component, error) {
	var others []tree.Component
	for _, c := range o.components {
		if c == trigger || n.device[c] == nil {
			continue
		}
		higher := internalPriority[c] >= internalPriority[trigger]
		if higher && !isLeaf {
			continue // no candidate
		}
		locked := n.locks[c] > 0
		if higher && (locked || (n.refs[c] > 0 && n.refs[trigger] == 0)) {
			continue // spared
		}
		if locked {
			return nil, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d: %v is locked, but %v is not", n.id, c, trigger)}
		}
		others = append(others, c)
	}
	return others, nil
}

// EvictLeaf drops a leaf that a walk returned (rule E-19).
func (o *Oracle) EvictLeaf(id tree.NodeID, writeBack bool) (tree.EvictLeafResult, error) {
	const op = "EvictLeaf"
	n, err := o.resolve(op, id)
	if err != nil {
		return tree.EvictLeafResult{}, err
	}
	if !o.isDeviceLeaf(n) {
		return tree.EvictLeafResult{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is no device-evictable leaf", id)}
	}
	if n.backedUp() {
		evicted, err := o.demote(op, n)
		return tree.EvictLeafResult{Evicted: evicted}, err
	}
	if writeBack {
		return tree.EvictLeafResult{Backup: &tree.BackupKV{Nodes: []tree.NodeID{id}}}, nil
	}
	if len(n.children) > 0 && o.loose { // WT-1: what is below may be left from write-back
		var out dropped
		if o.mayDropSubtree(n) {
			o.dropSubtree(n, &out)
		}
		return tree.EvictLeafResult{Evicted: out.evicted()}, nil
	}
	if len(n.children) > 0 {
		// E-20: what is below is on the host; dropping it is another call.
		return tree.EvictLeafResult{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d has children on the host", id)}
	}
	var out dropped
	o.deleteNode(n, &out)
	return tree.EvictLeafResult{Evicted: out.evicted()}, nil
}

// deleteNode is rule E-20.
func (o *Oracle) deleteNode(n *node, out *dropped) {
	o.recordRemoved(n, tree.MediumDevice) // EV-5: before the data is dropped
	// Full goes last here since SWA's payload is read from it; the groups of
	// the result are in component order whatever the order here.
	for i := len(o.components) - 1; i >= 0; i-- {
		o.dropAll(n, o.components[i], out)
	}
	o.forgetSessions(n)
	parent := n.parent
	o.unlink(n)
	o.dropChildless(parent, out)
}

// dropChildless cleans up ancestors without children (rule E-29).
func (o *Oracle) dropChildless(cur *node, out *dropped) {
	for cur != o.root && len(cur.children) == 0 {
		for _, c := range allComponents {
			if cur.locks[c] > 0 || cur.hostLocks[c] > 0 {
				return
			}
		}
		if cur.device[tree.Full] != nil {
			return
		}
		for _, c := range auxComponents {
			if cur.device[c] != nil {
				o.dropDevice(cur, c, out)
			}
		}
		if cur.host[tree.Full] != nil {
			return
		}
		for _, c := range auxComponents {
			if cur.host[c] != nil {
				o.dropHost(cur, c, true, out)
			}
		}
		o.forgetSessions(cur)
		parent := cur.parent
		o.unlink(cur)
		cur = parent
	}
}

// Demote takes a backed-up leaf off the device (rule E-21).
func (o *Oracle) Demote(id tree.NodeID) (tree.Evicted, error) {
	const op = "Demote"
	n, err := o.resolve(op, id)
	if err != nil {
		return tree.Evicted{}, err
	}
	// Unlocked, on the device, without a child on the device: a D-leaf.
	if !n.backedUp() || !o.isDeviceLeaf(n) {
		return tree.Evicted{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is not backed up, not on the device, locked, or has a child on the device", id)}
	}
	return o.demote(op, n)
}

func (o *Oracle) demote(op string, n *node) (tree.Evicted, error) {
	others, err := o.cascade(op, n, tree.Full, o.isDeviceLeaf(n))
	if err != nil {
		return tree.Evicted{}, err
	}
	var out dropped
	for _, c := range others { // before Full, see dropDevice
		o.dropDevice(n, c, &out)
	}
	o.dropDevice(n, tree.Full, &out)
	o.recordRemoved(n, tree.MediumDevice) // EV-5: after the data is dropped
	for _, c := range auxComponents {
		if n.host[c] != nil && n.hostLocks[c] == 0 && !o.host[c].contains(n) {
			o.host[c].toFront(n)
		}
	}
	return out.evicted(), nil
}
