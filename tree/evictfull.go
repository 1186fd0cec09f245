// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// The order in which a walk of Full takes its leaves (rules E-12, E-13).

// nextFullLeaf returns the next victim in the policy's order (rule E-13).
func (c *Core) nextFullLeaf(w *walk, freed int) *node {
	if p := w.parent; p != nil {
		w.parent = nil
		if p.id == w.parentID && p.leaf.index == &c.leaves && p.leaf.joinedAt > w.since {
			w.push(extraLeaf{key: p.leaf.key, n: p, id: p.id})
		}
	}
	if freed >= w.want {
		return nil
	}
	// Whatever lies before the victim's key was no leaf when the walk came to
	// it, and does not come back.
	n := c.nextCandidateLeaf(w)
	for len(w.extra) > 0 && (n == nil || w.extra[0].key.less(n.leaf.key)) {
		top := w.pop()
		if top.n.id != top.id || top.n.leaf.index != &c.leaves {
			continue
		}
		if w.past.less(top.key) {
			w.past = top.key
		}
		return top.n
	}
	if n == nil {
		w.past = lastLeafKey
		return nil
	}
	w.past = n.leaf.key
	return n
}

// nextCandidateLeaf returns the first leaf past the walk's place that was there
// at its start. What it passes over it need not look at again.
func (c *Core) nextCandidateLeaf(w *walk) *node {
	if w.scanned.less(w.past) {
		w.scanned = w.past
	}
	for {
		n := c.leaves.after(w.scanned)
		if n == nil || n.leaf.joinedAt <= w.since {
			return n
		}
		w.scanned = n.leaf.key
	}
}

// push and pop keep extra a heap, the smallest key first.
func (w *walk) push(x extraLeaf) {
	w.extra = append(w.extra, x)
	for i := len(w.extra) - 1; i > 0; {
		up := (i - 1) / 2
		if !w.extra[i].key.less(w.extra[up].key) {
			break
		}
		w.extra[i], w.extra[up] = w.extra[up], w.extra[i]
		i = up
	}
}

func (w *walk) pop() extraLeaf {
	top := w.extra[0]
	last := len(w.extra) - 1
	w.extra[0] = w.extra[last]
	w.extra = w.extra[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && w.extra[child+1].key.less(w.extra[child].key) {
			child++
		}
		if !w.extra[child].key.less(w.extra[i].key) {
			break
		}
		w.extra[i], w.extra[child] = w.extra[child], w.extra[i]
		i = child
	}
	return top
}
