// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

// candidate is a Full leaf with its key of some moment (rule E-12).
type candidate struct {
	node     *node
	refs     int
	stamp    stamp
	created  int64
	hits     int64
	priority int64
	depth    int
	length   int
	history  int
}

func (o *Oracle) candidateOf(n *node) candidate {
	return candidate{
		node:     n,
		refs:     n.refs[tree.Full],
		stamp:    n.stamp,
		created:  n.created,
		hits:     n.hits,
		priority: n.priority,
		depth:    n.depth(),
		length:   len(n.key),
		history:  n.history,
	}
}

// before reports whether a goes before b (section 10.6).
func (p policy) before(a, b candidate) bool {
	// SR-19: the unreferenced first, then those with fewer references.
	if a.refs != b.refs {
		return a.refs < b.refs
	}
	switch p.name {
	case "mru":
		if a.stamp != b.stamp {
			return b.stamp.older(a.stamp)
		}
	case "lfu":
		if a.hits != b.hits {
			return a.hits < b.hits
		}
	case "fifo":
		if a.created != b.created {
			return a.created < b.created
		}
	case "filo":
		if a.created != b.created {
			return a.created > b.created
		}
	case "priority":
		if a.priority != b.priority {
			return a.priority < b.priority
		}
	case "slru": // E-36
		threshold := int64(p.values["protected_threshold"])
		if protected := a.hits >= threshold; protected != (b.hits >= threshold) {
			return !protected
		}
	case "tlru":
		if safe := p.tailSafe(a); safe != p.tailSafe(b) {
			return safe
		}
	}
	// E-31; for lru this is the whole key.
	if a.stamp != b.stamp {
		return a.stamp.older(b.stamp)
	}
	return a.node.id < b.node.id
}

// tailSafe is rule E-37.
func (p policy) tailSafe(c candidate) bool {
	return c.depth-c.length >= max(c.history+p.values["next_prompt_estimate"]-p.values["threshold"], 0)
}

// reachHistory notes the depth that a new leaf reaches on it and on its
// ancestors (rule E-37).
func (o *Oracle) reachHistory(leaf *node) {
	depth := leaf.depth()
	for n := leaf; n != nil && n.history < depth; n = n.parent {
		n.history = depth
	}
}
