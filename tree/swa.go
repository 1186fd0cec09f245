// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "slices"

// swaHooks is the sliding-window component: one slot a token, of which a reader
// needs the last window before the point where it resumes.
type swaHooks struct {
	core   *Core
	window int
}

func (w *swaHooks) id() Component         { return SWA }
func (w *swaHooks) internalPriority() int { return 1 }
func (w *swaHooks) missing() Reason       { return ReasonWindowTombstoned }

// accept is the counter rule M-12. state is 0 until the first gap on the path,
// and from then on one more than the units collected since the last gap.
func (w *swaHooks) accept(state *int, n *node, t tiers) bool {
	s := &n.state[SWA]
	if s.device == nil && (t == deviceOnly || s.host == nil) {
		*state = 1
		return w.core.switches.SWARingLayout && (n.state[Full].device != nil || n.state[Full].host != nil)
	}
	if *state == 0 {
		return true
	}
	*state += n.units
	return *state > w.window
}

// cushion is the span in units that a recency refresh covers.
func (w *swaHooks) cushion() int { return w.window + w.core.opts.PageSize }

func (w *swaHooks) refresh(best *node, _ bool) {
	m := chainMover{list: &w.core.device[SWA]}
	for n, seen := best, 0; n.parent != nil && seen < w.cushion(); n = n.parent {
		if n.state[SWA].device != nil {
			m.move(n)
		}
		seen += n.units
	}
}

func (w *swaHooks) hostHit(best *node) int {
	hit := 0
	for n, seen := best, 0; n.parent != nil && seen < w.window; n = n.parent {
		s := &n.state[SWA]
		if s.device == nil {
			if s.host == nil {
				break
			}
			hit += n.units
		}
		seen += n.units
	}
	return hit
}

func (w *swaHooks) branching(fullHit, boundary int) int {
	aligned := fullHit - fullHit%w.core.opts.PageSize
	if aligned > boundary {
		return aligned
	}
	return 0
}

func (w *swaHooks) split(p, n *node, at int) {
	c := w.core
	from, to := &n.state[SWA], &p.state[SWA]
	to.locks, to.hostLocks, to.refs = from.locks, from.hostLocks, from.refs
	p.swaBoundary, n.swaBoundary = n.swaBoundary, 0
	if n.ext != nil && n.ext.swaHostBoundary != 0 {
		p.extend().swaHostBoundary = n.ext.swaHostBoundary
		n.ext.swaHostBoundary = 0
	}
	if from.host != nil {
		to.host, from.host = splitSlots(from.host, at)
	}
	if from.device != nil {
		to.device, from.device = splitSlots(from.device, at)
		c.device[SWA].addBehind(p, n)
	} else if to.host != nil && to.hostLocks == 0 {
		c.host[SWA].addBehind(p, n)
	}
}

// overlap recovers a tombstone where the insert brings a live window (I-21).
func (w *swaHooks) overlap(in *insertion, n *node, length int) (int, *node) {
	if in.params.PrevPrefixLen >= in.base+length || n.state[SWA].device != nil {
		return length, n
	}
	evicted := in.params.SWAEvictedLen
	if evicted >= in.base+length {
		return length, n
	}
	from := max(evicted-in.base, 0)
	locked := n.state[Full].locks > 0
	if from > 0 {
		_, relocation := w.core.split(n, from)
		in.emit(relocation)
	}
	fresh := in.slice(from, length)
	in.adopt(SWA, in.base+from, in.base+length)
	s := &n.state[Full]
	if locked {
		in.emit(RecoverSWAWithLockedFull{Node: n.id, Kept: s.device.Clone(), Incoming: fresh})
		return from, n
	}
	old := s.device
	w.core.rememberBuffers(fresh)
	w.core.forgetBuffers(old)
	s.device = fresh
	in.adopt(Full, in.base+from, in.base+length)
	in.emit(FreeDeviceKVFullOnly{Slots: old})
	in.emit(SWARebuild{Node: n.id, Full: fresh.Clone()})
	return from, n
}

func (w *swaHooks) unevicted(in *insertion, n *node, length int) *node {
	evicted := in.params.SWAEvictedLen
	if n.state[SWA].device != nil || evicted >= in.base+length {
		return n
	}
	if from := evicted - in.base; from > 0 {
		_, relocation := w.core.split(n, from)
		in.emit(relocation)
	}
	in.emit(SWARebuild{Node: n.id, Full: n.state[Full].device.Clone()})
	in.adopt(SWA, max(in.base, evicted), in.base+length)
	return n
}

func (w *swaHooks) commit(in *insertion, leaf *node, fresh bool) {
	if b := in.params.SWABranchingLen; b > 0 {
		in.result.SWABranchInserted = in.total >= b
	}
	if !fresh {
		return
	}
	start, evicted := in.base, in.params.SWAEvictedLen
	out := evicted - start // units of the leaf that are outside the window
	if out >= leaf.units {
		return
	}
	in.adopt(SWA, max(start, evicted), start+leaf.units)
	if out > 0 {
		w.core.split(leaf, out)
	}
	// Cap: a lock should pin one window, not a long leaf.
	page := w.core.opts.PageSize
	windowPages := (w.window + page - 1) / page * page
	if leaf.units > windowPages {
		older, _ := w.core.split(leaf, leaf.units-windowPages)
		in.emit(SWARebuild{Node: older.id, Full: older.state[Full].device.Clone()})
	}
	in.emit(SWARebuild{Node: leaf.id, Full: leaf.state[Full].device.Clone()})
}

// lock protects the segment that covers one window above the anchor (L-6).
func (w *swaHooks) lock(anchor *node, r *Receipt) {
	c := w.core
	size := &c.sizes[SWA]
	covered := 0
	for n := anchor; n.parent != nil; n = n.parent {
		s := &n.state[SWA]
		if s.locks++; s.locks == 1 && s.device != nil {
			size.evictable -= n.units
			size.protected += n.units
		}
		if covered += n.units; covered >= w.window {
			if n.swaBoundary == 0 {
				c.uuid++
				n.swaBoundary = c.uuid
			}
			r.Boundary[SWA] = n.swaBoundary
			return
		}
	}
}

func (w *swaHooks) canUnlock(anchor *node, r *Receipt) bool {
	for n := anchor; n.parent != nil; n = n.parent {
		if n.state[SWA].locks == 0 {
			return false
		}
		if b := r.Boundary[SWA]; b != 0 && n.swaBoundary == b {
			return true
		}
	}
	return r.Boundary[SWA] == 0
}

func (w *swaHooks) unlock(anchor *node, r *Receipt) {
	w.release(anchor, r, func(*node) {})
}

// release lowers the segment's locks and calls done on each node whose last
// lock went, when it is booked and its leaf membership is right.
func (w *swaHooks) release(anchor *node, r *Receipt, done func(*node)) {
	size := &w.core.sizes[SWA]
	for n := anchor; n.parent != nil; n = n.parent {
		last := r.Boundary[SWA] != 0 && n.swaBoundary == r.Boundary[SWA]
		s := &n.state[SWA]
		if s.locks--; s.locks == 0 {
			if s.device != nil {
				size.protected -= n.units
				size.evictable += n.units
			}
			w.core.refreshLeaf(n)
			done(n)
		}
		if last {
			return
		}
	}
}

// devicePayload is the Full slots: the pool knows their SWA partners (E-11).
func (w *swaHooks) devicePayload(n *node) Slots { return n.state[Full].device }

// Session coverage is the window and its cushion above the frontier (SR-11).
func (w *swaHooks) advance(s *sessionFrontier, old, fresh *node) {
	w.add(s, fresh)
	if old != nil {
		w.remove(s, old)
	}
}

func (w *swaHooks) add(s *sessionFrontier, frontier *node) {
	covered := 0
	for n := frontier; n.parent != nil && covered < w.cushion(); n = n.parent {
		w.core.addRefs(n, SWA, 1)
		covered += n.units
	}
	s.setCovered(frontier.id, covered)
}

func (w *swaHooks) remove(s *sessionFrontier, frontier *node) {
	left := s.takeCovered(frontier.id)
	for n := frontier; n.parent != nil && left > 0; n = n.parent {
		w.core.addRefs(n, SWA, -1)
		left -= n.units
	}
}

func (w *swaHooks) recede(s *sessionFrontier, dying, fallback *node) {
	w.remove(s, dying)
	if fallback != nil {
		w.add(s, fallback)
	}
}

// backupNodes collects one window from n up: it ends at a gap, and at a node
// whose own backup is in flight, since that one owns everything above (BK-9).
func (w *swaHooks) backupNodes(n *node) []*node {
	switches := &w.core.switches
	if switches.HostTier && !switches.SWAHostPool {
		return nil
	}
	var nodes []*node
	for covered := 0; n.parent != nil && covered < w.window && n.writeThroughPending() == 0; n = n.parent {
		s := &n.state[SWA]
		if s.device == nil && s.host == nil {
			break
		}
		covered += n.units
		if s.device != nil && s.host == nil {
			nodes = append(nodes, n)
		}
		if switches.HostBufferOnly {
			break // staging is keyed by the target's own pages (BK-10)
		}
	}
	slices.Reverse(nodes)
	return nodes
}
