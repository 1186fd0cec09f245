// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// The registry of duplicates holds the nodes whose Full is on both tiers, in
// the order in which that came to be (rule ND-14). Under write-back their host
// copies are the first to go when the host tier is short (rule HE-4).

// settled reports whether no copy that reads or writes n's host slots is in
// flight.
func (n *node) settled() bool { return n.writeThroughPending() == 0 && n.loadBackPending() == 0 }

// trackDuplicate enters n if it is a settled duplicate and not entered yet.
func (c *Core) trackDuplicate(n *node) {
	if n.parent == nil || n.state[Full].device == nil || !n.backedUp() || !n.settled() {
		return
	}
	e := n.extend()
	if e.duplicate {
		return
	}
	e.awaitsAck = false
	c.duplicateSeq++
	e.duplicate, e.duplicateSeq = true, c.duplicateSeq
	e.prevDuplicate, e.nextDuplicate = c.lastDuplicate, nil
	if c.lastDuplicate != nil {
		c.lastDuplicate.ext.nextDuplicate = n
	} else {
		c.firstDuplicate = n
	}
	c.lastDuplicate = n
}

// untrackDuplicate takes n out, if it is in: Full is no longer on both tiers.
func (c *Core) untrackDuplicate(n *node) {
	e := n.ext
	if e == nil {
		return
	}
	e.awaitsAck = false
	if !e.duplicate {
		return
	}
	if e.prevDuplicate != nil {
		e.prevDuplicate.ext.nextDuplicate = e.nextDuplicate
	} else {
		c.firstDuplicate = e.nextDuplicate
	}
	if e.nextDuplicate != nil {
		e.nextDuplicate.ext.prevDuplicate = e.prevDuplicate
	} else {
		c.lastDuplicate = e.prevDuplicate
	}
	e.duplicate, e.nextDuplicate, e.prevDuplicate = false, nil, nil
}

// HostDuplicates returns the nodes whose Full is on both tiers with no copy in
// flight, in the order in which that came to be.
func (c *Core) HostDuplicates() []NodeID {
	ids := []NodeID{}
	for n := c.firstDuplicate; n != nil; n = n.ext.nextDuplicate {
		if n.settled() {
			ids = append(ids, n.id)
		}
	}
	return ids
}
