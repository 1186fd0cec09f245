// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

var allComponents = []tree.Component{tree.Full, tree.SWA, tree.Mamba}

// auxComponents are those with recency lists (rule N-8).
var auxComponents = []tree.Component{tree.SWA, tree.Mamba}

// internalPriority is Full 2, SWA 1, Mamba 0 (chapter 1).
var internalPriority = [tree.NumComponents]int{tree.Full: 2, tree.SWA: 1, tree.Mamba: 0}

// stamp is a time of last access (rule N-6).
type stamp struct {
	tick     int64
	distance int
}

// older reports whether s is older than t: the smaller tick, and among equal
// ticks the larger distance.
func (s stamp) older(t stamp) bool {
	if s.tick != t.tick {
		return s.tick < t.tick
	}
	return s.distance > t.distance
}

// node is one node with the fields of section 4.1.
type node struct {
	id        tree.NodeID
	parent    *node
	children  []*node // in order of edge creation (N-9)
	namespace tree.Namespace
	key       []unit

	device, host     [tree.NumComponents][]tree.Slot // nil: absent
	locks, hostLocks [tree.NumComponents]int
	refs             [tree.NumComponents]int             // session references
	marks            [tree.NumComponents]map[string]bool // session ids marked here

	swaBoundary  uint64
	hostBoundary [tree.NumComponents]uint64 // marks of host lock segments; Mamba has none
	hasHashes    bool                       // the storage hash list is filled
	given        []tree.Digest              // a list that came with a host insert; nil: it is computed
	hits         int64
	priority     int64
	stamp        stamp
	created      int64
	writePending int64
	loadPending  int64
	awaitsAck    bool // a commit put Full on its second tier and was not acknowledged yet; for V-25 only
	stored       bool // all of its pages are in storage
	history      int  // tlru (E-37)
}

// newNode makes a node with the next id; it takes two ticks (rule N-5).
func (o *Oracle) newNode() *node {
	o.lastID++
	n := &node{id: o.lastID}
	n.stamp = stamp{tick: o.tick()}
	n.created = o.tick()
	for _, c := range allComponents {
		n.marks[c] = map[string]bool{}
	}
	o.nodes[n.id] = n
	return n
}

// touch is a single touch: a fresh tick and distance 0 (rule N-6).
func (o *Oracle) touch(n *node) { n.stamp = stamp{tick: o.tick()} }

// evicted: a node other than the root without Full on the device.
func (o *Oracle) evicted(n *node) bool { return n != o.root && n.device[tree.Full] == nil }

// backedUp: Full on the host.
func (n *node) backedUp() bool { return n.host[tree.Full] != nil }

// depth returns the units from the root to the node's end.
func (n *node) depth() int {
	units := 0
	for ; n != nil; n = n.parent {
		units += len(n.key)
	}
	return units
}

// isAncestorOf reports whether n is a proper ancestor of m.
func (n *node) isAncestorOf(m *node) bool {
	for up := m.parent; up != nil; up = up.parent {
		if up == n {
			return true
		}
	}
	return false
}

// pathUp returns n and its ancestors below the root, the deepest first.
func (o *Oracle) pathUp(n *node) []*node {
	var path []*node
	for ; n != o.root; n = n.parent {
		path = append(path, n)
	}
	return path
}

// preorder returns all nodes, parents before children, children in edge order,
// the root first (rule Q-1).
func (o *Oracle) preorder() []*node {
	var all []*node
	stack := []*node{o.root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		all = append(all, n)
		for i := len(n.children) - 1; i >= 0; i-- {
			stack = append(stack, n.children[i])
		}
	}
	return all
}

// isDeviceLeaf is rule E-1, computed now.
func (o *Oracle) isDeviceLeaf(n *node) bool {
	if n == o.root || n.device[tree.Full] == nil {
		return false
	}
	for _, c := range allComponents {
		if n.locks[c] > 0 {
			return false
		}
	}
	for _, child := range n.children {
		if child.device[tree.Full] != nil {
			return false
		}
	}
	return true
}

// isHostLeaf is rule E-2, computed now.
func (o *Oracle) isHostLeaf(n *node) bool {
	if n == o.root || !o.evicted(n) || !n.backedUp() || len(n.children) > 0 {
		return false
	}
	for _, c := range allComponents {
		if n.locks[c] > 0 || n.hostLocks[c] > 0 {
			return false
		}
	}
	return true
}

// unlink removes the node and its edge (rule N-11).
func (o *Oracle) unlink(n *node) {
	siblings := n.parent.children
	for i, sibling := range siblings {
		if sibling == n {
			n.parent.children = append(append([]*node{}, siblings[:i]...), siblings[i+1:]...)
		}
	}
	for _, c := range auxComponents {
		o.device[c].remove(n)
		o.host[c].remove(n)
	}
	o.leaveDuplicates(n)
	delete(o.nodes, n.id)
}

// split cuts the node at a unit position (chapter 8). The suffix stays n; the
// prefix is new. The actions are none, or the relocation of rule S-8.
func (o *Oracle) split(n *node, at int) (prefix *node, actions []tree.Action) {
	prefix = o.newNode()
	prefix.parent = n.parent
	prefix.namespace = n.namespace
	prefix.key = append([]unit{}, n.key[:at]...)
	prefix.children = []*node{n}
	for i, child := range n.parent.children {
		if child == n {
			n.parent.children[i] = prefix // S-1: the edge keeps its place
		}
	}
	n.parent = prefix
	n.key = append([]unit{}, n.key[at:]...)

	// S-2.
	prefix.priority = n.priority
	prefix.hits = n.hits
	prefix.created = n.created
	prefix.writePending = n.writePending
	prefix.loadPending = n.loadPending
	prefix.history = n.history
	prefix.awaitsAck = n.awaitsAck
	prefix.stored = n.stored
	// S-3. Digests that did not come from outside are computed when asked for.
	prefix.hasHashes = n.hasHashes
	if n.given != nil {
		pages := at / o.page
		prefix.given = append([]tree.Digest{}, n.given[:pages]...)
		n.given = append([]tree.Digest{}, n.given[pages:]...)
	}

	// S-4, S-5, SR-13. Of Mamba nothing moves (S-6).
	for _, c := range []tree.Component{tree.Full, tree.SWA} {
		prefix.device[c], n.device[c] = cut(n.device[c], at)
		prefix.host[c], n.host[c] = cut(n.host[c], at)
		prefix.locks[c] = n.locks[c]
		prefix.hostLocks[c] = n.hostLocks[c]
		prefix.refs[c] = n.refs[c]
	}
	prefix.swaBoundary, n.swaBoundary = n.swaBoundary, 0
	prefix.hostBoundary, n.hostBoundary = n.hostBoundary, [tree.NumComponents]uint64{} // ND-16

	// S-7 and the end of S-5.
	if prefix.device[tree.SWA] != nil {
		o.device[tree.SWA].insertBehind(n, prefix)
	} else if prefix.host[tree.SWA] != nil && prefix.hostLocks[tree.SWA] == 0 {
		if o.host[tree.SWA].contains(n) {
			o.host[tree.SWA].insertBehind(n, prefix)
		} else {
			o.host[tree.SWA].toFront(prefix)
		}
	}
	o.touch(n)
	o.enterDuplicate(prefix) // S-9, ND-14; n keeps its place

	if n.writePending != 0 {
		actions = append(actions, tree.ReplaceWriteThroughOnNodeSplit{Ack: n.writePending, Old: n.id, New: prefix.id, Child: n.id})
	}
	return prefix, actions
}

// cut divides a list; an absent one is absent on both sides.
func cut(list []tree.Slot, at int) (head, tail []tree.Slot) {
	if list == nil {
		return nil, nil
	}
	return clone(list[:at]), clone(list[at:])
}
