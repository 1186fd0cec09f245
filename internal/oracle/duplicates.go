// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

// isDuplicate: Full on both tiers.
func (o *Oracle) isDuplicate(n *node) bool {
	return n != o.root && n.device[tree.Full] != nil && n.host[tree.Full] != nil
}

// settled: no transfer that reads or writes the node's host slots is in flight.
func settled(n *node) bool { return n.writePending == 0 && n.loadPending == 0 }

func (o *Oracle) isTracked(n *node) bool {
	for _, entry := range o.duplicates {
		if entry == n {
			return true
		}
	}
	return false
}

// enterDuplicate enters a settled duplicate at the end of the registry, unless it
// has a place already; any other node is left alone (rule ND-14).
func (o *Oracle) enterDuplicate(n *node) {
	if !o.isDuplicate(n) || !settled(n) {
		return
	}
	n.awaitsAck = false
	if !o.isTracked(n) {
		o.duplicates = append(o.duplicates, n)
	}
}

// leaveDuplicates takes out a node that lost Full on a tier, or died.
func (o *Oracle) leaveDuplicates(n *node) {
	n.awaitsAck = false
	var left []*node
	for _, entry := range o.duplicates {
		if entry != n {
			left = append(left, entry)
		}
	}
	o.duplicates = left
}

// settledDuplicates returns the registry without the entries that are in flight.
func (o *Oracle) settledDuplicates() []*node {
	var list []*node
	for _, n := range o.duplicates {
		if o.isDuplicate(n) && settled(n) {
			list = append(list, n)
		}
	}
	return list
}

// HostDuplicates lists the settled duplicates in order of entry (rule ND-14).
func (o *Oracle) HostDuplicates() []tree.NodeID {
	ids := []tree.NodeID{}
	for _, n := range o.settledDuplicates() {
		ids = append(ids, n.id)
	}
	return ids
}

// ReclaimDigest returns the rolling digest of reclaimed copies (rule HE-5).
func (o *Oracle) ReclaimDigest() uint64 { return o.reclaimed }

// reclaim drops the redundant host copy of one component (rule HE-4).
func (o *Oracle) reclaim(n *node, c tree.Component, out *dropped) {
	if c == tree.Full {
		o.recordRemoved(n, tree.MediumHost)
	}
	o.dropHost(n, c, true, out)
	o.reclaimed = (o.reclaimed*1000003 + uint64(n.id) + 1) % (1 << 42)
}
