// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// SetComponentDeviceValue stores device slots of an auxiliary component on a
// node that has Full on the device and none of this component (rule I-36). SWA
// takes one slot a unit of the node's key. The list is copied.
func (c *Core) SetComponentDeviceValue(id NodeID, component Component, s Slots) error {
	const op = "SetComponentDeviceValue"
	if c.log != nil {
		c.log.setDevice(id, component, s)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return err
	}
	bad := func(field, format string, args ...any) error {
		return &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if err := s.check(op, "slots"); err != nil {
		return err
	}
	switch {
	case component == Full || !c.opts.Components.Has(component):
		return bad("component", "%v is not a configured auxiliary component", component)
	case n == c.root:
		return bad("node", "the root holds no data")
	case component == SWA && s.Len() != n.units:
		return bad("slots", "%d given for %d units", s.Len(), n.units)
	case s.Len() == 0:
		return bad("slots", "the list is empty")
	case n.state[Full].device == nil:
		return &OrderError{Op: op, Problem: fmt.Sprintf("node %d has no Full device value to stand on", id)}
	case n.state[component].device != nil:
		return &OrderError{Op: op, Problem: fmt.Sprintf("node %d has a device value of %v already", id, component)}
	}
	c.setAuxDevice(n, component, s.canonical())
	return nil
}

// ComponentDeviceValue returns a copy of the node's device value of a
// component; nil: it has none.
func (c *Core) ComponentDeviceValue(id NodeID, component Component) (Slots, error) {
	n, err := c.resolveFor("ComponentDeviceValue", id, component)
	if err != nil {
		return nil, err
	}
	return n.state[component].device.Clone(), nil
}

// ComponentHasHostValueOnly reports whether the component's value on the node
// is on the host and not on the device.
func (c *Core) ComponentHasHostValueOnly(id NodeID, component Component) (bool, error) {
	n, err := c.resolveFor("ComponentHasHostValueOnly", id, component)
	if err != nil {
		return false, err
	}
	s := &n.state[component]
	return s.device == nil && s.host != nil, nil
}

func (c *Core) resolveFor(op string, id NodeID, component Component) (*node, error) {
	if c.log != nil {
		c.log.nodeComponent(op, id, component)
	}
	n, err := c.resolve(op, id)
	if err == nil && !c.opts.Components.Has(component) {
		err = &ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", component)}
	}
	return n, err
}

// fragment is the part of a node that a range of a key touches: the units
// [from, to) of n.
type fragment struct {
	n        *node
	from, to int
	start    int // position of from in the key
}

// fragments returns the nodes with Full on the device that hold the positions
// [start, end) of the key, the root side first (rules I-38, I-39).
func (c *Core) fragments(op string, key Key, start, end int) ([]fragment, error) {
	bad := func(field, format string, args ...any) error {
		return &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	v, _, err := c.view(op, key)
	if err != nil {
		return nil, err
	}
	page := c.opts.PageSize
	switch {
	case !c.opts.Components.Has(SWA):
		return nil, bad("key", "the swa component is not configured")
	case start < 0 || start%page != 0:
		return nil, bad("start", "%d is not a multiple of the page size %d", start, page)
	case end < start || end%page != 0:
		return nil, bad("end", "%d is not a multiple of the page size %d at or after start", end, page)
	case end > v.units:
		return nil, bad("end", "%d is beyond the %d units of the aligned key", end, v.units)
	}
	var out []fragment
	at := 0
	v.units = end
	c.walkFullDevice(key.Namespace, v, func(n *node, matched int) bool {
		if from, to := max(start, at), min(end, at+matched); from < to {
			out = append(out, fragment{n: n, from: from - at, to: to - at, start: from})
		}
		at += matched
		return true
	})
	if at < end {
		return nil, bad("end", "only %d of %d units are in the tree with Full on the device", at, end)
	}
	return out, nil
}

// SWATombstoneRanges returns the maximal ranges inside [start, end) of the key
// that lie on nodes without SWA on the device, ascending. It changes nothing.
func (c *Core) SWATombstoneRanges(key Key, start, end int) ([]Range, error) {
	if c.log != nil {
		c.log.window("swa-tombstone-ranges", key, start, end, nil)
	}
	parts, err := c.fragments("SWATombstoneRanges", key, start, end)
	if err != nil {
		return nil, err
	}
	var out []Range
	for _, f := range parts {
		if f.n.state[SWA].device != nil {
			continue
		}
		stop := f.start + f.to - f.from
		if n := len(out); n > 0 && out[n-1].End == f.start {
			out[n-1].End = stop
		} else {
			out = append(out, Range{f.start, stop})
		}
	}
	return out, nil
}

// AttachSWAWindow gives the positions [start, end) of the key, all of them
// tombstones, their SWA slots back, splitting nodes at the range's ends. It
// returns the actions of the splits (rule I-39). The list is copied.
func (c *Core) AttachSWAWindow(key Key, start, end int, swa Slots) ([]Action, error) {
	const op = "AttachSWAWindow"
	if c.log != nil {
		c.log.window("attach-swa-window", key, start, end, swa)
	}
	parts, err := c.fragments(op, key, start, end)
	if err != nil {
		return nil, err
	}
	if err := swa.check(op, "slots"); err != nil {
		return nil, err
	}
	if n := swa.Len(); n != end-start {
		return nil, &ArgumentError{Op: op, Field: "slots", Problem: fmt.Sprintf("%d given for %d units", n, end-start)}
	}
	for _, f := range parts {
		if f.n.state[SWA].device != nil {
			return nil, &ArgumentError{Op: op, Field: "start", Problem: fmt.Sprintf("node %d in the range has SWA already", f.n.id)}
		}
	}
	var actions []Action
	emit := func(a Action) {
		if a != nil {
			actions = append(actions, a)
		}
	}
	for _, f := range parts {
		target := f.n
		if f.from > 0 {
			_, relocation := c.split(f.n, f.from)
			emit(relocation)
		}
		if f.to-f.from < target.units {
			prefix, relocation := c.split(target, f.to-f.from)
			emit(relocation)
			target = prefix
		}
		at := f.start - start
		c.setAuxDevice(target, SWA, swa.Slice(at, at+f.to-f.from))
	}
	return actions, nil
}
