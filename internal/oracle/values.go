// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// SetComponentDeviceValue stores an aux component's slots on a node (I-36).
func (o *Oracle) SetComponentDeviceValue(id tree.NodeID, c tree.Component, slots tree.Slots) error {
	const op = "SetComponentDeviceValue"
	n, err := o.resolve(op, id)
	if err != nil {
		return err
	}
	if c == tree.Full || !o.has(c) {
		return &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is no configured aux component", c)}
	}
	if n == o.root {
		return &tree.ArgumentError{Op: op, Field: "node", Problem: "the root holds no data"}
	}
	list, err := slotList(op, "slots", slots)
	if err != nil {
		return err
	}
	if len(list) == 0 || (c == tree.SWA && len(list) != len(n.key)) {
		return &tree.ArgumentError{Op: op, Field: "slots", Problem: fmt.Sprintf("%d slots do not fit a node of %d units", len(list), len(n.key))}
	}
	if n.device[tree.Full] == nil {
		return &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d has no full slots on the device", id)}
	}
	if n.device[c] != nil {
		return &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d has a %v value already", id, c)}
	}
	o.putDevice(n, c, list)
	return nil
}

// ComponentDeviceValue returns the component's device slots; nil: absent (I-37).
func (o *Oracle) ComponentDeviceValue(id tree.NodeID, c tree.Component) (tree.Slots, error) {
	const op = "ComponentDeviceValue"
	n, err := o.resolve(op, id)
	if err != nil {
		return nil, err
	}
	if !o.has(c) {
		return nil, &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", c)}
	}
	return runs(n.device[c]), nil
}

// ComponentHasHostValueOnly reports "no device value and a host value" (I-37).
func (o *Oracle) ComponentHasHostValueOnly(id tree.NodeID, c tree.Component) (bool, error) {
	const op = "ComponentHasHostValueOnly"
	n, err := o.resolve(op, id)
	if err != nil {
		return false, err
	}
	if !o.has(c) {
		return false, &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", c)}
	}
	return n.device[c] == nil && n.host[c] != nil, nil
}

// EvictExcessPathStates enforces the cap of states on the path (rule I-35).
func (o *Oracle) EvictExcessPathStates(tail tree.NodeID) (tree.Evicted, error) {
	const op = "EvictExcessPathStates"
	low, err := o.resolve(op, tail)
	if err != nil {
		return tree.Evicted{}, err
	}
	if !o.has(tree.Mamba) {
		return tree.Evicted{}, &tree.ArgumentError{Op: op, Field: "component", Problem: "mamba is not configured"}
	}
	var out dropped
	if o.stateCap < 0 {
		return out.evicted(), nil
	}
	var holders []*node // the shallowest first
	for _, n := range o.pathUp(low) {
		if n.device[tree.Mamba] != nil {
			holders = append([]*node{n}, holders...)
		}
	}
	excess := len(holders) - o.stateCap
	for _, n := range holders {
		if excess <= 0 || n == low {
			break
		}
		if n.locks[tree.Mamba] > 0 || len(n.children) != 1 || o.isDeviceLeaf(n) {
			continue
		}
		o.dropDevice(n, tree.Mamba, &out)
		excess--
	}
	return out.evicted(), nil
}

// SWATombstoneRanges returns the ranges inside [start, end) that lie on nodes
// without an SWA device value (rule I-38).
func (o *Oracle) SWATombstoneRanges(key tree.Key, start, end int) ([]tree.Range, error) {
	walked, err := o.windowWalk("SWATombstoneRanges", key, start, end)
	if err != nil {
		return nil, err
	}
	return tombstones(walked, start, end), nil
}

// windowWalk makes the checks that the window calls share, and their walk.
func (o *Oracle) windowWalk(op string, key tree.Key, start, end int) ([]stretch, error) {
	if !o.has(tree.SWA) {
		return nil, &tree.ArgumentError{Op: op, Field: "component", Problem: "swa is not configured"}
	}
	if start < 0 || end < start || start%o.page != 0 || end%o.page != 0 {
		return nil, &tree.ArgumentError{Op: op, Field: "range", Problem: fmt.Sprintf("[%d,%d) is no range of whole pages", start, end)}
	}
	all, namespace, err := o.units(op, key)
	if err != nil {
		return nil, err
	}
	walked := o.deviceWalk(namespace, o.align(all))
	matched := 0
	for _, s := range walked {
		matched += s.units
	}
	if matched < end {
		return nil, &tree.ArgumentError{Op: op, Field: "key", Problem: fmt.Sprintf("only %d of %d units are on the device", matched, end)}
	}
	return walked, nil
}

func tombstones(walked []stretch, start, end int) []tree.Range {
	var ranges []tree.Range
	for _, s := range walked {
		from, to := max(start, s.start), min(end, s.start+s.units)
		if from >= to || s.node.device[tree.SWA] != nil {
			continue
		}
		if k := len(ranges) - 1; k >= 0 && ranges[k].End == from {
			ranges[k].End = to
		} else {
			ranges = append(ranges, tree.Range{Start: from, End: to})
		}
	}
	return ranges
}

// AttachSWAWindow brings a window of SWA back (rule I-39).
func (o *Oracle) AttachSWAWindow(key tree.Key, start, end int, swa tree.Slots) ([]tree.Action, error) {
	const op = "AttachSWAWindow"
	walked, err := o.windowWalk(op, key, start, end)
	if err != nil {
		return nil, err
	}
	list, err := slotList(op, "swa slots", swa)
	if err != nil {
		return nil, err
	}
	if len(list) != end-start {
		return nil, &tree.ArgumentError{Op: op, Field: "swa slots", Problem: fmt.Sprintf("%d slots for the range [%d,%d)", len(list), start, end)}
	}
	missing := tombstones(walked, start, end)
	if start < end && (len(missing) != 1 || missing[0] != tree.Range{Start: start, End: end}) {
		return nil, &tree.ArgumentError{Op: op, Field: "range", Problem: fmt.Sprintf("[%d,%d) is not tombstoned from end to end", start, end)}
	}

	var actions []tree.Action
	for _, s := range walked {
		from, to := max(start, s.start), min(end, s.start+s.units)
		if from >= to {
			continue
		}
		target := s.node
		if from > s.start { // the suffix goes on
			_, relocation := o.split(target, from-s.start)
			actions = append(actions, relocation...)
		}
		if to-from < len(target.key) { // the prefix is the target
			prefix, relocation := o.split(target, to-from)
			actions = append(actions, relocation...)
			target = prefix
		}
		o.putDevice(target, tree.SWA, list[from-start:to-start])
	}
	return actions, nil
}
