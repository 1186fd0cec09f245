// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"slices"

	"github.com/treecore/treecore/tree"
)

// closedSessions is how many closed ids are remembered (rule SR-1).
const closedSessions = 8192

// frontierSet holds a session's frontier nodes of one component, by id. The
// value is the SWA span that the node's coverage has (rule SR-11); the other
// components do not use it.
type frontierSet map[tree.NodeID]int

// OpenSession gives the id a new generation (rule SR-2). The empty id is no
// session: it gets 0.
func (o *Oracle) OpenSession(id string) int64 {
	if id == "" {
		return 0
	}
	for i, closed := range o.closed {
		if closed == id {
			o.closed = append(append([]string{}, o.closed[:i]...), o.closed[i+1:]...)
			break
		}
	}
	o.lastGeneration++
	o.generations[id] = o.lastGeneration
	return o.lastGeneration
}

// EnsureSession returns the stored generation, or opens the session (SR-3).
func (o *Oracle) EnsureSession(id string) int64 {
	if generation, open := o.generations[id]; open {
		return generation
	}
	return o.OpenSession(id)
}

func (o *Oracle) isClosed(id string) bool {
	for _, closed := range o.closed {
		if closed == id {
			return true
		}
	}
	return false
}

// RegisterSession marks what the session's next turn will need (rule SR-4).
func (o *Oracle) RegisterSession(id string, generation int64, last tree.NodeID) error {
	if !o.sessions || id == "" || o.isClosed(id) {
		return nil
	}
	if stored, open := o.generations[id]; !open || stored != generation {
		return nil
	}
	n, err := o.resolve("RegisterSession", last)
	if err != nil {
		return err
	}
	if n == o.root {
		return nil
	}
	for _, c := range o.components {
		o.register(c, id, o.frontierFor(c, n))
	}
	return nil
}

// ReleaseSession drops all references of the session (rule SR-5).
func (o *Oracle) ReleaseSession(id string) {
	if !o.sessions || id == "" || o.isClosed(id) {
		return
	}
	o.closed = append(o.closed, id)
	if len(o.closed) > closedSessions {
		o.closed = append([]string{}, o.closed[1:]...)
	}
	delete(o.generations, id)
	for _, c := range o.components {
		for _, f := range o.frontierNodes(c, id) { // SR-10
			o.removeCoverage(c, id, f)
			o.unmark(c, id, f)
		}
	}
}

// frontierNodes returns the session's frontier nodes in ascending id order.
func (o *Oracle) frontierNodes(c tree.Component, id string) []*node {
	var nodes []*node
	for _, f := range sortedKeys(o.frontiers[c][id]) {
		nodes = append(nodes, o.nodes[f])
	}
	return nodes
}

func (o *Oracle) isFrontier(c tree.Component, id string, n *node) bool {
	_, is := o.frontiers[c][id][n.id]
	return is
}

// frontierFor resolves a frontier node, going up from n (rule SR-7); nil: absent.
func (o *Oracle) frontierFor(c tree.Component, n *node) *node {
	accepts := o.newValidator(c, true)
	for ; n != o.root; n = n.parent {
		if accepts(n) {
			return n
		}
	}
	return nil
}

// register is rule SR-8.
func (o *Oracle) register(c tree.Component, id string, f *node) {
	if f == nil || o.isFrontier(c, id, f) {
		return
	}
	var old *node
	for up := f.parent; up != o.root; up = up.parent {
		if o.isFrontier(c, id, up) {
			old = up
			break
		}
	}
	o.mark(c, id, f)
	// Advance the coverage from old to f (SR-11).
	switch c {
	case tree.Full:
		o.changePath(f, old, +1)
	default:
		o.addCoverage(c, id, f)
		if old != nil {
			o.removeCoverage(c, id, old)
		}
	}
	if old != nil {
		o.unmark(c, id, old)
	}
}

func (o *Oracle) mark(c tree.Component, id string, f *node) {
	if o.frontiers[c][id] == nil {
		o.frontiers[c][id] = frontierSet{}
	}
	o.frontiers[c][id][f.id] = 0
	f.marks[c][id] = true
}

func (o *Oracle) unmark(c tree.Component, id string, f *node) {
	delete(o.frontiers[c][id], f.id)
	if len(o.frontiers[c][id]) == 0 {
		delete(o.frontiers[c], id)
	}
	delete(f.marks[c], id)
}

// changePath changes Full's counts from n up to, but without, until (nil: up
// to the root).
func (o *Oracle) changePath(n, until *node, by int) {
	for ; n != o.root && n != until; n = n.parent {
		n.refs[tree.Full] += by
	}
}

// addCoverage adds the coverage of the frontier node f (rule SR-11).
func (o *Oracle) addCoverage(c tree.Component, id string, f *node) {
	switch c {
	case tree.Full:
		o.changePath(f, nil, +1)
	case tree.SWA:
		covered := 0
		for n := f; n != o.root && covered < o.window+o.page; n = n.parent {
			o.changeRef(c, n, +1)
			covered += len(n.key)
		}
		o.frontiers[c][id][f.id] = covered
	case tree.Mamba:
		o.changeRef(c, f, +1)
	}
}

// removeCoverage undoes addCoverage.
func (o *Oracle) removeCoverage(c tree.Component, id string, f *node) {
	switch c {
	case tree.Full:
		o.changePath(f, nil, -1)
	case tree.SWA:
		left := o.frontiers[c][id][f.id]
		for n := f; n != o.root && left > 0; n = n.parent {
			o.changeRef(c, n, -1)
			left -= len(n.key)
		}
	case tree.Mamba:
		o.changeRef(c, f, -1)
	}
}

// changeRef changes an aux count; a node that changes its partition moves to
// the MRU end of the new one (rule SR-12).
func (o *Oracle) changeRef(c tree.Component, n *node, by int) {
	was := n.refs[c] > 0
	n.refs[c] += by
	if was == (n.refs[c] > 0) {
		return
	}
	if o.device[c].contains(n) {
		o.device[c].toFront(n)
	}
	if o.host[c].contains(n) {
		o.host[c].toFront(n)
	}
}

// forgetSessions moves the marks of a node that is about to leave the tree
// (rule SR-15).
func (o *Oracle) forgetSessions(n *node) {
	for _, c := range o.components {
		for _, id := range sortedKeys(n.marks[c]) {
			fallback := o.frontierFor(c, n.parent)
			if fallback != nil && o.isFrontier(c, id, fallback) {
				fallback = nil
			}
			if c == tree.Full {
				o.changePath(n, fallback, -1)
			} else {
				o.removeCoverage(c, id, n)
			}
			o.unmark(c, id, n)
			if fallback == nil {
				continue
			}
			o.mark(c, id, fallback)
			if c != tree.Full {
				o.addCoverage(c, id, fallback)
			}
		}
	}
}

// sortedKeys returns a map's keys, ascending, so that nothing depends on the
// order of maps.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	var keys []K
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
