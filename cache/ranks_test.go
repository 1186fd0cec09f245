// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

const numRanks = 4

// rank is one of several caches that get the same calls. Its copies and storage
// operations run on goroutines of their own, and its luck is its own.
type rank struct {
	*model
	store *storagetest.Memory
	luck  *rand.Rand // of its faults
	lock  sync.Mutex
	told  []string // what each step did, with the tree after it
}

// inRanks makes ranks and runs f on each, side by side.
func inRanks(t *testing.T, o Options, storageOptions StorageOptions, seed uint64, f func(r *rank) error) []*rank {
	t.Helper()
	ranks := make([]*rank, numRanks)
	collectives := NewCollectives(numRanks)
	for i := range ranks {
		o.Collective = collectives[i]
		host := *o.Host
		o.Host = &host
		r := &rank{model: newModel(t, o), store: storagetest.NewMemory(storagetest.Fingerprint()), luck: rand.New(rand.NewPCG(seed, uint64(i)))}
		t.Cleanup(r.cache.Close)
		r.cache.host.faults = &faults{copy: func(pool.Copy) error {
			if r.unlucky(20) {
				return errors.New("the link is down")
			}
			return nil
		}}
		s := storageOptions
		s.Store = storage.WithFaults(r.store, storage.Fault{
			When: func(storage.Call) bool { return r.unlucky(12) },
			Drop: func(storage.Key) bool { return r.unlucky(2) },
		})
		s.Batch = 1 + i // and so is its pace
		if err := r.cache.AttachStorage(s); err != nil {
			t.Fatal(err)
		}
		ranks[i] = r
	}
	errs := make([]error, numRanks)
	var all sync.WaitGroup
	for i, r := range ranks {
		all.Go(func() { errs[i] = f(r) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	return ranks
}

func (r *rank) unlucky(in int) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.luck.IntN(in) == 0
}

// tell notes what a step did. All of it must be the same on all ranks.
func (r *rank) tell(format string, args ...any) {
	var b strings.Builder
	fmt.Fprintf(&b, format, args...)
	for _, id := range r.cache.tree.Nodes() {
		n, err := r.cache.tree.Inspect(id)
		if err != nil {
			fmt.Fprintf(&b, "\n%v", err)
			continue
		}
		fmt.Fprintf(&b, "\n%+v", n)
	}
	for id := range tree.Component(tree.NumComponents) {
		fmt.Fprintf(&b, "\n%v %v %+v %+v", r.cache.tree.RecencyOrder(id, false), r.cache.tree.RecencyOrder(id, true), r.cache.Usage(id), r.cache.HostUsage(id))
	}
	fmt.Fprintf(&b, "\n%v %d", r.cache.tree.HostDuplicates(), r.cache.tree.ReclaimDigest())
	r.told = append(r.told, b.String())
}

// MR-1 to MR-4: four ranks whose stores, copies and goroutines have different luck
// keep identical trees, pools and orders after every step.
func TestRanksKeepIdenticalTrees(t *testing.T) {
	runs := 12
	if testing.Short() {
		runs = 3
	}
	var shared, failed int64
	for run := range runs {
		set := []tree.ComponentSet{components(false, false), components(true, false), components(false, true), components(true, true)}[run%4]
		o := Options{
			Tree: tree.Options{Components: set, PageSize: 2, SlidingWindow: 4, CheckpointGrid: 2}, TrackBuffers: 1,
			Pools: PoolSizes{Full: 64, SWA: 48, Mamba: 10},
			Host:  &HostOptions{Pools: PoolSizes{Full: 40, SWA: 40, Mamba: 10}, Policy: WritePolicy(run % numWritePolicies), LoadBackThreshold: 1, Workers: 2},
		}
		s := StorageOptions{PrefetchThreshold: 2, StopPolicy: StopPolicy(run % numStopPolicies), Timeout: queue.Timeout{Base: 1}}
		ranks := inRanks(t, o, s, uint64(run), func(r *rank) error { return r.live(rand.New(rand.NewPCG(7, uint64(run)))) })
		for i, r := range ranks[1:] {
			for step := range min(len(r.told), len(ranks[0].told)) {
				if r.told[step] != ranks[0].told[step] {
					t.Fatalf("run %d: after step %d rank 0 has\n%s\nand rank %d\n%s", run, step, ranks[0].told[step], i+1, r.told[step])
				}
			}
			if len(r.told) != len(ranks[0].told) {
				t.Fatalf("run %d: rank 0 went %d steps, rank %d %d", run, len(ranks[0].told), i+1, len(r.told))
			}
			if r.cache.Stats().Storage.WritesFailed != ranks[0].cache.Stats().Storage.WritesFailed {
				failed++
			}
		}
		shared += ranks[0].cache.Stats().ReusedFromStorage
	}
	t.Logf("%d tokens came from storage; %d ranks had other luck with their writes than rank 0", shared, failed)
	if !testing.Short() && (shared == 0 || failed == 0) {
		t.Error("the test does not reach what it is for")
	}
}

// live leads requests through a rank; the script is the same on all.
func (r *rank) live(script *rand.Rand) error {
	c := r.cache
	var waiting []*Request
	for step := range 160 {
		switch script.IntN(8) {
		case 0, 1, 2:
			first := script.IntN(3) * 100
			q, err := c.NewRequest(RequestParams{Tokens: append(span(first, first+script.IntN(24)), tree.Token(1000+step))})
			if err != nil {
				return err
			}
			waiting = append(waiting, q)
			err = c.Prefetch(q)
			r.tell("prefetch %d: %v", q.id, err)
		case 3, 4:
			if len(waiting) == 0 {
				continue
			}
			q := waiting[0]
			if script.IntN(2) == 0 {
				if err := c.Sync(context.Background()); err != nil {
					return err
				}
			}
			ready, err := c.Ready(q)
			r.tell("ready %d: %v %v", q.id, ready, err)
			if err != nil {
				return err
			}
			if !ready {
				continue
			}
			waiting = waiting[1:]
			if err := r.servedBy(q); err != nil {
				return err
			}
		case 5:
			if script.IntN(3) == 0 {
				if err := c.Sync(context.Background()); err != nil {
					return err
				}
			}
			if err := c.Tick(); err != nil {
				return err
			}
			r.tell("tick")
		case 6:
			freed, err := c.Evict(tree.Full, script.IntN(64))
			r.tell("evicted %v: %v", freed, err)
			if err != nil {
				return err
			}
		case 7:
			if script.IntN(2) == 0 { // only storage is left
				_, err := c.Evict(tree.Full, 64)
				if err == nil {
					_, err = c.evictHost(tree.Full, 64)
				}
				if r.tell("emptied: %v", err); err != nil {
					return err
				}
				continue
			}
			if len(waiting) > 3 {
				err := c.Abort(waiting[0])
				r.tell("abort %d: %v", waiting[0].id, err)
				waiting = waiting[1:]
				if err != nil {
					return err
				}
			}
		}
		if err := c.CheckConservation(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) servedBy(q *Request) error {
	c := r.cache
	err := c.Admit(q)
	r.tell("admit %d: %v, %+v", q.id, err, q.Origin())
	if err != nil {
		if later(err) {
			return c.Abort(q)
		}
		return err
	}
	if err := c.WaitLoads(context.Background(), q); err != nil {
		r.tell("lost")
		return c.Abort(q)
	}
	for q.Len() < q.PromptLen() {
		n := c.MaxExtend(q, min(6, q.PromptLen()-q.Len()))
		if n == 0 || c.Extend(q, n) != nil {
			return c.Abort(q)
		}
		if err := c.Commit(q, n); err != nil {
			return err
		}
		if err := c.CacheUnfinished(q); err != nil {
			return err
		}
		r.tell("%d has %d", q.id, q.Len())
	}
	err = c.Finish(q, true)
	r.tell("finished %d: %v", q.id, err)
	return err
}

// MR-5, X-MR-3: a rank that reclaimed something else is found at the next tick, on
// every rank.
func TestRanksThatDivergeAreFound(t *testing.T) {
	o := Options{
		Tree: tree.Options{PageSize: 1}, Pools: PoolSizes{Full: 64},
		Host: &HostOptions{Pools: PoolSizes{Full: 64}, Policy: WriteBack, LoadBackThreshold: 1},
	}
	var lock sync.Mutex
	odd := 0
	inRanks(t, o, StorageOptions{}, 1, func(r *rank) error {
		r.cache.host.faults = nil
		lock.Lock()
		odd++
		different := odd == 1
		lock.Unlock()
		q, err := r.cache.NewRequest(RequestParams{Tokens: span(1, 8)})
		if err != nil {
			return err
		}
		if err := r.servedBy(q); err != nil {
			return err
		}
		if _, err := r.cache.Evict(tree.Full, 8); err != nil {
			return err
		}
		if q, err = r.cache.NewRequest(RequestParams{Tokens: span(1, 9)}); err != nil {
			return err
		}
		if err := r.servedBy(q); err != nil {
			return err
		}
		if err := r.cache.Sync(context.Background()); err != nil {
			return err
		}
		if different { // it gives up a copy that is on the device, too
			if n, err := r.cache.evictHost(tree.Full, 8); n != 8 || err != nil {
				return fmt.Errorf("reclaimed %d: %w", n, err)
			}
		}
		var diverged *DivergenceError
		if err := r.cache.Tick(); !errors.As(err, &diverged) || diverged.Least != 0 || diverged.Most == 0 {
			return fmt.Errorf("%v is no divergence", err)
		}
		if err := r.cache.Tick(); !errors.As(err, &diverged) {
			return errors.New("the cache serves on")
		}
		return nil
	})
}

// X-MR-1, X-MR-4.
func TestCollectives(t *testing.T) {
	each := func(ranks []Collective, give func(i int) []int64) ([][]int64, []error) {
		values, errs := make([][]int64, len(ranks)), make([]error, len(ranks))
		var all sync.WaitGroup
		for i, c := range ranks {
			values[i] = give(i)
			all.Go(func() { errs[i] = c.Min(context.Background(), values[i]) })
		}
		all.Wait()
		return values, errs
	}
	ranks := NewCollectives(3)
	for round := range 100 {
		values, errs := each(ranks, func(i int) []int64 { return []int64{int64(i + round), int64(-i)} })
		for i := range ranks {
			if errs[i] != nil || values[i][0] != int64(round) || values[i][1] != -2 {
				t.Fatalf("round %d, rank %d: %v, %v", round, i, values[i], errs[i])
			}
		}
	}
	_, errs := each(ranks, func(i int) []int64 { return make([]int64, 1+i/2) })
	for i, err := range errs {
		if err == nil {
			t.Errorf("rank %d agreed with ranks that ask for other things", i)
		}
	}
	// A rank that stops waiting takes the others with it.
	ranks = NewCollectives(2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := ranks[0].Min(ctx, []int64{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := ranks[1].Min(context.Background(), []int64{1}); err == nil {
		t.Error("the other rank agreed with nobody")
	}
}
