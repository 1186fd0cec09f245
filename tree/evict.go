// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// walk is an eviction walk of one component that is on (section 10.2).
type walk struct {
	component Component
	want      int

	// SWA and Mamba: the candidate, and with sessions a mark in the list
	// directly in front of it (rules E-15, SR-20).
	cursor   *node
	cursorID NodeID
	mark     *node
	paused   NodeID // node whose state waits for its backup (rule EV-7)
	// pausedLeaf: it was a leaf then, which a session kept. One that has become
	// a leaf since, or has lost the session, loses what an internal node loses:
	// its Full is not this walk's to take.
	pausedLeaf bool

	// Full: the walk goes through the leaf index in order; it has dealt with
	// everything up to past, and up to scanned there is no candidate now.
	// Leaves that joined after since are candidates only if they are in extra:
	// parents of leaves that this walk evicted (rule E-13).
	since    uint64
	past     leafKey
	scanned  leafKey
	extra    []extraLeaf
	parent   *node // of the leaf returned last
	parentID NodeID
}

// extraLeaf is a candidate with the key it had when it became one.
type extraLeaf struct {
	key leafKey
	n   *node
	id  NodeID
}

// EvictStart starts a walk that frees n units (Mamba: state slots) of one
// component; go on with EvictNext. A walk that is on already is an *OrderError.
func (c *Core) EvictStart(id Component, n int) error {
	const op = "EvictStart"
	if c.log != nil {
		c.log.evictStart(id, n)
	}
	if !c.opts.Components.Has(id) {
		return &ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", id)}
	}
	if c.insert != nil {
		return &OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	if c.walks[id] != nil {
		return &OrderError{Op: op, Problem: fmt.Sprintf("an eviction walk of %v is on: end it first", id)}
	}
	w := &c.walkMemory[id]
	*w = walk{component: id, want: n, since: c.leafSeq, past: firstLeafKey, scanned: firstLeafKey, extra: w.extra[:0]}
	c.walks[id] = w
	if id == Full {
		return nil
	}
	list := &c.device[id]
	if c.opts.Sessions {
		w.mark = &node{mark: true, state: make([]componentState, c.nodes.width)}
		p := &list.partitions[0]
		p.link(w.mark, nil)
		p.moveToOldest(w.mark)
	}
	w.aim(c.firstCandidate(list))
	return nil
}

// EvictEnd ends the walk of a component; without one it is an *OrderError.
func (c *Core) EvictEnd(id Component) error {
	if c.log != nil {
		c.log.component("evict-end", id)
	}
	if id >= NumComponents || c.walks[id] == nil {
		return noWalk("EvictEnd", id)
	}
	if m := c.walks[id].mark; m != nil {
		m.state[id].list.unlink(m)
	}
	c.walks[id] = nil
	return nil
}

func noWalk(op string, id Component) error {
	return &OrderError{Op: op, Problem: fmt.Sprintf("no eviction walk of %v is on: start one first", id)}
}

// EvictNext makes at most one change: it drops one internal node's value, or
// returns a leaf for EvictLeaf. totals are the caller's sums of what the walk
// has freed; the walk is done when they reach its target (section 10.2). No
// node and no progress: done or exhausted. Free what it returns before the next
// call.
func (c *Core) EvictNext(id Component, totals Units) (EvictStep, error) {
	const op = "EvictNext"
	if c.log != nil {
		c.log.evictNext(id, totals)
	}
	if id >= NumComponents || c.walks[id] == nil {
		return EvictStep{}, noWalk(op, id)
	}
	if c.insert != nil {
		return EvictStep{}, &OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	w := c.walks[id]
	if w.paused != NoNode {
		return EvictStep{}, &OrderError{Op: op, Problem: fmt.Sprintf("the walk paused at node %d: call FinishStateEviction first", w.paused)}
	}
	if id == Full {
		n := c.nextFullLeaf(w, totals[Full])
		if n == nil {
			return EvictStep{}, nil
		}
		w.parent, w.parentID = n.parent, n.parent.id
		return EvictStep{Node: n.id, MadeProgress: true}, nil
	}
	return c.nextAux(op, w, c.hooksOf(id), totals[id])
}

func (c *Core) hooksOf(id Component) hooks {
	for _, h := range c.comps {
		if h.id() == id {
			return h
		}
	}
	return nil
}

// aim makes n the walk's candidate, and puts the mark in front of it.
func (w *walk) aim(n *node) {
	w.cursor, w.cursorID = n, NoNode
	if n == nil {
		return
	}
	w.cursorID = n.id
	if w.mark != nil {
		list := n.state[w.component].list
		w.mark.state[w.component].list.unlink(w.mark)
		list.link(w.mark, n.state[w.component].newer)
	}
}

// evictable reports whether a walk may take n's value.
func evictable(n *node, id Component) bool {
	return n.state[id].locks == 0 && n.loadBackPending() == 0
}

func (c *Core) firstCandidate(l *recency) *node {
	n := l.oldest()
	for n != nil && !evictable(n, l.component) {
		n = l.newerThan(n)
	}
	return n
}

// candidateAfter returns the next one towards the newest end of the list.
func (c *Core) candidateAfter(l *recency, n *node) *node {
	for n = l.newerThan(n); n != nil && !evictable(n, l.component); {
		n = l.newerThan(n)
	}
	return n
}

// nextAux is one step of an SWA or Mamba walk (rule E-16).
func (c *Core) nextAux(op string, w *walk, h hooks, freed int) (EvictStep, error) {
	id := h.id()
	list := &c.device[id]
	if x := w.cursor; x != nil {
		switch {
		case x.id != w.cursorID || !list.contains(x):
			if w.mark != nil {
				w.aim(c.candidateAfter(list, w.mark))
			} else {
				w.aim(c.firstCandidate(list))
			}
		case !evictable(x, id):
			w.aim(c.after(w, x))
		}
	}
	x := w.cursor
	if x == nil || freed >= w.want {
		return EvictStep{}, nil
	}
	isLeaf := x.leaf.index == &c.leaves
	if isLeaf && c.mayDelete(x, h) {
		w.aim(c.after(w, x))
		return EvictStep{Node: x.id, MadeProgress: true}, nil
	}
	if err := c.checkCascade(op, x, h, isLeaf); err != nil {
		return EvictStep{}, err
	}
	if c.pausesFor(x, id) {
		w.paused, w.pausedLeaf = x.id, isLeaf
		step := EvictStep{MadeProgress: true, Paused: x.id, PausedFor: id}
		if id == SWA {
			step.PausedUnits = x.units
		}
		return step, nil
	}
	return c.tombstone(w, h, x, isLeaf), nil
}

// after returns the walk's next candidate behind x: behind its mark, if it has
// one, but not x itself, which a reference may have moved in front of it again.
func (c *Core) after(w *walk, x *node) *node {
	list := &c.device[w.component]
	from := x
	if w.mark != nil {
		from = w.mark
	}
	next := c.candidateAfter(list, from)
	if next != nil && next == x {
		next = c.candidateAfter(list, x)
	}
	return next
}

// afterGone is after for a candidate that may have left the list.
func (c *Core) afterGone(w *walk, x *node) *node {
	if list := &c.device[w.component]; w.mark == nil && !list.contains(x) {
		return c.firstCandidate(list)
	}
	return c.after(w, x)
}

// tombstone drops x's value of the walk's component in place.
func (c *Core) tombstone(w *walk, h hooks, x *node, isLeaf bool) EvictStep {
	next := c.after(w, x)
	step := EvictStep{MadeProgress: true}
	c.dropDevice(x, h, &step.Evicted)
	c.cascade(x, h, isLeaf, &step.Evicted)
	w.aim(next)
	return step
}

// pausesFor reports whether x's value should be backed up before it goes.
func (c *Core) pausesFor(x *node, id Component) bool {
	s := &c.switches
	return s.WriteBack && s.HostTier && !s.HostBufferOnly && (id == Mamba || s.SWAHostPool) &&
		x.state[id].host == nil && x.writeThroughPending() == 0
}

// FinishStateEviction goes on with a walk that paused at the node, whether its
// backup worked or not: the value goes now. Any other node is an *OrderError.
func (c *Core) FinishStateEviction(id Component, node NodeID) (EvictStep, error) {
	const op = "FinishStateEviction"
	if c.log != nil {
		c.log.finishStateEviction(id, node)
	}
	x, err := c.resolve(op, node)
	if err != nil {
		return EvictStep{}, err
	}
	if id >= NumComponents || c.walks[id] == nil || c.walks[id].paused != node {
		return EvictStep{}, &OrderError{Op: op, Problem: fmt.Sprintf("no eviction walk of %v paused at node %d", id, node)}
	}
	w, h := c.walks[id], c.hooksOf(id)
	isLeaf := w.pausedLeaf && !c.mayDelete(x, h)
	if x.state[id].device == nil || !evictable(x, id) { // nothing to drop any more
		w.paused = NoNode
		w.aim(c.afterGone(w, x))
		return EvictStep{}, nil
	}
	if err := c.checkCascade(op, x, h, isLeaf); err != nil {
		return EvictStep{}, err
	}
	w.paused = NoNode
	return c.tombstone(w, h, x, isLeaf), nil
}

// EvictExcessPathStates drops the shallowest states on the path from tail up
// that are beyond Options.MaxStatesPerPath and free to go (rule I-35).
func (c *Core) EvictExcessPathStates(tail NodeID) (Evicted, error) {
	const op = "EvictExcessPathStates"
	if c.log != nil {
		c.log.nodes("evict-excess-path-states", tail)
	}
	n, err := c.resolve(op, tail)
	if err != nil {
		return Evicted{}, err
	}
	h := c.hooksOf(Mamba)
	if h == nil {
		return Evicted{}, &ArgumentError{Op: op, Field: "tail", Problem: "the mamba component is not configured"}
	}
	var out Evicted
	if c.opts.MaxStatesPerPath < 1 {
		return out, nil
	}
	var holders []*node
	for at := n; at.parent != nil; at = at.parent {
		if at.state[Mamba].device != nil {
			holders = append(holders, at)
		}
	}
	excess := len(holders) - c.opts.MaxStatesPerPath
	for i := len(holders) - 1; i >= 0 && excess > 0; i-- {
		at := holders[i]
		if at == n {
			break
		}
		if at.state[Mamba].locks > 0 || at.children != 1 || at.leaf.index == &c.leaves {
			continue
		}
		c.dropDevice(at, h, &out)
		c.cascade(at, h, false, &out)
		excess--
	}
	return out, nil
}
