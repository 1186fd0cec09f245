// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// Numbers of goroutines and of copies in line have bounds, which the error tells.
func TestBoundsOfWorkersAndQueue(t *testing.T) {
	for _, c := range []struct {
		workers, queue int
		field, allowed string // field "": it is fine
	}{
		{0, 0, "", ""},
		{1, 1, "", ""},
		{maxWorkers, maxQueue, "", ""},
		{-1, 0, "Host.Workers", "1 to 1024"},
		{maxWorkers + 1, 0, "Host.Workers", "1 to 1024"},
		{math.MaxInt, 0, "Host.Workers", "1 to 1024"},
		{0, -1, "Host.Queue", "1 to 1048576"},
		{0, maxQueue + 1, "Host.Queue", "1 to 1048576"},
		{0, math.MaxInt, "Host.Queue", "1 to 1048576"},
	} {
		cache, err := New(Options{Pools: PoolSizes{Full: 8}, Host: &HostOptions{Pools: PoolSizes{Full: 8}, Workers: c.workers, Queue: c.queue}})
		if c.field == "" {
			if err != nil {
				t.Errorf("%d workers, queue of %d: %v", c.workers, c.queue, err)
				continue
			}
			cache.Close()
			continue
		}
		var bad *tree.ConfigError
		if !errors.As(err, &bad) || bad.Field != c.field || !strings.Contains(bad.Allowed, c.allowed) {
			t.Errorf("%d workers, queue of %d: %v", c.workers, c.queue, err)
		}
	}
	s := shelves(t, tiers{page: 1, device: PoolSizes{Full: 8}, host: PoolSizes{Full: 8}, unattached: true})
	for _, n := range []int{-1, maxWorkers + 1, math.MaxInt} {
		var bad *tree.ConfigError
		err := s.cache.AttachStorage(StorageOptions{Store: storagetest.NewMemory(storagetest.Fingerprint()), Workers: n})
		if !errors.As(err, &bad) || bad.Field != "Storage.Workers" || !strings.Contains(bad.Allowed, "1 to 1024") || s.cache.Storage() != nil {
			t.Errorf("%d workers of storage: %v", n, err)
		}
	}
}

// A request that no cache has made answers questions about nothing.
func TestZeroRequest(t *testing.T) {
	var r Request
	mine := []tree.Slot{7}
	for id := tree.Full; id <= tree.NumComponents; id++ {
		dst, err := r.AppendSlots(mine, id)
		var bad *ArgumentError
		if !errors.As(err, &bad) || bad.Field != "request" || len(dst) != 1 || dst[0] != 7 {
			t.Errorf("component %d: %v, %v", id, dst, err)
		}
	}
	if o := r.Origin(); o != (Origin{}) {
		t.Errorf("it comes from %+v", o)
	}
	if r.Row().Len() != 0 {
		t.Error("it has slots")
	}
}

func TestNoRanks(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt} {
		if got := NewCollectives(n); got != nil {
			t.Errorf("%d ranks: %v", n, got)
		}
	}
}

// Numbers below the range are refused, and nothing is evicted or admitted.
func TestNumbersBelowTheRange(t *testing.T) {
	m := demoted(t, 64, WriteThrough, 20, 12)
	before, stats := m.cache.Usage(tree.Full), m.cache.Stats()
	for _, n := range []int{-1, math.MinInt} {
		freed, err := m.cache.Evict(tree.Full, n)
		var bad *ArgumentError
		if !errors.As(err, &bad) || bad.Op != "Evict" || bad.Field != "n" || !strings.Contains(bad.Problem, "0 or more") || freed != (tree.Units{}) {
			t.Errorf("evict %d: %v, %v", n, freed, err)
		}
	}
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
	m.ok(err)
	stats.Requests++
	for _, quota := range []int{-2, math.MinInt} {
		var bad *ArgumentError
		if err := m.cache.AdmitWithin(r, quota); !errors.As(err, &bad) || bad.Field != "quota" || !strings.Contains(bad.Problem, "0 or more") {
			t.Errorf("quota %d: %v", quota, err)
		}
	}
	if r.State() != Waiting || m.cache.Usage(tree.Full) != before || m.cache.Stats() != stats {
		t.Errorf("the request is %v, the device %+v before and %+v after", r.State(), before, m.cache.Usage(tree.Full))
	}
	if freed, err := m.cache.Evict(tree.Full, 0); err != nil || freed != (tree.Units{}) {
		t.Errorf("evict 0: %v, %v", freed, err)
	}
	m.ok(m.cache.AdmitWithin(r, NoQuota))
	wantInt(t, "reused", r.Len(), 32)
}

// A store cannot be attached to a cache that was closed: nobody would end the
// goroutines of its queue. TestMain finds those that are left.
func TestAttachToAClosedCache(t *testing.T) {
	for _, host := range []*HostOptions{nil, {Pools: PoolSizes{Full: 8}}} {
		c, err := New(Options{Pools: PoolSizes{Full: 8}, Host: host})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		c.Close()
		err = c.AttachStorage(StorageOptions{Store: storagetest.NewMemory(storagetest.Fingerprint())})
		var closed *ClosedError
		if !errors.As(err, &closed) || closed.Op != "AttachStorage" || c.Storage() != nil || c.Tree().Switches().Storage {
			t.Errorf("%v, queue %v", err, c.Storage())
		}
	}
}
