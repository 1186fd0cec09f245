// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"slices"
)

// SanityCheck verifies every invariant of chapter 14, with the operations that
// the caller has in flight. It reads only, and returns everything that it finds
// as one *CheckError, or nil. It costs a walk over the tree.
func (c *Core) SanityCheck(writeThrough, loadBack []InFlight) error {
	if c.log != nil {
		c.log.sanityCheck(writeThrough, loadBack)
	}
	k := checker{core: c, seen: map[*node]bool{}}
	k.root()
	for n := c.root.following(); n != nil && len(k.seen) <= c.nodes.len(); n = n.following() {
		k.seen[n] = true
		k.structure(n)
		k.data(n)
		k.tracking(n)
	}
	k.arena()
	k.lists()
	k.sizes()
	if c.opts.Sessions {
		c.checkSessions(k.report)
	}
	k.inFlight(writeThrough, loadBack)
	k.duplicates()
	if len(k.found) == 0 {
		return nil
	}
	return &CheckError{Nodes: len(k.seen) + 1, Violations: k.found}
}

type checker struct {
	core   *Core
	seen   map[*node]bool // reachable nodes but the root
	found  []Violation
	counts [2]int // members found of the D-leaf and the H-leaf set
}

func (k *checker) report(check string, n *node, format string, args ...any) {
	v := Violation{Check: check, Detail: fmt.Sprintf(format, args...)}
	if n != nil {
		v.Node = n.id
	}
	k.found = append(k.found, v)
}

func (k *checker) root() {
	r := k.core.root
	if r.state[Full].device == nil || len(r.state[Full].device) > 0 {
		k.report("V-1", r, "the root's Full device value is %v, not the empty list", r.state[Full].device)
	}
	if r.state[Full].locks <= 0 {
		k.report("V-2", r, "the root's Full lock count is %d", r.state[Full].locks)
	}
	if r.parent != nil {
		k.report("V-3", r, "the root has a parent")
	}
}

func (k *checker) structure(n *node) {
	c := k.core
	if n.ns == nil || c.edges.find(n.parent, n.ns, n.key(c.extra)) != n {
		k.report("V-4", n, "the parent %d does not find it under its first page", n.parent.id)
	}
	if n.units <= 0 || n.units%c.opts.PageSize != 0 || len(n.raw) != n.units+c.extra {
		k.report("V-5", n, "key of %d units in %d raw tokens", n.units, len(n.raw))
	}
	if n.parent != c.root && n.ns != n.parent.ns {
		k.report("V-5", n, "its namespace is not its parent's")
	}
	children, onDevice := int32(0), int32(0)
	for child := n.firstChild; child != nil; child = child.next {
		if child.parent != n {
			k.report("V-4", child, "its parent is not %d, which lists it", n.id)
		}
		children++
		if child.state[Full].device != nil {
			onDevice++
		}
	}
	if children != n.children || onDevice != n.deviceChildren {
		k.report("V-4", n, "counts %d children (%d with Full on device), has %d (%d)", n.children, n.deviceChildren, children, onDevice)
	}
}

func (k *checker) data(n *node) {
	c := k.core
	full := &n.state[Full]
	for i := range n.state {
		id, s := Component(i), &n.state[i]
		if id != Full {
			if s.device != nil && full.device == nil {
				k.report("V-7", n, "%v on the device without Full", id)
			}
			if s.host != nil && full.host == nil && !(c.looseHost && full.device != nil) {
				k.report("V-8", n, "%v on the host without Full", id)
			}
			if s.locks > full.locks {
				k.report("V-11", n, "%v lock count %d exceeds Full's %d", id, s.locks, full.locks)
			}
		}
		if s.locks < 0 || s.hostLocks < 0 {
			k.report("V-12", n, "%v lock counts are %d and %d", id, s.locks, s.hostLocks)
		}
		if id == Mamba {
			continue
		}
		for _, v := range []Slots{s.device, s.host} {
			if v != nil && v.Len() != n.units {
				k.report("V-13", n, "%v value of %d slots for %d units", id, v.Len(), n.units)
			}
		}
	}
	if n.dead() {
		k.report("V-9", n, "Full is on no tier")
	}
	if p := n.parent; p != c.root {
		if full.device != nil && p.state[Full].device == nil {
			k.report("V-10", n, "Full on the device below a node without")
		}
		if full.host != nil && p.state[Full].host == nil && !c.looseHost {
			k.report("V-10", n, "Full on the host below a node without")
		}
	}
	if e := n.ext; e != nil {
		for _, list := range [][]Digest{e.hashes, e.eventHashes} {
			if list != nil && len(list) != n.units/c.opts.PageSize {
				k.report("V-14", n, "%d hashes for %d units", len(list), n.units)
			}
		}
	}
}

func (k *checker) tracking(n *node) {
	c := k.core
	for i, x := range []*leafIndex{&c.leaves, &c.hostLeaves} {
		want, name := c.isDeviceLeaf(n), "V-15"
		if i == 1 {
			want, name = c.isHostLeaf(n), "V-16"
		}
		in := n.leaf.index == x
		if in {
			k.counts[i]++
			if key := c.leafKey(n); key != n.leaf.key {
				k.report(name, n, "its place in the leaf order is %v, its key is %v", n.leaf.key, key)
			}
		}
		if in != want {
			k.report(name, n, "in the leaf set: %v, by definition: %v", in, want)
		}
	}
	if n.state[Full].list != nil {
		k.report("V-19", n, "Full is in a recency list")
	}
}

func (k *checker) arena() {
	c := k.core
	if n := c.nodes.len(); n != len(k.seen)+1 {
		k.report("V-6", nil, "the arena holds %d nodes, %d are reachable", n, len(k.seen)+1)
	}
	for i, x := range []*leafIndex{&c.leaves, &c.hostLeaves} {
		if x.count != k.counts[i] {
			k.report("V-18", nil, "leaf set %d counts %d, %d are reachable", i, x.count, k.counts[i])
		}
		n, at := 0, x.first()
		for ; at != nil && n <= x.count; at = x.after(at.leaf.key) {
			n++
		}
		if n != x.count {
			k.report("V-18", nil, "leaf set %d counts %d, %d are in order", i, x.count, n)
		}
	}
}

func (k *checker) lists() {
	c := k.core
	for _, h := range c.comps {
		id := h.id()
		if id == Full {
			continue
		}
		for _, tier := range []struct {
			list  *recency
			check string
		}{{&c.device[id], "V-20"}, {&c.host[id], "V-21"}} {
			want := 0
			for n := c.root.following(); n != nil; n = n.following() {
				s := &n.state[id]
				belongs := s.device != nil
				if tier.check == "V-21" {
					belongs = s.device == nil && s.host != nil && s.hostLocks == 0
				}
				if belongs {
					want++
				}
				if belongs != tier.list.contains(n) {
					k.report(tier.check, n, "in the %v list: %v, by its values: %v", id, tier.list.contains(n), belongs)
				}
			}
			if tier.list.len() != want {
				k.report(tier.check, nil, "the %v list counts %d, %d belong there", id, tier.list.len(), want)
			}
			k.links(tier.list, c.walks[id])
		}
	}
}

// links walks a list both ways (rules V-22 to V-24, V-36).
func (k *checker) links(l *recency, w *walk) {
	id := l.component
	for i := range l.partitions {
		p := &l.partitions[i]
		forward, back := 0, 0
		limit := p.count + len(k.core.walks) + 1
		var last *node
		for n := p.newest; n != nil && forward <= limit; last, n = n, n.state[id].older {
			if n.mark {
				if w == nil || w.mark != n {
					k.report("V-36", nil, "a walk's mark is left in the %v list", id)
				}
				limit++
				continue
			}
			forward++
			s := &n.state[id]
			if s.list != p {
				k.report("V-22", n, "linked in a %v list that it does not belong to", id)
			}
			if (s.refs > 0) != (i == 1) {
				k.report("V-24", n, "%d session references, in partition %d", s.refs, i)
			}
		}
		if last != p.oldest {
			k.report("V-23", last, "the %v list does not end at its oldest node", id)
		}
		for n := p.oldest; n != nil && back <= limit; n = n.state[id].newer {
			if !n.mark {
				back++
			}
		}
		if forward != p.count || back != p.count {
			k.report("V-23", nil, "the %v list counts %d nodes, has %d one way and %d the other", id, p.count, forward, back)
		}
	}
}

func (k *checker) sizes() {
	c := k.core
	for _, h := range c.comps {
		id := h.id()
		var want componentSize
		for n := c.root.following(); n != nil; n = n.following() {
			if n.state[id].locks > 0 {
				want.protected += n.deviceUnits(id)
			} else {
				want.evictable += n.deviceUnits(id)
			}
		}
		if got := c.sizes[id]; got.evictable != want.evictable {
			k.report("V-26", nil, "%v evictable size is %d, recounted %d", id, got.evictable, want.evictable)
		}
		if got := c.sizes[id]; got.protected != want.protected {
			k.report("V-27", nil, "%v protected size is %d, recounted %d", id, got.protected, want.protected)
		}
	}
}

// duplicates holds the registry against the nodes (rule V-25).
func (k *checker) duplicates() {
	c := k.core
	tracked := map[*node]bool{}
	for n := c.firstDuplicate; n != nil && !tracked[n]; n = n.ext.nextDuplicate {
		tracked[n] = true
		if !k.seen[n] || n.evicted() || !n.backedUp() {
			k.report("V-25", n, "registered as a duplicate, but Full is not on both tiers of a live node")
		}
	}
	for n := c.root.following(); n != nil; n = n.following() {
		if !n.evicted() && n.backedUp() && n.settled() && !tracked[n] && !(n.ext != nil && n.ext.awaitsAck) {
			k.report("V-25", n, "Full is on both tiers, but it is not registered as a duplicate")
		}
	}
}

func (k *checker) inFlight(writeThrough, loadBack []InFlight) {
	c := k.core
	loading := map[int64]bool{}
	for i, list := range [][]InFlight{writeThrough, loadBack} {
		for _, f := range list {
			if i == 1 {
				loading[f.ID] = true
			}
			n := c.nodes.find(f.Node)
			if n == nil {
				k.found = append(k.found, Violation{Check: "V-34", Node: f.Node, Detail: fmt.Sprintf("operation %d is in flight on a node that does not exist", f.ID)})
				continue
			}
			if n.state[Full].locks <= 0 {
				k.report("V-33", n, "operation %d is in flight on a node without a Full lock", f.ID)
			}
		}
	}
	for n := c.root.following(); n != nil; n = n.following() {
		if id := n.loadBackPending(); id != 0 && !loading[id] {
			k.report("V-35", n, "load-back mark %d belongs to nothing in flight", id)
		}
	}
	// One order for one state of the tree, whatever the order of the checks.
	slices.SortStableFunc(k.found, func(a, b Violation) int { return cmp.Compare(a.Node, b.Node) })
}
