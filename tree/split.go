// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// split cuts n's key at the given number of units, a multiple of the page
// between 0 and its length. n becomes the suffix and keeps its id and children;
// the prefix is a new node in its place (chapter 8). The action, if not nil,
// moves a pending write's record along.
func (c *Core) split(n *node, at int) (prefix *node, relocation Action) {
	p := c.newNode()
	p.ns = n.ns
	n.ns.nodes++
	p.priority, p.hits, p.created = n.priority, n.hits, n.created
	p.setKey(cloneTokens(n.raw[:at+c.extra]), at)
	rest := cloneTokens(n.raw[at:])
	if n.ext != nil {
		c.splitExtension(p, n, at)
	}
	units := n.units
	n.units = units - at // hooks see both parts with their final lengths
	for _, h := range c.comps {
		h.split(p, n, at)
	}
	parent := n.parent
	parent.replaceChild(n, p, c) // before n's first page changes
	n.setKey(rest, n.units)
	p.linkChild(n, c)

	c.trackDuplicate(p)
	c.touch(n) // so that the suffix is newer than the prefix (rule S-7)
	c.refreshLeaf(p)
	c.refreshLeaf(n)
	if id := n.writeThroughPending(); id != 0 {
		relocation = ReplaceWriteThroughOnNodeSplit{Ack: id, Old: n.id, New: p.id, Child: n.id}
	}
	return p, relocation
}

// splitExtension divides what few nodes have.
func (c *Core) splitExtension(p, n *node, at int) {
	e, page := n.ext, at/c.opts.PageSize
	if e.hashes != nil {
		p.extend().hashes = append([]Digest(nil), e.hashes[:page]...)
		e.hashes = append([]Digest(nil), e.hashes[page:]...)
	}
	if e.eventHashes != nil {
		p.extend().eventHashes = append([]Digest(nil), e.eventHashes[:page]...)
		e.eventHashes = append([]Digest(nil), e.eventHashes[page:]...)
	}
	if e.writeThroughPending != 0 || e.loadBackPending != 0 || e.awaitsAck {
		x := p.extend()
		x.writeThroughPending, x.loadBackPending, x.awaitsAck = e.writeThroughPending, e.loadBackPending, e.awaitsAck
	}
	if e.stored {
		p.extend().stored = true
	}
	if c.tails != nil {
		p.extend().history = e.history
		p.ext.depth = e.depth - (n.units - at)
	}
}

// cloneTokens copies tokens into memory of their own, so that a fragment does
// not keep the other's alive once that is evicted.
func cloneTokens(t []Token) []Token {
	c := make([]Token, len(t))
	copy(c, t)
	return c
}

// splitSlots cuts a list in two that share no memory.
func splitSlots(s Slots, at int) (head, tail Slots) {
	return s.Slice(0, at), s.Slice(at, s.Len())
}
