// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// checker collects violations (chapter 14).
type checker struct {
	oracle     *Oracle
	violations []tree.Violation
}

func (k *checker) require(ok bool, check string, n *node, format string, args ...any) {
	if !ok {
		k.violations = append(k.violations, tree.Violation{Check: check, Node: n.id, Detail: fmt.Sprintf(format, args...)})
	}
}

// SanityCheck checks what the oracle stores. What it recomputes at each
// question (sizes, leaf sets, digests) cannot be wrong by itself, so V-14 to
// V-18, V-26 and V-27 have nothing to compare.
func (o *Oracle) SanityCheck(writeThrough, loadBack []tree.InFlight) error {
	k := &checker{oracle: o}
	all := o.preorder()
	k.root()
	k.require(len(all) == len(o.nodes), "V-6", o.root, "%d nodes are reachable, %d are known", len(all), len(o.nodes))
	for _, n := range all {
		for _, child := range n.children {
			k.require(child.parent == n, "V-4", child, "its parent is another node")
		}
		if n != o.root {
			k.node(n)
		}
		for _, c := range allComponents {
			k.require(n.refs[c] >= 0, "V-30", n, "%v has %d session references", c, n.refs[c])
		}
	}
	for _, c := range auxComponents {
		k.lists(c, all)
	}
	k.duplicates(all)
	if o.sessions {
		k.sessions(all)
	}
	k.inFlight(all, writeThrough, loadBack)
	if len(k.violations) == 0 {
		return nil
	}
	return &tree.CheckError{Nodes: len(all), Violations: k.violations}
}

func (k *checker) root() {
	root := k.oracle.root
	k.require(root.device[tree.Full] != nil && len(root.device[tree.Full]) == 0, "V-1", root, "its full value is not the empty one")
	k.require(root.locks[tree.Full] > 0, "V-2", root, "it is not locked")
	k.require(root.parent == nil, "V-3", root, "it has a parent")
}

func (k *checker) node(n *node) {
	o := k.oracle
	k.require(len(n.key) > 0 && len(n.key)%o.page == 0, "V-5", n, "its key has %d units", len(n.key))
	k.require(n.parent == o.root || n.parent.namespace == n.namespace, "V-5", n, "its namespace is not its parent's")
	for _, c := range auxComponents {
		k.require(n.device[c] == nil || n.device[tree.Full] != nil, "V-7", n, "%v without full on the device", c)
		backed := n.host[tree.Full] != nil || (o.loose && n.device[tree.Full] != nil)
		k.require(n.host[c] == nil || backed, "V-8", n, "%v without full on the host", c)
		k.require(n.locks[tree.Full] >= n.locks[c], "V-11", n, "%v has %d locks, full %d", c, n.locks[c], n.locks[tree.Full])
	}
	k.require(n.device[tree.Full] != nil || n.host[tree.Full] != nil, "V-9", n, "it is dead")
	if n.parent != o.root {
		k.require(n.device[tree.Full] == nil || n.parent.device[tree.Full] != nil, "V-10", n, "its parent is not on the device")
		k.require(n.host[tree.Full] == nil || n.parent.host[tree.Full] != nil || o.loose, "V-10", n, "its parent is not on the host")
	}
	for _, c := range allComponents {
		k.require(n.locks[c] >= 0 && n.hostLocks[c] >= 0, "V-12", n, "%v has a negative lock count", c)
	}
	for _, c := range []tree.Component{tree.Full, tree.SWA} {
		for _, value := range [][]tree.Slot{n.device[c], n.host[c]} {
			k.require(value == nil || len(value) == len(n.key), "V-13", n, "a %v value has %d slots for %d units", c, len(value), len(n.key))
		}
	}
}

func (k *checker) lists(c tree.Component, all []*node) {
	o := k.oracle
	inDevice, inHost := 0, 0
	for _, n := range all {
		device, host := o.device[c].contains(n), o.host[c].contains(n)
		k.require(device == (n.device[c] != nil), "V-20", n, "%v: in the device list: %v", c, device)
		wanted := n.host[c] != nil && n.device[c] == nil && n.hostLocks[c] == 0
		k.require(host == wanted, "V-21", n, "%v: in the host list: %v", c, host)
		k.require(!device || !host, "V-22", n, "%v: in both lists", c)
		if device {
			inDevice++
		}
		if host {
			inHost++
		}
	}
	k.require(inDevice == len(o.device[c].order()), "V-23", o.root, "%v: the device list has other nodes", c)
	k.require(inHost == len(o.host[c].order()), "V-23", o.root, "%v: the host list has other nodes", c)
	for _, list := range []*recency{&o.device[c], &o.host[c]} {
		unreferenced := false
		for _, e := range list.entries {
			if e.node == nil {
				k.require(o.auxWalks[c] != nil, "V-36", o.root, "%v: a mark without a walk", c)
				continue
			}
			if !list.referenced(e) {
				unreferenced = true
			}
			k.require(!unreferenced || !list.referenced(e), "V-24", e.node, "%v: it stands behind an unreferenced node", c)
		}
	}
}

// duplicates checks V-25. A duplicate that a commit made is tracked from its
// ack on; until then it is not settled, whether it bears a mark or not.
func (k *checker) duplicates(all []*node) {
	o := k.oracle
	for _, n := range all {
		k.require(!o.isDuplicate(n) || !settled(n) || n.awaitsAck || o.isTracked(n), "V-25", n, "it is a settled duplicate, but not tracked")
	}
	for i, n := range o.duplicates {
		k.require(o.alive(n) && o.isDuplicate(n), "V-25", n, "it is tracked, but no duplicate")
		k.require(firstOf(o.duplicates, n) == i, "V-25", n, "it is tracked twice")
	}
}

func (k *checker) sessions(all []*node) {
	o := k.oracle
	for _, c := range o.components {
		expected := map[*node]int{}
		for _, id := range sortedKeys(o.frontiers[c]) {
			set := o.frontiers[c][id]
			k.require(len(set) > 0, "V-28", o.root, "%v: session %q has no frontier node", c, id)
			for _, nodeID := range sortedKeys(set) {
				f, covered := o.nodes[nodeID], set[nodeID]
				if f == nil {
					k.require(false, "V-28", o.root, "%v: session %q has the dead frontier node %d", c, id, nodeID)
					continue
				}
				k.require(f.marks[c][id], "V-28", f, "%v: it has no mark of session %q", c, id)
				k.require(c != tree.SWA || covered > 0, "V-31", f, "session %q covers nothing", id)
				for up := f; up != o.root; up = up.parent { // V-32
					if (c == tree.Mamba && up != f) || (c == tree.SWA && covered <= 0) {
						break
					}
					expected[up]++
					covered -= len(up.key)
				}
			}
		}
		for _, n := range all {
			k.require(n.refs[c] == expected[n], "V-32", n, "%v has %d session references, not %d", c, n.refs[c], expected[n])
			for _, id := range sortedKeys(n.marks[c]) {
				k.require(o.isFrontier(c, id, n), "V-29", n, "%v: the mark of session %q is no frontier", c, id)
			}
		}
	}
}

func (k *checker) inFlight(all []*node, writeThrough, loadBack []tree.InFlight) {
	o := k.oracle
	for _, list := range [][]tree.InFlight{writeThrough, loadBack} {
		for _, flight := range list {
			n := o.nodes[flight.Node]
			if n == nil {
				k.violations = append(k.violations, tree.Violation{Check: "V-34", Node: flight.Node, Detail: fmt.Sprintf("operation %d names a dead node", flight.ID)})
				continue
			}
			k.require(n.locks[tree.Full] > 0, "V-33", n, "operation %d has no lock on it", flight.ID)
		}
	}
	for _, n := range all {
		found := n.loadPending == 0
		for _, flight := range loadBack {
			found = found || flight.ID == n.loadPending
		}
		k.require(found, "V-35", n, "no load back %d is under way", n.loadPending)
	}
}
