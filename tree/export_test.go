// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// SetHostValue is a test door: it gives a node a host value that no backup
// made.
func (c *Core) SetHostValue(id NodeID, component Component, s Slots) error {
	n, err := c.resolve("SetHostValue", id)
	if err != nil {
		return err
	}
	if n == c.root || !c.opts.Components.Has(component) || n.state[component].host != nil {
		return &ArgumentError{Op: "SetHostValue", Field: "node", Problem: fmt.Sprintf("node %d can not take a host value of %v", id, component)}
	}
	c.setHost(n, component, s.Clone())
	c.trackDuplicate(n)
	c.refreshLeaf(n)
	return nil
}

// SetPending is a test door: it marks a node as having a write-through in
// flight.
func (c *Core) SetPending(id NodeID, ack int64) error {
	n, err := c.resolve("SetPending", id)
	if err != nil {
		return err
	}
	n.extend().writeThroughPending = ack
	return nil
}

// SplitIntoUnits is a test door: it splits a node until each fragment has one
// page, halving, so that it costs n log n.
func (c *Core) SplitIntoUnits(id NodeID) error {
	n, err := c.resolve("SplitIntoUnits", id)
	if err != nil {
		return err
	}
	for work := []*node{n}; len(work) > 0; {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if pages := n.units / c.opts.PageSize; pages > 1 {
			prefix, _ := c.split(n, pages/2*c.opts.PageSize)
			work = append(work, prefix, n)
		}
	}
	return nil
}
