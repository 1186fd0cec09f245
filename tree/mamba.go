// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// mambaHooks is the recurrent component: one state for a whole prefix, usable
// at exactly the position where it was taken.
type mambaHooks struct {
	core *Core
	grid int
}

func (m *mambaHooks) id() Component         { return Mamba }
func (m *mambaHooks) internalPriority() int { return 0 }
func (m *mambaHooks) missing() Reason       { return ReasonNoState }

func (m *mambaHooks) accept(_ *int, n *node, t tiers) bool {
	s := &n.state[Mamba]
	return s.device != nil || t == anyTier && s.host != nil
}

func (m *mambaHooks) refresh(best *node, afterInsert bool) {
	if !afterInsert && best.state[Mamba].device != nil {
		m.core.device[Mamba].renew(best)
	}
}

func (m *mambaHooks) hostHit(best *node) int {
	if s := &best.state[Mamba]; s.device == nil && s.host != nil {
		return 1
	}
	return 0
}

func (m *mambaHooks) branching(fullHit, boundary int) int {
	aligned := fullHit - fullHit%m.grid
	if aligned > boundary {
		return aligned
	}
	return 0
}

// split leaves everything with the suffix: a state belongs to one position.
func (m *mambaHooks) split(_, _ *node, _ int) {}

func (m *mambaHooks) overlap(_ *insertion, n *node, length int) (int, *node) { return length, n }
func (m *mambaHooks) unevicted(_ *insertion, n *node, _ int) *node           { return n }

func (m *mambaHooks) commit(in *insertion, target *node, fresh bool) {
	c := m.core
	if target.state[Mamba].device != nil {
		c.device[Mamba].renew(target)
		c.touch(target)
		in.result.MambaExist = true
		return
	}
	c.setAuxDevice(target, Mamba, in.params.MambaState.canonical())
	if !fresh {
		c.touch(target)
	}
	if c.opts.MaxStatesPerPath >= 1 {
		in.emit(MambaEvictExcessPathStates{Tail: target.id})
	}
}

func (m *mambaHooks) lock(anchor *node, _ *Receipt) {
	s := &anchor.state[Mamba]
	if s.locks++; s.locks == 1 {
		units := s.device.Len()
		m.core.sizes[Mamba].evictable -= units
		m.core.sizes[Mamba].protected += units
	}
}

func (m *mambaHooks) canUnlock(anchor *node, _ *Receipt) bool {
	return anchor.state[Mamba].locks > 0
}

func (m *mambaHooks) unlock(anchor *node, _ *Receipt) {
	s := &anchor.state[Mamba]
	if s.locks--; s.locks == 0 {
		units := s.device.Len()
		m.core.sizes[Mamba].protected -= units
		m.core.sizes[Mamba].evictable += units
		m.core.refreshLeaf(anchor)
	}
}

func (m *mambaHooks) devicePayload(n *node) Slots { return n.state[Mamba].device }

// Session coverage is the frontier node itself (SR-11).
func (m *mambaHooks) advance(_ *sessionFrontier, old, fresh *node) {
	m.core.addRefs(fresh, Mamba, 1)
	if old != nil {
		m.core.addRefs(old, Mamba, -1)
	}
}

func (m *mambaHooks) remove(_ *sessionFrontier, frontier *node) {
	m.core.addRefs(frontier, Mamba, -1)
}

func (m *mambaHooks) recede(_ *sessionFrontier, dying, fallback *node) {
	m.core.addRefs(dying, Mamba, -1)
	if fallback != nil {
		m.core.addRefs(fallback, Mamba, 1)
	}
}

func (m *mambaHooks) backupNodes(n *node) []*node {
	if s := &n.state[Mamba]; s.device == nil || s.host != nil {
		return nil
	}
	return []*node{n}
}
