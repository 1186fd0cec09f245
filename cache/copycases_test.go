// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"testing"

	"github.com/treecore/treecore/tree"
)

// C-021, what a write to storage relies on: while it holds its host lock, the
// host slots that it reads are neither reclaimed nor reused, on both sides of a
// split, and after it they can be.
func TestC021Lock(t *testing.T) {
	m := twoTiers(t, 64, 8, WriteBack)
	m.serve(span(1, 8)...)
	m.evict(tree.Full, 8, 8)
	m.cache.host.opts.LoadBackThreshold = 1
	r := m.start(span(1, 9)...) // now on both tiers
	m.ok(m.cache.Abort(r))
	m.sync()
	n := m.node(span(1, 8)...)
	slots, err := n.Components[tree.Full].Host.Numbers()
	m.ok(err)
	wantInt(t, "host slots", len(slots), 8)
	stamps := func() (out []uint64) {
		for _, s := range slots {
			out = append(out, m.cache.Memory().Host[tree.Full].Stamp(s))
		}
		return out
	}
	before := stamps()
	receipt, err := m.cache.tree.LockHost(n.ID)
	if err != nil {
		t.Fatal(err)
	}
	m.serveUnchecked(join(span(1, 4), []tree.Token{99})) // splits at 4
	wantInt(t, "nodes", m.cache.tree.NodeCount(), 4)
	for range 2 { // the second time they would be D-leaves
		freed, err := m.cache.evictHost(tree.Full, 8)
		wantInt(t, "reclaimed while it is read", freed, 0)
		if err != nil {
			t.Fatal(err)
		}
	}
	// The new leaf's backup wants a host slot and must not get one of these.
	freed, err := m.cache.Evict(tree.Full, 9)
	wantInt(t, "evicted", freed[tree.Full], 9)
	wantInt(t, "backups refused", int(m.cache.Stats().BackupsRefused), 1)
	if err != nil || !slices.Equal(stamps(), before) {
		t.Fatalf("what the write reads has changed (%v)", err)
	}
	if err := m.cache.tree.UnlockHost(n.ID, receipt); err != nil {
		t.Fatal(err)
	}
	for _, id := range m.cache.tree.Nodes() {
		n, err := m.cache.tree.Inspect(id)
		m.ok(err)
		wantInt(t, "host locks", n.Components[tree.Full].HostLocks, 0)
	}
	reclaimed, err := m.cache.evictHost(tree.Full, 8)
	m.ok(err)
	wantInt(t, "evicted after its end", reclaimed, 8)
}

// serveUnchecked serves a prompt while the test holds a lock that the cache's
// books do not know.
func (m *model) serveUnchecked(tokens []tree.Token) {
	m.t.Helper()
	c := m.cache
	r, err := c.NewRequest(RequestParams{Tokens: tokens})
	for _, step := range []func() error{
		func() error { return c.Admit(r) },
		func() error { return c.Extend(r, len(tokens)-r.Len()) },
		func() error {
			at := r.Len()
			m.write(r, at, len(tokens))
			return c.Commit(r, len(tokens)-at)
		},
		func() error { return c.Finish(r, true) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// C-029, device side: while a load is being copied, another request inserts the
// same span. The slots that the copy writes to stay the tree's until it has
// ended; those of the insert come back and may be written to by somebody else.
func TestC029Device(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		m := twoTiers(t, 12, 64, policy)
		m.serve(span(1, 4)...)
		m.serve(span(1, 8)...)
		m.sync()
		m.evict(tree.Full, 4, 4)
		// The second request computes 5..8 itself: that is too little to load.
		m.cache.host.opts.LoadBackThreshold = DefaultLoadBackThreshold
		second, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 9)})
		m.ok(err)
		m.ok(m.cache.Admit(second))
		wantInt(t, "reused by the second", second.Len(), 4)
		m.compute(second, 4)
		own := m.slots(second)[4:8]

		m.cache.host.opts.LoadBackThreshold = 1
		first, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 9)})
		m.ok(err)
		m.ok(m.cache.Admit(first))
		wantInt(t, "reused by the first", first.Len(), 8)
		id, err := m.cache.StartLoading()
		m.ok(err)
		target := m.slots(first)[4:8]

		m.ok(m.cache.CacheUnfinished(second))
		if row := m.slots(second); !slices.Equal(row[4:8], target) || !m.cache.Loading(second) {
			t.Fatalf("%v: the second request has %v, the load writes to %v; loading %v", policy, row[4:8], target, m.cache.Loading(second))
		}
		third, err := m.cache.NewRequest(RequestParams{Tokens: span(101, 104)})
		m.ok(err)
		m.ok(m.cache.Admit(third))
		m.ok(m.cache.Extend(third, 4))
		got := m.slots(third)
		for _, s := range got {
			if slices.Contains(target, s) {
				t.Fatalf("%v: slot %d is given out while a copy writes to it", policy, s)
			}
		}
		if !slices.Equal(got, own) {
			t.Fatalf("%v: the third request has %v, the insert gave %v back: the test shows nothing", policy, got, own)
		}
		m.write(third, 0, 4)
		freed, err := m.cache.Evict(tree.Full, 64)
		m.ok(err)
		wantInt(t, "evicted while it is written to", freed[tree.Full], 0)
		if !m.cache.Engine().Complete(id) {
			t.Fatal("the copy had ended")
		}
		m.ok(m.cache.Tick())
		for i, s := range got {
			if m.get(tree.Full, s) != m.prefix(third, i+1) {
				t.Errorf("%v: slot %d of the third request was overwritten", policy, s)
			}
		}
		m.read(first, 8)
		m.read(second, 8)
		for _, r := range []*Request{first, second, third} {
			m.ok(m.cache.Abort(r))
		}
		m.nothingLocked()
		m.evict(tree.Full, 64, 8)
		wantInt(t, "free", m.free(tree.Full), 12)
	}
}
