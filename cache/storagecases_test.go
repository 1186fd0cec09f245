// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// keys returns the stored keys of one pool for the pages of a prompt.
func (s *shelf) keys(pool string, tokens ...tree.Token) []storage.Key {
	return storage.Keys(tree.HashPages(tree.Key{Tokens: tokens}, s.cache.page), pool)
}

func flip(frame []byte) []byte { frame[len(frame)-1] ^= 1; return frame }
func half(frame []byte) []byte { return frame[:len(frame)/2] }
func none0([]byte) []byte      { return nil }

// C-015, X-FL-3: a damaged page ends a prefetch before it; it acknowledges once,
// its slots come back, and other prefixes are not touched.
func TestC015DamagedPage(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{"cut": half, "empty": none0, "flipped": flip} {
		t.Run(name, func(t *testing.T) {
			s := shelves(t, tiers{page: 4, threshold: 4, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
			s.warm(span(1, 12), span(101, 112))
			s.store.Tamper(s.keys("full", span(1, 12)...)[1], damage)
			r := s.fetched(span(1, 13)...)
			s.origin(r, 0, 0, 4)
			wantInt(t, "missed", r.Origin().StorageMissed, 8)
			s.tick()
			wantInt(t, "host slots", 64-s.hostFree(tree.Full), 4)
			s.ok(s.cache.Abort(r))
			s.sync()
			s.idle()
			r = s.fetched(span(101, 113)...)
			s.origin(r, 0, 0, 12)
			s.ok(s.cache.Abort(r))
			s.sync()
			s.idle()
		})
	}
}

// The same on the file store, whose damage is found in real files by its own
// tests: here a page that has gone.
func TestC015FileStore(t *testing.T) {
	store, err := file.Open(context.Background(), file.Options{Dir: t.TempDir()}, storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	x := tiers{page: 4, threshold: 4, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, unattached: true}
	s := shelves(t, x)
	s.faulty = storage.WithFaults(store)
	s.ok(s.cache.AttachStorage(s.options(x)))
	s.warm(span(1, 12))
	if err := store.Delete(context.Background(), s.keys("full", span(1, 12)...)[1:2]); err != nil {
		t.Fatal(err)
	}
	r := s.fetched(span(1, 13)...)
	s.origin(r, 0, 0, 4)
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
}

// X-FL-4, C-025: where a window or a state is fetched, it is all or nothing.
func TestC025WindowOrStateIsMissing(t *testing.T) {
	for _, x := range []struct {
		set  tree.ComponentSet
		pool string
		want int // reuse after the prefetch
	}{
		{components(true, false), "swa", 0},
		{components(false, true), "mamba", 0},
		{components(true, false), "full", 0},
	} {
		s := shelves(t, tiers{set: x.set, page: 1, window: 2, threshold: 1, stop: WaitComplete,
			device: PoolSizes{64, 64, 8}, host: PoolSizes{64, 64, 8}})
		s.warm(span(1, 4))
		r := s.ask(span(1, 5)...)
		s.lookup() // the page is there, and then it is not
		if err := s.store.Delete(context.Background(), s.keys(x.pool, span(1, 4)...)[3:]); err != nil {
			t.Fatal(err)
		}
		s.sync()
		s.ready(r, true)
		s.admit(r)
		s.origin(r, 0, 0, x.want)
		wantInt(t, "promised and lost", int(s.cache.Stats().Storage.LostTokens), 4)
		s.ok(s.cache.Abort(r))
		s.idle()
		for id := range tree.Component(tree.NumComponents) {
			if u := s.cache.HostUsage(id); u.Free != u.Size {
				t.Fatalf("%s missing: host %v keeps %+v", x.pool, id, u)
			}
		}
	}
}

// C-025, X-PF-12, PF-22: a sidecar of Full shortens a prefetch; the slots beyond
// come back. What comes is what was written, in the sidecar, too.
func TestC025Sidecar(t *testing.T) {
	s := shelves(t, tiers{page: 1, threshold: 1, stop: WaitComplete, device: PoolSizes{Full: 32}, host: PoolSizes{Full: 32},
		sidecars: []Sidecar{{Name: "indexer", Source: tree.Full, SlotBytes: 16}}})
	r := s.start(span(1, 4)...)
	s.compute(r, 4)
	row, err := r.Row().Numbers()
	s.ok(err)
	memory := s.cache.Memory().Sidecars[0]
	for i, slot := range row {
		memory.Device.SetStamp(slot, uint64(1000+i))
	}
	s.finish(r)
	s.sync()
	s.ok(s.cache.Reset())
	memory.Device.SetStamp(row[0], 0)

	r = s.ask(span(1, 5)...)
	s.lookup()
	if err := s.store.Delete(context.Background(), s.keys("indexer", span(1, 4)...)[2:3]); err != nil {
		t.Fatal(err)
	}
	s.sync()
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 0, 0, 2)
	s.tick()
	wantInt(t, "host slots", 32-s.hostFree(tree.Full), 2)
	row, err = r.Row().Numbers()
	s.ok(err)
	for i := range 2 {
		if got := memory.Device.Stamp(row[i]); got != uint64(1000+i) {
			t.Errorf("the indexer at %d holds %d", i, got)
		}
	}
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
}

// C-035: between the lookup and the read a page goes.
func TestC035PromisedAndLost(t *testing.T) {
	s := shelves(t, tiers{page: 4, threshold: 4, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.warm(span(1, 12))
	r := s.ask(span(1, 13)...)
	s.lookup()
	if err := s.store.Delete(context.Background(), s.keys("full", span(1, 12)...)[2:]); err != nil {
		t.Fatal(err)
	}
	s.sync()
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 0, 0, 8)
	if o := r.Origin(); o.StorageMissed != 4 || s.cache.Stats().Storage.LostTokens != 4 {
		t.Errorf("%+v, %d lost", o, s.cache.Stats().Storage.LostTokens)
	}
	s.prefill(r, 4)
	s.finish(r)
	s.sync()
	s.idle()
}

// C-033: room for two pages only, full of junk; then for none.
func TestC033FewBuffers(t *testing.T) {
	for room, want := range map[int]int{2: 2, 1: 1, 0: 0} {
		s := shelves(t, tiers{page: 1, threshold: 1, stop: WaitComplete, device: PoolSizes{Full: 32}, host: PoolSizes{Full: 8}})
		s.warm(span(1, 4))
		// The rest of the host is held by a load that is not launched.
		held := s.pin(8 - room)
		for i := range 8 {
			if i >= 8-room {
				s.cache.Memory().Host[tree.Full].SetStamp(tree.Slot(i), 0xbad)
			}
		}
		r := s.ask(span(1, 5)...)
		s.sync()
		s.ready(r, true)
		s.admit(r)
		s.origin(r, 0, 0, want)
		s.ok(s.cache.Abort(r))
		s.finishLoads(held)
		s.ok(s.cache.Abort(held))
		s.sync()
		s.idle()
	}
}

// pin fills n host slots with a prefix that a load not launched keeps there.
func (s *shelf) pin(n int) *Request {
	s.t.Helper()
	prompt := span(201, 200+n)
	s.serve(prompt...)
	s.sync()
	s.evict(tree.Full, 1<<20, n)
	r, err := s.cache.NewRequest(RequestParams{Tokens: append(prompt, 1)})
	s.ok(err)
	s.ok(s.cache.Admit(r))
	return r
}

// C-021: what a write to storage reads is not reused before its end, split or not.
func TestC021SlotsUnderAWrite(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		s := shelves(t, tiers{page: 1, policy: policy, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 8}})
		s.serve(span(1, 8)...)
		if policy == WriteBack { // to the host, and back to the device
			s.evict(tree.Full, 8, 8)
			r := s.start(append(span(1, 8), 1)...)
			s.ok(s.cache.Abort(r))
		} else { // the copy has ended, its write to storage has not
			s.ok(s.cache.Engine().Wait(context.Background(), 0))
			s.tick()
		}
		if len(s.cache.storage.writes) != 1 {
			t.Fatalf("%d writes are in flight", len(s.cache.storage.writes))
		}
		s.serve(append(span(1, 4), 99)...) // splits the node
		if _, err := s.cache.evictHost(tree.Full, 8); err != nil {
			t.Fatal(err)
		}
		s.check()
		wantInt(t, "host slots that are free", s.hostFree(tree.Full), 0)
		s.sync()
		s.idle()
		next := shelves(t, tiers{page: 1, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, unattached: true})
		next.store, next.faulty = s.store, s.faulty
		next.ok(next.cache.AttachStorage(next.options(tiers{})))
		r := next.fetched(append(span(1, 8), 1)...) // the model reads all of them
		next.origin(r, 0, 0, 8)
		next.ok(next.cache.Abort(r))
		if _, err := s.cache.evictHost(tree.Full, 8); err != nil {
			t.Fatal(err)
		}
		if s.hostFree(tree.Full) != 8 {
			t.Errorf("%v: %d host slots free after the write", policy, s.hostFree(tree.Full))
		}
	}
}

// C-022: a host that is smaller than the device does not fill with copies that
// nobody needs.
func TestC022SmallHost(t *testing.T) {
	s := shelves(t, tiers{page: 1, threshold: 1, device: PoolSizes{Full: 32}, host: PoolSizes{Full: 8}})
	s.serve(span(501, 506)...)
	s.sync()
	s.evict(tree.Full, 6, 6)
	for i := range 16 {
		s.serve(tree.Token(10*i), tree.Token(10*i+1))
		s.sync()
	}
	for i := range 16 {
		keys := s.keys("full", tree.Token(10*i), tree.Token(10*i+1))
		found, err := s.store.Exists(context.Background(), keys)
		if err != nil || storage.Leading(found) != 2 {
			t.Errorf("prefix %d: %v in storage (%v)", i, found, err)
		}
	}
	wantInt(t, "backups refused", int(s.cache.Stats().BackupsRefused), 0)
	r := s.fetched(span(501, 507)...)
	s.origin(r, 0, 0, 6)
	s.ok(s.cache.Abort(r))
	s.sync()
	s.idle()
}

// C-027, X-PF-16, X-PF-17, and the refill under a parent without a host copy:
// dropped in write-through, kept in write-back.
func TestC027RefillUnderAnUnbackedParent(t *testing.T) {
	for _, policy := range []WritePolicy{WriteThrough, WriteBack} {
		s := shelves(t, tiers{page: 1, threshold: 1, policy: policy, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
		// Storage has eight tokens, the tree four, which are on the device only.
		other := shelves(t, tiers{page: 1, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}, unattached: true})
		other.store, other.faulty = s.store, s.faulty
		other.ok(other.cache.AttachStorage(other.options(tiers{})))
		other.warm(span(1, 8))
		s.serve(span(1, 2)...) // its prefetches would hang on this
		s.serve(span(1, 4)...)
		if policy == WriteThrough {
			r := s.ask(span(1, 9)...)
			s.lookup()
			s.read()
			s.ready(r, false) // held: what it would hang on is not on the host yet
			// The copy of the anchor fails while its refill is there already.
			s.cache.host.faults = &faults{copy: func(pool.Copy) error { return errors.New("no") }}
			s.sync()
			s.cache.host.faults = nil
			s.ready(r, true)
			s.admit(r)
			s.origin(r, 4, 0, 0)
			wantInt(t, "host slots", 64-s.hostFree(tree.Full), 0)
			s.ok(s.cache.Abort(r))
			s.idle()
			// And nothing is fetched for what could not be hung up.
			r = s.ask(span(1, 9)...)
			if s.ready(r, true); r.fetch != nil || s.cache.Stats().Storage.DeclinedUnbacked != 1 {
				t.Errorf("%+v", s.cache.Stats().Storage)
			}
			s.ok(s.cache.Abort(r))
			continue
		}
		r := s.fetched(span(1, 9)...)
		s.origin(r, 4, 0, 4)
		s.ok(s.cache.Abort(r))
		s.sync()
		s.idle()
	}
}

// late is a store whose first answer to Exists comes late: what it says is that
// of the moment when it was asked, whatever the asker does meanwhile.
type late struct {
	storage.Store
	first         atomic.Bool
	reached, over chan struct{}
}

func (l *late) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	found, err := l.Store.Exists(ctx, keys)
	if l.first.CompareAndSwap(false, true) {
		close(l.reached)
		<-l.over
	}
	return found, err
}

// C-071: an answer belongs to its question. The first question's answer is that
// nothing is there when the second one's is that all is, and the other way round.
func TestC071LateAnswer(t *testing.T) {
	for _, there := range []bool{true, false} {
		x := tiers{page: 1, threshold: 1, stop: WaitComplete, live: true, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}}
		s := shelves(t, x)
		keys := s.keys("full", span(1, 4)...)
		if !there {
			s.warm(span(1, 4))
		}
		s.ok(s.cache.DetachStorage(context.Background()))
		answer := &late{Store: s.store, reached: make(chan struct{}), over: make(chan struct{})}
		o := s.options(x)
		o.Store = answer
		s.ok(s.cache.AttachStorage(o))
		a := s.ask(span(1, 5)...)
		first := a.fetch.lookup
		<-answer.reached
		s.ok(s.cache.Abort(a))
		if there {
			pages := make([][]byte, 4)
			for i := range pages {
				pages[i] = make([]byte, 8)
			}
			if _, err := s.store.Put(context.Background(), keys, pages); err != nil {
				t.Fatal(err)
			}
		} else if err := s.store.Delete(context.Background(), keys); err != nil {
			t.Fatal(err)
		}
		b := s.ask(span(1, 5)...)
		s.tick()
		s.ready(b, false)
		close(answer.over)
		s.sync()
		s.ready(b, true)
		want := 0
		if there {
			want = 4
		}
		if _, found := first.Found(); found.Usable == want {
			t.Fatalf("both questions have the answer %d", want)
		}
		wantInt(t, "found for the second question", b.offered, want)
		wantInt(t, "stale answers", int(s.cache.Stats().Storage.StaleAnswers), 1)
		s.ok(s.cache.Abort(b))
		s.idle()
	}
}
