// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"slices"
)

// A node is marked as stored when all of its pages are in storage, or in the
// store of an external linker. The content of a node never changes, so the mark
// stays as long as the node; a split hands it to both parts.

func (n *node) stored() bool { return n.ext != nil && n.ext.stored }

// MarkStored marks the nodes from the given one up to, but not including, until
// as stored (rule XL-8). until is an ancestor of from, the root, or from itself:
// then there is nothing to mark. Any other node is an *ArgumentError.
func (c *Core) MarkStored(from, until NodeID) error {
	const op = "MarkStored"
	if c.log != nil {
		c.log.nodes("mark-stored", from, until)
	}
	n, err := c.resolve(op, from)
	if err != nil {
		return err
	}
	end, err := c.resolve(op, until)
	if err != nil {
		return err
	}
	at := n
	for at != nil && at != end {
		at = at.parent
	}
	if at == nil {
		return &ArgumentError{Op: op, Field: "until", Problem: fmt.Sprintf("node %d is not above node %d", until, from)}
	}
	for ; n != end; n = n.parent {
		n.extend().stored = true
	}
	return nil
}

// idleMirror reports whether n's host copy is needed by nobody: its data is on
// the device and in storage, and no child's copy stands on it (rule ND-6).
func (c *Core) idleMirror(n *node) bool {
	if n.ext == nil || !n.ext.duplicate || !n.ext.stored || !n.settled() {
		return false
	}
	for i := range n.state {
		if n.state[i].hostLocks > 0 {
			return false
		}
	}
	for child := n.firstChild; child != nil; child = child.next {
		if child.backedUp() {
			return false
		}
	}
	return true
}

// reclaimStored frees the host copies of stored nodes that are on the device,
// too, until n units of Full are freed: else a host that is smaller than the
// device fills with them under write-through, and nothing else can come to it.
// It goes through the registry of duplicates in passes, since a parent's turn
// comes when its children are done. A pass but the first needs to look only at
// the parents that the pass before has set free.
func (c *Core) reclaimStored(n int, out *Evicted) {
	order := func(a, b *node) int { return cmp.Compare(a.ext.duplicateSeq, b.ext.duplicateSeq) }
	var pass, following []*node
	reclaim := func(x *node) (freed *node) {
		parent, place := x.parent, x.ext.duplicateSeq
		c.recordRemoved(x, MediumHost)
		for _, h := range c.comps {
			if x.state[h.id()].host != nil {
				c.evictHostValue(x, h.id(), out)
			}
		}
		c.refreshLeaf(x)
		if !c.idleMirror(parent) {
			return nil
		}
		if parent.ext.duplicateSeq < place {
			following = append(following, parent)
			return nil
		}
		return parent // still to come in this pass
	}
	for x := c.firstDuplicate; x != nil && out.Freed[Full] < n; {
		next := x.ext.nextDuplicate
		if c.idleMirror(x) {
			reclaim(x)
		}
		x = next
	}
	for len(following) > 0 && out.Freed[Full] < n {
		pass, following = following, nil
		slices.SortFunc(pass, order)
		for len(pass) > 0 && out.Freed[Full] < n {
			x := pass[0]
			pass = pass[1:]
			if parent := reclaim(x); parent != nil {
				at, _ := slices.BinarySearchFunc(pass, parent, order)
				pass = slices.Insert(pass, at, parent)
			}
		}
	}
}
