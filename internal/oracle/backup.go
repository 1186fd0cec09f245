// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"sort"

	"github.com/treecore/treecore/tree"
)

// resolveAll resolves a list of ids, in order.
func (o *Oracle) resolveAll(op string, ids []tree.NodeID) ([]*node, error) {
	var nodes []*node
	for _, id := range ids {
		n, err := o.resolve(op, id)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// resolveAux resolves the nodes of all transfers.
func (o *Oracle) resolveAux(op string, aux []tree.Transfer) ([][]*node, error) {
	var each [][]*node
	for _, t := range aux {
		nodes, err := o.resolveAll(op, t.Nodes)
		if err != nil {
			return nil, err
		}
		each = append(each, nodes)
	}
	return each, nil
}

// checkAux: each transfer is of a configured aux component, at most one of each.
func (o *Oracle) checkAux(op string, aux []tree.Transfer) error {
	seen := tree.SetOf()
	for _, t := range aux {
		if t.Component == tree.Full || !o.has(t.Component) {
			return &tree.ArgumentError{Op: op, Field: "aux", Problem: fmt.Sprintf("%v is no configured aux component", t.Component)}
		}
		if seen.Has(t.Component) {
			return &tree.ArgumentError{Op: op, Field: "aux", Problem: fmt.Sprintf("there are two transfers of %v", t.Component)}
		}
		seen |= tree.SetOf(t.Component)
	}
	return nil
}

func repeats(nodes []*node) bool {
	for i, n := range nodes {
		for _, other := range nodes[:i] {
			if n == other {
				return true
			}
		}
	}
	return false
}

func idsOf(nodes []*node) []tree.NodeID {
	var ids []tree.NodeID
	for _, n := range nodes {
		ids = append(ids, n.id)
	}
	return ids
}

// backupWindow returns the nodes whose SWA a backup of n copies, the root side
// first (rules BK-8 to BK-10).
func (o *Oracle) backupWindow(n *node) []*node {
	if !o.has(tree.SWA) || (o.switches.HostTier && !o.switches.SWAHostPool) {
		return nil
	}
	var nodes []*node
	covered := 0
	for up := n; up != o.root && covered < o.window && up.writePending == 0; up = up.parent {
		if o.switches.HostBufferOnly && up != n {
			break
		}
		device, host := up.device[tree.SWA], up.host[tree.SWA]
		if device == nil && host == nil {
			break
		}
		if device != nil && host == nil {
			nodes = append([]*node{up}, nodes...)
		}
		if device != nil {
			covered += len(device)
		} else {
			covered += len(host)
		}
	}
	return nodes
}

// checkOnDevice: only a node with Full on the device can be backed up.
func (o *Oracle) checkOnDevice(op string, n *node) error {
	if n == o.root || o.evicted(n) {
		return &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is the root or not on the device", n.id)}
	}
	return nil
}

// BuildBackupSpec says what a backup of the node copies (rule BK-6).
func (o *Oracle) BuildBackupSpec(id tree.NodeID) (tree.BackupSpec, error) {
	const op = "BuildBackupSpec"
	n, err := o.resolve(op, id)
	if err != nil {
		return tree.BackupSpec{}, err
	}
	if err := o.checkOnDevice(op, n); err != nil {
		return tree.BackupSpec{}, err
	}
	spec := tree.BackupSpec{Full: tree.Slots{}}
	if !n.backedUp() {
		spec.Full = runs(n.device[tree.Full])
	}
	if window := o.backupWindow(n); len(window) > 0 {
		joined := []tree.Slot{}
		for _, m := range window {
			joined = append(joined, m.device[tree.SWA]...)
		}
		spec.Aux = append(spec.Aux, tree.Transfer{Component: tree.SWA, Device: runs(joined), Nodes: idsOf(window)})
	}
	if n.device[tree.Mamba] != nil && n.host[tree.Mamba] == nil { // BK-7
		spec.Aux = append(spec.Aux, tree.Transfer{Component: tree.Mamba, Device: runs(n.device[tree.Mamba]), Nodes: []tree.NodeID{id}})
	}
	return spec, nil
}

// CommitBackup attaches the host slots of a copy that was started (BK-15).
func (o *Oracle) CommitBackup(id tree.NodeID, full tree.Slots, aux []tree.Transfer) (tree.Frees, error) {
	const op = "CommitBackup"
	bad := func(field, format string, args ...any) (tree.Frees, error) {
		return tree.Frees{}, &tree.ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	target, err := o.resolve(op, id)
	if err != nil {
		return tree.Frees{}, err
	}
	targets, err := o.resolveAux(op, aux)
	if err != nil {
		return tree.Frees{}, err
	}
	if err := o.checkOnDevice(op, target); err != nil {
		return tree.Frees{}, err
	}
	fullSlots, err := slotList(op, "full", full)
	if err != nil {
		return tree.Frees{}, err
	}
	if len(fullSlots) > 0 && (len(fullSlots) != len(target.key) || target.backedUp()) {
		return bad("full", "%d slots do not fit node %d of %d units, or it is backed up already", len(fullSlots), id, len(target.key))
	}
	if err := o.checkAux(op, aux); err != nil {
		return tree.Frees{}, err
	}
	pieces := make([][][]tree.Slot, len(aux)) // of each transfer, one a node
	for i, t := range aux {
		list, err := slotList(op, "aux", t.Host)
		if err != nil {
			return tree.Frees{}, err
		}
		if len(targets[i]) == 0 {
			targets[i] = []*node{target}
		}
		if repeats(targets[i]) {
			return bad("aux", "a node stands twice in the %v transfer", t.Component)
		}
		if t.Component == tree.Mamba {
			if len(targets[i]) != 1 || targets[i][0] == o.root || len(list) == 0 {
				return bad("aux", "a mamba transfer is one state of one node")
			}
			pieces[i] = [][]tree.Slot{list}
			continue
		}
		for _, n := range targets[i] {
			if n.device[tree.SWA] == nil {
				return bad("aux", "node %d has no swa on the device", n.id)
			}
			length := len(n.device[tree.SWA])
			if length > len(list) {
				return bad("aux", "there are fewer host slots than the nodes have swa slots")
			}
			pieces[i] = append(pieces[i], list[:length])
			list = list[length:]
		}
		if len(list) > 0 {
			return bad("aux", "%d host slots are left over", len(list))
		}
	}

	if up := target.parent; len(fullSlots) > 0 && up != o.root && !up.backedUp() && !o.switches.WriteBack { // ND-6
		return tree.Frees{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("the parent of node %d is not backed up", id)}
	}

	if len(fullSlots) > 0 {
		o.putHost(target, tree.Full, fullSlots)
		target.awaitsAck = true
	}
	var out dropped
	for i, t := range aux {
		for j, n := range targets[i] {
			if n.host[t.Component] != nil {
				out.host[t.Component] = append(out.host[t.Component], pieces[i][j]...)
				continue
			}
			o.putHost(n, t.Component, pieces[i][j])
		}
	}
	return out.evicted().Frees, nil
}

// UndoBackup takes back what a backup attached whose copy failed (rule FL-11).
func (o *Oracle) UndoBackup(id tree.NodeID, components tree.ComponentSet, ack int64) (tree.Frees, error) {
	const op = "UndoBackup"
	n, err := o.resolve(op, id)
	if err != nil {
		return tree.Frees{}, err
	}
	if n == o.root || n.device[tree.Full] == nil {
		return tree.Frees{}, &tree.OrderError{Op: op, Problem: "the node has no Full on the device"}
	}
	if components.Has(tree.Full) && !o.switches.WriteBack {
		for _, child := range n.children {
			if child.host[tree.Full] != nil && !o.loose {
				return tree.Frees{}, &tree.OrderError{Op: op, Problem: "a child is backed up"}
			}
		}
		components = tree.SetOf(o.components...)
	}
	if ack != 0 && n.writePending == ack {
		n.writePending = 0
	}
	var out dropped
	for _, c := range o.components {
		if components.Has(c) && n.host[c] != nil {
			o.dropHost(n, c, false, &out)
		}
	}
	o.enterDuplicate(n)
	return out.evicted().Frees, nil
}

// checkAck makes the checks that the two calls below share.
func (o *Oracle) checkAck(op string, nodes []*node, ack int64) error {
	if ack == 0 {
		return &tree.ArgumentError{Op: op, Field: "ack", Problem: "0 means no ack"}
	}
	for _, n := range nodes {
		if n == o.root {
			return &tree.ArgumentError{Op: op, Field: "ids", Problem: "the root is never backed up"}
		}
	}
	return nil
}

// MarkWriteThroughPending marks the nodes of a backup and returns them once
// each, ancestors first: the publish list of its ack (rule BK-16).
func (o *Oracle) MarkWriteThroughPending(ids []tree.NodeID, ack int64) ([]tree.NodeID, error) {
	const op = "MarkWriteThroughPending"
	nodes, err := o.resolveAll(op, ids)
	if err != nil {
		return nil, err
	}
	if err := o.checkAck(op, nodes, ack); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.writePending != 0 && n.writePending != ack {
			return nil, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is pending under ack %d", n.id, n.writePending)}
		}
	}
	var once []*node
	for i, n := range nodes {
		n.writePending = ack
		if firstOf(nodes, n) == i {
			once = append(once, n)
		}
	}
	sort.SliceStable(once, func(i, j int) bool { return len(o.pathUp(once[i])) < len(o.pathUp(once[j])) })
	return append([]tree.NodeID{}, idsOf(once)...), nil
}

// firstOf returns the first place of n in the list.
func firstOf(nodes []*node, n *node) int {
	for i, other := range nodes {
		if other == n {
			return i
		}
	}
	return -1
}

// FinishWriteThrough takes the ack of a backup (rule BK-18).
func (o *Oracle) FinishWriteThrough(ids []tree.NodeID, ack int64) error {
	const op = "FinishWriteThrough"
	nodes, err := o.resolveAll(op, ids)
	if err != nil {
		return err
	}
	if err := o.checkAck(op, nodes, ack); err != nil {
		return err
	}
	for _, n := range nodes {
		if n.writePending == ack {
			n.writePending = 0
			o.enterDuplicate(n)
		}
		o.recordStored(n, tree.MediumHost, "")
	}
	return nil
}
