// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// held serves 1 .. from and leaves a request waiting with what the store has of
// its prompt 1 .. to.
func (s *shelf) held(from, to int) *Request {
	s.t.Helper()
	s.warm(span(1, to))
	if from > 0 {
		s.serve(span(1, from)...)
		s.sync()
	}
	r := s.ask(span(1, to+1)...)
	s.sync()
	s.ready(r, true)
	if r.hold == nil || r.hold.matched != from || r.hold.fetched != to-from {
		s.t.Fatalf("held is %+v, want %d tokens after %d", r.hold, to-from, from)
	}
	return r
}

// splices wants the copy that an admission has queued.
func (s *shelf) splices(full, swa, superfluous int) {
	s.t.Helper()
	loads := s.cache.host.loads
	if len(loads) != 1 || loads[0].units[tree.Full] != full || loads[0].units[tree.SWA] != swa {
		s.t.Fatalf("queued are %+v, want a copy of %d and %d", loads, full, swa)
	}
	wantInt(s.t, "superfluous", s.cache.superfluous().Len(), superfluous)
}

// admitHeld admits a request without reading what it reuses.
func (s *shelf) admitHeld(r *Request) {
	s.t.Helper()
	s.ok(s.cache.Admit(r))
}

// over ends a request that runs, after its copy, and wants nothing left.
func (s *shelf) over(r *Request) {
	s.t.Helper()
	s.finishLoads(r)
	s.model.read(r, r.Len())
	s.prefill(r, 4)
	s.finish(r)
	s.quiet()
	wantInt(s.t, "superfluous", s.cache.superfluous().Len(), 0)
}

// X-BO-11: what was fetched goes behind what the device has.
func TestSplice(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	wantInt(t, "reserved", s.cache.storage.occupancy, 8)
	wantInt(t, "pinned", s.cache.tree.ProtectedSize(tree.Full), 8)
	s.admitHeld(r)
	s.splices(8, 8, 0)
	wantInt(t, "reused", r.Len(), 16)
	s.origin(r, 8, 0, 8)
	wantInt(t, "reserved by the copy", s.cache.storage.occupancy, 8)
	wantInt(t, "hits", int(s.node(span(1, 16)...).Hits), 0)
	var order *OrderError
	s.ok(s.cache.Extend(r, 1))
	if err := s.cache.Commit(r, 1); !errors.As(err, &order) || !s.cache.Loading(r) {
		t.Fatalf("computed on what is not there: %v", err)
	}
	id, err := s.cache.StartLoading()
	s.ok(err)
	s.cache.Engine().Complete(id)
	s.tick()
	wantInt(t, "staging", s.hostFree(tree.Full)+s.hostFree(tree.SWA), 140)
	wantInt(t, "reserved", s.cache.storage.occupancy, 0)
	s.over(r)
	if x := s.cache.Stats(); x.Storage.Splices != 1 || x.Storage.PrefetchedTokens != 8 || x.ReusedFromStorage != 8 {
		t.Fatalf("%+v", x)
	}
}

// overtake computes 1 .. from, to and more beside it, and drops the window of the
// positions between: they stay on the device with Full alone.
func (s *shelf) overtake(from, to int) {
	s.t.Helper()
	s.serve(span(1, to)...)
	s.serve(join(span(1, to), span(201, 208))...)
	s.reuse(span(1, from)...) // its window is the most recent
	s.evict(tree.SWA, to-from, to-from)
	if n := s.node(join(span(1, to), span(201, 208))...); n.ID == s.cache.tree.Root() {
		s.t.Fatalf("the wrong window has gone")
	}
}

// X-BO-12: the device got more of Full meanwhile, without its window.
func TestSpliceFillsTheWindow(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.overtake(8, 12)
	s.admitHeld(r)
	s.splices(4, 8, 0)
	wantInt(t, "reused", r.Len(), 16)
	s.origin(r, 12, 0, 4)
	wantInt(t, "missed", r.Origin().StorageMissed, 0)
	s.over(r)
}

// X-BO-13: with its window, whose slots are not needed again.
func TestSpliceSuperfluousWindow(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.serve(span(1, 12)...)
	before := s.free(tree.SWA)
	s.admitHeld(r)
	s.splices(4, 8, 4)
	wantInt(t, "SWA slots", s.free(tree.SWA), before-8)
	s.finishLoads(r)
	wantInt(t, "SWA slots after the copy", s.free(tree.SWA), before-4)
	s.over(r)
}

// X-BO-14: the base has shrunk, since nothing pinned it.
func TestSpliceWithoutItsBase(t *testing.T) {
	s := shelves(t, tiers{buffer: true, page: 4, stop: WaitComplete, device: PoolSizes{Full: 20}, host: PoolSizes{Full: 100}})
	s.warm(span(1, 16))
	s.serve(span(1, 4)...)
	s.serve(span(1, 12)...)
	r := s.ask(span(1, 17)...)
	s.sync()
	s.ready(r, true)
	wantInt(t, "pinned", s.books().pinned, 0) // more than all pins may
	s.evict(tree.Full, 8, 8)
	var gone *BaseGoneError
	if err := s.cache.Admit(r); !errors.As(err, &gone) || gone.Request != r.id {
		t.Fatalf("%v", err)
	}
	wantInt(t, "shrunk", int(s.cache.Stats().Storage.HoldsShrunk), 1)
	wantInt(t, "host", s.hostFree(tree.Full), 100)
	s.idle()
	s.ok(s.cache.Prefetch(r))
	s.sync()
	s.ready(r, true)
	s.admit(r)
	s.origin(r, 4, 0, 12)
	s.ok(s.cache.Abort(r))
	s.quiet()
}

// X-BO-15: the device has all of it.
func TestSpliceCovered(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.serve(span(1, 16)...)
	s.admit(r)
	s.origin(r, 16, 0, 0)
	wantInt(t, "missed", r.Origin().StorageMissed, 0)
	wantInt(t, "covered", int(s.cache.Stats().Storage.HoldsCovered), 1)
	wantInt(t, "loads", len(s.cache.host.loads), 0)
	s.over(r)
}

// X-BO-15b: all of Full, but not its window.
func TestSpliceOfAWindow(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.overtake(8, 16)
	before := s.free(tree.Full)
	s.admitHeld(r)
	s.splices(0, 8, 0)
	wantInt(t, "Full slots", s.free(tree.Full), before)
	wantInt(t, "reused", r.Len(), 16)
	s.origin(r, 16, 0, 0)
	s.over(r)
}

// A window that was fetched lets a match go on behind it, to what the device had:
// that came from no host.
func TestSpliceOpensTheWayBehind(t *testing.T) {
	s := staging(t, true)
	s.warm(span(1, 16))
	s.serve(span(1, 8)...)
	s.sync()
	r := s.ask(join(span(1, 16), span(201, 205))...)
	s.sync()
	s.ready(r, true)
	s.overtake(8, 16)
	s.admitHeld(r)
	s.splices(0, 8, 0)
	wantInt(t, "reused", r.Len(), 20)
	s.origin(r, 20, 0, 0)
	wantInt(t, "from the host", int(s.cache.Stats().ReusedFromHost), 0)
	s.over(r)
}

// X-BO-15c: the device has no room yet; what was fetched stays, but not for ever.
func TestSpliceIsDeferred(t *testing.T) {
	for _, passes := range []int{1, mostDeferrals} {
		s := staging(t, true)
		r := s.held(8, 16)
		other := s.start(span(301, 302)...) // else nothing could change
		s.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return id == tree.SWA && !host }}
		before := s.free(tree.Full)
		for i := range passes {
			err := s.cache.Admit(r)
			s.check()
			if i == mostDeferrals-1 {
				s.ok(err)
				break
			}
			wantExhausted(t, err, "swa")
			wantInt(t, "Full slots", s.free(tree.Full), before)
			if r.hold == nil || r.state != Waiting || s.books().pinned != 8 {
				t.Fatalf("%v, holds %+v", r.state, r.hold)
			}
		}
		s.cache.host.faults = nil
		want := 8
		if passes == 1 {
			s.admitHeld(r)
			want = 16
		}
		wantInt(t, "reused", r.Len(), want)
		x := s.cache.Stats().Storage
		wantInt(t, "deferred", int(x.DeferredSplices), passes)
		wantInt(t, "given up", int(x.HoldsDeviceCapacity), passes/mostDeferrals)
		s.ok(s.cache.Abort(other))
		s.over(r)
	}
}

// Where nobody runs there is no later: what finds no room is dropped, after the
// pins of others.
func TestSpliceAlone(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return id == tree.SWA && !host }}
	s.admit(r)
	s.cache.host.faults = nil
	wantInt(t, "reused", r.Len(), 8)
	wantInt(t, "given up", int(s.cache.Stats().Storage.HoldsDeviceCapacity), 1)
	s.over(r)

	s = shelves(t, tiers{buffer: true, page: 4, stop: WaitComplete, device: PoolSizes{Full: 20}, host: PoolSizes{Full: 100}})
	s.warm(span(1, 16), span(101, 112))
	s.serve(span(101, 108)...)
	s.sync()
	r, other := s.ask(span(1, 17)...), s.ask(span(101, 113)...)
	s.sync()
	s.ready(r, true)
	s.ready(other, true)
	wantInt(t, "pinned", s.books().pinned, 8)
	s.admit(r)
	s.origin(r, 0, 0, 16)
	var gone *FetchingError
	if err := s.cache.Admit(other); !errors.As(err, &gone) {
		t.Fatalf("%v", err)
	}
	s.ok(s.cache.Abort(other))
	s.over(r)
}

// X-BO-15c: really no room, since everything is locked; and a quota.
func TestSpliceWithoutRoom(t *testing.T) {
	s := shelves(t, tiers{buffer: true, page: 4, stop: WaitComplete, device: PoolSizes{Full: 24}, host: PoolSizes{Full: 100}})
	r := s.held(8, 16)
	other := s.start(span(101, 112)...)
	s.compute(other, 12)
	wantExhausted(t, s.cache.Admit(r), "full")
	s.check()
	s.ok(s.cache.Abort(other))
	wantExhausted(t, s.cache.AdmitWithin(r, -1+8), "full") // the pin has locked the base
	s.ok(s.cache.AdmitWithin(r, 8))
	wantInt(t, "reused", r.Len(), 16)
	s.over(r)
}

// X-BO-16: a sequence that is shorter than a window is its own window.
func TestSpliceAtTheRoot(t *testing.T) {
	s := staging(t, true)
	s.warm(span(1, 4))
	r := s.ask(span(1, 5)...)
	s.sync()
	s.ready(r, true)
	wantInt(t, "staged window", r.hold.swa.Len(), 4)
	s.admit(r)
	s.origin(r, 0, 0, 4)
	wantInt(t, "window", s.node(span(1, 4)...).Components[tree.SWA].Device.Len(), 4)
	s.over(r)
}

// X-BO-17: a short window whose head is on the device. If that has gone, what was
// fetched is of no use.
func TestSpliceOfAShortWindow(t *testing.T) {
	for _, gap := range []bool{false, true} {
		s := staging(t, true)
		r := s.held(8, 12)
		wantInt(t, "staged window", r.hold.swa.Len(), 4)
		if gap {
			s.evict(tree.SWA, 8, 8)
			var gone *BaseGoneError
			if err := s.cache.Admit(r); !errors.As(err, &gone) {
				t.Fatalf("%v", err)
			}
			s.check()
		}
		s.admit(r)
		want := 12
		if gap {
			want = 0
		}
		wantInt(t, "reused", r.Len(), want)
		s.over(r)
	}
}

// C-029: somebody else has published the span, or a part of it, before it is
// consumed: nothing is copied to slots that come back before the copy's end.
func TestSpliceIntoWhatIsThere(t *testing.T) {
	for _, published := range []int{8, 6, 4} {
		s := shelves(t, tiers{buffer: true, stop: WaitComplete, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
		r := s.held(4, 8)
		s.serve(span(1, published)...)
		theirs := s.reuse(span(1, published)...).DeviceSlots
		frees := s.cache.Stats().DuplicatesFreed
		s.admitHeld(r)
		wantInt(t, "freed", int(s.cache.Stats().DuplicatesFreed-frees), 0)
		if published == 8 {
			wantInt(t, "copies", len(s.cache.host.loads), 0)
		} else {
			s.splices(8-published, 0, 0)
		}
		if got := r.Row(); r.Len() != 8 || !got.Slice(0, published).Equal(theirs) {
			t.Fatalf("%d reused in %v, theirs are %v", r.Len(), got, theirs)
		}
		third := s.start(span(201, 204)...)
		s.compute(third, 4)
		s.finishLoads(r)
		s.model.read(third, 4)
		s.ok(s.cache.Abort(third))
		s.over(r)
	}
}

// C-029: the request goes while its copy is under way. The slots come back after
// the copy.
func TestSpliceOutlivesItsRequest(t *testing.T) {
	for _, started := range []bool{true, false} {
		s := staging(t, true)
		r := s.held(8, 16)
		s.serve(span(1, 12)...)
		s.admitHeld(r)
		if started {
			_, err := s.cache.StartLoading()
			s.ok(err)
		}
		s.ok(s.cache.Abort(r))
		_, err := s.cache.Evict(tree.Full, 200)
		s.ok(err)
		wantInt(t, "Full slots kept by the copy", 200-s.free(tree.Full), 16)
		other := s.start(span(201, 240)...)
		s.compute(other, 40)
		_, err = s.cache.StartLoading()
		s.ok(err)
		s.sync()
		s.model.read(other, 40)
		s.ok(s.cache.Abort(other))
		again := s.start(span(1, 17)...)
		wantInt(t, "reused", again.Len(), 16)
		s.over(again)
	}
}

// A splice that fails takes what it brought off the device, and the request with
// it; nothing stays locked, pinned or staged.
func TestSpliceFails(t *testing.T) {
	s := staging(t, true)
	r := s.held(8, 16)
	s.overtake(8, 12)
	other := s.ask(span(1, 17)...) // pins the same
	s.sync()
	s.ready(other, true)
	s.admitHeld(r)
	s.cache.host.faults = &faults{copy: func(pool.Copy) error { return errors.New("injected") }}
	var lost *LoadError
	if err := s.cache.WaitLoads(t.Context(), r); !errors.As(err, &lost) || r.State() != Lost {
		t.Fatalf("%v, %v", err, r.State())
	}
	s.check()
	s.cache.host.faults = nil
	s.ok(s.cache.Abort(r))
	wantInt(t, "left of the span", s.reuse(span(1, 16)...).DeviceLen, 8)
	s.admit(other)
	wantInt(t, "reused by the next", other.Len(), 16)
	s.over(other)
}

// A reset gives back what a splice has on both sides.
func TestResetDuringASplice(t *testing.T) {
	for _, started := range []bool{true, false} {
		s := staging(t, true)
		r := s.held(8, 16)
		s.serve(span(1, 12)...)
		waiting := s.ask(span(1, 17)...)
		s.sync()
		s.ready(waiting, true)
		s.serve(span(301, 308)...)
		s.tick()
		s.serve(span(401, 408)...)
		s.flown("full 8", "swa 8")
		s.backlogged("full 8", "swa 8")
		s.admitHeld(r)
		s.splices(4, 8, 4)
		if started {
			_, err := s.cache.StartLoading()
			s.ok(err)
		}
		s.ok(s.cache.Reset())
		s.ok(s.cache.Abort(r))
		s.ok(s.cache.Abort(waiting))
		s.quiet()
		wantInt(t, "device", s.free(tree.Full)+s.free(tree.SWA), 400)
	}
}

// What a copy has not brought yet is not written to the store, when an insert of
// somebody else who had it asks for that.
func TestNoWriteOfWhatIsBeingLoaded(t *testing.T) {
	s := staging(t, true)
	s.warm(span(1, 8))
	other := s.start(span(1, 8)...)
	s.compute(other, 8)
	r := s.ask(span(1, 9)...)
	s.sync()
	s.ready(r, true)
	s.ok(s.cache.ClearStorage(t.Context()))
	s.admitHeld(r)
	s.splices(8, 8, 0)
	s.finish(other)
	s.backlogged("full 8", "swa 8")
	s.tick()
	s.flown()
	s.finishLoads(r)
	s.sync()
	wantInt(t, "stored", s.pagesOf(tree.Full), 2)
	s.ok(s.cache.Abort(r))
	s.evict(tree.Full, 8, 8)
	r = s.fetched(span(1, 9)...) // what is stored is true
	s.origin(r, 0, 0, 8)
	s.over(r)
}
