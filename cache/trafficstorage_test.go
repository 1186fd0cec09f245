// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// TestRandomStorageTraffic is TestRandomHostTraffic over a storage tier as well:
// prefetches with every stop policy, operations that end at any time, a store that
// fails, lies and loses pages, and attach and detach in between.
func TestRandomStorageTraffic(t *testing.T) {
	var lock sync.Mutex
	var all StorageStats
	var reused int64
	t.Run("all", func(t *testing.T) {
		for _, set := range []tree.ComponentSet{components(false, false), components(true, false), components(false, true), components(true, true)} {
			t.Run(set.String(), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					policy := WritePolicy(rapid.IntRange(0, numWritePolicies-1).Draw(t, "policy"))
					page := rapid.SampledFrom([]int{1, 4}).Draw(t, "page")
					eagle := !set.Has(tree.Mamba) && rapid.Bool().Draw(t, "eagle")
					s := traffic(t, set, page, eagle, &HostOptions{Policy: policy, Manual: true}, true)
					lock.Lock()
					defer lock.Unlock()
					reused += s.ReusedFromStorage
					x := s.Storage
					all.DeclinedTooShort += x.DeclinedTooShort
					all.DeclinedRateLimited += x.DeclinedRateLimited
					all.RevokedFullMiss += x.RevokedFullMiss
					all.RevokedInsufficient += x.RevokedInsufficient
					all.RevokedNoRoom += x.RevokedNoRoom
					all.RevokedUnanswered += x.RevokedUnanswered
					all.RefillsDropped += x.RefillsDropped
					all.StaleAnswers += x.StaleAnswers
					all.LookupsFailed += x.LookupsFailed
					all.ReadsFailed += x.ReadsFailed
					all.WritesFailed += x.WritesFailed
					all.LostTokens += x.LostTokens
					all.HashesBackfilled += x.HashesBackfilled
				})
			})
		}
	})
	t.Logf("%d reused, %+v", reused, all)
	if testing.Short() {
		return // too few runs to count on
	}
	if min(reused, all.DeclinedTooShort, all.DeclinedRateLimited, all.RevokedFullMiss, all.RevokedInsufficient,
		all.RevokedUnanswered, all.StaleAnswers, all.LookupsFailed, all.WritesFailed, all.LostTokens, all.HashesBackfilled) == 0 {
		t.Error("the test does not reach all that it is for")
	}
}

// later reports whether a request that cannot be admitted now can be so later.
func later(err error) bool {
	var fetching *FetchingError
	return momentary(err) || errors.As(err, &fetching)
}

// shelve adds a storage tier whose store fails as drawn.
func (c *crowd) shelve(t *rapid.T) {
	c.store = storagetest.NewMemory(storagetest.Fingerprint())
	c.faulty = storage.WithFaults(c.store)
	if rapid.Bool().Draw(t, "faulty store") {
		every, after := rapid.IntRange(2, 6).Draw(t, "every"), rapid.IntRange(0, 3).Draw(t, "after")
		calls, kind := 0, rapid.IntRange(0, 4).Draw(t, "fault")
		hit := func(c storage.Call) bool {
			calls++
			return calls%every == 0
		}
		page := 0
		f := storage.Fault{When: hit, After: after}
		switch kind {
		case 0, 1:
			f.Fail, f.Kind = true, storage.Unreachable
		case 2:
			f.Lie = true
		case 3:
			f.Drop = func(storage.Key) bool { page++; return page%3 == 0 }
		case 4:
			f.Short = 1
		}
		c.faulty.Set(f)
	}
	c.attach(t)
}

func (c *crowd) attach(t *rapid.T) {
	o := StorageOptions{
		Store: c.faulty, Manual: true,
		StopPolicy:        StopPolicy(rapid.IntRange(0, numStopPolicies-1).Draw(t, "stop")),
		Timeout:           queue.Timeout{Base: -1, PerKiToken: -1}, // it is over at once
		PrefetchThreshold: rapid.IntRange(1, 3*c.cache.page).Draw(t, "prefetch threshold"),
		Batch:             rapid.IntRange(1, 3).Draw(t, "batch"),
	}
	if policy := WritePolicy(rapid.IntRange(0, 2*numWritePolicies).Draw(t, "change to")); policy < numWritePolicies && !(policy == WriteBack && c.cache.bufferOnly()) {
		o.WritePolicy = &policy
	}
	c.ok(c.cache.AttachStorage(o))
}

func (c *crowd) prefetch(t *rapid.T) {
	if c.store == nil {
		t.Skip()
	}
	c.ok(c.cache.Prefetch(c.pick(t, Waiting)))
}

func (c *crowd) askReady(t *rapid.T) {
	if c.store == nil {
		t.Skip()
	}
	r := c.pick(t, Waiting)
	ready, err := c.cache.Ready(r)
	c.ok(err)
	if ready && r.fetch != nil {
		t.Fatalf("request %d is ready and still fetches", r.id)
	}
}

// someStorage lets some storage operations end, in any order.
func (c *crowd) someStorage(t *rapid.T) {
	if c.store == nil || c.cache.storage == nil {
		return
	}
	st := c.cache.storage
	var ids []int64
	for _, p := range st.lookups {
		ids = append(ids, p.lookup.ID())
	}
	for _, p := range st.reads {
		ids = append(ids, p.read.ID())
	}
	for _, w := range st.writes {
		ids = append(ids, w.operation.ID())
	}
	for range rapid.IntRange(0, 6).Draw(t, "operations") {
		if len(ids) > 0 {
			st.queue.Complete(ids[rapid.IntRange(0, len(ids)-1).Draw(t, "operation")])
		}
	}
}

// reattach takes the store away, with what is in flight, and brings it back.
func (c *crowd) reattach(t *rapid.T) {
	c.t = t
	if c.store == nil || rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip()
	}
	if c.cache.storage != nil {
		busy := c.cache.inFlight("") != nil
		err := c.cache.DetachStorage(context.Background())
		var refused *BusyError
		if errors.As(err, &refused) != busy || err != nil && !busy {
			t.Fatalf("busy: %v, detached: %v", busy, err)
		}
		c.check()
		c.ok(c.cache.DetachStorageNow(context.Background()))
		c.ok(c.cache.DetachStorageNow(context.Background()))
		return
	}
	if c.cache.inFlight("") != nil {
		_, err := c.cache.StartLoading()
		c.ok(err)
		c.ok(c.cache.Sync(context.Background()))
	}
	c.attach(t)
}

// evictUnderWrites evicts the rest, which writes to storage kept: what eviction
// backs up is written, and stays on the host until that has ended.
func (c *crowd) evictUnderWrites() {
	for c.store != nil && c.cache.tree.EvictableSize(tree.Full) > 0 {
		before := c.cache.tree.EvictableSize(tree.Full)
		c.settle()
		_, err := c.cache.Evict(tree.Full, 1<<20)
		c.ok(err)
		if c.cache.tree.EvictableSize(tree.Full) == before {
			c.t.Fatalf("%d Full slots stay, with nothing in flight", before)
		}
	}
	c.settle()
}

// forget serves a prompt again after device and host were emptied, as far as
// nobody holds them.
func (c *crowd) forget(t *rapid.T) {
	c.t = t
	if c.store == nil || len(c.prompts) == 0 {
		t.Skip()
	}
	c.settle()
	_, err := c.cache.Evict(tree.Full, 1<<20)
	c.ok(err)
	c.settle()
	_, err = c.cache.evictHost(tree.Full, 1<<20)
	c.ok(err)
	prompt := c.prompts[rapid.IntRange(0, len(c.prompts)-1).Draw(t, "prompt")]
	c.serveTokens(t, join(prompt, span(1, 1+c.cache.page)))
}

// endFetches ends what is being fetched, when everything else has ended.
func (c *crowd) endFetches() {
	c.t.Helper()
	for _, r := range c.live {
		if r.state != Waiting || r.fetch == nil {
			continue
		}
		ready, err := c.cache.Ready(r)
		c.ok(err)
		if !ready && !r.fetch.parked {
			c.t.Fatalf("request %d waits for a read that has ended", r.id)
		}
	}
	if st := c.cache.storage; st != nil {
		c.ok(c.cache.Tick())
		if c.cache.bufferOnly() { // what was parked began to be read
			c.ok(c.cache.Sync(context.Background()))
		}
		if len(st.lookups)+len(st.reads)+len(st.writes) != 0 || st.occupancy != 0 && !c.cache.bufferOnly() {
			c.t.Fatalf("left: %d lookups, %d reads, %d writes, %d tokens reserved", len(st.lookups), len(st.reads), len(st.writes), st.occupancy)
		}
	}
}
