// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// hostLoad is a load back whose ack is not in. It keeps a device lock and a
// host lock on the node (rule LB-11).
type hostLoad struct {
	best         tree.NodeID
	device, host tree.Receipt
}

// loadBackVerb brings a node's host values to the device (rules LB-4 to LB-12,
// without thresholds: the line says what is to be loaded).
func (s *Story) loadBackVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	for _, l := range s.host.loads {
		if l.best == node {
			return "a load back of this node is in flight", nil
		}
	}
	host, err := m.LockHost(node)
	if err != nil {
		return s.run.fault(err), nil
	}
	device, err := m.Lock(node, 0)
	if err != nil {
		s.pools.problem("a node took a host lock and no device lock: %v", err)
		return s.run.fault(err), nil
	}
	giveUp := func(text string) (string, error) {
		s.unlockBoth(m, &hostLoad{best: node, device: device, host: host})
		return text, nil
	}
	spec, err := m.BuildLoadBackSpec(node)
	switch {
	case err != nil:
		return giveUp(s.run.fault(err))
	case spec.Pinned:
		return giveUp("another load back is in flight")
	case spec.Full.Host.Len() == 0 && len(spec.Aux) == 0:
		return giveUp("nothing to load")
	case a.has("fail"):
		return giveUp("failed")
	}
	text = s.run.loadBackSpec(&spec)
	full, back := s.allocLoadBack(&spec)
	if err := m.Unlock(node, device, false); err != nil {
		s.pools.problem("releasing the device lock of a load back: %v", err)
	}
	actions, err := m.CommitLoadBack(node, full, spec)
	if err != nil {
		back()
		if err2 := m.UnlockHost(node, host); err2 != nil {
			s.pools.problem("releasing the host lock of a load back: %v", err2)
		}
		return text + " -> " + s.run.fault(err), nil
	}
	s.execute(actions)
	if device, err = m.Lock(node, 0); err != nil {
		s.pools.problem("locking what was loaded: %v", err)
	}
	s.host.loads = append(s.host.loads, &hostLoad{best: node, device: device, host: host})
	if len(full) > 0 {
		text += " -> " + formatSlots(full)
	}
	return text + "; " + s.run.actions(actions), nil
}

// allocLoadBack takes the device slots of a load back: the Full side alone, and
// what the other components need. back gives them back.
func (s *Story) allocLoadBack(spec *tree.LoadBackSpec) (full tree.Slots, back func()) {
	l := &s.pools
	numbers := l.full.alloc(spec.Full.Host.Len())
	var swas, states []uint32
	for i := range spec.Aux {
		t := &spec.Aux[i]
		switch t.Component {
		case tree.SWA:
			got := l.swas.alloc(t.Host.Len())
			t.Device = slotsFrom(got, swaBase)
			swas = append(swas, got...)
		case tree.Mamba:
			got := l.mamba.alloc(t.Host.Len())
			t.Device = slotsFrom(got, 0)
			states = append(states, got...)
		}
	}
	full = slotsFrom(numbers, 0)
	if len(numbers) == 0 {
		full = nil
	}
	return full, func() {
		for _, f := range numbers {
			l.full.release(f)
		}
		for _, f := range swas {
			l.swas.release(f)
		}
		for _, f := range states {
			l.mamba.release(f)
		}
	}
}

// loaded notes that a raw call gave device slots to nodes.
func (s *Story) loaded(full tree.Slots, aux []tree.Transfer, actions []tree.Action) {
	l := &s.pools
	for _, f := range l.numbers(full, 0) {
		l.full.take(f)
	}
	for _, t := range aux {
		switch t.Component {
		case tree.SWA:
			for _, f := range l.numbers(t.Device, swaBase) {
				l.swas.take(f)
			}
		case tree.Mamba:
			for _, f := range l.numbers(t.Device, 0) {
				l.mamba.take(f)
			}
		}
	}
	s.execute(actions)
}

// rebuildMapping lets Full slots point at SWA slots.
func (l *ledger) rebuildMapping(a tree.RebuildFullToSWAMapping) {
	full, swas := l.numbers(a.Full, 0), l.numbers(a.SWA, swaBase)
	if len(full) != len(swas) {
		l.problem("mapping: %d Full slots and %d SWA slots", len(full), len(swas))
		return
	}
	for i, f := range full {
		if old, ok := l.twin(f); ok {
			l.problem("mapping: Full slot %d has the twin s%d already", f, old)
		}
		l.setTwin(f, swas[i])
	}
}

// ackLoadVerb delivers the ack of the oldest load back, or of a named one.
func (s *Story) ackLoadVerb(a *arguments) (string, error) {
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
		for at < len(s.host.loads) && s.host.loads[at].best != node {
			at++
		}
	}
	if at >= len(s.host.loads) {
		return "nothing is in flight", nil
	}
	l := s.host.loads[at]
	s.host.loads = append(s.host.loads[:at:at], s.host.loads[at+1:]...)
	s.unlockBoth(m, l)
	if err := m.FinishLoadBack(l.best); err != nil {
		return s.run.fault(err), nil
	}
	return s.label(l.best), nil
}

func (s *Story) unlockBoth(m HostMachine, l *hostLoad) {
	if err := m.Unlock(l.best, l.device, false); err != nil {
		s.pools.problem("releasing the device lock of a load back: %v", err)
	}
	if err := m.UnlockHost(l.best, l.host); err != nil {
		s.pools.problem("releasing the host lock of a load back: %v", err)
	}
}
