// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// Match finds the deepest boundary of key that every component accepts
// (chapter 6). It may split one node, and it refreshes recency; otherwise it
// changes nothing. The result's nodes live until something evicts them: lock
// before that. The cost is linear in the units matched plus the nodes passed.
func (c *Core) Match(key Key) (MatchResult, error) {
	if c.log != nil {
		c.log.match("match", key)
	}
	v, units, err := c.view("Match", key)
	if err != nil {
		return MatchResult{}, err
	}
	if v.units == 0 {
		r := c.EmptyMatch()
		r.Explanation = Explanation{Units: units, PageRemainder: units}
		if units > 0 {
			r.Explanation.Reason = ReasonPageRemainder
		}
		return r, nil
	}
	m := matching{core: c, best: c.root, deviceBest: c.root}
	relocation := m.walk(c.names.find(key.Namespace), v)

	best := m.best
	if best != c.root {
		for _, h := range c.comps {
			h.refresh(best, false)
		}
	}
	c.stampPath(best)

	r := MatchResult{
		DeviceSlots:    cloneNonNil(m.slots),
		DeviceLen:      m.deviceDepth,
		LastDeviceNode: m.deviceBest.id,
		BestNode:       best.id,
		LastHostNode:   m.deviceBest.id,
		FullHitLen:     m.fullHit,
	}
	if m.deviceDepth < m.fullHit { // slots of nodes below the boundary were collected, too
		r.DeviceSlots = r.DeviceSlots.truncate(m.deviceDepth)
	}
	c.chunk = m.slots[:0]
	if relocation != nil {
		r.Actions = []Action{relocation}
	}
	if c.switches.HostTier {
		r.LastHostNode = best.id
		for n := best; n != m.deviceBest && n.parent != nil; n = n.parent {
			if n.backedUp() {
				r.HostHitLen += n.units
			}
		}
	}
	boundary := r.DeviceLen + r.HostHitLen
	for _, h := range c.comps {
		switch h.id() {
		case SWA:
			r.SWAHostHitLen = h.hostHit(best)
			r.SWABranchingLen = h.branching(m.fullHit, boundary)
		case Mamba:
			r.MambaHostHitLen = h.hostHit(best)
			r.MambaBranchingLen = h.branching(m.fullHit, boundary)
		}
	}
	r.Explanation = m.explain(v, units)
	return r, nil
}

// cloneNonNil copies a list; the copy of an empty one is not nil.
func cloneNonNil(s Slots) Slots {
	if len(s) == 0 {
		return Slots{}
	}
	return append(Slots(nil), s...)
}

// EmptyMatch returns the result of matching an empty key (rule M-25).
func (c *Core) EmptyMatch() MatchResult {
	id := c.root.id
	return MatchResult{DeviceSlots: Slots{}, LastDeviceNode: id, BestNode: id, LastHostNode: id}
}

// Zero turns r into a miss at the given root (rule M-26). The Mamba branching
// point and the actions stay: those must still be applied.
func (r *MatchResult) Zero(root NodeID) {
	*r = MatchResult{
		DeviceSlots:       Slots{},
		LastDeviceNode:    root,
		BestNode:          root,
		LastHostNode:      root,
		MambaBranchingLen: r.MambaBranchingLen,
		Actions:           r.Actions,
		Explanation: Explanation{
			Reason: ReasonNeverSeen, Units: r.Explanation.Units, PageRemainder: r.Explanation.PageRemainder,
		},
	}
}

// matching is the state of one walk down.
type matching struct {
	core                   *Core
	best, deviceBest       *node
	bestDepth, deviceDepth int
	fullHit                int
	slots                  Slots // Full device slots of the path
	// accepted is the deepest end that each component accepts on the device.
	accepted [NumComponents]int
	// otherNamespace: nothing was found, but another namespace has the page.
	otherNamespace bool
}

// walk goes down as far as Full reaches on any tier, and notes the deepest
// nodes that all components accept (rules M-2 to M-11).
func (m *matching) walk(ns *namespace, v view) (relocation Action) {
	c := m.core
	m.slots = c.chunk[:0]
	clear(c.states[:])
	device, any := c.states[:NumComponents], c.states[NumComponents:]
	at := c.root
	for rest := v; rest.units > 0; {
		var child *node
		if ns != nil {
			child = c.edges.find(at, ns, rest)
		}
		if child == nil || child.dead() {
			m.otherNamespace = at == c.root && len(c.names.byName) > 0 && c.edges.inOtherNamespace(rest)
			return relocation
		}
		n := common(child.key(c.extra), rest, c.opts.PageSize)
		partial := n < child.units
		if partial {
			child, relocation = c.split(child, n)
		}
		m.fullHit += n
		m.slots = m.slots.Append(child.state[Full].device)
		at = child

		allDevice, allAny := true, true
		for _, h := range c.comps {
			id := h.id()
			if h.accept(&device[id], at, deviceOnly) {
				m.accepted[id] = m.fullHit
			} else {
				allDevice = false
			}
			if c.switches.HostTier && !h.accept(&any[id], at, anyTier) {
				allAny = false
			}
		}
		if allDevice {
			m.deviceBest, m.deviceDepth = at, m.fullHit
		}
		if c.switches.HostTier && allAny || !c.switches.HostTier && allDevice {
			m.best, m.bestDepth = at, m.fullHit
		}
		if partial {
			return relocation
		}
		rest = rest.from(n)
	}
	return relocation
}

// explain says why the match was not longer, from what the walk saw.
func (m *matching) explain(v view, units int) Explanation {
	e := Explanation{
		Matched: m.deviceDepth, FullOnly: m.fullHit,
		Device: m.deviceDepth, Host: m.bestDepth - m.deviceDepth,
		Units: units, PageRemainder: units - v.units,
	}
	switch {
	case m.deviceDepth == v.units:
		if e.PageRemainder > 0 {
			e.Reason = ReasonPageRemainder
		}
	case m.deviceDepth < m.fullHit:
		var limit hooks
		for _, h := range m.core.comps {
			if limit == nil || m.accepted[h.id()] <= m.accepted[limit.id()] {
				limit = h
			}
		}
		e.Limited, e.LimitedBy, e.Reason = true, limit.id(), limit.missing()
		if e.Host > 0 {
			e.Reason = ReasonHostOnly
		}
	case m.otherNamespace:
		e.Reason = ReasonOtherNamespace
	default:
		e.Reason = ReasonNeverSeen
	}
	return e
}

// stampPath gives best and its ancestors fresh stamps, the deeper the more
// recent (rule N-6): one tick for each, so that a stamp is one number.
func (c *Core) stampPath(best *node) {
	depth := uint64(0)
	for n := best; n != nil; n = n.parent {
		depth++
	}
	c.tick += depth
	stamp := c.tick
	for n := best; n != nil; n = n.parent {
		n.stamp = stamp
		stamp--
		if n.leaf.index != nil {
			c.reorderLeaf(n)
		}
	}
}

// MatchFullDevicePrefix reports how far nodes with Full on the device hold the
// key, whatever the other components say. It changes nothing (rule M-27).
func (c *Core) MatchFullDevicePrefix(key Key) (FullPrefix, error) {
	if c.log != nil {
		c.log.match("match-full-device-prefix", key)
	}
	v, _, err := c.view("MatchFullDevicePrefix", key)
	if err != nil {
		return FullPrefix{}, err
	}
	p := FullPrefix{Node: c.root.id}
	c.walkFullDevice(key.Namespace, v, func(n *node, matched int) bool {
		p.Matched += matched
		p.Pinned += n.units
		p.Node = n.id
		return true
	})
	return p, nil
}

// walkFullDevice visits the nodes with Full on the device that hold v, from the
// root side, with how many units of each are matched. It splits nothing.
func (c *Core) walkFullDevice(name Namespace, v view, visit func(n *node, matched int) bool) {
	ns := c.names.find(name)
	if ns == nil {
		return
	}
	at := c.root
	for v.units > 0 {
		child := c.edges.find(at, ns, v)
		if child == nil || child.state[Full].device == nil {
			return
		}
		n := common(child.key(c.extra), v, c.opts.PageSize)
		if !visit(child, n) || n < child.units {
			return
		}
		at, v = child, v.from(n)
	}
}

// CollectFullDeviceSlots returns the Full device slots of the nodes from one up
// to but excluding until, the root side first (rule M-29). until must be an
// ancestor or the same node, and every node on the way must have a value.
func (c *Core) CollectFullDeviceSlots(from, until NodeID) (Slots, error) {
	const op = "CollectFullDeviceSlots"
	if c.log != nil {
		c.log.nodes("collect-full-device-slots", from, until)
	}
	bottom, err := c.resolve(op, from)
	if err != nil {
		return nil, err
	}
	top, err := c.resolve(op, until)
	if err != nil {
		return nil, err
	}
	var path []*node
	for n := bottom; n != top; n = n.parent {
		if n.parent == nil {
			return nil, &ArgumentError{Op: op, Field: "until", Problem: fmt.Sprintf("node %d is not above node %d", until, from)}
		}
		if n.state[Full].device == nil {
			return nil, &ArgumentError{Op: op, Field: "from", Problem: fmt.Sprintf("node %d on the way has no Full device value", n.id)}
		}
		path = append(path, n)
	}
	out := Slots{}
	for i := len(path) - 1; i >= 0; i-- {
		out = out.Append(path[i].state[Full].device)
	}
	return out, nil
}
