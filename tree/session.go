// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"
)

// maxClosedSessions is how many closed session ids are remembered (rule SR-1).
const maxClosedSessions = 8192

// sessionBook knows the sessions and what they refer to (chapter 12).
type sessionBook struct {
	generation int64
	open       map[string]int64 // generation of each open session
	closed     []string         // in order of closing; reopened ones are blank
	isClosed   map[string]int   // place in the order of closing, from 1
	closings   int              // closings so far
	frontiers  [NumComponents]map[string]*sessionFrontier
}

// sessionFrontier is the deepest registered nodes of one session, for one
// component: one a path (rule SR-9).
type sessionFrontier struct {
	session string
	nodes   []*node // ascending ids
	// covered is how many units above each frontier node SWA's coverage
	// reaches.
	covered map[NodeID]int
}

func (f *sessionFrontier) setCovered(id NodeID, units int) {
	if f.covered == nil {
		f.covered = map[NodeID]int{}
	}
	f.covered[id] = units
}

func (f *sessionFrontier) takeCovered(id NodeID) int {
	units := f.covered[id]
	delete(f.covered, id)
	return units
}

func (f *sessionFrontier) find(n *node) (int, bool) {
	return slices.BinarySearchFunc(f.nodes, n.id, func(a *node, id NodeID) int { return cmp.Compare(a.id, id) })
}

func (f *sessionFrontier) has(n *node) bool {
	_, ok := f.find(n)
	return ok
}

func (b *sessionBook) clear() {
	*b = sessionBook{open: map[string]int64{}, isClosed: map[string]int{}}
	for id := range b.frontiers {
		b.frontiers[id] = map[string]*sessionFrontier{}
	}
}

// OpenSession gives the session a new generation and returns it (rule SR-2).
// The empty id is no session; its generation is 0. A session is remembered until
// it is released, also by a core without Options.Sessions (where a release does
// nothing, rule SR-5): do not open sessions there.
func (c *Core) OpenSession(id string) int64 {
	if c.log != nil {
		c.log.session("open-session", id)
	}
	return c.sessions.openSession(id)
}

func (b *sessionBook) openSession(id string) int64 {
	if id == "" {
		return 0
	}
	b.forgetClosed(id)
	b.generation++
	b.open[id] = b.generation
	return b.generation
}

// close remembers id as closed, and forgets the one closed first beyond the
// number that is remembered. Ids that were opened again leave a blank behind,
// which goes when it comes to the front or when blanks are the most.
func (b *sessionBook) close(id string) {
	b.closed = append(b.closed, id)
	b.closings++
	b.isClosed[id] = b.closings
	for len(b.isClosed) > maxClosedSessions || b.closed[0] == "" {
		delete(b.isClosed, b.closed[0])
		b.closed = b.closed[1:]
	}
	if len(b.closed) > 2*maxClosedSessions {
		b.closed = slices.DeleteFunc(b.closed, func(id string) bool { return id == "" })
		for i, id := range b.closed {
			b.isClosed[id] = b.closings - len(b.closed) + 1 + i
		}
	}
}

// forgetClosed takes id off the list of closed sessions, if it is there.
func (b *sessionBook) forgetClosed(id string) {
	place := b.isClosed[id]
	if place == 0 {
		return
	}
	delete(b.isClosed, id)
	b.closed[len(b.closed)-1-(b.closings-place)] = ""
}

// EnsureSession returns the session's generation, opening it if need be.
func (c *Core) EnsureSession(id string) int64 {
	if c.log != nil {
		c.log.session("ensure-session", id)
	}
	if g, ok := c.sessions.open[id]; ok {
		return g
	}
	return c.sessions.openSession(id)
}

// RegisterSession marks what the session's next turn needs: the data on the
// path of last. Marked data goes after unmarked data. A session that is not
// open in that generation is passed over without an error (rule SR-4).
func (c *Core) RegisterSession(id string, generation int64, last NodeID) error {
	if c.log != nil {
		c.log.registerSession(id, generation, last)
	}
	if !c.opts.Sessions || id == "" || c.sessions.isClosed[id] > 0 {
		return nil
	}
	if g, ok := c.sessions.open[id]; !ok || g != generation {
		return nil
	}
	n, err := c.resolve("RegisterSession", last)
	if err != nil || n == c.root {
		return err
	}
	for _, h := range c.comps {
		c.registerFrontier(h, id, c.frontierAbove(h, n))
	}
	return nil
}

// frontierAbove climbs from n to the first node that the component accepts on
// any tier; nil: none (rule SR-7).
func (c *Core) frontierAbove(h hooks, n *node) *node {
	state := 0
	for ; n.parent != nil; n = n.parent {
		if h.accept(&state, n, anyTier) {
			return n
		}
	}
	return nil
}

// registerFrontier is rule SR-8.
func (c *Core) registerFrontier(h hooks, id string, fresh *node) {
	if fresh == nil {
		return
	}
	book := c.sessions.frontiers[h.id()]
	f := book[id]
	if f == nil {
		f = &sessionFrontier{session: id}
		book[id] = f
	}
	if f.has(fresh) {
		return
	}
	old := fresh.parent
	for old.parent != nil && !f.has(old) {
		old = old.parent
	}
	if old.parent == nil {
		old = nil
	}
	h.advance(f, old, fresh)
	f.mark(h.id(), fresh)
	if old != nil {
		f.unmark(h.id(), old)
	}
}

// mark makes n a frontier node and writes the session's id on it.
func (f *sessionFrontier) mark(id Component, n *node) {
	i, _ := f.find(n)
	f.nodes = slices.Insert(f.nodes, i, n)
	marks := &n.extend().sessions[id]
	j, _ := slices.BinarySearch(*marks, f.session)
	*marks = slices.Insert(*marks, j, f.session)
}

func (f *sessionFrontier) unmark(id Component, n *node) {
	if i, ok := f.find(n); ok {
		f.nodes = slices.Delete(f.nodes, i, i+1)
	}
	f.eraseMark(id, n)
}

// eraseMark takes the session's id off n, which stays in the list of nodes.
func (f *sessionFrontier) eraseMark(id Component, n *node) {
	marks := &n.ext.sessions[id]
	if j, ok := slices.BinarySearch(*marks, f.session); ok {
		*marks = slices.Delete(*marks, j, j+1)
	}
}

// ReleaseSession closes the session and takes its marks away (rule SR-5).
func (c *Core) ReleaseSession(id string) {
	if c.log != nil {
		c.log.session("release-session", id)
	}
	b := &c.sessions
	if !c.opts.Sessions || id == "" || b.isClosed[id] > 0 {
		return
	}
	b.close(id)
	delete(b.open, id)
	for _, h := range c.comps {
		book := b.frontiers[h.id()]
		f := book[id]
		if f == nil {
			continue
		}
		for _, n := range f.nodes {
			h.remove(f, n)
			f.eraseMark(h.id(), n)
		}
		delete(book, id)
	}
}

// forgetSessions moves the marks of a dying node to the nearest node above
// that can take them (rule SR-15).
func (c *Core) forgetSessions(n *node) {
	if n.ext == nil {
		return
	}
	for _, h := range c.comps {
		id := h.id()
		marks := n.ext.sessions[id]
		if len(marks) == 0 {
			continue
		}
		n.ext.sessions[id] = nil
		above := c.frontierAbove(h, n.parent)
		for _, session := range marks {
			f := c.sessions.frontiers[id][session]
			fallback := above
			if fallback != nil && f.has(fallback) {
				fallback = nil
			}
			h.recede(f, n, fallback)
			f.unmark(id, n)
			if fallback != nil {
				f.mark(id, fallback)
			}
			if len(f.nodes) == 0 {
				delete(c.sessions.frontiers[id], session)
			}
		}
	}
}

// checkSessions recomputes every reference count (rules V-28 to V-32).
func (c *Core) checkSessions(report func(check string, n *node, format string, args ...any)) {
	want := map[*node]*[NumComponents]int32{}
	count := func(n *node, id Component) {
		if want[n] == nil {
			want[n] = &[NumComponents]int32{}
		}
		want[n][id]++
	}
	for _, h := range c.comps {
		id := h.id()
		book := c.sessions.frontiers[id]
		names := make([]string, 0, len(book))
		for name := range book {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			f := book[name]
			if len(f.nodes) == 0 {
				report("V-28", nil, "session %q has no %v frontier", name, id)
			}
			for _, n := range f.nodes {
				if c.nodes.find(n.id) != n || n.ext == nil || !slices.Contains(n.ext.sessions[id], name) {
					report("V-28", n, "%v frontier of session %q is not reachable or not marked", id, name)
					continue
				}
				c.expectCoverage(f, id, n, count, report)
			}
			if id == SWA && len(f.covered) != len(f.nodes) {
				report("V-31", nil, "session %q has %d coverage records for %d frontier nodes", name, len(f.covered), len(f.nodes))
			}
		}
	}
	for n := c.root.following(); n != nil; n = n.following() {
		for i := range n.state {
			id := Component(i)
			if n.ext != nil {
				for _, name := range n.ext.sessions[id] {
					if f := c.sessions.frontiers[id][name]; f == nil || !f.has(n) {
						report("V-29", n, "marked for session %q, which has no %v frontier here", name, id)
					}
				}
			}
			refs := n.state[i].refs
			if refs < 0 {
				report("V-30", n, "%v session references are %d", id, refs)
			}
			expected := int32(0)
			if w := want[n]; w != nil {
				expected = w[i]
			}
			if refs != expected {
				report("V-32", n, "%v session references are %d, recounted %d", id, refs, expected)
			}
		}
	}
}

// expectCoverage counts the nodes that the frontier node n covers.
func (c *Core) expectCoverage(f *sessionFrontier, id Component, n *node, count func(*node, Component), report func(string, *node, string, ...any)) {
	switch id {
	case Mamba:
		count(n, id)
	case Full:
		for at := n; at.parent != nil; at = at.parent {
			count(at, id)
		}
	case SWA:
		left := f.covered[n.id]
		if left <= 0 {
			report("V-31", n, "session %q covers %d units", f.session, left)
		}
		for at := n; at.parent != nil && left > 0; at = at.parent {
			count(at, id)
			left -= at.units
		}
		if left != 0 {
			report("V-31", n, "coverage of session %q does not end at a node", f.session)
		}
	}
}
