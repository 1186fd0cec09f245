// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

// validator decides whether a request may resume at a node. It has to be asked
// at every node of a walk in turn, since SWA's has a memory.
type validator func(*node) bool

// newValidator returns a fresh validator (section 6.2).
func (o *Oracle) newValidator(c tree.Component, anyTier bool) validator {
	holds := func(n *node) bool {
		return n.device[c] != nil || (anyTier && n.host[c] != nil)
	}
	if c != tree.SWA {
		return holds
	}
	// M-12. Before the first gap the counter is infinite.
	gapSeen := false
	counter := 0
	return func(n *node) bool {
		if !holds(n) {
			gapSeen = true
			counter = 0
			if o.switches.SWARingLayout {
				return n.device[tree.Full] != nil || n.host[tree.Full] != nil
			}
			return false
		}
		counter += len(n.key)
		return !gapSeen || counter >= o.window
	}
}

// validators is a set of validators, one for each configured component, with
// the depth of the deepest node that each accepted.
type validators struct {
	oracle  *Oracle
	each    []validator
	deepest [tree.NumComponents]int
}

func (o *Oracle) newValidators(anyTier bool) *validators {
	set := &validators{oracle: o}
	for _, c := range o.components {
		set.each = append(set.each, o.newValidator(c, anyTier))
	}
	return set
}

// accept asks all validators, without a short cut (rule M-10).
func (set *validators) accept(n *node) bool {
	all := true
	for i, c := range set.oracle.components {
		if set.each[i](n) {
			set.deepest[c] = n.depth()
		} else {
			all = false
		}
	}
	return all
}

// Match finds the deepest boundary that every component accepts (chapter 6).
func (o *Oracle) Match(key tree.Key) (tree.MatchResult, error) {
	all, namespace, err := o.units("Match", key)
	if err != nil {
		return tree.MatchResult{}, err
	}
	rest := o.align(all)
	if len(rest) == 0 { // M-1
		result := o.EmptyMatch()
		result.Explanation.Units = len(all)
		result.Explanation.PageRemainder = len(all)
		if len(all) > 0 {
			result.Explanation.Reason = tree.ReasonPageRemainder
		}
		return result, nil
	}
	aligned := len(rest)

	// M-2.
	onDevice := o.newValidators(false)
	onAny := onDevice
	if o.switches.HostTier {
		onAny = o.newValidators(true)
	}
	best, deviceBest := o.root, o.root
	var slots []tree.Slot // of all nodes walked
	var deviceLen int     // how many of them belong to deviceBest
	fullHit := 0
	var actions []tree.Action

	current := o.root
	for len(rest) > 0 {
		child := o.childFor(current, namespace, rest) // M-3
		if child == nil || (o.evicted(child) && !child.backedUp()) {
			break // M-4 for the second case
		}
		n := o.common(child.key, rest) // M-5
		fullHit += n                   // M-6
		partial := n < len(child.key)
		if partial { // M-8
			child, actions = o.split(child, n)
		}
		current = child // M-7
		slots = append(slots, current.device[tree.Full]...)
		accepted := onDevice.accept(current)
		if accepted {
			deviceBest = current
			deviceLen = len(slots)
		}
		if onAny != onDevice {
			accepted = onAny.accept(current)
		}
		if accepted {
			best = current
		}
		rest = rest[n:]
		if partial {
			break
		}
	}

	// M-13, M-14.
	if best != o.root {
		if o.has(tree.SWA) {
			o.device[tree.SWA].refresh(o.swaCushion(best))
		}
		if best.device[tree.Mamba] != nil {
			o.device[tree.Mamba].refresh([]*node{best})
		}
	}
	// M-15.
	tick := o.tick()
	distance := 0
	for n := best; n != nil; n = n.parent {
		n.stamp = stamp{tick: tick, distance: distance}
		distance++
	}

	result := tree.MatchResult{
		DeviceSlots:    runs(clone(slots[:deviceLen])),
		DeviceLen:      deviceLen,
		LastDeviceNode: deviceBest.id,
		BestNode:       best.id,
		LastHostNode:   deviceBest.id, // M-17
		FullHitLen:     fullHit,
		Actions:        actions,
	}
	if o.switches.HostTier {
		result.LastHostNode = best.id
	}
	for n := best; n != deviceBest && n != o.root; n = n.parent { // M-18
		result.HostHitLen += len(n.host[tree.Full])
	}
	result.SWAHostHitLen = o.swaHostHit(best)
	if best.device[tree.Mamba] == nil && best.host[tree.Mamba] != nil { // M-20
		result.MambaHostHitLen = 1
	}
	// M-21, M-22.
	boundary := deviceLen + result.HostHitLen
	if o.has(tree.SWA) {
		if at := fullHit / o.page * o.page; at > boundary {
			result.SWABranchingLen = at
		}
	}
	if o.has(tree.Mamba) {
		if at := fullHit / o.grid * o.grid; at > boundary {
			result.MambaBranchingLen = at
		}
	}
	result.Explanation = o.explain(all, aligned, namespace, result, best.depth(), onDevice)
	return result, nil
}

// swaHostHit is rule M-19.
func (o *Oracle) swaHostHit(best *node) int {
	if !o.has(tree.SWA) {
		return 0
	}
	sum, hit := 0, 0
	for n := best; n != o.root && sum < o.window; n = n.parent {
		switch {
		case n.device[tree.SWA] != nil:
			sum += len(n.device[tree.SWA])
		case n.host[tree.SWA] != nil:
			sum += len(n.host[tree.SWA])
			hit += len(n.host[tree.SWA])
		default:
			return hit
		}
	}
	return hit
}

// explain says what limited a match that had at least one page.
func (o *Oracle) explain(all []unit, aligned int, namespace tree.Namespace, m tree.MatchResult, bestDepth int, onDevice *validators) tree.Explanation {
	e := tree.Explanation{
		Matched:       m.DeviceLen,
		FullOnly:      m.FullHitLen,
		Device:        m.DeviceLen,
		Host:          bestDepth - m.DeviceLen,
		Units:         len(all),
		PageRemainder: len(all) - aligned,
	}
	switch {
	case m.DeviceLen == aligned && e.PageRemainder == 0:
		e.Reason = tree.ReasonComplete
	case m.DeviceLen == aligned:
		e.Reason = tree.ReasonPageRemainder
	case m.DeviceLen < m.FullHitLen:
		e.Limited = true
		e.LimitedBy = tree.Full
		for _, c := range o.components {
			if onDevice.deepest[c] <= onDevice.deepest[e.LimitedBy] {
				e.LimitedBy = c
			}
		}
		switch {
		case bestDepth > m.DeviceLen || e.LimitedBy == tree.Full:
			e.Reason = tree.ReasonHostOnly
		case e.LimitedBy == tree.SWA:
			e.Reason = tree.ReasonWindowTombstoned
		default:
			e.Reason = tree.ReasonNoState
		}
	default:
		e.Reason = tree.ReasonNeverSeen
		if m.FullHitLen == 0 {
			for _, child := range o.root.children {
				if child.namespace != namespace && o.samePage(child.key, all) {
					e.Reason = tree.ReasonOtherNamespace
				}
			}
		}
	}
	return e
}

// EmptyMatch returns the result of rule M-1 for an empty key (rule M-25).
func (o *Oracle) EmptyMatch() tree.MatchResult {
	return tree.MatchResult{
		DeviceSlots:    runs([]tree.Slot{}),
		LastDeviceNode: o.root.id,
		BestNode:       o.root.id,
		LastHostNode:   o.root.id,
	}
}

// MatchFullDevicePrefix is the read-only question of rule M-27.
func (o *Oracle) MatchFullDevicePrefix(key tree.Key) (tree.FullPrefix, error) {
	all, namespace, err := o.units("MatchFullDevicePrefix", key)
	if err != nil {
		return tree.FullPrefix{}, err
	}
	result := tree.FullPrefix{Node: o.root.id}
	for _, s := range o.deviceWalk(namespace, o.align(all)) {
		result.Matched += s.units
		result.Node = s.node.id
		result.Pinned += len(s.node.key)
	}
	return result, nil
}

// stretch is a node entered by a read-only walk and how many units of it match.
type stretch struct {
	node  *node
	start int // position of the node's first unit
	units int
}

// deviceWalk follows the units through nodes with Full on the device, without
// any change. The last node may match in part.
func (o *Oracle) deviceWalk(namespace tree.Namespace, rest []unit) []stretch {
	var walked []stretch
	current, at := o.root, 0
	for {
		child := o.childFor(current, namespace, rest)
		if child == nil || child.device[tree.Full] == nil {
			return walked
		}
		n := o.common(child.key, rest)
		walked = append(walked, stretch{node: child, start: at, units: n})
		if n < len(child.key) {
			return walked
		}
		current, at, rest = child, at+n, rest[n:]
	}
}

// CollectFullDeviceSlots returns the Full slots of the nodes from one node up
// to, but without, an ancestor, root-first (rule M-29).
func (o *Oracle) CollectFullDeviceSlots(from, until tree.NodeID) (tree.Slots, error) {
	const op = "CollectFullDeviceSlots"
	low, err := o.resolve(op, from)
	if err != nil {
		return nil, err
	}
	high, err := o.resolve(op, until)
	if err != nil {
		return nil, err
	}
	if low != high && !high.isAncestorOf(low) {
		return nil, &tree.ArgumentError{Op: op, Field: "until", Problem: "it is neither the first node nor one of its ancestors"}
	}
	slots := []tree.Slot{}
	for n := low; n != high; n = n.parent {
		if n.device[tree.Full] == nil {
			return nil, &tree.ArgumentError{Op: op, Field: "from", Problem: "a node on the way has no full slots on the device"}
		}
		slots = append(clone(n.device[tree.Full]), slots...)
	}
	return runs(slots), nil
}
