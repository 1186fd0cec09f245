// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// EvictHost frees n units of a component on the host tier (section 7.2). Freed
// counts host units. Under write-back, copies of what is on the device, too, go
// first; outside write-back, copies of nodes that are on the device and marked
// as stored go last. In buffer-only mode it frees nothing.
func (c *Core) EvictHost(id Component, n int) (Evicted, error) {
	const op = "EvictHost"
	if c.log != nil {
		c.log.evictHost(id, n)
	}
	var out Evicted
	if !c.opts.Components.Has(id) {
		return out, &ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", id)}
	}
	if c.switches.HostBufferOnly || n <= 0 {
		return out, nil
	}
	if c.switches.WriteBack && id != Mamba {
		c.reclaimDuplicates(id, n, &out)
	}
	if id == Full {
		for out.Freed[Full] < n {
			x := c.hostLeaves.first()
			if x == nil {
				break
			}
			c.deleteHostLeaf(x, &out)
		}
		if !c.switches.WriteBack {
			c.reclaimStored(n, &out)
		}
		return out, nil
	}
	h := c.hooksOf(id)
	for out.Freed[id] < n {
		x := c.oldestOnHost(id)
		if x == nil {
			break
		}
		isLeaf := x.leaf.index == &c.hostLeaves
		if isLeaf && c.mayDelete(x, h) {
			c.deleteHostLeaf(x, &out)
			continue
		}
		if err := c.checkHostCascade(op, x, h, isLeaf); err != nil {
			return out, err
		}
		c.evictHostValue(x, id, &out)
		for _, o := range c.comps {
			if goesWithOnHost(x, h, o, isLeaf) {
				c.evictHostValue(x, o.id(), &out)
			}
		}
		c.refreshLeaf(x)
	}
	return out, nil
}

// oldestOnHost returns the next candidate of a host walk: not one that a load
// back reads (rule EV-8).
func (c *Core) oldestOnHost(id Component) *node {
	list := &c.host[id]
	n := list.oldest()
	for n != nil && n.loadBackPending() != 0 {
		n = list.newerThan(n)
	}
	return n
}

// evictHostValue drops one component's host value and counts it.
func (c *Core) evictHostValue(n *node, id Component, out *Evicted) {
	out.Freed[id] += n.hostUnits(id)
	c.dropHost(n, id, out)
}

// deleteHostLeaf removes a leaf that is on the host only, and the ancestors
// that are left with nothing (rule HE-2).
func (c *Core) deleteHostLeaf(n *node, out *Evicted) {
	c.recordRemoved(n, MediumHost)
	for _, h := range c.comps {
		if n.state[h.id()].host != nil {
			c.evictHostValue(n, h.id(), out)
		}
	}
	parent := n.parent
	c.removeNode(n)
	c.removeBareAncestors(parent, out)
}

// goesWithOnHost is goesWith for host values.
func goesWithOnHost(n *node, h, o hooks, isLeaf bool) bool {
	s := &n.state[o.id()]
	if o == h || s.host == nil {
		return false
	}
	if o.internalPriority() < h.internalPriority() {
		return true
	}
	return isLeaf && o.id() != Full && s.hostLocks == 0 && (s.refs == 0 || n.state[h.id()].refs > 0)
}

func (c *Core) checkHostCascade(op string, n *node, h hooks, isLeaf bool) error {
	for _, o := range c.comps {
		if goesWithOnHost(n, h, o, isLeaf) && n.state[o.id()].hostLocks > 0 {
			return &InternalError{Op: op, Problem: fmt.Sprintf("dropping %v of node %d on the host would take its locked %v along", h.id(), n.id, o.id())}
		}
	}
	return nil
}

// reclaimDuplicates frees host copies of what is on the device, too: first
// those of nodes that are no device leaf, since a leaf's copy is about to make
// its demotion free of charge (rule HE-4).
func (c *Core) reclaimDuplicates(id Component, n int, out *Evicted) {
	for _, leaves := range []bool{false, true} {
		next := c.duplicateWalk(id)
		for x := next(); x != nil && out.Freed[id] < n; x = next() {
			s := &x.state[id]
			if !x.settled() || s.hostLocks > 0 || s.host == nil || (x.leaf.index == &c.leaves) != leaves {
				continue
			}
			if id == Full {
				c.recordRemoved(x, MediumHost)
			}
			c.evictHostValue(x, id, out)
			c.digest = (c.digest*1000003 + uint64(x.id) + 1) % (1 << 42)
			c.refreshLeaf(x)
		}
	}
}

// duplicateWalk returns an iterator over the nodes that may have a copy of the
// component on both tiers. The node it returned last may leave what it walks.
func (c *Core) duplicateWalk(id Component) func() *node {
	if id == Full {
		at := c.firstDuplicate
		return func() *node {
			x := at
			if x != nil {
				at = x.ext.nextDuplicate
			}
			return x
		}
	}
	at := c.device[id].oldest()
	return func() *node {
		x := at
		if x != nil {
			at = c.device[id].newerThan(x)
		}
		return x
	}
}

// ReclaimDigest returns the running digest of the host copies that were
// reclaimed, in order (rule HE-5): ranks of one model that reclaimed the same
// have the same.
func (c *Core) ReclaimDigest() uint64 { return c.digest }

// DropSubtreeNoHost removes a device leaf that could not be backed up, with its
// descendants, which are on the host only (rule WB-2). It declines, changing
// nothing, if anything of it is locked. A node in any other state is an
// *OrderError.
func (c *Core) DropSubtreeNoHost(id NodeID) (out Evicted, dropped bool, err error) {
	const op = "DropSubtreeNoHost"
	if c.log != nil {
		c.log.nodes("drop-subtree", id)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return out, false, err
	}
	if n.leaf.index != &c.leaves || n.backedUp() || n.writeThroughPending() != 0 {
		return out, false, &OrderError{Op: op, Problem: fmt.Sprintf("node %d is not a device leaf without a host copy", id)}
	}
	dropped = c.dropSubtree(n, &out)
	return out, dropped, nil
}

// dropSubtree removes a device leaf without a host copy with all that is below
// it, unless something of it is locked or part of a write.
func (c *Core) dropSubtree(n *node, out *Evicted) bool {
	if n.writeThroughPending() != 0 {
		return false
	}
	for at := n; at != nil; at = at.followingBelow(n) {
		for i := range at.state {
			if at.state[i].hostLocks > 0 || at != n && at.state[i].locks > 0 {
				return false
			}
		}
	}
	for n.firstChild != nil {
		at := n.firstChild
		for at.firstChild != nil {
			at = at.firstChild
		}
		c.recordRemoved(at, MediumHost)
		c.dropAllHost(at, out)
		c.removeNode(at)
	}
	c.deleteLeaf(n, out)
	return true
}

// followingBelow is following within the subtree of top.
func (n *node) followingBelow(top *node) *node {
	if n.firstChild != nil {
		return n.firstChild
	}
	for n != top && n.next == nil {
		n = n.parent
	}
	if n == top {
		return nil
	}
	return n.next
}
