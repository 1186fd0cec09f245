// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// X-EV-7: what a dropped victim had on the host is room for the next victim's
// backup in the same eviction.
func TestDropMakesRoomForTheNextVictim(t *testing.T) {
	m := twoTiers(t, 32, 4, WriteBack)
	m.serve(span(1, 2)...)
	m.serve(span(1, 4)...)
	m.serve(span(1, 6)...)
	m.evict(tree.Full, 2, 2)
	m.evict(tree.Full, 2, 2)
	m.serve(span(101, 104)...)
	wantInt(t, "free on the host", m.hostFree(tree.Full), 0)
	if found := m.reuse(span(1, 6)...); found.DeviceLen != 2 || found.HostHitLen != 4 {
		t.Fatalf("%+v", found)
	}
	leaf := m.node(span(101, 104)...).ID
	free, calls := m.free(tree.Full), 0
	m.cache.host.faults = &faults{alloc: func(_ tree.Component, host bool) bool {
		calls++
		return host && calls == 1
	}}
	m.evict(tree.Full, 6, 6)
	m.cache.host.faults = nil
	wantInt(t, "host allocations", calls, 2)
	wantInt(t, "device slots that came back", m.free(tree.Full)-free, 6)
	wantInt(t, "dropped", m.cache.Stats().DroppedHostPressure[tree.Full], 2)
	wantInt(t, "nodes", m.cache.tree.NodeCount(), 2)
	n, err := m.cache.tree.Inspect(leaf)
	m.ok(err)
	if full := n.Components[tree.Full]; full.Device != nil || full.Host.Len() != 4 || n.WriteThroughPending != 0 {
		t.Fatalf("%+v", n)
	}
	wantInt(t, "free on the host", m.hostFree(tree.Full), 0)
	m.nothingLocked()
	wantInt(t, "from the host", m.serveAgain(span(101, 105)...), 4) // the content is right
}

// X-EV-8: the window of an inner node goes alone; Full stays, and its slots lose
// their twins.
func TestWindowOfAnInnerNodeGoes(t *testing.T) {
	m := newModel(t, Options{
		Tree:  tree.Options{Components: components(true, false), SlidingWindow: 4},
		Pools: PoolSizes{Full: 32, SWA: 32},
	})
	m.serve(span(1, 4)...)
	m.serve(span(1, 8)...)
	inner := m.node(span(1, 4)...)
	if len(inner.Children) != 1 || inner.Components[tree.SWA].Device.Len() != 4 {
		t.Fatalf("%+v", inner)
	}
	m.reuse(span(1, 8)...) // the child was used last
	before := m.cache.Stats()
	freed, err := m.cache.Evict(tree.SWA, 4)
	m.ok(err)
	if freed != (tree.Units{tree.SWA: 4}) {
		t.Fatalf("evicted %v", freed)
	}
	after := m.cache.Stats()
	wantInt(t, "nodes that lost their window only", after.Tombstones[tree.SWA]-before.Tombstones[tree.SWA], 1)
	wantInt(t, "leaves evicted", int(after.Leaves-before.Leaves), 0)
	wantInt(t, "free Full slots", m.free(tree.Full), 24)
	wantInt(t, "free SWA slots", m.free(tree.SWA), 28)
	n, err := m.cache.tree.Inspect(inner.ID)
	m.ok(err)
	if n.Components[tree.SWA].Device != nil || !n.Components[tree.Full].Device.Equal(inner.Components[tree.Full].Device) {
		t.Fatalf("%+v", n.Components)
	}
	for _, slot := range inner.Components[tree.Full].Device {
		if twin, err := m.cache.dual.TwinOf(int64(slot.First)); twin != 0 || err != nil {
			t.Errorf("slot %d still has twin %d (%v)", slot.First, twin, err)
		}
	}
	wantInt(t, "reused up to the inner node", m.reuse(span(1, 4)...).DeviceLen, 0)
	wantInt(t, "reused up to its child", m.serve(span(1, 9)...).Matched(), 8)
}

// X-EV-11: what the walk for Full frees of the window counts, so that no further
// walk is made for that.
func TestNoWalkForWhatIsFreed(t *testing.T) {
	for _, c := range []struct {
		swa   int // size of the pool
		walks int64
		freed tree.Units
	}{
		{11, 1, tree.Units{tree.Full: 4, tree.SWA: 3}}, // 2 are missing, 3 go with Full
		{14, 1, tree.Units{tree.Full: 4, tree.SWA: 3}}, // none is missing
		{10, 1, tree.Units{tree.Full: 4, tree.SWA: 3}}, // exactly 3 are
	} {
		m := newModel(t, Options{
			Tree:  tree.Options{Components: components(true, false), SlidingWindow: 2},
			Pools: PoolSizes{Full: 10, SWA: c.swa},
		})
		m.run(4, span(1, 4)...) // the first of the four without a window
		wantInt(t, "free Full slots", m.free(tree.Full), 6)
		wantInt(t, "free SWA slots", m.free(tree.SWA), c.swa-3)
		r := m.start(span(101, 110)...)
		before := m.cache.Stats()
		m.ok(m.cache.Extend(r, 10))
		after := m.cache.Stats()
		if walks := after.EvictionWalks - before.EvictionWalks; walks != c.walks || after.Evicted != c.freed {
			t.Errorf("SWA pool of %d: %d walks freed %v, want %d and %v", c.swa, walks, after.Evicted, c.walks, c.freed)
		}
	}
	// Where Full frees too little of the window, there is a walk for it.
	m := newModel(t, Options{
		Tree:  tree.Options{Components: components(true, false), SlidingWindow: 2},
		Pools: PoolSizes{Full: 14, SWA: 12},
	})
	m.run(4, span(1, 4)...)   // F 4, S 3
	m.run(4, span(11, 14)...) // F 4, S 3
	r := m.start(span(101, 110)...)
	walks := m.cache.Stats().EvictionWalks
	m.ok(m.cache.Extend(r, 10)) // missing: Full 4, SWA 4
	wantInt(t, "walks", int(m.cache.Stats().EvictionWalks-walks), 2)
}

// X-FL-1: a host that is full of locked nodes refuses a backup, which takes
// nothing; each further insert tries again, and the first one for which there is
// room succeeds.
func TestBackupAgainstLockedHost(t *testing.T) {
	m := twoTiers(t, 32, 4, WriteThrough)
	m.cache.host.opts.LoadBackThreshold = 1
	m.serve(span(1, 4)...)
	m.sync()
	m.evict(tree.Full, 4, 4)
	inserts := []*Request{m.start(span(101, 104)...), m.start(span(101, 104)...)}
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 6)})
	m.ok(err)
	m.ok(m.cache.Admit(r)) // its load is queued: the host copy is locked until it ends
	locked := m.node(span(1, 4)...)
	wantInt(t, "host locks", locked.Components[tree.Full].HostLocks, 1)

	// units adds up what nodes have, and checks that the new ones are not locked.
	units := func() (device, host int) {
		for _, id := range m.cache.tree.Nodes() {
			n, err := m.cache.tree.Inspect(id)
			m.ok(err)
			full := n.Components[tree.Full]
			if n.Parent == tree.NoNode || n.ID == locked.ID {
				continue
			}
			if full.Locks != 0 || n.WriteThroughPending != 0 {
				t.Fatalf("%+v", n)
			}
			device, host = device+full.Device.Len(), host+full.Host.Len()
		}
		return device, host
	}
	for i, x := range inserts {
		m.compute(x, 4)
		m.finish(x)
		if device, host := units(); device != 4 || host != 0 {
			t.Fatalf("%d on the device, %d on the host", device, host)
		}
		wantInt(t, "refused", int(m.cache.Stats().BackupsRefused), i+1)
		wantInt(t, "free on the host", m.hostFree(tree.Full), 0)
		wantInt(t, "evicted on the host", m.cache.Stats().HostEvicted[tree.Full], 0)
	}
	m.read(r, 4)
	m.ok(m.cache.Abort(r))
	m.evict(tree.Full, 4, 4)
	m.serve(span(101, 104)...)
	m.sync()
	if device, host := units(); device != 4 || host != 4 {
		t.Fatalf("%d on the device, %d on the host", device, host)
	}
	if m.cache.tree.Contains(locked.ID) {
		t.Error("the copy that was locked has not made room")
	}
}
