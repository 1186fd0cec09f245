// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// BuildLoadBackSpec says what a load back to the node copies (rule LB-7).
func (o *Oracle) BuildLoadBackSpec(id tree.NodeID) (tree.LoadBackSpec, error) {
	const op = "BuildLoadBackSpec"
	best, err := o.resolve(op, id)
	if err != nil {
		return tree.LoadBackSpec{}, err
	}
	empty := tree.LoadBackSpec{Full: tree.Transfer{Component: tree.Full, Host: tree.Slots{}}}
	if best == o.root {
		return empty, nil
	}

	var full []*node // all lists here: the root side first
	for n := best; o.evicted(n); n = n.parent {
		if !n.backedUp() {
			return tree.LoadBackSpec{}, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d has full on no tier", n.id)}
		}
		full = append([]*node{n}, full...)
	}
	swa, err := o.loadWindow(op, best)
	if err != nil {
		return tree.LoadBackSpec{}, err
	}
	var mamba []*node
	if best.device[tree.Mamba] == nil && best.host[tree.Mamba] != nil {
		mamba = []*node{best}
	}

	for _, nodes := range [][]*node{full, swa, mamba} {
		for _, n := range nodes {
			if n.loadPending != 0 && n.loadPending != int64(best.id) {
				empty.Pinned = true
				return empty, nil
			}
		}
	}
	spec := tree.LoadBackSpec{Full: hostTransfer(tree.Full, full)}
	if len(swa) > 0 {
		spec.Aux = append(spec.Aux, hostTransfer(tree.SWA, swa))
	}
	if len(mamba) > 0 {
		spec.Aux = append(spec.Aux, hostTransfer(tree.Mamba, mamba))
	}
	return spec, nil
}

// hostTransfer joins the host values of the nodes.
func hostTransfer(c tree.Component, nodes []*node) tree.Transfer {
	joined := []tree.Slot{}
	for _, n := range nodes {
		joined = append(joined, n.host[c]...)
	}
	return tree.Transfer{Component: c, Host: runs(joined), Nodes: idsOf(nodes)}
}

// loadWindow returns the nodes of the window above best that have SWA on the
// host only.
func (o *Oracle) loadWindow(op string, best *node) ([]*node, error) {
	if !o.has(tree.SWA) || (o.switches.HostTier && !o.switches.SWAHostPool) { // BK-8
		return nil, nil
	}
	var nodes []*node
	covered := 0
	for n := best; n != o.root && covered < o.window; n = n.parent {
		switch {
		case n.device[tree.SWA] != nil:
		case n.host[tree.SWA] != nil:
			nodes = append([]*node{n}, nodes...)
		default:
			return nil, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d has no swa on any tier, inside the window of node %d", n.id, best.id)}
		}
		covered += len(n.key)
	}
	return nodes, nil
}

// CommitLoadBack gives the nodes of a load back their device slots (LB-14 to
// LB-18).
func (o *Oracle) CommitLoadBack(id tree.NodeID, full tree.Slots, spec tree.LoadBackSpec) ([]tree.Action, error) {
	const op = "CommitLoadBack"
	best, err := o.resolve(op, id)
	if err != nil {
		return nil, err
	}
	loaded, err := o.resolveAll(op, spec.Full.Nodes)
	if err != nil {
		return nil, err
	}
	targets, err := o.resolveAux(op, spec.Aux)
	if err != nil {
		return nil, err
	}
	fullSlots, err := slotList(op, "full", full)
	if err != nil {
		return nil, err
	}
	if err := o.checkLoaded(op, loaded, len(fullSlots)); err != nil {
		return nil, err
	}
	if err := o.checkAux(op, spec.Aux); err != nil {
		return nil, err
	}
	lists := make([][]tree.Slot, len(spec.Aux))
	for i, t := range spec.Aux {
		if lists[i], err = slotList(op, "aux", t.Device); err != nil {
			return nil, err
		}
		if err := o.checkLoadedAux(op, t.Component, targets[i], len(lists[i]), loaded); err != nil {
			return nil, err
		}
	}
	all := append([]*node{}, loaded...)
	for _, nodes := range targets {
		all = append(all, nodes...)
	}
	if o.switches.WriteBack { // LB-15
		for _, n := range all {
			if n.loadPending != 0 && n.loadPending != int64(best.id) {
				return nil, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is part of the load back to node %d", n.id, n.loadPending)}
			}
		}
		for _, n := range all {
			n.loadPending = int64(best.id)
		}
	}

	for _, n := range loaded { // LB-16
		n.device[tree.Full] = clone(fullSlots[:len(n.key)])
		fullSlots = fullSlots[len(n.key):]
		n.awaitsAck = true
		o.recordStored(n, tree.MediumDevice, "")
	}
	var actions []tree.Action
	for _, c := range auxComponents {
		for i, t := range spec.Aux {
			if t.Component != c {
				continue
			}
			var mapped, partners []tree.Slot
			for _, n := range targets[i] {
				piece := lists[i]
				if c == tree.SWA { // LB-17
					piece, lists[i] = lists[i][:len(n.key)], lists[i][len(n.key):]
					mapped = append(mapped, n.device[tree.Full]...)
					partners = append(partners, piece...)
				}
				o.putDevice(n, c, piece)
			}
			if len(partners) > 0 {
				actions = append(actions, tree.RebuildFullToSWAMapping{Full: runs(mapped), SWA: runs(partners)})
			}
		}
	}
	return actions, nil
}

// checkLoaded checks the Full part of a load back.
func (o *Oracle) checkLoaded(op string, loaded []*node, given int) error {
	if repeats(loaded) {
		return &tree.ArgumentError{Op: op, Field: "spec.Full", Problem: "a node stands twice in it"}
	}
	units := 0
	for i, n := range loaded {
		if !o.evicted(n) || !n.backedUp() {
			return &tree.ArgumentError{Op: op, Field: "spec.Full", Problem: fmt.Sprintf("node %d is not on the host only", n.id)}
		}
		if o.evicted(n.parent) && firstOf(loaded[:i], n.parent) < 0 {
			return &tree.ArgumentError{Op: op, Field: "spec.Full", Problem: fmt.Sprintf("the parent of node %d would not be on the device", n.id)}
		}
		units += len(n.key)
	}
	if units != given {
		return &tree.ArgumentError{Op: op, Field: "full", Problem: fmt.Sprintf("%d slots for %d units", given, units)}
	}
	return nil
}

// checkLoadedAux checks one aux part of a load back.
func (o *Oracle) checkLoadedAux(op string, c tree.Component, nodes []*node, given int, loaded []*node) error {
	bad := func(format string, args ...any) error {
		return &tree.ArgumentError{Op: op, Field: "spec.Aux", Problem: fmt.Sprintf(format, args...)}
	}
	if repeats(nodes) {
		return bad("a node stands twice in the %v transfer", c)
	}
	units := 0
	for _, n := range nodes {
		if n == o.root || n.device[c] != nil {
			return bad("node %d is the root or has %v on the device", n.id, c)
		}
		if c == tree.SWA && n.host[c] == nil {
			return bad("node %d has no %v on the host", n.id, c)
		}
		if o.evicted(n) && firstOf(loaded, n) < 0 {
			return bad("node %d would have %v without full on the device", n.id, c)
		}
		units += len(n.key)
	}
	if c == tree.SWA && given != units {
		return bad("%d swa slots for %d units", given, units)
	}
	if c == tree.Mamba && (len(nodes) != 1 || given == 0) {
		return bad("a mamba transfer is one state of one node")
	}
	return nil
}

// FinishLoadBack takes the ack of a load back (rule LB-19).
func (o *Oracle) FinishLoadBack(id tree.NodeID) error {
	best, err := o.resolve("FinishLoadBack", id)
	if err != nil {
		return err
	}
	for _, n := range o.pathUp(best) {
		if o.switches.WriteBack && n.loadPending == int64(best.id) {
			n.loadPending = 0
		}
	}
	for _, n := range o.pathUp(best) {
		o.enterDuplicate(n)
	}
	return nil
}
