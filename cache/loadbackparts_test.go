// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// X-LB-9, X-LB-10: a load back that finds a state slot and then no Full slots is
// given up. The state goes back if the load took it; one that the request had
// stays.
func TestLoadBackKeepsTheRequestsState(t *testing.T) {
	for _, had := range []bool{false, true} {
		m := tiered(t, components(false, true), 1, 0, PoolSizes{Full: 32, Mamba: 8}, PoolSizes{Full: 32, Mamba: 8}, WriteBack)
		r := m.start(span(1, 24)...)
		m.prefill(r, 12) // states at 12 and 24
		m.finish(r)
		m.evict(tree.Full, 12, 12)
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 30)})
		m.ok(err)
		found, err := m.cache.Match(r)
		m.ok(err)
		if found.HostHitLen != 12 || found.MambaHostHitLen != 1 || found.DeviceLen != 12 {
			t.Fatalf("%+v", found)
		}
		slot := tree.Slot(0)
		if had {
			if slot, err = m.cache.states.AllocOne(); err != nil {
				t.Fatal(err)
			}
			r.checkpoint.state = slot
		}
		states, full, host := m.free(tree.Mamba), m.free(tree.Full), m.cache.HostUsage(tree.Full)
		asked := 0
		m.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool {
			if id == tree.Full && !host {
				asked++
				if !had && r.StateSlot() == 0 {
					t.Error("Full slots are asked for before the state")
				}
			}
			return id == tree.Full && !host
		}}
		done, err := m.cache.loadBack(r, NoQuota)
		if done || err != nil || asked != 1 || r.StateSlot() != slot {
			t.Fatalf("done %v, %v; Full was asked for %d times, the state is %d, was %d", done, err, asked, r.StateSlot(), slot)
		}
		wantInt(t, "free states", m.free(tree.Mamba), states)
		wantInt(t, "free Full slots", m.free(tree.Full), full)
		if m.cache.HostUsage(tree.Full) != host || m.cache.Stats().LoadBacksGivenUp != 1 {
			t.Errorf("%+v, %d given up", m.cache.HostUsage(tree.Full), m.cache.Stats().LoadBacksGivenUp)
		}
		for _, id := range m.cache.tree.Nodes()[1:] {
			n, err := m.cache.tree.Inspect(id)
			if err != nil {
				t.Fatal(err)
			}
			for component, x := range n.Components {
				if x.Locks+x.HostLocks != 0 {
					t.Errorf("node %d: %d locks and %d host locks of %v are left", id, x.Locks, x.HostLocks, tree.Component(component))
				}
			}
		}
		// Without the fault the same state is used.
		m.cache.host.faults = nil
		m.admit(r)
		wantInt(t, "reused", r.Len(), 24)
		if had && r.StateSlot() != slot {
			t.Errorf("the request runs on state %d, it had %d", r.StateSlot(), slot)
		}
		m.ok(m.cache.Abort(r))
		m.nothingLocked()
	}
}

// X-LB-11, X-LB-12: of the window above the best node what is on the host only is
// loaded, as far as the window reaches.
func TestLoadBackPartOfAWindow(t *testing.T) {
	for _, c := range []struct{ window, loaded int }{{6, 4}, {4, 0}} {
		m := tiered(t, components(true, false), 1, c.window, PoolSizes{Full: 32, SWA: 32}, PoolSizes{Full: 32, SWA: 32}, WriteThrough)
		m.serve(span(1, 4)...)
		m.serve(span(1, 8)...)
		m.sync()
		m.reuse(span(1, 8)...)
		ids := m.cache.tree.Nodes()[1:]
		wantInt(t, "nodes", len(ids), 2)
		m.evict(tree.SWA, 4, 4)
		for i, resident := range []bool{false, true} {
			n, err := m.cache.tree.Inspect(ids[i])
			m.ok(err)
			swa := n.Components[tree.SWA]
			if n.Components[tree.Full].Device.Len() != 4 || swa.Host.Len() != 4 || (swa.Device != nil) != resident {
				t.Fatalf("window %d, node %d: %+v", c.window, i, n.Components)
			}
		}
		free := m.free(tree.SWA)
		r := m.start(span(1, 9)...) // reads its window
		wantInt(t, "reused", r.Len(), 8)
		if got := m.cache.Stats().LoadedBack; got != (tree.Units{tree.SWA: c.loaded}) {
			t.Errorf("window %d: loaded %v, want %d of SWA", c.window, got, c.loaded)
		}
		wantInt(t, "SWA slots that were taken", free-m.free(tree.SWA), c.loaded)
		n, err := m.cache.tree.Inspect(ids[0])
		m.ok(err)
		wantInt(t, "SWA slots of the first node", n.Components[tree.SWA].Device.Len(), c.loaded)
		m.compute(r, 1)
		m.finish(r)
		m.sync()
		m.nothingLocked()
	}
}
