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

// tiered makes a model over a host tier whose copies end when a test says so.
func tiered(t *testing.T, set tree.ComponentSet, page, window int, device, host PoolSizes, policy WritePolicy) *model {
	t.Helper()
	m := newModel(t, Options{
		Tree:  tree.Options{Components: set, PageSize: page, SlidingWindow: window},
		Pools: device, TrackBuffers: 1,
		Host: &HostOptions{Pools: host, Policy: policy, Manual: true},
	})
	t.Cleanup(m.cache.Close)
	return m
}

func twoTiers(t *testing.T, device, host int, policy WritePolicy) *model {
	return tiered(t, components(false, false), 1, 0, PoolSizes{Full: device}, PoolSizes{Full: host}, policy)
}

// serve leads a prompt through its life, in one chunk and one insert.
func (m *model) serve(tokens ...tree.Token) *Request {
	m.t.Helper()
	r := m.start(tokens...)
	m.compute(r, len(tokens)-r.Len())
	m.finish(r)
	return r
}

func (m *model) sync() {
	m.t.Helper()
	m.ok(m.cache.Sync(context.Background()))
}

func (m *model) evict(id tree.Component, n, want int) {
	m.t.Helper()
	freed, err := m.cache.Evict(id, n)
	m.ok(err)
	wantInt(m.t, "evicted", freed[id], want)
}

// node returns what the tree has at the end of the tokens, without loading.
func (m *model) node(tokens ...tree.Token) tree.NodeInfo {
	m.t.Helper()
	id := m.reuse(tokens...).BestNode
	n, err := m.cache.tree.Inspect(id)
	m.ok(err)
	return n
}

func (m *model) hostFree(id tree.Component) int { return m.cache.HostUsage(id).Free }

// X-BK-1, X-ND-1, X-ND-2: the first insert backs up; until the acknowledgement
// the node is locked and marked, and no duplicate.
func TestWriteThrough(t *testing.T) {
	m := twoTiers(t, 16, 16, WriteThrough)
	m.serve(span(1, 4)...)
	n := m.node(span(1, 4)...)
	if n.WriteThroughPending != int64(n.ID) || n.Components[tree.Full].Locks != 1 || len(m.cache.tree.HostDuplicates()) != 0 {
		t.Fatalf("%+v", n)
	}
	wantInt(t, "host slots", m.hostFree(tree.Full), 12)
	m.evict(tree.Full, 4, 0) // locked
	m.sync()
	n = m.node(span(1, 4)...)
	if d := m.cache.tree.HostDuplicates(); n.WriteThroughPending != 0 || len(d) != 1 || d[0] != n.ID || !n.DeviceLeaf {
		t.Fatalf("%+v, duplicates %v", n, d)
	}
	m.evict(tree.Full, 4, 4)
	found := m.reuse(span(1, 4)...)
	if found.DeviceLen != 0 || found.HostHitLen != 4 || found.Explanation.Reason != tree.ReasonHostOnly {
		t.Fatalf("%+v", found)
	}
}

// X-BK-2, X-EV-2: the second insert backs up; what saw one only is deleted.
func TestWriteThroughSelective(t *testing.T) {
	m := twoTiers(t, 32, 32, WriteThroughSelective)
	m.serve(span(1, 4)...)
	m.serve(span(1, 8)...)
	m.sync()
	for _, x := range []struct{ to, host int }{{4, 4}, {8, 0}} {
		if n := m.node(span(1, x.to)...); n.Components[tree.Full].Host.Len() != x.host {
			t.Errorf("the node up to %d has %d host slots, want %d", x.to, n.Components[tree.Full].Host.Len(), x.host)
		}
	}
	m.evict(tree.Full, 8, 8)
	if found := m.reuse(span(1, 8)...); found.HostHitLen != 4 {
		t.Errorf("%+v", found)
	}
	wantInt(t, "tokens that were never on the host", int(m.cache.Stats().Unbacked), 4)
}

// X-EV-1: what is backed up is demoted, its parent stays.
func TestDemotion(t *testing.T) {
	m := twoTiers(t, 32, 32, WriteThrough)
	m.serve(span(1, 4)...)
	m.serve(span(1, 6)...)
	m.sync()
	m.evict(tree.Full, 2, 2)
	found := m.reuse(span(1, 6)...)
	if found.DeviceLen != 4 || found.HostHitLen != 2 || !m.node(span(1, 4)...).DeviceLeaf {
		t.Fatalf("%+v", found)
	}
}

// X-BK-4, X-FL-1: the host has room for a part of the chain; what found none asks
// again, and nothing is left of the attempt.
func TestBackupUpToTheRoomThatIsThere(t *testing.T) {
	m := twoTiers(t, 64, 8, WriteThroughSelective)
	m.serve(span(1, 4)...)
	m.cache.host.faults = &faults{alloc: func(_ tree.Component, host bool) bool { return host }}
	m.serve(span(1, 8)...)
	m.serve(span(1, 12)...)
	wantInt(t, "host slots", m.hostFree(tree.Full), 8)
	m.cache.host.faults = nil
	m.serve(span(1, 12)...) // the third time for all but the last
	m.sync()
	for _, x := range []struct {
		to     int
		backed bool
	}{{4, true}, {8, true}, {12, false}} {
		if got := m.node(span(1, x.to)...).Components[tree.Full].Host != nil; got != x.backed {
			t.Errorf("up to %d: backed up %v", x.to, got)
		}
	}
	if m.cache.Stats().BackupsRefused < 2 {
		t.Errorf("%d refused", m.cache.Stats().BackupsRefused)
	}
}

// X-BK-18, X-FL-3: an auxiliary pool that is full gives the Full slots back.
func TestBackupGivesBackFull(t *testing.T) {
	m := tiered(t, components(true, false), 1, 4, PoolSizes{Full: 32, SWA: 32}, PoolSizes{Full: 32, SWA: 2}, WriteThrough)
	m.serve(span(1, 4)...)
	if n := m.node(span(1, 4)...); n.Components[tree.Full].Host != nil || m.hostFree(tree.Full) != 32 || m.hostFree(tree.SWA) != 2 {
		t.Fatalf("%+v", n)
	}
}

// X-FL-2: a copy that failed takes back its own host values and those that stand
// on them; the next insert backs up again.
func TestFailedBackup(t *testing.T) {
	m := twoTiers(t, 32, 32, WriteThrough)
	fail := true
	m.cache.host.faults = &faults{copy: func(pool.Copy) error {
		if fail {
			fail = false
			return errors.New("broken")
		}
		return nil
	}}
	m.serve(span(1, 4)...)
	m.serve(span(1, 8)...)
	a, b := m.node(span(1, 4)...), m.node(span(1, 8)...)
	m.cache.Engine().Complete(m.cache.host.backups[0].copy)
	m.ok(m.cache.Tick()) // only the first one is there
	wantInt(t, "host slots with the second copy still writing", m.hostFree(tree.Full), 28)
	m.sync()
	wantInt(t, "host slots", m.hostFree(tree.Full), 32)
	for _, id := range []tree.NodeID{a.ID, b.ID} {
		n, err := m.cache.tree.Inspect(id)
		if err != nil || n.Components[tree.Full].Host != nil || n.Components[tree.Full].Locks != 0 || n.WriteThroughPending != 0 {
			t.Errorf("%+v %v", n, err)
		}
	}
	m.serve(span(1, 8)...)
	m.sync()
	wantInt(t, "host slots", m.hostFree(tree.Full), 24)
}

// X-BK-19: a node that is split while its backup is in flight is published in
// both parts.
func TestSplitWhilePending(t *testing.T) {
	m := twoTiers(t, 32, 32, WriteThrough)
	m.serve(span(1, 8)...)
	m.serve(join(span(1, 4), span(100, 103))...)
	wantInt(t, "nodes that the first backup publishes", len(m.cache.host.backups[0].publish), 2)
	m.sync()
	wantInt(t, "duplicates", len(m.cache.tree.HostDuplicates()), 3)
	m.evict(tree.Full, 99, 12)
	wantInt(t, "reused", m.serveAgain(span(1, 8)...), 7)
}

// serveAgain serves a prompt and returns how much of it was loaded from the host.
func (m *model) serveAgain(tokens ...tree.Token) int {
	m.t.Helper()
	m.cache.host.opts.LoadBackThreshold = 1
	return m.serve(tokens...).Origin().Host
}

// X-CT-3: a backup that raises an error ends its call with it, but neither the
// insert nor the cache is broken, and the next insert fires again.
func TestBackupRaises(t *testing.T) {
	m := twoTiers(t, 32, 32, WriteThrough)
	m.cache.host.faults = &faults{backup: func(tree.NodeID) error { return errors.New("no device") }}
	first, second := m.start(span(1, 6)...), m.start(span(1, 8)...)
	m.compute(first, 6)
	m.compute(second, 8)
	for i, r := range []*Request{first, second} {
		var raised *BackupError
		if err := m.cache.CacheUnfinished(r); !errors.As(err, &raised) {
			t.Fatalf("%v", err)
		}
		m.check()
		wantInt(t, "duplicates freed", int(m.cache.Stats().DuplicatesFreed), 6*i)
		m.read(r, r.Len())
		wantInt(t, "protected", r.Protected(), r.Len())
	}
	wantInt(t, "host slots", m.hostFree(tree.Full), 32)
	m.cache.host.faults = nil
	m.finish(first)
	m.finish(second)
	wantInt(t, "host slots after the same key", m.hostFree(tree.Full), 24)
}

// C-030, host half: exactly what is missing is evicted.
func TestC030Host(t *testing.T) {
	for _, c := range []struct{ host, evicted int }{{16, 2}, {18, 0}} {
		m := twoTiers(t, 32, c.host, WriteThrough)
		m.serve(span(1, 2)...)
		m.serve(span(11, 18)...)
		m.sync()
		m.evict(tree.Full, 32, 10)
		m.serve(span(21, 28)...)
		wantInt(t, "evicted on the host", m.cache.Stats().HostEvicted[tree.Full], c.evicted)
		wantInt(t, "the node of 8", m.reuse(span(11, 18)...).HostHitLen, 8)
	}
}

// C-022, host half: a host smaller than the device does not starve under
// write-back, whose mirrors go first; and under write-through what cannot be
// mirrored is refused without a loss.
func TestC022(t *testing.T) {
	for policy := range WritePolicy(numWritePolicies) {
		m := twoTiers(t, 32, 8, policy)
		for i := range tree.Token(16) {
			m.serve(10*i+1, 10*i+2)
			m.sync()
		}
		m.evict(tree.Full, 24, 24)
		for i := range tree.Token(16) {
			m.serve(10*i+501, 10*i+502)
			m.sync()
		}
		if policy == WriteBack {
			wantInt(t, "backups that found no room", int(m.cache.Stats().BackupsRefused), 0)
		}
	}
}

// MX-2, MX-3: durations are those of the clock that was given, and there are none
// without one.
func TestDurations(t *testing.T) {
	for _, timed := range []bool{true, false} {
		now := int64(0)
		o := Options{Pools: PoolSizes{Full: 16}, Host: &HostOptions{Pools: PoolSizes{Full: 16}, Policy: WriteBack, Manual: true, LoadBackThreshold: 1}}
		if timed {
			o.Now = func() int64 { now += 5; return now }
		}
		m := newModel(t, o)
		m.serve(span(1, 4)...)
		m.evict(tree.Full, 4, 4)
		m.serve(span(1, 5)...)
		m.sync()
		s := m.cache.Stats()
		if (s.BackupTime > 0) != timed || (s.LoadBackTime > 0) != timed || (s.EvictionTime > s.BackupTime) != timed {
			t.Errorf("with a clock %v: %d, %d and %d ns", timed, s.BackupTime, s.LoadBackTime, s.EvictionTime)
		}
		m.cache.Close()
	}
}
