// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "math"

// leafIndex is an ordered set of leaves: the next victim first. It is a treap,
// linked through the nodes, whose heap order comes from a hash of the node id,
// so that its shape is a function of its content. Insert, remove and search
// cost O(log n) and allocate nothing.
type leafIndex struct {
	root  *node
	count int
}

// leafKey is the order of leaves: session references, then the policy's rank,
// then the access stamp (rules SR-19, E-31). Stamps are unique among nodes, so
// the order is total.
type leafKey struct {
	refs  int32
	rank  int64
	stamp uint64
}

func (a leafKey) less(b leafKey) bool {
	if a.refs != b.refs {
		return a.refs < b.refs
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.stamp < b.stamp
}

// No leaf's key is before the first or after the last of these.
var (
	firstLeafKey = leafKey{refs: -1}
	lastLeafKey  = leafKey{refs: math.MaxInt32, rank: math.MaxInt64, stamp: math.MaxUint64}
)

// leafLinks is a node's place in a leafIndex. A node is in at most one: the
// device's or the host's (rule V-17).
type leafLinks struct {
	index           *leafIndex
	up, left, right *node
	key             leafKey
	// joinedAt and leftAt say when, in the core's count, the node last
	// joined and last left it; a walk tells by them who was there at its start.
	joinedAt, leftAt uint64
}

func (x *leafIndex) clear() { x.root, x.count = nil, 0 }

// weight orders the heap. It is the finaliser of splitmix64.
func weight(id NodeID) uint64 {
	z := uint64(id) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// insert puts n in with the given key.
func (x *leafIndex) insert(n *node, key leafKey) {
	n.leaf.index, n.leaf.key = x, key
	n.leaf.up, n.leaf.left, n.leaf.right = nil, nil, nil
	x.count++
	if x.root == nil {
		x.root = n
		return
	}
	at := x.root
	for {
		next := &at.leaf.right
		if key.less(at.leaf.key) {
			next = &at.leaf.left
		}
		if *next == nil {
			*next = n
			n.leaf.up = at
			break
		}
		at = *next
	}
	for w := weight(n.id); n.leaf.up != nil && weight(n.leaf.up.id) < w; {
		x.rotateUp(n)
	}
}

// rotateUp lifts n above its parent.
func (x *leafIndex) rotateUp(n *node) {
	p := n.leaf.up
	g := p.leaf.up
	if p.leaf.left == n {
		p.leaf.left = n.leaf.right
		if n.leaf.right != nil {
			n.leaf.right.leaf.up = p
		}
		n.leaf.right = p
	} else {
		p.leaf.right = n.leaf.left
		if n.leaf.left != nil {
			n.leaf.left.leaf.up = p
		}
		n.leaf.left = p
	}
	p.leaf.up, n.leaf.up = n, g
	x.relink(g, p, n)
}

// relink makes whatever led to old, below g, lead to n.
func (x *leafIndex) relink(g, old, n *node) {
	switch {
	case g == nil:
		x.root = n
	case g.leaf.left == old:
		g.leaf.left = n
	default:
		g.leaf.right = n
	}
}

// remove takes n out.
func (x *leafIndex) remove(n *node) {
	for n.leaf.left != nil && n.leaf.right != nil {
		if weight(n.leaf.left.id) > weight(n.leaf.right.id) {
			x.rotateUp(n.leaf.left)
		} else {
			x.rotateUp(n.leaf.right)
		}
	}
	child := n.leaf.left
	if child == nil {
		child = n.leaf.right
	}
	if child != nil {
		child.leaf.up = n.leaf.up
	}
	x.relink(n.leaf.up, n, child)
	n.leaf.index, n.leaf.up, n.leaf.left, n.leaf.right = nil, nil, nil, nil
	x.count--
}

// first returns the smallest member, or nil.
func (x *leafIndex) first() *node {
	n := x.root
	for n != nil && n.leaf.left != nil {
		n = n.leaf.left
	}
	return n
}

// after returns the smallest member whose key is greater, or nil.
func (x *leafIndex) after(key leafKey) *node {
	var found *node
	for n := x.root; n != nil; {
		if key.less(n.leaf.key) {
			found, n = n, n.leaf.left
		} else {
			n = n.leaf.right
		}
	}
	return found
}

// isDeviceLeaf computes rule E-1.
func (c *Core) isDeviceLeaf(n *node) bool {
	if n.parent == nil || n.state[Full].device == nil || n.deviceChildren > 0 {
		return false
	}
	for i := range n.state {
		if n.state[i].locks > 0 {
			return false
		}
	}
	return true
}

// isHostLeaf computes rule E-2.
func (c *Core) isHostLeaf(n *node) bool {
	if n.parent == nil || !n.evicted() || !n.backedUp() || n.children > 0 {
		return false
	}
	for i := range n.state {
		if n.state[i].locks > 0 || n.state[i].hostLocks > 0 {
			return false
		}
	}
	return true
}

func (c *Core) leafKey(n *node) leafKey {
	return leafKey{refs: n.state[Full].refs, rank: c.policy.rank(n), stamp: n.stamp}
}

// refreshLeaf brings n's membership in the leaf sets up to date. It is called
// whenever a lock, a Full value or the children of n have changed (rule E-3).
func (c *Core) refreshLeaf(n *node) {
	var want *leafIndex
	switch {
	case c.isDeviceLeaf(n):
		want = &c.leaves
	case c.isHostLeaf(n):
		want = &c.hostLeaves
	}
	if n.leaf.index == want {
		return
	}
	if n.leaf.index != nil {
		c.leaveIndex(n)
	}
	if want != nil {
		c.joinIndex(n, want)
	}
}

func (c *Core) leaveIndex(n *node) {
	n.leaf.index.remove(n)
	c.leafSeq++
	n.leaf.leftAt = c.leafSeq
}

func (c *Core) joinIndex(n *node, x *leafIndex) {
	c.leafSeq++
	// A leaf that was locked and unlocked during a walk is still what it was
	// at the walk's start: a candidate, or not.
	key := c.leafKey(n)
	if w := c.walks[Full]; x != &c.leaves || w == nil || n.leaf.joinedAt == 0 || n.leaf.joinedAt > w.since || n.leaf.leftAt <= w.since {
		n.leaf.joinedAt = c.leafSeq
	} else if key.less(w.scanned) {
		w.scanned = w.past
	}
	x.insert(n, key)
}

// reorderLeaf moves n to where its key now belongs, if it is in a leaf set.
func (c *Core) reorderLeaf(n *node) {
	x := n.leaf.index
	if x == nil {
		return
	}
	if key := c.leafKey(n); key != n.leaf.key {
		x.remove(n)
		x.insert(n, key)
	}
}
