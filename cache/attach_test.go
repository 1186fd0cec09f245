// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// X-AT-1, X-AT-2: nodes that were made without storage get the hashes that they
// would have, once.
func TestHashBackfill(t *testing.T) {
	x := tiers{page: 2, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, unattached: true}
	s := shelves(t, x)
	for _, n := range []int{2, 4, 6} {
		s.serve(span(1, n)...)
	}
	s.sync()
	s.ok(s.cache.AttachStorage(s.options(x)))
	wantInt(t, "hashed", int(s.cache.Stats().Storage.HashesBackfilled), 3)
	want := tree.HashPages(tree.Key{Tokens: span(1, 6)}, 2)
	got, _, err := s.cache.tree.LastHash(s.node(span(1, 6)...).ID)
	s.ok(err)
	if got != want[2] {
		t.Error("the last hash is not that of the whole prefix")
	}
	s.ok(s.cache.DetachStorage(context.Background()))
	s.serve(span(1, 8)...)
	s.sync()
	s.ok(s.cache.AttachStorage(s.options(x)))
	wantInt(t, "hashed", int(s.cache.Stats().Storage.HashesBackfilled), 4)
	// AT-7: what was on the host before is written when it is backed up again.
	wantInt(t, "pages in storage", int(s.store.Stats().Pages), 0)
}

// X-AT-3 to X-AT-5, C-073: a rejected attach changes nothing and says what is
// allowed; the same store gets new policies; another one has to wait.
func TestAttachAgain(t *testing.T) {
	x := tiers{page: 4, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}}
	s := shelves(t, x)
	for _, c := range []struct {
		change func(*StorageOptions)
		field  string
	}{
		{func(o *StorageOptions) { o.StopPolicy = 9 }, "Storage.StopPolicy"},
		{func(o *StorageOptions) { p := WritePolicy(7); o.WritePolicy = &p }, "Storage.WritePolicy"},
		{func(o *StorageOptions) { o.PrefetchThreshold = -1 }, "Storage.PrefetchThreshold"},
		{func(o *StorageOptions) { o.Store = nil }, "Storage.Store"},
	} {
		o := s.options(x)
		c.change(&o)
		var bad *tree.ConfigError
		if err := s.cache.AttachStorage(o); !errors.As(err, &bad) || bad.Field != c.field || bad.Allowed == "" {
			t.Errorf("%s: %v", c.field, err)
		}
		if s.cache.storage.opts.StopPolicy != BestEffort || s.cache.writeBack() {
			t.Fatal("a rejected attach changed a policy")
		}
	}
	q := s.cache.Storage()
	o := s.options(x)
	back := WriteBack
	o.WritePolicy, o.StopPolicy, o.PrefetchThreshold = &back, WaitComplete, 2
	s.ok(s.cache.AttachStorage(o))
	if s.cache.Storage() != q || !s.cache.writeBack() || !s.cache.tree.Switches().WriteBack || s.cache.storage.opts.StopPolicy != WaitComplete || s.cache.storage.least != 4 {
		t.Error("the same store did not get the new policies")
	}
	o.Store = storagetest.NewMemory(storagetest.Fingerprint())
	var other *AttachedError
	if err := s.cache.AttachStorage(o); !errors.As(err, &other) {
		t.Errorf("%v", err)
	}
	s.ok(s.cache.DetachStorage(context.Background()))
	s.ok(s.cache.DetachStorage(context.Background()))
	s.ok(s.cache.AttachStorage(o))
}

// X-AT-7.
func TestThresholdIsAPageAtLeast(t *testing.T) {
	for _, c := range []struct{ threshold, page, want int }{{100, 256, 256}, {0, 16, DefaultPrefetchThreshold}, {1, 1, 1}} {
		s := shelves(t, tiers{page: c.page, device: PoolSizes{Full: 1024}, host: PoolSizes{Full: 1024}, unattached: true})
		o := s.options(tiers{threshold: c.threshold})
		o.PrefetchThreshold = c.threshold
		s.ok(s.cache.AttachStorage(o))
		wantInt(t, "threshold", s.cache.storage.least, c.want)
	}
}

func TestStorageNeedsAHost(t *testing.T) {
	c, err := New(Options{Pools: PoolSizes{Full: 8}})
	if err != nil {
		t.Fatal(err)
	}
	var bad *tree.ConfigError
	err = c.AttachStorage(StorageOptions{Store: storagetest.NewMemory(storagetest.Fingerprint())})
	if !errors.As(err, &bad) || bad.Field != "Storage.Store" {
		t.Errorf("%v", err)
	}
}

// C-073, AT-1, AT-8, AT-9: a plain detach waits for nothing and cuts nothing off;
// a forced one leaves nothing behind, whatever was on its way.
func TestC073DetachInFlight(t *testing.T) {
	x := tiers{page: 1, threshold: 1, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 16}}
	for stage, lead := range []func(s *shelf, r *Request){
		func(*shelf, *Request) {},                                             // the lookup is on its way
		func(s *shelf, r *Request) { s.lookup() },                             // the read is
		func(s *shelf, r *Request) { s.lookup(); s.read() },                   // it has ended, and nobody has looked
		func(s *shelf, r *Request) { s.lookup(); s.read(); s.tick() },         // somebody has
		func(s *shelf, r *Request) { s.serve(span(301, 304)...); s.copies() }, // a write is on its way, too
	} {
		s := shelves(t, x)
		s.warm(span(1, 12))
		s.serve(span(1, 4)...)
		s.sync()
		r := s.ask(span(1, 13)...)
		lead(s, r)
		before := s.cache.inFlight("")
		var busy *BusyError
		if err := s.cache.DetachStorage(context.Background()); !errors.As(err, &busy) || busy.Prefetches != 1 {
			t.Fatalf("stage %d: %v", stage, err)
		}
		if after := s.cache.inFlight(""); *after.(*BusyError) != *before.(*BusyError) || r.fetch == nil {
			t.Fatalf("stage %d: a refused detach changed %v to %v", stage, before, after)
		}
		s.check()
		s.ok(s.cache.DetachStorageNow(context.Background()))
		s.idle()
		if s.cache.Storage() != nil || s.cache.tree.Switches().Storage {
			t.Fatalf("stage %d: storage is still on", stage)
		}
		s.ready(r, true)
		s.sync()
		s.idle()
		s.ok(s.cache.AttachStorage(s.options(x)))
		s.ok(s.cache.Prefetch(r))
		s.sync()
		s.ready(r, true)
		s.admit(r)
		s.origin(r, 4, 0, 8)
		s.prefill(r, 4)
		s.finish(r)
	}
}

// copies lets the copies end, and nothing else.
func (s *shelf) copies() {
	s.t.Helper()
	s.ok(s.cache.Engine().Wait(context.Background(), 0))
	s.tick()
}

// X-AT-6, and the second half of C-073: while a call of the store hangs, the
// detach fails and leaves what it may touch locked; serving goes on.
func TestC073DetachFromAHangingStore(t *testing.T) {
	for _, op := range []storage.Op{storage.OpPut, storage.OpGet} {
		s := shelves(t, tiers{page: 1, threshold: 1, stop: WaitComplete, live: true, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 32}})
		s.warm(span(1, 8))
		hang := &hanging{Store: s.store, op: op, began: make(chan struct{}, 64), over: make(chan struct{})}
		s.ok(s.cache.DetachStorage(context.Background()))
		o := s.options(tiers{live: true, stop: WaitComplete})
		o.Store = hang
		s.ok(s.cache.AttachStorage(o))
		var r *Request
		if op == storage.OpPut {
			s.serve(span(101, 104)...)
			s.copies()
		} else {
			r = s.ask(span(1, 9)...)
			s.lookup()
		}
		<-hang.began
		soon, cancel := context.WithCancel(context.Background())
		cancel()
		var stuck *queue.StuckError
		if err := s.cache.DetachStorageNow(soon); !errors.As(err, &stuck) || stuck.Operations != 1 {
			t.Fatalf("%v: %v", op, err)
		}
		s.tick()
		if op == storage.OpPut {
			wantInt(t, "host locks", s.node(span(101, 104)...).Components[tree.Full].HostLocks, 1)
		} else {
			wantInt(t, "host slots held", s.cache.HostUsage(tree.Full).Held, 8)
		}
		s.run(4, span(201, 208)...) // serving goes on
		close(hang.over)
		s.ok(s.cache.DetachStorageNow(context.Background()))
		s.sync()
		s.idle()
		if r != nil {
			s.ready(r, true)
			s.ok(s.cache.Abort(r))
		}
		s.ok(s.cache.AttachStorage(s.options(tiers{live: true})))
		got := s.fetched(span(1, 9)...)
		s.origin(got, 0, 0, 8)
		s.ok(s.cache.Abort(got))
		s.sync()
		s.idle()
	}
}

// hanging is a store one of whose calls does not return, whatever its context.
type hanging struct {
	storage.Store
	op    storage.Op
	began chan struct{}
	over  chan struct{}
}

func (h *hanging) wait(op storage.Op) {
	if op == h.op {
		h.began <- struct{}{}
		<-h.over
	}
}

func (h *hanging) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	h.wait(storage.OpGet)
	return h.Store.Get(ctx, keys, into)
}

func (h *hanging) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	h.wait(storage.OpPut)
	return h.Store.Put(ctx, keys, pages)
}

// X-FL-5, FL-17: a store that dies while writes are queued: each lock goes.
func TestStoreDiesWhileWritesAreQueued(t *testing.T) {
	s := shelves(t, tiers{page: 1, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	for i := range 3 {
		s.serve(span(100*i, 100*i+3)...)
	}
	s.copies()
	wantInt(t, "writes", len(s.cache.storage.writes), 3)
	s.faulty.Set(storage.Fault{When: storage.Always, Fail: true, Kind: storage.Unreachable})
	s.sync()
	s.idle()
	wantInt(t, "writes that failed", int(s.cache.Stats().Storage.WritesFailed), 3)
}

// FL-23: a store that panics is switched off, and the cache serves on.
func TestStoreThatPanics(t *testing.T) {
	for _, where := range []storage.Op{storage.OpExists, storage.OpGet, storage.OpPut} {
		s := shelves(t, tiers{page: 1, threshold: 1, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
		s.warm(span(1, 8))
		s.faulty.Set(storage.Fault{When: func(c storage.Call) bool {
			if c.Op == where {
				panic("a fault of the backend")
			}
			return false
		}})
		r := s.ask(span(1, 9)...)
		s.serve(span(101, 104)...)
		var off *StorageError
		if err := s.cache.Sync(context.Background()); !errors.As(err, &off) {
			t.Fatalf("%v: %v", where, err)
		}
		if s.cache.Storage() != nil {
			t.Fatalf("%v: storage is on", where)
		}
		s.sync()
		s.ready(r, true)
		s.admit(r)
		s.origin(r, 0, 0, 0)
		s.prefill(r, 4)
		s.finish(r)
		s.sync()
		s.idle()
	}
}

// X-PF-21, PF-33: an abort at every stage of a prefetch gives everything back.
func TestAbortOfAPrefetch(t *testing.T) {
	for page := range 3 {
		s := shelves(t, tiers{set: components(true, true), page: 4, window: 8, threshold: 4, stop: WaitComplete, live: true,
			device: PoolSizes{64, 64, 8}, host: PoolSizes{64, 64, 8}})
		s.warm(span(1, 12))
		wait, release := s.hold(page)
		r := s.ask(span(1, 13)...)
		s.lookup()
		wait()
		s.ok(s.cache.Abort(r))
		s.tick()
		release()
		s.sync()
		s.idle()
		for id := range tree.Component(tree.NumComponents) {
			if u := s.cache.HostUsage(id); u.Free != u.Size {
				t.Fatalf("host %v keeps %+v", id, u)
			}
		}
	}
}

// X-PF-15: a dead store ends the wait.
func TestWaitForADeadStore(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 4, stop: WaitComplete, live: true, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.warm(span(1, 16))
	calls := 0
	s.faulty.Set(storage.Fault{Fail: true, Kind: storage.Unreachable, When: func(c storage.Call) bool {
		if c.Op == storage.OpGet {
			calls++
		}
		return calls > 1
	}})
	r := s.fetched(span(1, 17)...)
	s.origin(r, 0, 0, 4)
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
}

// X-PF-18: no room for the window, nothing there can go.
func TestPrefetchWithoutRoomForTheWindow(t *testing.T) {
	s := shelves(t, tiers{set: components(true, false), page: 4, window: 8, threshold: 4,
		device: PoolSizes{64, 64, 0}, host: PoolSizes{64, 64, 0}})
	s.warm(span(1, 16))
	s.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return host && id == tree.SWA }}
	r := s.fetched(span(1, 17)...)
	s.origin(r, 0, 0, 0)
	wantInt(t, "tokens given up", int(s.cache.Stats().Storage.AuxAllocFailedTokens), 16)
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
	wantInt(t, "host slots", s.hostFree(tree.Full), 64)
}

// X-MX-1 to X-MX-3: what lookups missed.
func TestMissAccounting(t *testing.T) {
	var s StorageStats
	s.missed(100, 60, 48)
	if s.MissTokens != 12 || s.DemandTotalTokens != 100 || s.MissRateSum != 0.12 || s.MissRateWeighted != 20 {
		t.Errorf("%+v", s)
	}
	s.missed(100, 60, 0)
	if s.DemandRequests != 2 || s.DemandTokens != 120 || s.MissTokens != 72 || s.MissRateSum != 0.72 || s.MissRateWeighted != 120 {
		t.Errorf("%+v", s)
	}
}

// PF-9: what routing is told is what a prefetch would find.
func TestStorageHit(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 8, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.warm(span(1, 16))
	ask := func(want int, tokens ...tree.Token) {
		t.Helper()
		r, err := s.cache.NewRequest(RequestParams{Tokens: tokens})
		s.ok(err)
		got, err := s.cache.StorageHit(context.Background(), r)
		s.ok(err)
		wantInt(t, "hit", got, want)
		s.ok(s.cache.Abort(r))
	}
	ask(16, span(1, 20)...)
	ask(0, span(1, 8)...) // too short for a prefetch
	s.faulty.Set(storage.Fault{When: storage.Always, Fail: true})
	ask(0, span(1, 20)...)
	s.idle()
}

// valued is a store that cannot be compared.
type valued struct {
	storage.Store
	notes []string
}

// A store may be of any type, also one whose values Go cannot compare.
func TestAttachAValue(t *testing.T) {
	s := shelves(t, tiers{page: 4, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, unattached: true})
	o := s.options(tiers{})
	o.Store = valued{s.store, nil}
	s.ok(s.cache.AttachStorage(o))
	var other *AttachedError
	if err := s.cache.AttachStorage(o); !errors.As(err, &other) {
		t.Errorf("%v", err)
	}
	if err := s.cache.AttachStorage(s.options(tiers{})); !errors.As(err, &other) {
		t.Errorf("%v", err)
	}
}
