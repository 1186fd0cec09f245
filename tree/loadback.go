// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
)

// BuildLoadBackSpec says what must be loaded from the host so that a request
// can resume at the node (rule LB-7).
func (c *Core) BuildLoadBackSpec(id NodeID) (LoadBackSpec, error) {
	const op = "BuildLoadBackSpec"
	if c.log != nil {
		c.log.nodes("build-load-back", id)
	}
	best, err := c.resolve(op, id)
	if err != nil {
		return LoadBackSpec{}, err
	}
	spec := LoadBackSpec{Full: Transfer{Component: Full, Host: Slots{}}}
	if best == c.root {
		return spec, nil
	}
	pinned := false
	collect := func(nodes []*node, component Component) Transfer {
		t := Transfer{Component: component, Host: Slots{}}
		for _, n := range slices.Backward(nodes) { // the root side first
			t.Nodes = append(t.Nodes, n.id)
			t.Host = t.Host.Append(n.state[component].host)
			pinned = pinned || n.loadBackPending() != 0 && n.loadBackPending() != int64(id)
		}
		return t
	}
	for _, h := range c.comps {
		nodes, missing := h.loadBackNodes(best)
		if missing != nil {
			return LoadBackSpec{}, &InternalError{Op: op, Problem: fmt.Sprintf("node %d has %v on neither tier", missing.id, h.id())}
		}
		if h.id() == Full {
			spec.Full = collect(nodes, Full)
		} else if len(nodes) > 0 {
			spec.Aux = append(spec.Aux, collect(nodes, h.id()))
		}
	}
	if pinned {
		return LoadBackSpec{Full: Transfer{Component: Full, Host: Slots{}}, Pinned: true}, nil
	}
	return spec, nil
}

func (f *fullHooks) loadBackNodes(best *node) (nodes []*node, missing *node) {
	for n := best; n.evicted(); n = n.parent {
		if !n.backedUp() {
			return nil, n
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (w *swaHooks) loadBackNodes(best *node) (nodes []*node, missing *node) {
	if s := &w.core.switches; s.HostTier && !s.SWAHostPool {
		return nil, nil
	}
	for n, covered := best, 0; n.parent != nil && covered < w.window; n = n.parent {
		s := &n.state[SWA]
		if s.device == nil {
			if s.host == nil {
				return nil, n
			}
			nodes = append(nodes, n)
		}
		covered += n.units
	}
	return nodes, nil
}

func (m *mambaHooks) loadBackNodes(best *node) (nodes []*node, missing *node) {
	if m.hostHit(best) == 0 {
		return nil, nil
	}
	return []*node{best}, nil
}

// CommitLoadBack attaches the device slots of a load back whose copy is queued:
// full to the nodes of spec.Full in order, and Device of each transfer to its
// nodes (section 8.3). Host values stay. It returns what to do about the map
// from Full to SWA slots. What does not fit is an *ArgumentError; under
// write-back a node that another load back holds is an *OrderError.
func (c *Core) CommitLoadBack(id NodeID, full Slots, spec LoadBackSpec) ([]Action, error) {
	const op = "CommitLoadBack"
	if c.log != nil {
		c.log.commitLoadBack(id, full, spec)
	}
	best, err := c.resolve(op, id)
	if err != nil {
		return nil, err
	}
	loaded, err := c.resolveAll(op, spec.Full.Nodes)
	if err != nil {
		return nil, err
	}
	targets, err := c.resolveTransfers(op, spec.Aux)
	if err != nil {
		return nil, err
	}
	if err := c.checkLoadBack(op, full, loaded, spec.Aux, targets); err != nil {
		return nil, err
	}
	if c.switches.WriteBack {
		if err := c.pinLoadBack(op, best, append([][]*node{loaded}, targets...)); err != nil {
			return nil, err
		}
	}
	at := 0
	for _, n := range loaded {
		c.setFullDevice(n, full.Slice(at, at+n.units))
		n.extend().awaitsAck = true
		at += n.units

		c.refreshLeaf(n)
		c.refreshLeaf(n.parent)
		c.recordStored(n, MediumDevice, "")
	}
	var actions []Action
	for i, t := range spec.Aux {
		at := 0
		remap := RebuildFullToSWAMapping{}
		for _, n := range targets[i] {
			length := n.units
			if t.Component == Mamba {
				length = t.Device.Len()
			}
			piece := t.Device.Slice(at, at+length)
			at += length
			c.setAuxDevice(n, t.Component, piece)
			if t.Component == SWA {
				remap.Full = remap.Full.Append(n.state[Full].device)
				remap.SWA = remap.SWA.Append(piece)
			}
		}
		if t.Component == SWA && len(targets[i]) > 0 {
			actions = append(actions, remap)
		}
	}
	return actions, nil
}

// checkLoadBack finds everything that does not fit, before any change.
func (c *Core) checkLoadBack(op string, full Slots, loaded []*node, aux []Transfer, targets [][]*node) error {
	bad := func(field, format string, args ...any) error {
		return &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if err := full.check(op, "full"); err != nil {
		return err
	}
	for _, t := range aux {
		if err := t.Device.check(op, "aux"); err != nil {
			return err
		}
	}
	units := 0
	for i, n := range loaded {
		switch {
		case !n.evicted() || !n.backedUp():
			return bad("full", "node %d is not on the host only", n.id)
		case slices.Contains(loaded[:i], n):
			return bad("full", "node %d stands twice", n.id)
		case n.parent.evicted() && !slices.Contains(loaded[:i], n.parent):
			return bad("full", "the parent of node %d is not on the device and not loaded before it", n.id)
		}
		units += n.units
	}
	if full.Len() != units {
		return bad("full", "%d device slots for %d units", full.Len(), units)
	}
	if err := c.checkAux(op, aux); err != nil {
		return err
	}
	for i, t := range aux {
		units := 0
		for j, n := range targets[i] {
			s := &n.state[t.Component]
			switch {
			case n == c.root || s.device != nil || s.host == nil:
				return bad("aux", "%v of node %d is not on the host only", t.Component, n.id)
			case n.evicted() && !slices.Contains(loaded, n):
				return bad("aux", "Full of node %d is not on the device and not loaded with it", n.id)
			case slices.Contains(targets[i][:j], n):
				return bad("aux", "node %d stands twice in the transfer of %v", n.id, t.Component)
			}
			units += n.units
		}
		if t.Component == Mamba && (len(targets[i]) != 1 || t.Device.Len() == 0) || t.Component != Mamba && t.Device.Len() != units {
			return bad("aux", "%d device slots of %v for %d nodes of %d units", t.Device.Len(), t.Component, len(targets[i]), units)
		}
	}
	return nil
}

// pinLoadBack marks the nodes that a load back reads, so that their host copies
// are not reclaimed before it has ended (rule LB-15).
func (c *Core) pinLoadBack(op string, best *node, lists [][]*node) error {
	for _, list := range lists {
		for _, n := range list {
			if p := n.loadBackPending(); p != 0 && p != int64(best.id) {
				return &OrderError{Op: op, Problem: fmt.Sprintf("node %d is part of the load back to node %d", n.id, p)}
			}
		}
	}
	for _, list := range lists {
		for _, n := range list {
			n.extend().loadBackPending = int64(best.id)
		}
	}
	return nil
}

// FinishLoadBack ends the load back to the node: its marks go, and the nodes on
// its path that are on both tiers are registered as duplicates (rule LB-19).
func (c *Core) FinishLoadBack(id NodeID) error {
	if c.log != nil {
		c.log.nodes("finish-load-back", id)
	}
	best, err := c.resolve("FinishLoadBack", id)
	if err != nil {
		return err
	}
	for n := best; n.parent != nil; n = n.parent {
		if n.loadBackPending() == int64(id) {
			n.ext.loadBackPending = 0
		}
		if n.ext != nil && n.settled() {
			n.ext.awaitsAck = false
		}
		c.trackDuplicate(n)
	}
	return nil
}
