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
	n.state[component].host = s.Clone()
	if component != Full {
		c.joinHostList(n, component)
	}
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
