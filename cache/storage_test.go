// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// shelf is a model over three tiers whose copies and storage operations end when
// a test says so.
type shelf struct {
	*model
	store  *storagetest.Memory
	faulty *storage.Faulty
	now    time.Time
}

type tiers struct {
	set          tree.ComponentSet
	page, window int
	device, host PoolSizes
	policy       WritePolicy
	threshold    int
	stop         StopPolicy
	timeout      queue.Timeout
	sidecars     []Sidecar
	unattached   bool
	live         bool // storage operations run by themselves, page by page
	buffer       bool // host memory is a staging area only
}

func shelves(t *testing.T, x tiers) *shelf {
	t.Helper()
	if x.page == 0 {
		x.page = 1
	}
	if x.set == 0 {
		x.set = components(false, false)
	}
	s := &shelf{now: time.Unix(1e9, 0)}
	s.model = newModel(t, Options{
		Tree:  tree.Options{Components: x.set, PageSize: x.page, SlidingWindow: x.window, CheckpointGrid: x.page},
		Pools: x.device, TrackBuffers: 1,
		Host: &HostOptions{Pools: x.host, Policy: x.policy, Manual: true, LoadBackThreshold: 1, Sidecars: x.sidecars, BufferOnly: x.buffer},
	})
	t.Cleanup(s.cache.Close)
	s.store = storagetest.NewMemory(storagetest.Fingerprint())
	s.faulty = storage.WithFaults(s.store)
	if !x.unattached {
		s.ok(s.cache.AttachStorage(s.options(x)))
	}
	return s
}

func (s *shelf) options(x tiers) StorageOptions {
	if x.threshold == 0 {
		x.threshold = 1
	}
	batch := 0
	if x.live {
		batch = 1
	}
	return StorageOptions{
		Batch: batch, Store: s.faulty, StopPolicy: x.stop, PrefetchThreshold: x.threshold, Timeout: x.timeout,
		Manual: !x.live, Now: func() time.Time { return s.now },
	}
}

// ask makes a request that is being prefetched.
func (s *shelf) ask(tokens ...tree.Token) *Request {
	s.t.Helper()
	r, err := s.cache.NewRequest(RequestParams{Tokens: tokens})
	s.ok(err)
	s.ok(s.cache.Prefetch(r))
	return r
}

// fetched asks, waits for what comes, and admits.
func (s *shelf) fetched(tokens ...tree.Token) *Request {
	s.t.Helper()
	r := s.ask(tokens...)
	s.sync()
	s.ready(r, true)
	s.admit(r)
	return r
}

func (s *shelf) ready(r *Request, want bool) {
	s.t.Helper()
	got, err := s.cache.Ready(r)
	s.ok(err)
	if got != want {
		s.t.Fatalf("request %d is ready: %v", r.id, got)
	}
}

// warm serves prompts, lets them reach the store, and forgets them everywhere
// else.
func (s *shelf) warm(prompts ...[]tree.Token) {
	s.t.Helper()
	for _, p := range prompts {
		s.serve(p...)
		s.sync()
	}
	s.ok(s.cache.Reset())
}

// lookup lets the answers of lookups come, without the reads.
func (s *shelf) lookup() {
	s.t.Helper()
	s.ok(s.cache.storage.queue.Wait(context.Background(), queue.Lookup))
	s.ok(s.cache.Tick())
}

func (s *shelf) read() {
	s.t.Helper()
	s.ok(s.cache.storage.queue.Wait(context.Background(), queue.Read))
}

func (s *shelf) tick() { s.t.Helper(); s.ok(s.cache.Tick()) }

// idle wants no slot, lock or reservation of storage to be left.
func (s *shelf) idle() {
	s.t.Helper()
	s.tick()
	for id := range tree.Component(tree.NumComponents) {
		if u := s.cache.HostUsage(id); u.Held != 0 {
			s.t.Fatalf("host %v: %+v with nothing in flight", id, u)
		}
	}
	if st := s.cache.storage; st != nil && (st.occupancy != 0 || len(st.lookups)+len(st.reads)+len(st.writes) != 0) {
		s.t.Fatalf("left: %d tokens reserved, %d lookups, %d reads, %d writes", st.occupancy, len(st.lookups), len(st.reads), len(st.writes))
	}
	for _, id := range s.cache.tree.Nodes() {
		n, err := s.cache.tree.Inspect(id)
		s.ok(err)
		for i, x := range n.Components {
			if x.HostLocks != 0 {
				s.t.Fatalf("node %d keeps %d %v host locks", id, x.HostLocks, tree.Component(i))
			}
		}
	}
}

func (s *shelf) origin(r *Request, device, host, store int) {
	s.t.Helper()
	if o := r.Origin(); o.Device != device || o.Host != host || o.Storage != store {
		s.t.Fatalf("%+v, want %d from the device, %d from the host, %d from storage", o, device, host, store)
	}
}

// What one process has computed another one reads, over every component set and
// page size and under every write policy; the stand-in model checks each value.
func TestAnotherProcessStartsWarm(t *testing.T) {
	for _, set := range []tree.ComponentSet{components(false, false), components(true, false), components(false, true), components(true, true)} {
		for _, page := range []int{1, 4} {
			for policy := range WritePolicy(numWritePolicies) {
				t.Run(fmt.Sprintf("%v/page %d/%v", set, page, policy), func(t *testing.T) {
					x := tiers{set: set, page: page, window: 2 * page, policy: policy,
						device: PoolSizes{64, 64, 8}, host: PoolSizes{64, 64, 8}}
					s := shelves(t, x)
					prompt := span(1, 6*page)
					for range 2 {
						s.run(page, prompt...)
					}
					if policy == WriteBack {
						s.evict(tree.Full, 64, 6*page)
					}
					s.sync()
					s.idle()
					if s.cache.Stats().Storage.WrittenTokens == 0 {
						t.Fatal("nothing was written")
					}

					next := shelves(t, x)
					next.store, next.faulty = s.store, s.faulty
					next.ok(next.cache.DetachStorage(context.Background()))
					next.ok(next.cache.AttachStorage(next.options(x)))
					r := next.fetched(append(prompt, 1)...)
					next.origin(r, 0, 0, 6*page)
					next.prefill(r, page)
					next.finish(r)
					next.sync()
					next.idle()
				})
			}
		}
	}
}

// X-PF-1 to X-PF-3, C-023: what is not fetched is not promised.
func TestPrefetchIsDeclined(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 8, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.warm(span(1, 16))
	stats := func() StorageStats { return s.cache.Stats().Storage }
	before := stats()
	for _, n := range []int{4, 8} { // 3 and 7 tokens can be reused
		r := s.ask(span(1, n)...)
		s.ready(r, true)
		s.admit(r)
		s.origin(r, 0, 0, 0)
		if r.Origin().StorageMissed != 0 {
			t.Fatalf("%+v", r.Origin())
		}
		s.ok(s.cache.Abort(r))
	}
	if got := stats(); got.Attempts != before.Attempts+1 || got.DeclinedTooShort != before.DeclinedTooShort+1 || got.Issued != before.Issued {
		t.Fatalf("%+v", got)
	}
	// Half of the host is being fetched already.
	first := s.ask(span(1, 33)...)
	second := s.ask(span(1, 17)...)
	if got := stats(); got.DeclinedRateLimited != before.DeclinedRateLimited+1 || got.Issued != before.Issued+1 {
		t.Fatalf("%+v", got)
	}
	s.ok(s.cache.Prefetch(first)) // a second one for the same request: ignored
	s.sync()
	s.ready(second, true)
	s.ok(s.cache.Abort(first))
	s.ok(s.cache.Abort(second))
	s.idle()
}

// C-023: the host has no room, and nothing there can go.
func TestPrefetchWithoutRoomOnTheHost(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 4, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 16}})
	s.warm(span(1, 16))
	s.cache.host.faults = &faults{alloc: func(_ tree.Component, host bool) bool { return host }}
	r := s.fetched(span(1, 17)...)
	s.origin(r, 0, 0, 0)
	if o := r.Origin(); o.StorageMissed != 16 || s.cache.Stats().Storage.RevokedNoRoom != 1 {
		t.Fatalf("%+v, %+v", o, s.cache.Stats().Storage)
	}
	s.ok(s.cache.Abort(r))
	s.idle()
}

// X-PF-19, X-PF-20: a part of what was found, if it is long enough.
func TestPrefetchOfWhatFits(t *testing.T) {
	for _, x := range []struct{ threshold, want int }{{8, 8}, {12, 0}} {
		s := shelves(t, tiers{page: 4, threshold: x.threshold, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 24}})
		s.warm(span(1, 12))
		// Sixteen of 24 are locked by a load that is not launched.
		s.serve(span(101, 116)...)
		s.sync()
		s.evict(tree.Full, 64, 16)
		held, err := s.cache.NewRequest(RequestParams{Tokens: span(101, 117)})
		s.ok(err)
		s.ok(s.cache.Admit(held))
		r := s.fetched(span(1, 13)...)
		s.origin(r, 0, 0, x.want)
		s.ok(s.cache.Abort(r))
		s.finishLoads(held)
		s.ok(s.cache.Abort(held))
		s.idle()
	}
}

func (s *shelf) finishLoads(r *Request) {
	s.t.Helper()
	s.ok(s.cache.WaitLoads(context.Background(), r))
	s.sync()
}

// X-PF-4, X-PF-5, X-PF-8, and the shortened window at the root: it is accepted,
// since the sequence is its own window.
func TestShortWindowAtTheRoot(t *testing.T) {
	for _, stored := range []int{12, 4} {
		s := shelves(t, tiers{set: components(true, false), page: 4, window: 8, threshold: 4,
			device: PoolSizes{64, 64, 0}, host: PoolSizes{64, 64, 0}})
		s.warm(span(1, stored))
		r := s.fetched(span(1, 17)...)
		s.origin(r, 0, 0, stored)
		wantInt(t, "SWA slots on the host", 64-s.hostFree(tree.SWA), min(stored, 8))
		s.ok(s.cache.Abort(r))
		s.sync()
		s.idle()
	}
}

// X-PF-6, X-PF-7, and the shortened window below another anchor: it is refused,
// and its host slots come back.
func TestShortWindowBelowANode(t *testing.T) {
	for _, asked := range []int{16, 4} {
		s := shelves(t, tiers{set: components(true, false), page: 4, window: 8, threshold: 4,
			device: PoolSizes{64, 64, 0}, host: PoolSizes{64, 64, 0}})
		s.warm(span(1, 12))
		s.serve(span(1, 8)...)
		s.sync()
		before := s.hostFree(tree.SWA)
		r := s.fetched(span(1, 8+asked+1)...)
		s.origin(r, 8, 0, 0) // Full came, but nobody can resume there
		wantInt(t, "SWA slots on the host", s.hostFree(tree.SWA), before)
		wantInt(t, "fetched", int(s.cache.Stats().Storage.PrefetchedTokens), 4)
		s.ok(s.cache.Abort(r))
		s.sync()
		s.idle()
	}
}

// X-PF-9: a whole window below a node.
func TestWindowBelowANode(t *testing.T) {
	s := shelves(t, tiers{set: components(true, false), page: 4, window: 8, threshold: 4,
		device: PoolSizes{64, 64, 0}, host: PoolSizes{64, 64, 0}})
	s.warm(span(1, 24))
	s.serve(span(1, 8)...)
	s.sync()
	r := s.fetched(span(1, 25)...)
	s.origin(r, 8, 0, 16)
	end := s.node(span(1, 24)...)
	wantInt(t, "length of the node with the window", end.Units, 8)
	s.finishLoads(r)
	s.prefill(r, 8)
	s.finish(r)
	s.idle()
}

// X-PF-10: the tree got a part of it meanwhile.
func TestRefillOfWhatTheTreeHasMeanwhile(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 4, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.warm(span(1, 16))
	r := s.ask(span(1, 17)...)
	s.lookup()
	s.read()
	s.serve(span(1, 12)...)
	s.sync()
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 12, 0, 4)
	wantInt(t, "missed", r.Origin().StorageMissed, 0) // it is there, whoever brought it
	wantInt(t, "host slots", 64-s.hostFree(tree.Full), 16)
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
}

// X-PF-14: how long the timeout policy waits.
func TestTimeoutPolicy(t *testing.T) {
	for _, x := range []struct {
		after time.Duration
		ready bool
		want  int
	}{{2900 * time.Millisecond, false, 0}, {3100 * time.Millisecond, true, 8}} {
		s := shelves(t, tiers{page: 4, threshold: 4, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, stop: WaitTimeout, live: true,
			timeout: queue.Timeout{Base: time.Second, PerKiToken: 128 * time.Second}}) // half a second a page
		s.warm(span(1, 16))
		wait, release := s.hold(2)
		defer release()
		r := s.ask(span(1, 17)...)
		s.lookup()
		wait()
		s.now = s.now.Add(x.after)
		s.ready(r, x.ready)
		if !x.ready {
			var wait *FetchingError
			if err := s.cache.Admit(r); !errors.As(err, &wait) || wait.Request != r.id {
				t.Fatalf("admitted while it is fetched: %v", err)
			}
		} else {
			s.admit(r)
			s.origin(r, 0, 0, x.want)
			wantInt(t, "missed", r.Origin().StorageMissed, 16-x.want)
		}
		s.ok(s.cache.Abort(r))
		release()
		s.sync()
		s.idle()
	}
}

// hold makes reads stop before a page, counting from 0, until the release is
// called. wait waits until one has come there.
func (s *shelf) hold(page int) (wait, release func()) {
	reached, over := make(chan struct{}), make(chan struct{})
	calls := 0
	s.faulty.Set(storage.Fault{Hold: over, When: func(c storage.Call) bool {
		if c.Op != storage.OpGet {
			return false
		}
		calls++
		if calls == page+1 {
			close(reached)
		}
		return calls > page
	}})
	return func() { <-reached }, sync.OnceFunc(func() { close(over); s.faulty.Set() })
}
