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
		l.close()
		if err := p.Check(); err != nil {
			a.fault("AL-3", "%v", err)
		}
	}
}

// hostLocks checks the host part of IN-7: host locks are those of loads, which
// hold them on their node and, for windows, on the nodes above it.
func (a *audit) hostLocks() {
	var most [tree.NumComponents]map[tree.NodeID]int
	for i := range most {
		most[i] = map[tree.NodeID]int{}
	}
	for _, at := range a.hostHolders() {
		for id := at; ; {
			n, known := a.nodes[id]
			if !known || n.Parent == tree.NoNode {
				break
			}
			for i := range most {
				most[i][id]++
			}
			id = n.Parent
		}
		for _, i := range []tree.Component{tree.SWA, tree.Mamba} {
			if a.cache.pool(i) != nil && at != a.cache.tree.Root() && a.nodes[at].Components[i].HostLocks == 0 {
				a.fault("IN-7", "a load, write or prefetch holds no %v host lock on node %d", i, at)
			}
		}
	}
	for _, id := range a.order {
		for i := range most {
			if n := a.nodes[id].Components[i].HostLocks; n < 0 || n > most[i][id] {
				a.fault("IN-7", "node %d has %d %v host locks, loads hold %d at most", id, n, tree.Component(i), most[i][id])
			}
		}
	}
}

// hostHolders returns the nodes on which operations hold host locks.
func (a *audit) hostHolders() []tree.NodeID {
	var out []tree.NodeID
	for _, l := range a.cache.host.loads {
		out = append(out, l.node)
	}
	st := a.cache.storage
	if st == nil {
		return out
	}
	for _, w := range st.writes {
		out = append(out, w.node)
	}
	reserved := 0
	for r := a.cache.live.first; r != nil; r = r.next {
		if r.fetch != nil {
			out = append(out, r.fetch.anchor)
			reserved += r.fetch.units
		}
	}
	if reserved != st.occupancy {
		a.fault("IN-9", "%d tokens are reserved, prefetches account for %d", st.occupancy, reserved)
	}
	return out
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
	for _, l := range h.loads {
		loads = append(loads, tree.InFlight{ID: int64(l.node), Node: l.node})
	}
	return backups, loads
}
