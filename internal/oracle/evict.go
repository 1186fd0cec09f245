// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// fullWalk is a walk of the Full component (section 10.3).
type fullWalk struct {
	request    int
	candidates []candidate
	// The leaf returned last, and its parent as it was then.
	last, lastParent *node
}

// auxWalk is a walk of SWA or Mamba (section 10.4). Without sessions the cursor
// alone says where it stands; with sessions the mark in the list does (SR-20),
// and the cursor is the candidate behind the mark.
type auxWalk struct {
	request int
	cursor  *node // nil: none is left
	paused  *pause
}

// EvictStart begins a walk (rule E-4).
func (o *Oracle) EvictStart(c tree.Component, n int) error {
	const op = "EvictStart"
	if !o.has(c) {
		return &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", c)}
	}
	if o.insert != nil { // I-11
		return &tree.OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	if o.walkIsOn(c) {
		return &tree.OrderError{Op: op, Problem: fmt.Sprintf("a walk of %v is on: end it first", c)}
	}
	if c == tree.Full { // E-12
		w := &fullWalk{request: n}
		for _, leaf := range o.preorder() {
			if o.isDeviceLeaf(leaf) {
				w.candidates = append(w.candidates, o.candidateOf(leaf))
			}
		}
		o.fullWalk = w
		return nil
	}
	w := &auxWalk{request: n}
	o.auxWalks[c] = w
	if o.sessions {
		list := &o.device[c]
		list.insertAt(len(list.entries), entry{}) // the mark, behind the LRU end
		w.cursor = o.nextFromMark(c, nil)
	} else {
		w.cursor = o.nextUnlocked(c, nil) // E-15
	}
	return nil
}

func (o *Oracle) walkIsOn(c tree.Component) bool {
	if c == tree.Full {
		return o.fullWalk != nil
	}
	return o.has(c) && o.auxWalks[c] != nil
}

// EvictEnd ends a walk (rule E-8).
func (o *Oracle) EvictEnd(c tree.Component) error {
	if !o.walkIsOn(c) {
		return &tree.OrderError{Op: "EvictEnd", Problem: fmt.Sprintf("no walk of %v is on", c)}
	}
	if c == tree.Full {
		o.fullWalk = nil
		return nil
	}
	o.auxWalks[c] = nil
	o.device[c].remove(nil)
	return nil
}

// EvictNext makes one step of a walk (rule E-5).
func (o *Oracle) EvictNext(c tree.Component, totals tree.Units) (tree.EvictStep, error) {
	const op = "EvictNext"
	if !o.walkIsOn(c) {
		return tree.EvictStep{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("no walk of %v is on: start one", c)}
	}
	if c != tree.Full && o.auxWalks[c].paused != nil { // E-5
		return tree.EvictStep{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d waits for FinishStateEviction", o.auxWalks[c].paused.node.id)}
	}
	if o.insert != nil { // I-11
		return tree.EvictStep{}, &tree.OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	if c == tree.Full {
		return o.nextFull(totals), nil
	}
	return o.nextAux(op, c, totals)
}

// done reports whether a request is met; 0 and less always is (rule E-4).
func done(request, total int) bool { return request <= 0 || total >= request }

// nextFull is rule E-13.
func (o *Oracle) nextFull(totals tree.Units) tree.EvictStep {
	w := o.fullWalk
	if w.last != nil {
		gone := !o.alive(w.last) || o.evicted(w.last)
		if gone && o.alive(w.lastParent) && o.isDeviceLeaf(w.lastParent) {
			w.candidates = append(w.candidates, o.candidateOf(w.lastParent))
			w.last, w.lastParent = nil, nil
		}
	}
	for !done(w.request, totals[tree.Full]) && len(w.candidates) > 0 {
		first := 0
		for i := range w.candidates {
			if o.policy.before(w.candidates[i], w.candidates[first]) {
				first = i
			}
		}
		leaf := w.candidates[first].node
		w.candidates = append(append([]candidate{}, w.candidates[:first]...), w.candidates[first+1:]...)
		if !o.alive(leaf) || !o.isDeviceLeaf(leaf) {
			continue
		}
		w.last, w.lastParent = leaf, leaf.parent
		return tree.EvictStep{Node: leaf.id, MadeProgress: true}
	}
	return tree.EvictStep{}
}

// nextAux is rule E-16, with SR-20 and SR-21 if sessions are on.
func (o *Oracle) nextAux(op string, c tree.Component, totals tree.Units) (tree.EvictStep, error) {
	w := o.auxWalks[c]
	list := &o.device[c]
	if w.cursor != nil {
		switch {
		case !list.contains(w.cursor) && o.sessions:
			w.cursor = o.nextFromMark(c, nil)
		case !list.contains(w.cursor):
			w.cursor = o.nextUnlocked(c, nil)
		case !o.evictable(w.cursor, c):
			w.cursor = o.advance(c, w.cursor)
		}
	}
	if w.cursor == nil || done(w.request, totals[c]) {
		return tree.EvictStep{}, nil
	}
	x := w.cursor
	if o.isDeviceLeaf(x) && o.mayDelete(x, c) {
		w.cursor = o.advance(c, x)
		return tree.EvictStep{Node: x.id, MadeProgress: true}, nil
	}
	isLeaf := o.isDeviceLeaf(x)
	others, err := o.tombstoneCascade(op, x, c, isLeaf)
	if err != nil {
		return tree.EvictStep{}, err
	}
	if o.wantsBackup(x, c) {
		w.paused = &pause{node: x, isLeaf: isLeaf}
		step := tree.EvictStep{MadeProgress: true, Paused: x.id, PausedFor: c}
		if c == tree.SWA {
			step.PausedUnits = len(x.device[c])
		}
		return step, nil
	}
	return o.tombstone(x, c, others), nil
}

// tombstoneCascade is the cascade of a value that goes in place. Errors come
// before any change (rule A-11).
func (o *Oracle) tombstoneCascade(op string, x *node, c tree.Component, isLeaf bool) ([]tree.Component, error) {
	others, err := o.cascade(op, x, c, isLeaf)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if other == tree.Full { // a reference to SWA or Mamba implies one to Full
			return nil, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d: a cascade would take full", x.id)}
		}
	}
	return others, nil
}

// tombstone drops the value of the cursor's node in place (rule E-16).
func (o *Oracle) tombstone(x *node, c tree.Component, others []tree.Component) tree.EvictStep {
	next := o.advance(c, x)
	var out dropped
	o.dropDevice(x, c, &out)
	for _, other := range others {
		o.dropDevice(x, other, &out)
	}
	o.auxWalks[c].cursor = next
	return tree.EvictStep{Evicted: out.evicted(), MadeProgress: !out.empty()}
}

// evictable: the component's walk may take the node (rule E-30).
func (o *Oracle) evictable(n *node, c tree.Component) bool {
	return n.locks[c] == 0 && n.loadPending == 0
}

// advance returns the candidate after x.
func (o *Oracle) advance(c tree.Component, x *node) *node {
	if o.sessions {
		return o.nextFromMark(c, x)
	}
	return o.nextUnlocked(c, x)
}

// nextUnlocked returns the first node that may be evicted from behind on the
// MRU side of x, or from the LRU end if x is nil.
func (o *Oracle) nextUnlocked(c tree.Component, x *node) *node {
	list := &o.device[c]
	from := len(list.entries)
	if x != nil {
		from = list.indexOf(x)
	}
	for i := from - 1; i >= 0; i-- {
		if o.evictable(list.entries[i].node, c) {
			return list.entries[i].node
		}
	}
	return nil
}

// nextFromMark returns the first node that may be evicted from the mark towards
// MRU, and puts the mark in front of it (rule SR-20). It is another one than x,
// which may have come in front of the mark again (rule E-9).
func (o *Oracle) nextFromMark(c tree.Component, x *node) *node {
	list := &o.device[c]
	for i := list.indexOf(nil) - 1; i >= 0; i-- {
		n := list.entries[i].node
		if n != x && o.evictable(n, c) {
			list.remove(nil) // behind i, so i stays n's place
			list.insertAt(i, entry{markReferenced: n.refs[c] > 0})
			return n
		}
	}
	return nil
}

// mayDelete is the condition of rule SR-21 on a D-leaf.
func (o *Oracle) mayDelete(x *node, c tree.Component) bool {
	if x.refs[c] > 0 {
		return true
	}
	for _, other := range o.components {
		if internalPriority[other] >= internalPriority[c] && x.refs[other] > 0 {
			return false
		}
	}
	return true
}
