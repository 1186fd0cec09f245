// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

// storyWalk is an eviction walk that a story has started.
type storyWalk struct {
	totals tree.Units
	done   bool // the last step returned neither a node nor progress
}

// evictSteps bounds a walk, so that a machine that never ends one is found out.
const evictSteps = 1 << 20

func (s *Story) evictVerb(a *arguments) (string, error) {
	c, err := required(a, "component", parseComponent)
	if err != nil {
		return "", err
	}
	n, err := required(a, "n", parseInt)
	if err != nil {
		return "", err
	}
	keep, err := argument(a, "keep", parseInt, 0)
	if err != nil {
		return "", err
	}
	if err := s.m.EvictStart(c, n); err != nil {
		return s.run.fault(err), nil
	}
	w := &storyWalk{}
	how := s.manner(a)
	var lines []string
	for range evictSteps {
		text, more := s.walkStep(c, w, keep > 0, how)
		if strings.HasPrefix(text, "leaf=") {
			keep--
		}
		if text != "done" {
			lines = append(lines, text)
		}
		if !more {
			break
		}
	}
	if err := s.m.EvictEnd(c); err != nil {
		lines = append(lines, s.run.fault(err))
	}
	lines = append(lines, "total "+formatUnits(w.totals))
	if len(lines) == 1 {
		return lines[0], nil
	}
	return "\n  " + strings.Join(lines, "\n  "), nil
}

// manner is how the steps of a walk are carried out.
type manner struct {
	writeBack bool
	noBackup  bool // pauses are ended without a backup
	leave     bool // pauses are not ended
}

func (s *Story) manner(a *arguments) manner {
	return manner{
		writeBack: a.has("write-back") || s.host.on && s.host.switches.WriteBack,
		noBackup:  a.has("no-backup"), leave: a.has("leave"),
	}
}

// walkStep makes one step of a walk and evicts the leaf that it returned.
func (s *Story) walkStep(c tree.Component, w *storyWalk, keep bool, how manner) (text string, more bool) {
	step, err := s.m.EvictNext(c, w.totals)
	if err != nil {
		return s.run.fault(err), false
	}
	text = s.run.evictStep(&step)
	w.totals.Add(step.Freed)
	w.done = step.Node == tree.NoNode && !step.MadeProgress
	if step.Paused != tree.NoNode {
		s.host.paused[c] = step.Paused
		if how.leave {
			return text, true
		}
		end, more := s.finishPause(c, step.Paused, !how.noBackup, &w.totals)
		return text + " -> " + end, more
	}
	if step.Node == tree.NoNode || keep {
		return text, step.MadeProgress
	}
	r, err := s.m.EvictLeaf(step.Node, how.writeBack)
	if err != nil {
		return text + " -> " + s.run.fault(err), true
	}
	w.totals.Add(r.Freed)
	text += " -> " + s.run.evictLeaf(&r)
	if r.Backup != nil {
		text += s.writeBackLeaf(r.Backup, &w.totals)
	}
	return text, true
}

func (s *Story) walkStartVerb(a *arguments) (string, error) {
	c, err := required(a, "component", parseComponent)
	if err != nil {
		return "", err
	}
	n, err := required(a, "n", parseInt)
	if err != nil {
		return "", err
	}
	if err := s.m.EvictStart(c, n); err != nil {
		return s.run.fault(err), nil
	}
	s.walks[c] = &storyWalk{}
	return "ok", nil
}

func (s *Story) walkNextVerb(a *arguments) (string, error) {
	c, err := required(a, "component", parseComponent)
	if err != nil {
		return "", err
	}
	w := s.walks[c]
	if w == nil {
		w = &storyWalk{} // the machine answers that no walk is on
	}
	if s.quiet && w.done {
		// What a walk returns after its end is left open: whether the parent
		// of its last leaf is looked at once more (rule E-13).
		s.endWalk(c)
		return "ended", nil
	}
	text, _ := s.walkStep(c, w, a.has("keep"), s.manner(a))
	return text, nil
}

func (s *Story) walkEndVerb(a *arguments) (string, error) {
	c, err := required(a, "component", parseComponent)
	if err != nil {
		return "", err
	}
	s.walks[c], s.host.paused[c] = nil, tree.NoNode
	return s.run.done(s.m.EvictEnd(c)), nil
}

// leafOrder returns the D-leaves in the order in which a Full walk that evicts
// none of them returns them.
func (s *Story) leafOrder() ([]tree.NodeID, error) {
	if err := s.m.EvictStart(tree.Full, ledgerLimit); err != nil {
		return nil, err
	}
	order := []tree.NodeID{}
	for range evictSteps {
		step, err := s.m.EvictNext(tree.Full, tree.Units{})
		if err != nil {
			return nil, err
		}
		if step.Node == tree.NoNode {
			break
		}
		order = append(order, step.Node)
	}
	return order, s.m.EvictEnd(tree.Full)
}

func (s *Story) orderVerb(*arguments) (string, error) {
	order, err := s.leafOrder()
	if err != nil {
		return s.run.fault(err), nil
	}
	return s.run.nodeList(order), nil
}

func (s *Story) sizesVerb(*arguments) (string, error) {
	var parts []string
	for c := tree.Full; c < tree.NumComponents; c++ {
		if s.options.Components.Has(c) || c == tree.Full {
			parts = append(parts, fmt.Sprintf("%s %d/%d", c, s.m.EvictableSize(c), s.m.ProtectedSize(c)))
		}
	}
	full, aux := s.m.TotalSize()
	return fmt.Sprintf("%s total %d/%d", strings.Join(parts, " "), full, aux), nil
}
