// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"strings"

	"github.com/treecore/treecore/tree"
)

func (s *Story) backupVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	if a.has("fail") {
		s.host.fails++
	}
	text, _ = s.runBackup(m, node, tree.SetOf(tree.Full, tree.SWA, tree.Mamba), !a.has("no-lock"))
	return s.withNotes(text), nil
}

// runBackup backs up one node (rules BK-12 to BK-17), or of it alone the
// components named. It fails if there is no room.
func (s *Story) runBackup(m HostMachine, node tree.NodeID, only tree.ComponentSet, lock bool) (text string, ok bool) {
	info, err := m.Inspect(node)
	if err != nil {
		return s.run.fault(err), false
	}
	spec, err := m.BuildBackupSpec(node)
	if err != nil {
		return s.run.fault(err), false
	}
	if info.WriteThroughPending != 0 {
		return "pending already", true
	}
	full, aux := spec.Full, spec.Aux
	if !only.Has(tree.Full) {
		full, aux = nil, nil
		for c := tree.SWA; c < tree.NumComponents; c++ {
			if v := info.Components[c].Device; only.Has(c) && v != nil && info.Components[c].Host == nil {
				aux = append(aux, tree.Transfer{Component: c, Device: v, Nodes: []tree.NodeID{node}})
			}
		}
	}
	if full.Len() == 0 && len(aux) == 0 {
		return "nothing to back up", true
	}
	release := s.keepParent(m, &info, full.Len())
	hostFull, aux, ok := s.allocBackup(m, full, aux)
	release()
	if !ok {
		return "failed", false
	}
	return s.startBackup(m, node, hostFull, aux, lock)
}

// keepParent holds the parent's host copy while room is made for that of its
// child: outside write-back the child's stands on it (rule ND-6), and it may be
// a stored mirror that the host would give up.
func (s *Story) keepParent(m HostMachine, n *tree.NodeInfo, full int) (release func()) {
	h := &s.host
	if h.switches.WriteBack || h.limit[tree.Full] == 0 || s.pools.host[tree.Full].count+full <= h.limit[tree.Full] {
		return func() {}
	}
	lock, err := m.LockHost(n.Parent)
	if err != nil {
		return func() {}
	}
	return func() {
		if err := m.UnlockHost(n.Parent, lock); err != nil {
			s.pools.problem("releasing the host lock of a parent: %v", err)
		}
	}
}

// allocBackup finds the host side of a backup; what it took is given back if
// anything is short.
func (s *Story) allocBackup(m HostMachine, full tree.Slots, aux []tree.Transfer) (tree.Slots, []tree.Transfer, bool) {
	type taken struct {
		c     tree.Component
		slots []uint32
	}
	var all []taken
	alloc := func(c tree.Component, n int) (tree.Slots, bool) {
		slots, ok := s.hostAlloc(m, c, n)
		if !ok {
			for _, t := range all {
				s.hostRelease(t.c, t.slots)
			}
			return nil, false
		}
		all = append(all, taken{c, slots})
		return slotsFrom(slots, 0), true
	}
	var hostFull tree.Slots
	if n := full.Len(); n > 0 {
		var ok bool
		if hostFull, ok = alloc(tree.Full, n); !ok {
			return nil, nil, false
		}
	}
	out := make([]tree.Transfer, len(aux))
	for i, t := range aux {
		host, ok := alloc(t.Component, t.Device.Len())
		if !ok {
			return nil, nil, false
		}
		t.Host = host
		out[i] = t
	}
	return hostFull, out, true
}

func (s *Story) startBackup(m HostMachine, node tree.NodeID, full tree.Slots, aux []tree.Transfer, lock bool) (string, bool) {
	frees, err := m.CommitBackup(node, full, aux)
	if err != nil {
		s.hostRelease(tree.Full, s.pools.numbers(full, 0))
		for _, t := range aux {
			s.hostRelease(t.Component, s.pools.numbers(t.Host, 0))
		}
		return s.run.fault(err), false
	}
	s.host.acks++
	w := &hostWrite{ack: s.host.acks, target: node, locked: lock}
	out := words{"host"}
	if len(full) > 0 {
		out.add("full", formatSlots(full))
	}
	ids := []tree.NodeID{node}
	for _, t := range aux {
		out.add(t.Component.String(), formatSlots(t.Host))
		ids = append(ids, t.Nodes...)
	}
	if lock {
		if w.receipt, err = m.Lock(node, 0); err != nil {
			s.pools.problem("locking a node that was backed up: %v", err)
		}
	}
	if w.publish, err = m.MarkWriteThroughPending(ids, w.ack); err != nil {
		s.pools.problem("marking a backup: %v", err)
	}
	s.host.writes = append(s.host.writes, w)
	out.add("ack", formatInt64(w.ack))
	out.add("publish", s.run.nodesText(w.publish))
	if back := s.run.evicted(tree.Evicted{Frees: frees}, nil); back != "nothing" {
		out = append(out, "back", back)
	}
	return out.String(), true
}

// ackVerb delivers acks: of the oldest backup, of the one whose target is
// named, or of all.
func (s *Story) ackVerb(a *arguments) (string, error) {
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	at := 0
	if a.has("node") {
		node, err := required(a, "node", s.resolve)
		if err != nil {
			return "", err
		}
		for at < len(s.host.writes) && s.host.writes[at].target != node {
			at++
		}
	}
	if at >= len(s.host.writes) {
		return "nothing is in flight", nil
	}
	if a.has("all") {
		return strings.Join(s.ackAll(m), "; "), nil
	}
	return s.deliver(m, at), nil
}

func (s *Story) ackAll(m HostMachine) []string {
	var lines []string
	for len(s.host.writes) > 0 {
		lines = append(lines, s.deliver(m, 0))
	}
	return lines
}

// deliver ends one backup (rule BK-18).
func (s *Story) deliver(m HostMachine, at int) string {
	w := s.host.writes[at]
	s.host.writes = append(s.host.writes[:at:at], s.host.writes[at+1:]...)
	text := s.run.nodesText(w.publish)
	if err := m.FinishWriteThrough(w.publish, w.ack); err != nil {
		text = s.run.fault(err)
	}
	if w.locked {
		if err := m.Unlock(w.target, w.receipt, false); err != nil {
			s.pools.problem("releasing the lock of a backup: %v", err)
		}
	}
	return text
}

// runBackupAction executes the backup that an insert asked for; the rest is
// dropped after the first failure (rule BK-13).
func (s *Story) runBackupAction(b *tree.BackupKV) (lines []string) {
	m, ok := s.m.(HostMachine)
	if ok && s.host.switches.ExternalLinker {
		for _, id := range b.Nodes {
			lines = append(lines, "  offload "+s.label(id)+": "+s.runOffload(m, id, true))
		}
		return lines
	}
	if !ok || !s.host.on || s.host.switches.HostBufferOnly {
		return nil
	}
	for _, id := range b.Nodes {
		text, ok := s.runBackup(m, id, tree.SetOf(tree.Full, tree.SWA, tree.Mamba), true)
		for _, note := range s.takeNotes() {
			lines = append(lines, "  "+note)
		}
		lines = append(lines, "  backup "+s.label(id)+": "+text)
		if !ok {
			break
		}
	}
	return lines
}

// writeBackLeaf does what eviction with write-back asks for: back the leaf up
// and demote it, or drop what hangs on it (rules WB-1 to WB-6).
func (s *Story) writeBackLeaf(b *tree.BackupKV, totals *tree.Units) string {
	m, ok := s.m.(HostMachine)
	if !ok || !s.host.on || len(b.Nodes) == 0 {
		return ""
	}
	node := b.Nodes[len(b.Nodes)-1]
	parts := []string{}
	done := true
	for _, id := range b.Nodes {
		var text string
		if text, done = s.runBackup(m, id, tree.SetOf(tree.Full, tree.SWA, tree.Mamba), false); !done {
			parts = append(parts, text)
			break
		}
		parts = append(parts, text)
	}
	parts = append(s.takeNotes(), parts...)
	s.ackAll(m)
	backed, err := m.IsBackedUp(node)
	var v tree.Evicted
	switch {
	case err != nil:
		parts = append(parts, s.run.fault(err))
	case done || backed:
		v, err = m.Demote(node)
		parts = append(parts, "demoted "+s.run.evicted(v, err))
	default:
		var dropped bool
		v, dropped, err = m.DropSubtreeNoHost(node)
		text := s.run.dropSubtree(&v, dropped, err)
		if dropped {
			text = "dropped " + text
		}
		parts = append(parts, text)
	}
	totals.Add(v.Freed)
	return " -> " + strings.Join(parts, " -> ")
}

// finishPause goes on after a pause of a walk: it backs up the one value, as
// well as it can, and ends the eviction of it (rule EV-7).
func (s *Story) finishPause(c tree.Component, node tree.NodeID, backup bool, totals *tree.Units) (text string, more bool) {
	m, ok := s.m.(HostMachine)
	if !ok {
		return noHostMachine, false
	}
	s.host.paused[c] = tree.NoNode
	var parts []string
	if backup {
		text, done := s.runBackup(m, node, tree.SetOf(c), false)
		parts = append(append(parts, s.takeNotes()...), "backup "+text)
		if done {
			s.ackAll(m)
		}
	}
	step, err := m.FinishStateEviction(c, node)
	if err != nil {
		return strings.Join(append(parts, s.run.fault(err)), " -> "), false
	}
	totals.Add(step.Freed)
	return strings.Join(append(parts, "finish "+s.run.evictStep(&step)), " -> "), true
}

// finishPauseVerb ends a pause that walk-next left.
func (s *Story) finishPauseVerb(a *arguments) (string, error) {
	c, err := required(a, "component", parseComponent)
	if err != nil {
		return "", err
	}
	node := s.host.paused[c]
	if node == tree.NoNode {
		return "no walk is paused", nil
	}
	w := s.walks[c]
	if w == nil {
		w = &storyWalk{}
	}
	text, _ := s.finishPause(c, node, !a.has("no-backup"), &w.totals)
	return text, nil
}
