// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

// recency is a recency list of one component on one tier, the most recent
// first (rule N-8). With sessions it has two partitions: referenced nodes in
// front, the others behind (rule SR-16). An eviction walk's mark is an element
// like a node (rule SR-20).
type recency struct {
	component tree.Component
	entries   []entry
}

// entry is a node, or a walk's mark.
type entry struct {
	node *node // nil: this is the mark
	// markReferenced says to which partition a mark belongs: to that of the
	// candidate which it was put in front of.
	markReferenced bool
}

func (r *recency) referenced(e entry) bool {
	if e.node == nil {
		return e.markReferenced
	}
	return e.node.refs[r.component] > 0
}

// indexOf returns the position of n, or of the mark if n is nil; -1: not there.
func (r *recency) indexOf(n *node) int {
	for i, e := range r.entries {
		if e.node == n {
			return i
		}
	}
	return -1
}

func (r *recency) contains(n *node) bool { return r.indexOf(n) >= 0 }

func (r *recency) insertAt(i int, e entry) {
	tail := append([]entry{}, r.entries[i:]...)
	r.entries = append(append(r.entries[:i:i], e), tail...)
}

// remove takes n out, or the mark if n is nil; absent ones are no error.
func (r *recency) remove(n *node) {
	if i := r.indexOf(n); i >= 0 {
		r.entries = append(r.entries[:i:i], r.entries[i+1:]...)
	}
}

// toFront puts n, whether in the list or not, at the MRU end of its partition.
func (r *recency) toFront(n *node) {
	r.remove(n)
	i := 0
	if n.refs[r.component] == 0 {
		for i < len(r.entries) && r.referenced(r.entries[i]) {
			i++
		}
	}
	r.insertAt(i, entry{node: n})
}

// insertBehind puts n directly behind other, one step towards LRU.
func (r *recency) insertBehind(other, n *node) {
	r.remove(n)
	r.insertAt(r.indexOf(other)+1, entry{node: n})
}

// refresh moves the nodes, the deepest first, to the front: in each partition
// the first to the MRU end and each next one behind it (rules M-13, SR-16).
func (r *recency) refresh(nodes []*node) {
	for _, referenced := range []bool{true, false} {
		var last *node
		for _, n := range nodes {
			if (n.refs[r.component] > 0) != referenced {
				continue
			}
			if last == nil {
				r.toFront(n)
			} else {
				r.insertBehind(last, n)
			}
			last = n
		}
	}
}

// order returns the ids, the most recent first, without the mark.
func (r *recency) order() []tree.NodeID {
	ids := []tree.NodeID{}
	for _, e := range r.entries {
		if e.node != nil {
			ids = append(ids, e.node.id)
		}
	}
	return ids
}

// RecencyOrder returns the list of an aux component, the most recent first. It
// is nil for Full, which has none, and for a component that is not configured.
func (o *Oracle) RecencyOrder(c tree.Component, host bool) []tree.NodeID {
	if c == tree.Full || !o.has(c) {
		return nil
	}
	if host {
		return o.host[c].order()
	}
	return o.device[c].order()
}

// putDevice stores a device value of an aux component: MRU of the device list,
// out of the host list (rule I-36).
func (o *Oracle) putDevice(n *node, c tree.Component, slots []tree.Slot) {
	n.device[c] = clone(slots)
	o.host[c].remove(n)
	o.device[c].toFront(n)
}

// swaCushion returns the nodes from n upwards whose recency an SWA refresh
// moves: those with a device value inside the span of W+P units (rule M-13).
func (o *Oracle) swaCushion(n *node) []*node {
	var holders []*node
	sum := 0
	for ; n != o.root && sum < o.window+o.page; n = n.parent {
		if n.device[tree.SWA] != nil {
			holders = append(holders, n)
		}
		sum += len(n.key)
	}
	return holders
}
