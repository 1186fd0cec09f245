// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"

	"github.com/treecore/treecore/tree"
)

// hostOwners checks IN-4 and IN-5 on the host.
func (a *audit) hostOwners() {
	h := a.cache.host
	for i, p := range h.pools {
		if p == nil {
			continue
		}
		l := &ledger{audit: a, rule: "IN-4", pool: "host " + p.Name(), owner: make([]string, p.Size())}
		l.own("the free list", p.FreeSlots())
		for _, id := range a.order {
			l.own(fmt.Sprintf("node %d", id), a.nodes[id].Components[i].Host)
		}
		l.own("the release queue", h.released[i])
		for _, b := range h.backups {
			l.own(fmt.Sprintf("backup %d", b.copy), b.orphans[i])
		}
		for _, p := range a.cache.fetches() {
			l.own(fmt.Sprintf("the prefetch of lookup %d", p.lookup.ID()), p.held(tree.Component(i)))
		}
		for _, x := range a.cache.staging() {
			if x.component == tree.Component(i) {
				l.own(x.owner, x.slots)
			}
		}
		for r := a.cache.live.first; r != nil; r = r.next {
			if r.saved != nil {
				l.own(fmt.Sprintf("retracted request %d", r.id), r.saved.host[i])
			}
		}
		l.close()
		if err := p.Check(); err != nil {
			a.fault("AL-3", "%v", err)
		}
	}
}

// hostHolders lists the host locks that are held: those of loads, of writes to
// storage and of prefetches. What these have reserved is IN-9.
func (a *audit) hostHolders() []held {
	var list []held
	if a.cache.bufferOnly() {
		return nil // there is nothing to lock
	}
	for _, l := range a.cache.host.loads {
		list = append(list, held{name: fmt.Sprintf("load %d", l.seq), node: l.node, receipt: l.host})
	}
	st := a.cache.storage
	if st == nil {
		return list
	}
	for _, w := range st.writes {
		list = append(list, held{name: fmt.Sprintf("write %d", w.operation.ID()), node: w.node, receipt: w.receipt})
	}
	reserved := 0
	for r := a.cache.live.first; r != nil; r = r.next {
		if p := r.fetch; p != nil {
			list = append(list, held{name: fmt.Sprintf("the prefetch of lookup %d", p.lookup.ID()), node: p.anchor, receipt: p.receipt})
			reserved += p.reserved
		}
	}
	if reserved != st.occupancy {
		a.fault("IN-9", "%d tokens are reserved, prefetches account for %d", st.occupancy, reserved)
	}
	return list
}

// hostLocks checks the host part of IN-7: each node's host lock counts are those
// of the receipts that are held.
func (a *audit) hostLocks(list []held) {
	var want [tree.NumComponents]map[tree.NodeID]int
	for i := range want {
		want[i] = map[tree.NodeID]int{}
	}
	for _, r := range list {
		n, known := a.nodes[r.node]
		if !known {
			a.fault("IN-7", "%s locks node %d on the host, which is gone", r.name, r.node)
			continue
		}
		if n.Parent == tree.NoNode {
			continue // nothing is counted on the root
		}
		if a.cache.mamba && !r.receipt.Skipped.Has(tree.Mamba) {
			want[tree.Mamba][r.node]++
		}
		if !r.receipt.Skipped.Has(tree.Full) {
			a.countHostSegment(r, tree.Full, want[tree.Full])
		}
		if a.cache.swa && !r.receipt.Skipped.Has(tree.SWA) {
			a.countHostSegment(r, tree.SWA, want[tree.SWA])
		}
	}
	for _, id := range a.order {
		for i := range want {
			if n := a.nodes[id].Components[i].HostLocks; n != want[i][id] {
				a.fault("IN-7", "node %d has %d %v host locks, %d are held", id, n, tree.Component(i), want[i][id])
			}
		}
	}
}

// countHostSegment counts the nodes that a receipt covers: from its anchor up to
// the node with its mark, or to the root without one.
func (a *audit) countHostSegment(r held, component tree.Component, want map[tree.NodeID]int) {
	mark := r.receipt.HostBound[component]
	for id := r.node; ; {
		n := a.nodes[id]
		if n.Parent == tree.NoNode {
			break
		}
		want[id]++
		if mark != 0 && n.Components[component].HostBoundary == mark {
			return
		}
		id = n.Parent
	}
	if mark != 0 {
		a.fault("IN-7", "no node from %d up bears the mark at which the %v host lock of %s ends", r.node, component, r.name)
	}
}

// pending checks IN-8: marks are those of the backups in flight, both ways.
func (a *audit) pending() {
	marked := map[tree.NodeID]int64{}
	for _, b := range a.cache.host.backups {
		if b.undone {
			continue
		}
		for _, id := range b.publish {
			if marked[id] != 0 {
				a.fault("IN-8", "node %d is claimed by the backups of %d and of %d", id, marked[id], b.ack)
			}
			marked[id] = b.ack
		}
	}
	for _, id := range a.order {
		if got := a.nodes[id].WriteThroughPending; got != marked[id] {
			a.fault("IN-8", "node %d is marked for the backup of %d, the books say %d", id, got, marked[id])
		}
	}
	// The registry holds every settled duplicate once.
	registered := a.cache.tree.HostDuplicates()
	for _, id := range a.order {
		n := a.nodes[id]
		full := n.Components[tree.Full]
		want := n.Parent != tree.NoNode && full.Device != nil && full.Host != nil && n.WriteThroughPending == 0 && n.LoadBackPending == 0
		// Under write-through a load back is registered at its end.
		if got := slices.Contains(registered, id); got != want && !(want && len(a.cache.host.loads) > 0) {
			a.fault("IN-10", "node %d is registered as a duplicate: %v, by its values: %v", id, got, want)
		}
	}
}

// inFlight lists what the tree's own check must know.
func (a *audit) inFlight() (backups, loads []tree.InFlight) {
	h := a.cache.host
	if h == nil {
		return nil, nil
	}
	for _, b := range h.backups {
		backups = append(backups, tree.InFlight{ID: b.ack, Node: b.node})
	}
	if h.buffer != nil {
		for _, l := range h.buffer.copying {
			backups = append(backups, tree.InFlight{ID: int64(l.node), Node: l.node})
		}
	}
	for _, l := range h.loads {
		loads = append(loads, tree.InFlight{ID: int64(l.node), Node: l.node})
	}
	return backups, loads
}
