// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// fullHooks is the base component: one slot a token, all of a prefix is needed,
// and it can be cut at any page.
type fullHooks struct{ core *Core }

func (f *fullHooks) id() Component         { return Full }
func (f *fullHooks) internalPriority() int { return 2 }
func (f *fullHooks) missing() Reason       { return ReasonHostOnly }

func (f *fullHooks) accept(_ *int, n *node, t tiers) bool {
	s := &n.state[Full]
	return s.device != nil || t == anyTier && s.host != nil
}

func (f *fullHooks) refresh(*node, bool)    {}
func (f *fullHooks) hostHit(*node) int      { return 0 }
func (f *fullHooks) branching(int, int) int { return 0 }

func (f *fullHooks) split(p, n *node, at int) {
	from, to := &n.state[Full], &p.state[Full]
	if from.device != nil {
		to.device, from.device = splitSlots(from.device, at)
	}
	if from.host != nil {
		to.host, from.host = splitSlots(from.host, at)
	}
	to.locks, to.hostLocks, to.refs = from.locks, from.hostLocks, from.refs
	if n.ext != nil && n.ext.fullHostBoundary != 0 {
		p.extend().fullHostBoundary = n.ext.fullHostBoundary
		n.ext.fullHostBoundary = 0
	}
}

func (f *fullHooks) overlap(_ *insertion, n *node, length int) (int, *node) { return length, n }
func (f *fullHooks) unevicted(_ *insertion, n *node, _ int) *node           { return n }
func (f *fullHooks) commit(*insertion, *node, bool)                         {}

// lock protects the whole path (rule L-4).
func (f *fullHooks) lock(anchor *node, r *Receipt) {
	size := &f.core.sizes[Full]
	for n := anchor; n.parent != nil; n = n.parent {
		s := &n.state[Full]
		if s.locks++; s.locks == 1 {
			if s.device != nil {
				size.evictable -= n.units
				size.protected += n.units
				r.Delta += n.units
			}
			if n.leaf.index != nil {
				f.core.refreshLeaf(n)
			}
		}
	}
}

func (f *fullHooks) canUnlock(anchor *node, _ *Receipt) bool {
	for n := anchor; n.parent != nil; n = n.parent {
		if n.state[Full].locks == 0 {
			return false
		}
	}
	return true
}

func (f *fullHooks) unlock(anchor *node, _ *Receipt) {
	size := &f.core.sizes[Full]
	for n := anchor; n.parent != nil; n = n.parent {
		s := &n.state[Full]
		if s.locks--; s.locks == 0 {
			if s.device != nil {
				size.protected -= n.units
				size.evictable += n.units
			}
			f.core.refreshLeaf(n)
		}
	}
}

func (f *fullHooks) devicePayload(n *node) Slots { return n.state[Full].device }

// Session coverage is the path below the frontier above (rule SR-11).
func (f *fullHooks) advance(_ *sessionFrontier, old, fresh *node) {
	f.cover(fresh, old, 1)
}

func (f *fullHooks) remove(_ *sessionFrontier, frontier *node) { f.cover(frontier, nil, -1) }

func (f *fullHooks) recede(_ *sessionFrontier, dying, fallback *node) { f.cover(dying, fallback, -1) }

// cover adds delta to the references of the nodes from n up to, not including,
// until (nil: the root).
func (f *fullHooks) cover(n, until *node, delta int32) {
	for ; n.parent != nil && n != until; n = n.parent {
		f.core.addRefs(n, Full, delta)
	}
}

func (f *fullHooks) backupNodes(n *node) []*node {
	if n.state[Full].device == nil || n.backedUp() {
		return nil
	}
	return []*node{n}
}
