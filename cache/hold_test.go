// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// tight is a shelf with staging for so many tokens, in pages of 1, and prompts
// that another process with more room has stored.
func tight(t *testing.T, host int, x tiers, stored ...[]tree.Token) *shelf {
	t.Helper()
	rich := shelves(t, tiers{buffer: true, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	rich.warm(stored...)
	x.buffer, x.device, x.host = true, PoolSizes{Full: 64}, PoolSizes{Full: host}
	s := shelves(t, x)
	s.ok(s.cache.DetachStorage(t.Context()))
	s.store, s.faulty = rich.store, rich.faulty
	s.ok(s.cache.AttachStorage(s.options(x)))
	return s
}

// wait asks for a prompt's beginning and lets what comes become a hold.
func (s *shelf) wait(prompt []tree.Token) *Request {
	s.t.Helper()
	r := s.ask(append(prompt, 0)...)
	s.sync()
	s.ready(r, true)
	if r.hold == nil || r.hold.end() != len(prompt) {
		s.t.Fatalf("held is %+v", r.hold)
	}
	return r
}

// parked asks for a prompt's beginning and wants it to wait for room.
func (s *shelf) parked(prompt []tree.Token) *Request {
	s.t.Helper()
	r := s.ask(append(prompt, 0)...)
	s.sync()
	if r.fetch == nil || !r.fetch.parked {
		s.t.Fatalf("request %d is not parked: %+v", r.id, r.fetch)
	}
	return r
}

// C-033: staging for two of four tokens. They are true, and the others do not
// count as found.
func TestStagingForAPart(t *testing.T) {
	s := tight(t, 2, tiers{stop: WaitComplete}, span(1, 4))
	for slot := range tree.Slot(2) {
		s.cache.Memory().Host[tree.Full].SetStamp(slot, 0xdead)
	}
	r := s.ask(span(1, 5)...)
	s.sync()
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 0, 0, 2)
	wantInt(t, "missed", r.Origin().StorageMissed, 2)
	s.over(r)
}

// C-033: staging for none. Nothing came, and that is no error.
func TestStagingForNothing(t *testing.T) {
	s := tight(t, 2, tiers{stop: BestEffort}, span(1, 4), span(11, 12))
	first := s.wait(span(11, 12))
	for slot := range tree.Slot(2) {
		s.cache.Memory().Host[tree.Full].SetStamp(slot, 0xdead)
	}
	r := s.parked(span(1, 4))
	s.admit(r)
	s.origin(r, 0, 0, 0)
	wantInt(t, "missed", r.Origin().StorageMissed, 4)
	if x := s.cache.Stats().Storage; x.Parked != 1 || x.DeclinedRateLimited != 1 || x.RevokedNoRoom != 1 {
		t.Fatalf("%+v", x)
	}
	s.ok(s.cache.Abort(r))
	s.ok(s.cache.Abort(first))
	s.quiet()
}

// A page that is not read whole ends what counts, and its slots come back.
func TestStagingOfATornRead(t *testing.T) {
	s := tight(t, 16, tiers{stop: WaitComplete}, span(1, 8))
	pages := tree.HashPages(tree.Key{Tokens: span(1, 8)}, 1)
	s.store.Tamper(storage.Keys(pages[5:6], "full")[0], func(frame []byte) []byte { frame[len(frame)-1] ^= 1; return frame })
	r := s.ask(span(1, 9)...)
	s.sync()
	s.ready(r, true)
	s.tick()
	wantInt(t, "reserved", s.cache.storage.occupancy, 5)
	wantInt(t, "staging", s.hostFree(tree.Full), 11)
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 5)
	s.admit(r)
	s.origin(r, 0, 0, 5)
	s.over(r)
}

// BO-16: what is parked keeps its request waiting, is tried again in order, and
// is counted once.
func TestParkedFetches(t *testing.T) {
	s := tight(t, 8, tiers{stop: WaitComplete}, span(11, 18), span(21, 24), span(31, 38))
	first := s.wait(span(11, 18))
	second, third := s.parked(span(21, 24)), s.parked(span(31, 38))
	if read, parked := second.Reading(); read != nil || !parked {
		t.Fatalf("the second reads %v, parked %v", read, parked)
	}
	for range 3 {
		s.tick()
		s.ready(second, false)
	}
	var fetching *FetchingError
	if err := s.cache.Admit(second); !errors.As(err, &fetching) {
		t.Fatalf("%v", err)
	}
	wantInt(t, "parked", int(s.cache.Stats().Storage.Parked), 2)
	wantInt(t, "rate limited", int(s.cache.Stats().Storage.DeclinedRateLimited), 2)
	s.admit(first)
	s.finishLoads(first)
	s.tick() // the next has room, and the one after it has not
	if read, parked := second.Reading(); read == nil || read.Kind() != queue.Read || parked {
		t.Fatalf("the second reads %v, parked %v", read, parked)
	}
	s.sync()
	s.ready(second, true)
	s.ready(third, false)
	s.ok(s.cache.Abort(second))
	s.sync()
	s.ready(third, true)
	s.admit(third)
	s.origin(third, 0, 0, 8)
	s.ok(s.cache.Abort(first))
	s.over(third)
}

// PF-4: reads leave a tenth of the staging, beside what writes have.
func TestReadsAreLimited(t *testing.T) {
	s := tight(t, 20, tiers{stop: WaitComplete}, span(11, 28), span(31, 32))
	first := s.wait(span(11, 28))
	second := s.parked(span(31, 32)) // 18 of 20 are in use
	s.ok(s.cache.Abort(first))
	s.serve(span(41, 60)...)
	s.tick()
	wantInt(t, "staged for a write", s.books().staged[tree.Full], 0) // the parked one goes first
	s.ok(s.cache.storage.queue.Wait(t.Context(), queue.Read))
	s.tick()
	s.ready(second, true)
	s.admit(second)
	s.over(second)
}

// C-073: a fetch of 8 tokens after 1 .. 4, with room for 2. A detach is refused,
// or leaves no lock, no slot and no reservation; serving goes on.
func TestDetachWithFetches(t *testing.T) {
	for _, stage := range []string{"parked", "reading", "held", "spliced"} {
		t.Run(stage, func(t *testing.T) {
			s := tight(t, 10, tiers{stop: WaitComplete}, span(1, 12), span(21, 28))
			s.serve(span(1, 4)...)
			s.sync()
			requests := []*Request{}
			if stage == "parked" {
				requests = append(requests, s.wait(span(21, 28)))
			}
			r := s.ask(append(span(1, 12), 0)...)
			switch stage {
			case "parked":
				s.sync()
				wantInt(t, "room", s.hostFree(tree.Full), 2)
			case "reading":
				s.lookup()
			default:
				s.sync()
				s.ready(r, true)
			}
			if stage == "spliced" {
				s.admitHeld(r)
			}
			wantInt(t, "reserved", s.cache.storage.occupancy, 8)
			before := s.cache.Stats()
			var busy *BusyError
			if err := s.cache.DetachStorage(t.Context()); !errors.As(err, &busy) || s.cache.storage == nil || s.cache.Stats() != before {
				t.Fatalf("%v", err)
			}
			s.check()
			for range 2 {
				s.ok(s.cache.DetachStorageNow(t.Context()))
			}
			if stage == "spliced" {
				s.finishLoads(r)
				wantInt(t, "reused", r.Len(), 12)
			} else {
				s.admit(r)
				wantInt(t, "reused", r.Len(), 4)
			}
			s.ok(s.cache.Abort(r))
			for _, x := range requests {
				s.ok(s.cache.Abort(x))
			}
			s.quiet()

			wrong := s.options(tiers{})
			wrong.StopPolicy = numStopPolicies
			var field *tree.ConfigError
			if err := s.cache.AttachStorage(wrong); !errors.As(err, &field) || field.Field != "Storage.StopPolicy" || s.cache.storage != nil {
				t.Fatalf("%v", err)
			}
			right := s.options(tiers{stop: WaitComplete})
			s.ok(s.cache.AttachStorage(right))
			second := right
			second.Store = storage.WithFaults(s.store)
			var attached *AttachedError
			if err := s.cache.AttachStorage(second); !errors.As(err, &attached) {
				t.Fatalf("%v", err)
			}
			if stage == "spliced" {
				s.evict(tree.Full, 8, 8)
			}
			r = s.fetched(append(span(1, 12), 0)...)
			s.origin(r, 4, 0, 8)
			s.over(r)
		})
	}
}

// C-073: the store hangs during the detach, and returns after it.
func TestDetachWhileTheStoreHangs(t *testing.T) {
	x := tiers{stop: WaitComplete, live: true}
	s := tight(t, 10, x, span(1, 12))
	s.serve(span(1, 4)...)
	s.sync()
	s.ok(s.cache.DetachStorage(t.Context()))
	hang := &hanging{Store: s.store, op: storage.OpGet, began: make(chan struct{}, 64), over: make(chan struct{})}
	o := s.options(x)
	o.Store = hang
	s.ok(s.cache.AttachStorage(o))
	r := s.ask(append(span(1, 12), 0)...)
	s.lookup()
	<-hang.began
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var stuck *queue.StuckError
	if err := s.cache.DetachStorageNow(over); !errors.As(err, &stuck) || stuck.Operations != 1 {
		t.Fatalf("%v", err)
	}
	s.check()
	wantInt(t, "staging that the call may write to", 10-s.hostFree(tree.Full), 8)
	close(hang.over)
	s.ok(s.cache.DetachStorageNow(context.Background()))
	s.admit(r)
	wantInt(t, "reused", r.Len(), 4)
	s.over(r)
}

// BO-17: pins keep the base, up to half of the device, and give way to requests
// that run.
func TestPins(t *testing.T) {
	s := tight(t, 64, tiers{stop: WaitComplete}, span(1, 24), span(101, 124))
	s.serve(span(1, 20)...)
	s.serve(span(101, 120)...)
	s.sync()
	first := s.wait(span(1, 24))
	wantInt(t, "pinned", s.books().pinned, 20)
	second := s.parked(span(101, 124)) // 40 of 64 would be pinned
	_, err := s.cache.Evict(tree.Full, 64)
	s.ok(err)
	wantInt(t, "on the device", s.reuse(span(1, 20)...).DeviceLen, 20)
	wantInt(t, "on the device", s.reuse(span(101, 120)...).DeviceLen, 0)
	s.tick() // what the second one goes on from has gone
	s.ready(second, true)
	wantInt(t, "gone", int(s.cache.Stats().Storage.RevokedBaseGone), 1)
	s.ok(s.cache.Abort(second))
	runs := s.start(span(201, 260)...)
	s.compute(runs, 60)
	wantInt(t, "given up", int(s.cache.Stats().Storage.PinsGivenUp), 1)
	s.ok(s.cache.Abort(runs))
	var gone *BaseGoneError
	if err := s.cache.Admit(first); !errors.As(err, &gone) {
		t.Fatalf("%v", err)
	}
	s.ok(s.cache.Abort(first))
	s.quiet()
}

// BO-17: the device got it all before the answer came.
func TestFetchOfWhatTheDeviceGot(t *testing.T) {
	s := staging(t, true)
	s.warm(span(1, 16))
	r := s.ask(span(1, 17)...)
	s.serve(span(1, 16)...)
	s.sync()
	wantInt(t, "covered", int(s.cache.Stats().Storage.RevokedCovered), 1)
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 16, 0, 0)
	wantInt(t, "missed", r.Origin().StorageMissed, 0)
	s.over(r)
}

// One fetch a request: a second is ignored, also when the first is complete.
func TestOneHoldARequest(t *testing.T) {
	s := staging(t, false)
	r := s.held(8, 16)
	issued := s.cache.Stats().Storage.Issued
	s.ok(s.cache.Prefetch(r))
	wantInt(t, "issued", int(s.cache.Stats().Storage.Issued-issued), 0)
	s.ok(s.cache.Abort(r))
	wantInt(t, "dropped", int(s.cache.Stats().Storage.HoldsDropped), 1)
	s.quiet()
}

// What lies beside a component goes the same ways.
func TestStagingOfSidecars(t *testing.T) {
	s := shelves(t, tiers{buffer: true, set: components(true, false), page: 4, window: 8, stop: WaitComplete,
		device: PoolSizes{200, 200, 0}, host: PoolSizes{100, 40, 0},
		sidecars: []Sidecar{{Name: "indexer", Source: tree.Full}, {Name: "draft", Source: tree.SWA}}})
	s.serve(span(1, 16)...)
	beside := s.cache.Memory().Sidecars
	stamp := func(i int, list tree.Slots, check bool) {
		numbers, err := list.Numbers()
		s.ok(err)
		for at, slot := range numbers {
			want := uint64(1000*i + at)
			if got := beside[i].Device.Stamp(slot); check && got != want {
				t.Fatalf("%s at %d: %d, want %d", beside[i].Name, at, got, want)
			}
			beside[i].Device.SetStamp(slot, want)
		}
	}
	both := func(check bool) {
		full := s.reuse(span(1, 16)...).DeviceSlots
		window, err := s.cache.dual.Translate(full.Slice(8, 16))
		s.ok(err)
		stamp(0, full, check)
		stamp(1, window, check)
	}
	both(false)
	s.quiet()
	// Other slots than before, with something else in them.
	s.evict(tree.Full, 16, 16)
	other := s.start(span(101, 120)...)
	s.compute(other, 20)
	s.ok(s.cache.Abort(other))
	for i := range beside {
		for slot := range tree.Slot(200) {
			beside[i].Device.SetStamp(slot, 7)
		}
	}
	r := s.fetched(span(1, 17)...)
	s.origin(r, 0, 0, 16)
	both(true)
	s.over(r)
}
