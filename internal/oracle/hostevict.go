// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// EvictHost frees n host units of the component (section 7.2).
func (o *Oracle) EvictHost(c tree.Component, n int) (tree.Evicted, error) {
	const op = "EvictHost"
	if !o.has(c) {
		return tree.Evicted{}, &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v is not configured", c)}
	}
	if o.switches.HostBufferOnly || n <= 0 { // HE-1
		return tree.Evicted{}, nil
	}
	if err := o.checkHostCascades(op, c); err != nil {
		return tree.Evicted{}, err
	}
	var out dropped
	if o.switches.WriteBack && c != tree.Mamba {
		o.reclaimDuplicates(c, n, &out)
	}
	var err error
	if c == tree.Full {
		o.evictHostFull(n, &out)
		if !o.switches.WriteBack {
			o.reclaimStored(n, &out)
		}
	} else {
		err = o.evictHostAux(op, c, n, &out)
	}
	return out.evicted(), err
}

// reclaimDuplicates is rule HE-4.
func (o *Oracle) reclaimDuplicates(c tree.Component, n int, out *dropped) {
	candidates := o.settledDuplicates()
	if c == tree.SWA {
		candidates = nil
		entries := o.device[c].entries
		for i := len(entries) - 1; i >= 0; i-- { // from the LRU end
			if m := entries[i].node; m != nil && m.host[c] != nil && settled(m) {
				candidates = append(candidates, m)
			}
		}
	}
	for _, leaves := range []bool{false, true} {
		for _, m := range candidates {
			if out.freed[c] >= n {
				return
			}
			if m.host[c] != nil && m.hostLocks[c] == 0 && o.isDeviceLeaf(m) == leaves {
				o.reclaim(m, c, out)
			}
		}
	}
}

// evictHostFull is rule HE-2.
func (o *Oracle) evictHostFull(n int, out *dropped) {
	for out.freed[tree.Full] < n {
		var first *candidate
		for _, leaf := range o.preorder() {
			if !o.isHostLeaf(leaf) {
				continue
			}
			if c := o.candidateOf(leaf); first == nil || o.policy.before(c, *first) {
				first = &c
			}
		}
		if first == nil {
			return
		}
		o.deleteHostLeaf(first.node, out)
	}
}

// deleteHostLeaf deletes an H-leaf with all its values, and then its dead
// ancestors (rule E-29).
func (o *Oracle) deleteHostLeaf(n *node, out *dropped) {
	parent := n.parent
	o.deleteHostOnly(n, true, out)
	o.dropChildless(parent, out)
}

// deleteHostOnly deletes a node without children that is not on the device.
func (o *Oracle) deleteHostOnly(n *node, countUnits bool, out *dropped) {
	o.recordRemoved(n, tree.MediumHost)
	for _, c := range o.components {
		if n.host[c] != nil {
			o.dropHost(n, c, countUnits, out)
		}
	}
	o.forgetSessions(n)
	o.unlink(n)
}

// evictHostAux is rule HE-3. With sessions a mark says how far the walk came
// (rules SR-20, SR-22): nodes that change partition on the way are neither
// skipped nor met again. Without them it always goes on from the LRU end.
func (o *Oracle) evictHostAux(op string, c tree.Component, n int, out *dropped) error {
	list := &o.host[c]
	if o.sessions {
		list.insertAt(len(list.entries), entry{})
		defer list.remove(nil)
	}
	for out.freed[c] < n {
		x := o.nextOnHost(c)
		if x == nil {
			return nil
		}
		isLeaf := o.isHostLeaf(x)
		if isLeaf && o.mayDelete(x, c) {
			o.deleteHostLeaf(x, out)
			continue
		}
		others, err := o.hostCascade(op, x, c, isLeaf)
		if err != nil {
			return err
		}
		o.dropHost(x, c, true, out)
		for _, other := range others {
			o.dropHost(x, other, true, out)
		}
	}
	return nil
}

// nextOnHost returns the next node of a host walk; nil: none is left.
func (o *Oracle) nextOnHost(c tree.Component) *node {
	list := &o.host[c]
	from := len(list.entries)
	if o.sessions {
		from = list.indexOf(nil)
	}
	for i := from - 1; i >= 0; i-- {
		x := list.entries[i].node
		if x.loadPending != 0 || x.hostLocks[c] > 0 { // EV-8
			continue
		}
		if o.sessions {
			list.remove(nil) // behind i, so i stays x's place
			list.insertAt(i, entry{markReferenced: x.refs[c] > 0})
		}
		return x
	}
	return nil
}

// hostCascade returns the other components whose host values go with the
// trigger's (rules E-26, E-27, HE-3), in component order. It changes nothing.
func (o *Oracle) hostCascade(op string, x *node, trigger tree.Component, isLeaf bool) ([]tree.Component, error) {
	var others []tree.Component
	for _, c := range o.components {
		if c == trigger || x.host[c] == nil {
			continue
		}
		higher := internalPriority[c] >= internalPriority[trigger]
		if higher && !isLeaf {
			continue // no candidate
		}
		locked := x.hostLocks[c] > 0
		if higher && (locked || (x.refs[c] > 0 && x.refs[trigger] == 0)) {
			continue // spared
		}
		if locked {
			return nil, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d: %v is host-locked, but %v is not", x.id, c, trigger)}
		}
		if c == tree.Full { // a reference to SWA or Mamba implies one to Full
			return nil, &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d: a cascade would take full", x.id)}
		}
		others = append(others, c)
	}
	return others, nil
}

// checkHostCascades looks for a node at which the walk would fail, before
// anything is changed (rule A-11).
func (o *Oracle) checkHostCascades(op string, c tree.Component) error {
	if c == tree.Full {
		return nil
	}
	for _, e := range o.host[c].entries {
		if e.node.loadPending != 0 || (o.isHostLeaf(e.node) && o.mayDelete(e.node, c)) {
			continue
		}
		if _, err := o.hostCascade(op, e.node, c, o.isHostLeaf(e.node)); err != nil {
			return err
		}
	}
	return nil
}
