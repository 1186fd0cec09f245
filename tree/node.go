// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// node is one node of the tree. Nodes live in the core's arena; outside they
// are known by id only. See chapter 4 of the behaviour specification.
//
// The children are a list in order of their edges' creation (rule N-9), and for
// wide nodes an index by the hash of the first page besides. state holds what
// each component has here, by component number; its length is one more than
// the highest configured component.
type node struct {
	// What a walk down looks at comes first, so that it is one or two cache
	// lines a node.
	first          Token // first raw token of the key
	children       int32 // number of children
	next           *node // sibling whose edge was made next
	ns             *namespace
	raw            []Token // raw tokens of the key: units, plus one for bigrams
	units          int     // length of the key
	firstChild     *node
	index          *childIndex // children by first page; nil: few, see firstChild
	state          []componentState
	parent         *node  // nil for the root only
	stamp          uint64 // access stamp (rule N-6): one number, older is smaller
	hits           int64
	leaf           leafLinks // place in the index of evictable leaves
	id             NodeID
	lastChild      *node
	prev           *node // sibling whose edge was made before
	sameHash       *node // next child in the parent's index with the same hash
	priority       int64
	created        uint64 // creation tick
	ext            *extension
	swaBoundary    uint64 // SWA boundary uuid, 0: none (rule L-6)
	deviceChildren int32  // number of children with Full on the device
	mark           bool   // not a node: an eviction walk's mark in a recency list
}

// componentState is what one component has on one node.
type componentState struct {
	device, host Slots // nil: absent
	locks        int32 // device locks
	hostLocks    int32
	refs         int32 // session references
	// Place in the component's device or host recency list, whichever the
	// node is in; a node is never in both (rule V-22).
	newer, older *node
	list         *partition
}

// extension holds what most nodes do not have.
type extension struct {
	hashes, eventHashes []Digest // one a page; nil: absent

	fullHostBoundary, swaHostBoundary uint64
	writeThroughPending               int64 // ack id, 0: none
	loadBackPending                   int64

	stored bool // all pages are in storage, see stored.go

	// awaitsAck: a copy put Full on its second tier and is not known to have
	// ended, so the registry need not have the node yet.
	awaitsAck bool
	// Place in the registry of duplicates (rule ND-14).
	duplicate                    bool
	duplicateSeq                 uint64 // rises in the order of the registry
	nextDuplicate, prevDuplicate *node

	sessions [NumComponents][]string // session ids marked here, ascending

	depth, history int // tlru bookkeeping (rule E-37)
}

func (n *node) isRoot() bool { return n.parent == nil && !n.mark }

// setKey gives n its raw tokens and length.
func (n *node) setKey(raw []Token, units int) {
	n.raw, n.units, n.first = raw, units, raw[0]
}

// key returns the node's key as a view. extra is 1 for bigram cores.
func (n *node) key(extra int) view { return view{raw: n.raw, units: n.units, extra: extra} }

// evicted reports whether the node has lost its Full device value.
func (n *node) evicted() bool { return n.parent != nil && n.state[Full].device == nil }

// backedUp reports whether the node has a Full host value.
func (n *node) backedUp() bool { return n.state[Full].host != nil }

func (n *node) dead() bool { return n.evicted() && !n.backedUp() }

// extend returns the node's extension, making it if need be.
func (n *node) extend() *extension {
	if n.ext == nil {
		n.ext = &extension{}
	}
	return n.ext
}

func (n *node) writeThroughPending() int64 {
	if n.ext == nil {
		return 0
	}
	return n.ext.writeThroughPending
}

func (n *node) loadBackPending() int64 {
	if n.ext == nil {
		return 0
	}
	return n.ext.loadBackPending
}

// following returns the node after n in a walk that visits parents before
// children and children in edge order, or nil at its end. It needs no stack,
// so paths may be of any depth.
func (n *node) following() *node {
	if n.firstChild != nil {
		return n.firstChild
	}
	for n != nil && n.next == nil {
		n = n.parent
	}
	if n == nil {
		return nil
	}
	return n.next
}

// linkChild appends child as the last edge of n.
func (n *node) linkChild(child *node, c *Core) {
	child.parent, child.prev, child.next = n, n.lastChild, nil
	if n.lastChild != nil {
		n.lastChild.next = child
	} else {
		n.firstChild = child
	}
	n.lastChild = child
	n.children++
	if child.state[Full].device != nil {
		n.deviceChildren++
	}
	c.edges.added(n, child)
}

// unlinkChild removes the edge to child.
func (n *node) unlinkChild(child *node, c *Core) {
	c.edges.removed(n, child)
	if child.prev != nil {
		child.prev.next = child.next
	} else {
		n.firstChild = child.next
	}
	if child.next != nil {
		child.next.prev = child.prev
	} else {
		n.lastChild = child.prev
	}
	n.children--
	if child.state[Full].device != nil {
		n.deviceChildren--
	}
	child.parent, child.prev, child.next = nil, nil, nil
}

// replaceChild puts fresh behind the edge that led to child, at the same place
// (rule N-9). Both have the same first page.
func (n *node) replaceChild(child, fresh *node, c *Core) {
	c.edges.replaced(n, child, fresh)
	fresh.parent, fresh.prev, fresh.next = n, child.prev, child.next
	if child.prev != nil {
		child.prev.next = fresh
	} else {
		n.firstChild = fresh
	}
	if child.next != nil {
		child.next.prev = fresh
	} else {
		n.lastChild = fresh
	}
	if child.state[Full].device != nil {
		n.deviceChildren--
	}
	if fresh.state[Full].device != nil {
		n.deviceChildren++
	}
	child.parent, child.prev, child.next = nil, nil, nil
}
