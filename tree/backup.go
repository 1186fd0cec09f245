// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"slices"
)

// resolveAll resolves ids in order.
func (c *Core) resolveAll(op string, ids []NodeID) ([]*node, error) {
	nodes := make([]*node, len(ids))
	for i, id := range ids {
		n, err := c.resolve(op, id)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

// resolveTransfers resolves the nodes of all transfers.
func (c *Core) resolveTransfers(op string, list []Transfer) ([][]*node, error) {
	out := make([][]*node, len(list))
	for i, t := range list {
		nodes, err := c.resolveAll(op, t.Nodes)
		if err != nil {
			return nil, err
		}
		out[i] = nodes
	}
	return out, nil
}

// checkAux verifies that transfers are of configured auxiliary components, one
// at most of each.
func (c *Core) checkAux(op string, list []Transfer) error {
	var seen ComponentSet
	for _, t := range list {
		if t.Component == Full || !c.opts.Components.Has(t.Component) || seen.Has(t.Component) {
			return &ArgumentError{Op: op, Field: "aux", Problem: fmt.Sprintf("a transfer of %v: each configured auxiliary component may have one", t.Component)}
		}
		seen |= SetOf(t.Component)
	}
	return nil
}

// BuildBackupSpec says what a backup of the node copies to the host now
// (section 5.2). A node whose Full is not on the device is an *OrderError.
func (c *Core) BuildBackupSpec(id NodeID) (BackupSpec, error) {
	const op = "BuildBackupSpec"
	if c.log != nil {
		c.log.nodes("build-backup", id)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return BackupSpec{}, err
	}
	if n == c.root || n.evicted() {
		return BackupSpec{}, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has no Full on the device", id)}
	}
	spec := BackupSpec{Full: Slots{}}
	if !n.backedUp() {
		spec.Full = n.state[Full].device.Clone()
	}
	for _, h := range c.comps {
		if h.id() == Full {
			continue
		}
		nodes := h.backupNodes(n)
		if len(nodes) == 0 {
			continue
		}
		t := Transfer{Component: h.id()}
		for _, at := range nodes {
			t.Nodes = append(t.Nodes, at.id)
			t.Device = t.Device.Append(at.state[h.id()].device)
		}
		spec.Aux = append(spec.Aux, t)
	}
	return spec, nil
}

// CommitBackup attaches the host slots of a backup whose copy has started: full
// to the node, if there are any, and those of each transfer to its nodes, by
// the length of their device values, in order (rule BK-15). A node that got a
// host value meanwhile keeps it; the slots meant for it are returned to be
// freed. Lengths that do not fit are an *ArgumentError; outside write-back a
// parent without a host copy is an *OrderError (rule ND-6).
func (c *Core) CommitBackup(id NodeID, full Slots, aux []Transfer) (Frees, error) {
	const op = "CommitBackup"
	if c.log != nil {
		c.log.commitBackup(id, full, aux)
	}
	var out Frees
	n, err := c.resolve(op, id)
	if err != nil {
		return out, err
	}
	targets, err := c.resolveTransfers(op, aux)
	if err != nil {
		return out, err
	}
	bad := func(field, format string, args ...any) (Frees, error) {
		return Frees{}, &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if n == c.root || n.evicted() {
		return Frees{}, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has no Full on the device", id)}
	}
	if err := full.check(op, "full"); err != nil {
		return out, err
	}
	for _, t := range aux {
		if err := t.Host.check(op, "aux"); err != nil {
			return out, err
		}
	}
	if len(full) > 0 && (n.backedUp() || full.Len() != n.units) {
		return bad("full", "%d slots for %d units, backed up already: %v", full.Len(), n.units, n.backedUp())
	}
	if err := c.checkAux(op, aux); err != nil {
		return out, err
	}
	for i, t := range aux {
		if len(t.Nodes) == 0 {
			targets[i] = []*node{n}
		}
		want := 0
		for j, at := range targets[i] {
			if slices.Contains(targets[i][:j], at) {
				return bad("nodes", "node %d stands twice in the transfer of %v", at.id, t.Component)
			}
			if t.Component == SWA && at.state[SWA].device == nil {
				return bad("nodes", "node %d has no SWA on the device", at.id)
			}
			want += at.deviceUnits(t.Component)
		}
		switch {
		case t.Component == Mamba && (len(targets[i]) != 1 || t.Host.Len() == 0):
			return bad("aux", "a state goes to one node; %d given, with %d slots", len(targets[i]), t.Host.Len())
		case t.Component != Mamba && t.Host.Len() != want:
			return bad("aux", "%d host slots of %v for %d units", t.Host.Len(), t.Component, want)
		}
	}
	if len(full) > 0 && n.parent != c.root && !n.parent.backedUp() && !c.switches.WriteBack {
		return Frees{}, &OrderError{Op: op, Problem: fmt.Sprintf("the parent %d of node %d has no host copy: back it up first, and hold a host lock on it while room is made", n.parent.id, id)}
	}
	if len(full) > 0 {
		c.setHost(n, Full, full.canonical())
		n.extend().awaitsAck = true
	}
	for i, t := range aux {
		at := 0
		for _, target := range targets[i] {
			length := target.deviceUnits(t.Component)
			if t.Component == Mamba {
				length = t.Host.Len()
			}
			piece := t.Host.Slice(at, at+length)
			at += length
			if target.state[t.Component].host != nil {
				out.addHost(t.Component, piece)
				continue
			}
			c.setHost(target, t.Component, piece)
		}
	}
	c.refreshLeaf(n)
	return out, nil
}

// MarkWriteThroughPending marks the nodes as part of the write ack and returns
// them, ancestors first and each once: the list to publish at its end (rule
// BK-16). A node that is part of another write is an *OrderError.
func (c *Core) MarkWriteThroughPending(ids []NodeID, ack int64) ([]NodeID, error) {
	const op = "MarkWriteThroughPending"
	if c.log != nil {
		c.log.nodeAck("mark-write-through-pending", ids, ack)
	}
	nodes, err := c.resolveAll(op, ids)
	if err != nil {
		return nil, err
	}
	if ack == 0 {
		return nil, &ArgumentError{Op: op, Field: "ack", Problem: "0 names no write"}
	}
	type placed struct {
		n     *node
		depth int
	}
	var order []placed
	if slices.Contains(nodes, c.root) {
		return nil, &ArgumentError{Op: op, Field: "nodes", Problem: "the root is never written"}
	}
	for _, n := range nodes {
		if p := n.writeThroughPending(); p != 0 && p != ack {
			return nil, &OrderError{Op: op, Problem: fmt.Sprintf("node %d is part of write %d", n.id, p)}
		}
		depth := 0
		for at := n; at.parent != nil; at = at.parent {
			depth++
		}
		if !slices.ContainsFunc(order, func(p placed) bool { return p.n == n }) {
			order = append(order, placed{n, depth})
		}
	}
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Compare(a.depth, b.depth) })
	out := make([]NodeID, len(order))
	for i, p := range order {
		p.n.extend().writeThroughPending = ack
		out[i] = p.n.id
	}
	return out, nil
}

// FinishWriteThrough ends the write ack on the nodes that it published (rule
// BK-18): marks that carry it go, duplicates are registered, and a stored event
// for the host is recorded for each node.
func (c *Core) FinishWriteThrough(ids []NodeID, ack int64) error {
	const op = "FinishWriteThrough"
	if c.log != nil {
		c.log.nodeAck("finish-write-through", ids, ack)
	}
	nodes, err := c.resolveAll(op, ids)
	if err != nil {
		return err
	}
	if ack == 0 {
		return &ArgumentError{Op: op, Field: "ack", Problem: "0 names no write"}
	}
	if slices.Contains(nodes, c.root) {
		return &ArgumentError{Op: op, Field: "nodes", Problem: "the root is never written"}
	}
	for _, n := range nodes {
		if n.writeThroughPending() == ack {
			n.ext.writeThroughPending, n.ext.awaitsAck = 0, false
			c.trackDuplicate(n)
		}
		c.recordStored(n, MediumHost, "")
	}
	return nil
}
