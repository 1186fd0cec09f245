// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/treecore/treecore/tree"
)

// maxOrdered is the longest queue that is put into another order than that of
// arrival: each request of it is matched in each step.
const maxOrdered = 128

// sort puts the waiting requests into the order in which they are admitted.
func (e *Engine) sort() error {
	if len(e.waiting) < 2 {
		return nil
	}
	rank := make(map[*Task]int, len(e.waiting)) // looked up only
	if e.opts.Order != FirstCome && len(e.waiting) <= maxOrdered {
		for _, t := range e.waiting {
			if _, err := e.cache.Match(t.request); err != nil {
				return err
			}
		}
		switch e.opts.Order {
		case LongestPrefix:
			for _, t := range e.waiting {
				m := t.request.Match()
				rank[t] = -(m.DeviceLen + m.HostHitLen)
			}
		case DepthFirst:
			if err := e.depthFirst(rank); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(e.waiting, func(a, b *Task) int {
		if a.params.Priority != b.params.Priority {
			if a.params.Priority > b.params.Priority {
				return -1
			}
			return 1
		}
		return rank[a] - rank[b]
	})
	return nil
}

// depthFirst ranks the waiting requests by a walk over the tree that enters the
// branch first under which most of them wait.
func (e *Engine) depthFirst(rank map[*Task]int) error {
	core := e.cache.Tree()
	at := map[tree.NodeID][]*Task{}
	weight := map[tree.NodeID]int{}
	for _, t := range e.waiting {
		id := t.request.Match().BestNode
		at[id] = append(at[id], t)
		for id != tree.NoNode {
			weight[id]++
			parent, _, err := core.Place(id)
			if err != nil {
				return err
			}
			id = parent
		}
	}
	next := 0
	var walk func(id tree.NodeID) error
	walk = func(id tree.NodeID) error {
		n, err := core.Inspect(id)
		if err != nil {
			return err
		}
		children := slices.DeleteFunc(slices.Clone(n.Children), func(c tree.NodeID) bool { return weight[c] == 0 })
		slices.SortStableFunc(children, func(a, b tree.NodeID) int { return weight[b] - weight[a] })
		for _, c := range children {
			if err := walk(c); err != nil {
				return err
			}
		}
		for _, t := range at[id] {
			rank[t] = next
			next++
		}
		return nil
	}
	return walk(core.Root())
}
