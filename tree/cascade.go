// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// mayDelete is rule SR-21: a leaf that a session refers to through a component
// of equal or higher priority is not deleted by the walk of one it does not.
func (c *Core) mayDelete(x *node, h hooks) bool {
	if x.state[h.id()].refs > 0 {
		return true
	}
	for _, o := range c.comps {
		if o.internalPriority() >= h.internalPriority() && x.state[o.id()].refs > 0 {
			return false
		}
	}
	return true
}

// goesWith reports whether o's device value on n has to go when h's goes
// (rules E-26, E-27).
func goesWith(n *node, h, o hooks, isLeaf bool) bool {
	s := &n.state[o.id()]
	if o == h || s.device == nil {
		return false
	}
	if o.internalPriority() < h.internalPriority() {
		return true
	}
	return isLeaf && s.locks == 0 && (s.refs == 0 || n.state[h.id()].refs > 0)
}

// checkCascade finds a locked value that would have to go (rule E-27).
func (c *Core) checkCascade(op string, n *node, h hooks, isLeaf bool) error {
	for _, o := range c.comps {
		if goesWith(n, h, o, isLeaf) && n.state[o.id()].locks > 0 {
			return &InternalError{Op: op, Problem: fmt.Sprintf("dropping %v of node %d would take its locked %v along", h.id(), n.id, o.id())}
		}
	}
	return nil
}

// cascade drops what has to go with h's value, which is gone from n.
func (c *Core) cascade(n *node, h hooks, isLeaf bool, out *Evicted) {
	for i := len(c.comps) - 1; i >= 0; i-- { // Full last: SWA's payload needs it
		if o := c.comps[i]; goesWith(n, h, o, isLeaf) {
			c.dropDevice(n, o, out)
		}
	}
	if n.parent != nil {
		c.refreshLeaf(n)
		c.refreshLeaf(n.parent)
	}
}
