// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// storedLine marks a path as stored: one node or all up to the root as a rule,
// sometimes up to a node that is not above.
func (g *generator) storedLine(s *Story) string {
	name := g.pick(s, func(n *tree.NodeInfo) bool { return onDevice(n) && backedUp(n) && !n.Stored })
	until := "root"
	switch pick := g.rng.IntN(10); {
	case pick < 1:
		until = g.node(s)
	case pick < 7:
		until = g.ancestor(s, name)
	}
	return "mark-stored from=" + name + " until=" + until
}

// ancestor picks the nearest node above that has a name.
func (g *generator) ancestor(s *Story, name string) string {
	id, err := s.resolve(name)
	for err == nil && id != tree.NoNode {
		var info tree.NodeInfo
		if info, err = s.m.Inspect(id); err != nil {
			break
		}
		id = info.Parent
		if up := s.labels[id]; up != "" {
			return up
		}
	}
	return "root"
}
