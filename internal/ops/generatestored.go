// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// linkerProductions are added where the machines have an external linker.
var linkerProductions = []production{
	{8, (*generator).offloadLine},
	{10, (*generator).ackOffloadLine},
	{3, (*generator).storedLine},
	{3, (*generator).wrongOffloadLine},
	{1, (*generator).refuseLine},
}

func (g *generator) linkerLine(storage bool) string {
	w := words{"switches external-linker"}
	w.flag("storage", storage)
	return w.String()
}

func (g *generator) offloadLine(s *Story) string {
	name := g.pick(s, func(n *tree.NodeInfo) bool { return !n.Stored && n.WriteThroughPending == 0 })
	if g.chance(20) {
		return "build-offload " + name
	}
	line := "offload " + name
	if g.chance(8) {
		line += " fail"
	}
	return line
}

func (g *generator) ackOffloadLine(s *Story) string {
	if len(s.host.offloads) == 0 {
		return ""
	}
	line := "ack-offload"
	if at := g.rng.IntN(len(s.host.offloads)); g.chance(20) {
		if name := s.labels[s.host.offloads[at].target]; name != "" {
			line += " " + name
		}
	}
	if g.chance(30) {
		line += " failed"
	}
	return line
}

func (g *generator) refuseLine(*Story) string { return fmt.Sprintf("host-fail n=%d", 1+g.rng.IntN(3)) }

// wrongOffloadLine makes up calls that must fail, or do nothing.
func (g *generator) wrongOffloadLine(s *Story) string {
	node := g.node(s)
	switch g.rng.IntN(6) {
	case 0:
		return "mark-offload-pending root"
	case 1:
		if len(s.host.offloads) > 0 {
			if name := s.labels[s.host.offloads[0].target]; name != "" {
				return "mark-offload-pending " + name
			}
		}
		return "mark-offload-pending null"
	case 2:
		return fmt.Sprintf("finish-offload nodes=%s,%s ack=987654 success", node, g.node(s))
	case 3:
		return fmt.Sprintf("finish-offload nodes=%s,root ack=987654 success", node)
	case 4:
		return fmt.Sprintf("finish-offload nodes=%s ack=0", node)
	}
	return []string{"switches external-linker host-tier", "switches external-linker host-buffer-only", "switches external-linker write-through-threshold=0"}[g.rng.IntN(3)]
}

// policyLine changes the write policy (rule AT-4). Loads have to end before: what
// keeps their host slots depends on it (rule AT-1).
func (g *generator) policyLine(s *Story) string {
	switch {
	case !g.config.Changing:
		return ""
	case len(s.host.loads) > 0:
		return "ack-load"
	}
	g.writeBack, g.threshold = !g.writeBack, 1+g.rng.IntN(2)
	return g.switchesLine(g.storage)
}

// undoLine takes host values back as if the copy that made them had failed.
func (g *generator) undoLine(s *Story) string {
	name := g.pick(s, func(n *tree.NodeInfo) bool { return onDevice(n) && backedUp(n) })
	set := tree.SetOf(g.component())
	if g.chance(70) {
		set |= tree.SetOf(tree.Full)
	}
	return fmt.Sprintf("undo-backup node=%s components=%s ack=0", name, set)
}

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
