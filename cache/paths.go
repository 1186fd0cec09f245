// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/treecore/treecore/tree"

// isAbove reports whether a is an ancestor of b.
func (c *Cache) isAbove(a, b tree.NodeID) (bool, error) {
	for b != tree.NoNode {
		parent, _, err := c.tree.Place(b)
		if err != nil {
			return false, err
		}
		if b = parent; b == a {
			return true, nil
		}
	}
	return false, nil
}

// depthAbove returns the position at which a node begins.
func (c *Cache) depthAbove(id tree.NodeID) (int, error) {
	depth := 0
	for first := true; ; first = false {
		parent, units, err := c.tree.Place(id)
		if err != nil || parent == tree.NoNode {
			return depth, err
		}
		if !first {
			depth += units
		}
		id = parent
	}
}
