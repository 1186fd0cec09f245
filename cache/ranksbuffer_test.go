// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// MR-1 to MR-4, MR-8: ranks with a staging area that have different luck keep
// identical trees, pools, queues and beliefs.
func TestRanksKeepIdenticalBuffers(t *testing.T) {
	runs := 12
	if testing.Short() {
		runs = 3
	}
	var all StorageStats
	for run := range runs {
		set := components(run%2 == 1, false)
		o := Options{
			Tree:  tree.Options{Components: set, PageSize: 2, SlidingWindow: 4},
			Pools: PoolSizes{Full: 64, SWA: 48},
			Host:  &HostOptions{Pools: PoolSizes{Full: 40, SWA: 40}, Workers: 2, BufferOnly: true},
		}
		s := StorageOptions{PrefetchThreshold: 2, StopPolicy: StopPolicy(run % numStopPolicies), Timeout: queue.Timeout{Base: 1}}
		ranks := inRanks(t, o, s, uint64(run), func(r *rank) error { return r.live(rand.New(rand.NewPCG(7, uint64(run)))) })
		first := ranks[0].cache.host.buffer
		for i, r := range ranks[1:] {
			if !slices.Equal(r.told, ranks[0].told) {
				t.Fatalf("run %d: rank %d went other steps than rank 0", run, i+1)
			}
			b := r.cache.host.buffer
			at := first.beliefs.order.Front()
			for e := b.beliefs.order.Front(); e != nil || at != nil; e, at = e.Next(), at.Next() {
				if e == nil || at == nil || e.Value != at.Value {
					t.Fatalf("run %d: rank %d believes something else than rank 0", run, i+1)
				}
			}
			if b.backlog != first.backlog || b.staged != first.staged || b.pinned != first.pinned || len(b.parked) != len(first.parked) {
				t.Fatalf("run %d: rank %d has %+v, rank 0 %+v", run, i+1, b, first)
			}
		}
		x := ranks[0].cache.Stats().Storage
		all.Splices += x.Splices
		all.Writes += x.Writes
		all.WritesFailed += x.WritesFailed
	}
	t.Logf("%+v", all)
	if !testing.Short() && min(all.Splices, all.Writes, all.WritesFailed) == 0 {
		t.Error("the test does not reach what it is for")
	}
}
