// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"strings"

	"github.com/treecore/treecore/tree"
)

// drawVerb draws the tree, one line a node, children below their parent in edge
// order: name and key, what each component holds on the device (S=- is a
// tombstone) and on the host, locks, references and hits.
func (s *Story) drawVerb(*arguments) (string, error) {
	infos := s.inspectAll()
	depth := make(map[tree.NodeID]int, len(infos))
	var b strings.Builder
	for i := range infos {
		n := &infos[i]
		if n.Parent != tree.NoNode {
			depth[n.ID] = depth[n.Parent] + 1
		}
		b.WriteString("\n  " + strings.Repeat("  ", depth[n.ID]))
		b.WriteString(s.drawNode(n, depth[n.ID] == 1))
	}
	return b.String(), nil
}

func (s *Story) drawNode(n *tree.NodeInfo, top bool) string {
	w := words{s.label(n.ID)}
	if n.Parent == tree.NoNode {
		if n.Priority != 0 && n.Priority != -1<<63 {
			w.add("priority", formatInt64(n.Priority))
		}
		return w.String()
	}
	if ns := n.Namespace; top && (ns.HasExtraKey || ns.ExtraKey != "" || ns.Salt != "") {
		w = append(w, namespaceText(ns))
	}
	// Absent device values are part of the drawing: they are tombstones.
	state := s.run.nodeState(n)
	for c := tree.Full; c < tree.NumComponents; c++ {
		if n.Components[c].Device == nil && (c == tree.Full || s.options.Components.Has(c)) {
			w.add(componentLetters[c], "-")
		} else if n.Components[c].Device != nil {
			w = append(w, state[0])
			state = state[1:]
		}
		if n.Components[c].Host != nil {
			w = append(w, state[0])
			state = state[1:]
		}
	}
	return append(w, state...).String()
}

func (s *Story) conserveVerb(*arguments) (string, error) {
	problems := s.pools.audit(s.inspectAll(), s.staged)
	if len(problems) == 0 {
		return "ok", nil
	}
	return "\n  " + strings.Join(problems, "\n  "), nil
}

func (s *Story) checkVerb(*arguments) (string, error) {
	return s.run.done(s.sanity()), nil
}
