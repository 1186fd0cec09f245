// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// demoted serves a prompt and leaves the tokens up to keep on the device and the
// rest on the host.
func demoted(t *testing.T, device int, policy WritePolicy, keep, rest int) *model {
	m := twoTiers(t, device, 64, policy)
	if keep > 0 {
		m.serve(span(1, keep)...)
	}
	m.serve(span(1, keep+rest)...)
	m.sync()
	m.evict(tree.Full, rest, rest)
	return m
}

func (m *model) nothingLocked() {
	m.t.Helper()
	m.check()
	for id := range tree.Component(tree.NumComponents) {
		wantInt(m.t, "protected", m.cache.tree.ProtectedSize(id), 0)
	}
	wantInt(m.t, "loads", len(m.cache.host.loads), 0)
}

// X-LB-1, X-LB-2, X-HE-9: what is on the host only is loaded when it is enough.
func TestLoadBack(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		m := demoted(t, 64, policy, 20, 12)
		r := m.start(span(1, 40)...)
		if r.Len() != 32 || r.Origin().Host != 12 || r.Explanation().Host != 12 || r.Explanation().Device != 20 {
			t.Fatalf("%v: %d reused, %d from the host: %+v", policy, r.Len(), r.Origin().Host, r.Explanation())
		}
		n := m.node(span(1, 32)...)
		if n.Components[tree.Full].Device == nil || n.Components[tree.Full].Host == nil {
			t.Fatalf("%v: %+v", policy, n)
		}
		m.compute(r, 8)
		m.finish(r)
		if s := m.cache.Stats(); s.LoadedBack[tree.Full] != 12 || s.LoadedBackBytes != 12*8 || s.ReusedFromHost != 12 {
			t.Errorf("%v: %+v", policy, s)
		}

		m = demoted(t, 64, policy, 20, 9)
		r = m.start(span(1, 40)...)
		if r.Len() != 20 || r.Origin().Host != 0 || r.Explanation().Reason != tree.ReasonHostOnly || r.Explanation().Host != 9 {
			t.Fatalf("%v: %d reused, %+v", policy, r.Len(), r.Explanation())
		}
		m.ok(m.cache.Abort(r))
		m.nothingLocked()
	}
}

// X-LB-4, X-LB-5: a quota counts what the lock keeps from eviction besides.
func TestLoadBackQuota(t *testing.T) {
	for _, locked := range []bool{false, true} {
		m := demoted(t, 64, WriteThrough, 20, 12)
		if locked {
			m.start(span(1, 21)...)
		}
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
		m.ok(err)
		m.ok(m.cache.AdmitWithin(r, 5))
		want := 32
		if locked {
			want = 20
		}
		wantInt(t, "reused", r.Len(), want)
		m.read(r, r.Len())
	}
}

// X-LB-6, X-LB-7: a load back evicts exactly what is missing, and is given up if
// that is not enough.
func TestLoadBackEvicts(t *testing.T) {
	for _, c := range []struct{ evictable, reused int }{{8, 32}, {7, 20}} {
		m := demoted(t, 64, WriteThrough, 20, 12)
		other := m.start(span(101, 100+64-20-4-c.evictable)...)
		m.compute(other, other.PromptLen()) // leaves 4 free beside what is evictable
		m.serve(span(201, 200+c.evictable)...)
		m.sync()
		wantInt(t, "free", m.free(tree.Full), 4)
		before := m.cache.Stats().Evicted[tree.Full]
		r := m.start(span(1, 40)...)
		wantInt(t, "reused", r.Len(), c.reused)
		wantInt(t, "evicted", m.cache.Stats().Evicted[tree.Full]-before, c.evictable)
		m.ok(m.cache.Abort(r))
		m.ok(m.cache.Abort(other))
		m.sync()
		m.nothingLocked()
	}
}

// X-LB-3: an auxiliary component makes a small load worth its while.
func TestLoadBackWindow(t *testing.T) {
	m := tiered(t, components(true, false), 1, 3, PoolSizes{Full: 32, SWA: 32}, PoolSizes{Full: 32, SWA: 32}, WriteThrough)
	m.serve(span(1, 5)...)
	m.serve(span(1, 8)...)
	m.sync()
	m.evict(tree.Full, 3, 3)
	r := m.start(span(1, 10)...)
	wantInt(t, "reused", r.Len(), 8)
	if s := m.cache.Stats().LoadedBack; s[tree.Full] != 3 || s[tree.SWA] != 3 {
		t.Fatalf("loaded %v", s)
	}
}

// X-EV-9, X-EV-10: under write-back a window that is about to go is backed up by
// itself, if there is room; it goes either way.
func TestInternalWindowIsBackedUp(t *testing.T) {
	for _, c := range []struct{ host, kept int }{{8, 4}, {4, 0}} {
		m := tiered(t, components(true, false), 1, 4, PoolSizes{Full: 32, SWA: 32}, PoolSizes{Full: 32, SWA: c.host}, WriteBack)
		m.serve(span(1, 4)...)
		r := m.serve(span(1, 8)...)
		_ = r
		if c.kept == 0 {
			m.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return host && id == tree.SWA }}
		}
		m.evict(tree.SWA, 4, 4)
		n := m.node(span(1, 4)...)
		if n.Components[tree.SWA].Device != nil || n.Components[tree.SWA].Host.Len() != c.kept || n.Components[tree.Full].Device == nil {
			t.Errorf("host %d: %+v", c.host, n.Components)
		}
	}
}

// X-LB-8: a state that is on the host only is loaded, for the tree and for the
// request.
func TestLoadBackState(t *testing.T) {
	m := tiered(t, components(false, true), 1, 0, PoolSizes{Full: 32, Mamba: 8}, PoolSizes{Full: 32, Mamba: 8}, WriteBack)
	r := m.start(span(1, 8)...)
	m.prefill(r, 4) // states at 4 and 8
	m.finish(r)
	m.evict(tree.Mamba, 1, 1)
	n := m.node(span(1, 4)...)
	if n.Components[tree.Mamba].Device != nil || n.Components[tree.Mamba].Host == nil || n.Components[tree.Full].Device == nil {
		t.Fatalf("%+v", n.Components)
	}
	r = m.start(append(span(1, 4), 99)...)
	if r.Len() != 4 || m.cache.Stats().LoadedBack != (tree.Units{tree.Mamba: 1}) || r.Origin().Host != 4 {
		t.Fatalf("%d reused, loaded %v", r.Len(), m.cache.Stats().LoadedBack)
	}
	m.compute(r, 1) // reads the request's copy of the state
	m.finish(r)
}

// X-LB-9: a load back that is given up returns the state that it took, and one
// that found no state leaves nothing.
func TestLoadBackStateGivenUp(t *testing.T) {
	for _, failing := range []tree.Component{tree.Full, tree.Mamba} {
		m := tiered(t, components(false, true), 1, 0, PoolSizes{Full: 32, Mamba: 8}, PoolSizes{Full: 32, Mamba: 8}, WriteThrough)
		m.serve(span(1, 16)...)
		m.sync()
		m.evict(tree.Full, 32, 16)
		states := m.free(tree.Mamba)
		m.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return !host && id == failing }}
		r := m.start(span(1, 20)...)
		wantInt(t, "reused", r.Len(), 0)
		wantInt(t, "states", m.free(tree.Mamba), states-2) // the request's own
		m.ok(m.cache.Abort(r))
		m.nothingLocked()
		wantInt(t, "states", m.free(tree.Mamba), states)
	}
}

// X-LB-13: a split while a load is in flight; both parts are registered at its end.
func TestSplitWhileLoading(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		m := demoted(t, 96, policy, 0, 32)
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
		m.ok(err)
		m.ok(m.cache.Admit(r))
		_, err = m.cache.StartLoading()
		m.ok(err)
		other, err := m.cache.NewRequest(RequestParams{Tokens: append(span(1, 5), 99)})
		m.ok(err)
		m.ok(m.cache.Admit(other)) // splits at 5, and reads what is being loaded
		if !m.cache.Loading(other) || other.Len() != 5 {
			t.Fatalf("%d reused", other.Len())
		}
		if policy == WriteBack { // X-LB-14: not reclaimed before its end
			n, err := m.cache.evictHost(tree.Full, 8)
			m.ok(err)
			wantInt(t, "reclaimed in flight", n, 0)
		}
		m.read(r, r.Len())
		m.read(other, 5)
		wantInt(t, "duplicates", len(m.cache.tree.HostDuplicates()), 2)
		m.ok(m.cache.Abort(r))
		m.ok(m.cache.Abort(other))
		m.nothingLocked()
	}
}

// X-LB-15: a load whose batch was never launched ends with a reset.
func TestResetDropsQueuedLoads(t *testing.T) {
	m := demoted(t, 64, WriteThrough, 20, 12)
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
	m.ok(err)
	m.ok(m.cache.Admit(r))
	m.ok(m.cache.Reset())
	m.ok(m.cache.Abort(r))
	m.nothingLocked()
	wantInt(t, "host slots", m.hostFree(tree.Full), 64)
	wantInt(t, "device slots", m.free(tree.Full), 64)
}

// FL-12: a load that failed takes its device values off; who reads them is lost,
// the host copies stay, and a further request loads them.
func TestFailedLoad(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		m := demoted(t, 96, policy, 20, 12)
		m.cache.host.faults = &faults{copy: func(c pool.Copy) error {
			if c.Direction == pool.ToDevice {
				return errors.New("broken")
			}
			return nil
		}}
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
		m.ok(err)
		m.ok(m.cache.Admit(r))
		var lost *LoadError
		if err := m.cache.WaitLoads(context.Background(), r); !errors.As(err, &lost) || r.State() != Lost {
			t.Fatalf("%v, %v", err, r.State())
		}
		m.ok(m.cache.Abort(r))
		m.nothingLocked()
		m.cache.host.faults = nil
		if found := m.reuse(span(1, 40)...); found.DeviceLen != 20 || found.HostHitLen != 12 {
			t.Fatalf("%+v", found)
		}
		wantInt(t, "from the host", m.serve(span(1, 40)...).Origin().Host, 12)
	}
}

// X-EV-3, X-EV-4: write-back backs the victim up; what finds no room is dropped
// with what hangs on it.
func TestWriteBackVictims(t *testing.T) {
	m := twoTiers(t, 16, 16, WriteBack)
	m.serve(span(1, 2)...)
	m.serve(span(1, 3)...)
	m.evict(tree.Full, 1, 1)
	if found := m.reuse(span(1, 3)...); found.DeviceLen != 2 || found.HostHitLen != 1 {
		t.Fatalf("%+v", found)
	}
	m.cache.host.faults = &faults{alloc: func(_ tree.Component, host bool) bool { return host }}
	m.evict(tree.Full, 2, 2)
	wantInt(t, "host slots", m.hostFree(tree.Full), 16)
	wantInt(t, "dropped", m.cache.Stats().DroppedHostPressure[tree.Full], 2)
	wantInt(t, "nodes", m.cache.tree.NodeCount(), 1)
}

// X-EV-5, X-EV-6: a lock on the host keeps a victim that found no room.
func TestWriteBackDeclines(t *testing.T) {
	for _, which := range []int{2, 3} {
		m := twoTiers(t, 16, 16, WriteBack)
		m.serve(span(1, 2)...)
		m.serve(span(1, 3)...)
		m.evict(tree.Full, 1, 1)
		id := m.node(span(1, which)...).ID
		receipt, err := m.cache.tree.LockHost(id)
		if err != nil {
			t.Fatal(err)
		}
		m.cache.host.faults = &faults{alloc: func(_ tree.Component, host bool) bool { return host }}
		freed, err := m.cache.Evict(tree.Full, 2)
		if err != nil || freed[tree.Full] != 0 || m.cache.Stats().DropsDeclined != 1 {
			t.Fatalf("%v %v, %d declined", freed, err, m.cache.Stats().DropsDeclined)
		}
		if err := m.cache.tree.UnlockHost(id, receipt); err != nil {
			t.Fatal(err)
		}
		m.evict(tree.Full, 2, 2)
	}
}

// A wait that its context cuts short leaves everything in order.
func TestWaitIsCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := newModel(t, Options{
		Tree: tree.Options{}, Pools: PoolSizes{Full: 16},
		Host: &HostOptions{Pools: PoolSizes{Full: 16}, Policy: WriteBack, Manual: true, Context: ctx},
	})
	t.Cleanup(m.cache.Close)
	m.serve(span(1, 8)...)
	m.cache.host.faults = &faults{backup: func(tree.NodeID) error { cancel(); return nil }}
	var raised *BackupError
	if _, err := m.cache.Evict(tree.Full, 8); !errors.As(err, &raised) {
		t.Fatalf("%v", err)
	}
	m.check()
	m.sync() // with a context of its own
	m.nothingLocked()
	wantInt(t, "reused", m.reuse(span(1, 8)...).DeviceLen, 8)
}

func TestHostOptionErrors(t *testing.T) {
	for _, h := range []HostOptions{
		{Pools: PoolSizes{Full: 3, Mamba: 1}}, {Pools: PoolSizes{Full: 8}}, {Pools: PoolSizes{Full: 8, SWA: 3, Mamba: 1}},
		{Pools: PoolSizes{Full: 8, Mamba: 1}, Policy: 7}, {Pools: PoolSizes{Full: 8, Mamba: 1}, LoadBackThreshold: -1},
		{Pools: PoolSizes{Full: 8, Mamba: 1}, SlotBytes: [tree.NumComponents]int{4}},
	} {
		_, err := New(Options{
			Tree:  tree.Options{Components: components(true, true), PageSize: 4, SlidingWindow: 4, CheckpointGrid: 4},
			Pools: PoolSizes{Full: 64, SWA: 64, Mamba: 8}, Host: &h,
		})
		var field *tree.ConfigError
		if !errors.As(err, &field) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	for p := range WritePolicy(numWritePolicies) {
		if got, err := ParseWritePolicy(p.String()); got != p || err != nil {
			t.Errorf("%v: %v %v", p, got, err)
		}
	}
	if _, err := ParseWritePolicy("x"); err == nil {
		t.Error("no error")
	}
}

// C-021, host half: host slots that a copy reads are not reclaimed, not even
// those of the part that a split cuts off, and what it reads is right.
func TestC021Host(t *testing.T) {
	m := demoted(t, 64, WriteBack, 0, 12)
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 20)})
	m.ok(err)
	m.ok(m.cache.Admit(r))
	_, err = m.cache.StartLoading()
	m.ok(err)
	other, err := m.cache.NewRequest(RequestParams{Tokens: []tree.Token{1, 2, 3, 4, 99, 100}})
	m.ok(err)
	m.ok(m.cache.Admit(other)) // splits at 4
	n, err := m.cache.evictHost(tree.Full, 4)
	m.ok(err)
	wantInt(t, "reclaimed while it is read", n, 0)
	m.read(r, 12)
	m.read(other, 4)
	m.ok(m.cache.Abort(r))
	m.ok(m.cache.Abort(other))
	m.nothingLocked()
	n, err = m.cache.evictHost(tree.Full, 12)
	m.ok(err)
	wantInt(t, "reclaimed after the end", n, 12)
}

// C-054, host half: a request that goes on from a path on the host, in a state
// pool that has room for its own states only.
func TestC054Host(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		m := newModel(t, Options{
			Tree:  tree.Options{Components: components(false, true), CheckpointGrid: 4},
			Pools: PoolSizes{Full: 32, Mamba: 3}, TrackBuffers: 1,
			Host: &HostOptions{Pools: PoolSizes{Full: 32, Mamba: 4}, Policy: policy, LoadBackThreshold: 1},
		})
		t.Cleanup(m.cache.Close)
		m.serve(span(1, 5)...)
		m.sync()
		m.evict(tree.Full, 32, 4)
		for range 2 {
			r := m.start(span(1, 9)...)
			m.prefill(r, 9)
			m.finish(r)
			m.sync()
			if found := m.cache.tree; found.EvictableSize(tree.Full) < 8 {
				t.Fatalf("%v: %d of the path are cached", policy, found.EvictableSize(tree.Full))
			}
			wantInt(t, "held", m.cache.Usage(tree.Mamba).Held+m.cache.Usage(tree.Full).Held, 0)
		}
	}
}
