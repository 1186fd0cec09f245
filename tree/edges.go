// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "hash/maphash"

// wide is the number of children from which on a node keeps an index of them;
// up to it, comparing first pages one by one is faster.
const wide = 8

// edgeIndex finds children by the first page of their key (rule K-10). The
// hash is seeded at random, so that nobody can choose tokens that collide. It
// says where to look; only the reason "other namespace" of a match that found
// nothing rests on it alone.
type edgeIndex struct {
	seed maphash.Seed
	span int // raw tokens that a page spans
	// firstPages counts the root's edges by first page, whatever their
	// namespace, to tell "other namespace" from "never seen".
	firstPages map[uint64]int32
}

// childIndex is the index of one wide node: children by hash, those of one
// hash linked by sameHash.
type childIndex struct{ byHash map[uint64]*node }

func (e *edgeIndex) clear() {
	e.seed = maphash.MakeSeed()
	e.firstPages = map[uint64]int32{}
}

func (e *edgeIndex) hash(raw []Token) uint64 {
	return maphash.String(e.seed, tokenBytes(raw[:e.span]))
}

// find returns the child of n behind the edge for the first page of v in
// namespace ns, or nil. v has at least a page.
func (e *edgeIndex) find(n *node, ns *namespace, v view) *node {
	page := v.raw[:e.span]
	child := n.firstChild
	if n.index != nil {
		child = n.index.byHash[e.hash(page)^ns.mix]
		for child != nil && !(child.ns == ns && equalTokens(child.raw[:e.span], page)) {
			child = child.sameHash
		}
		return child
	}
	for ; child != nil; child = child.next {
		if child.first == page[0] && child.ns == ns && equalTokens(child.raw[:e.span], page) {
			return child
		}
	}
	return nil
}

// inOtherNamespace reports whether an edge of the root has the first page of v,
// in whatever namespace.
func (e *edgeIndex) inOtherNamespace(v view) bool {
	return e.firstPages[e.hash(v.raw)] > 0
}

func (e *edgeIndex) added(n, child *node) {
	if n.isRoot() {
		e.firstPages[e.hash(child.raw)]++
	}
	switch {
	case n.index != nil:
		e.put(n.index, child)
	case n.children > wide:
		n.index = &childIndex{byHash: make(map[uint64]*node, 2*wide)}
		for c := n.firstChild; c != nil; c = c.next {
			e.put(n.index, c)
		}
	}
}

func (e *edgeIndex) put(x *childIndex, child *node) {
	h := e.hash(child.raw) ^ child.ns.mix
	child.sameHash = x.byHash[h]
	x.byHash[h] = child
}

// removed is called before child leaves the list of n's children.
func (e *edgeIndex) removed(n, child *node) {
	if n.isRoot() {
		h := e.hash(child.raw)
		if e.firstPages[h]--; e.firstPages[h] == 0 {
			delete(e.firstPages, h)
		}
	}
	if n.index == nil {
		return
	}
	if n.children <= wide/2 {
		n.index = nil
		for c := n.firstChild; c != nil; c = c.next {
			c.sameHash = nil
		}
		return
	}
	e.relink(n.index, child, child.sameHash)
	child.sameHash = nil
}

// replaced is called before fresh takes child's place; both have the same
// first page and namespace.
func (e *edgeIndex) replaced(n, child, fresh *node) {
	if n.index == nil {
		return
	}
	fresh.sameHash = child.sameHash
	e.relink(n.index, child, fresh)
	child.sameHash = nil
}

// relink makes whatever leads to child lead to target instead.
func (e *edgeIndex) relink(x *childIndex, child, target *node) {
	h := e.hash(child.raw) ^ child.ns.mix
	if x.byHash[h] == child {
		if target == nil {
			delete(x.byHash, h)
		} else {
			x.byHash[h] = target
		}
		return
	}
	for c := x.byHash[h]; c != nil; c = c.sameHash {
		if c.sameHash == child {
			c.sameHash = target
			return
		}
	}
}
