// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func hybrid(grid, states, buffers int) Options {
	return Options{
		Tree:         tree.Options{Components: components(false, true), CheckpointGrid: grid},
		Pools:        PoolSizes{Full: 2000, Mamba: states},
		TrackBuffers: buffers,
	}
}

// X-MC-1 to X-MC-3, and MC-3's interval.
func TestXMC1To3TrackPoints(t *testing.T) {
	c, err := New(hybrid(64, 10, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ s, e, branch, want int }{
		{0, 200, 0, 192}, {64, 100, 0, 0}, {64, 300, 128, 128},
		{128, 300, 128, 256}, {64, 127, 128, 0}, {0, 64, 0, 64}, {0, 63, 0, 0},
	} {
		wantInt(t, "track point", c.trackPoint(&Request{mambaBranch: x.branch}, x.s, x.e), x.want)
	}
	for _, x := range []struct{ chunk, page, want int }{{64, 48, 192}, {64, 64, 64}, {64, 256, 256}, {64, 1, 64}, {0, 0, 0}} {
		wantInt(t, "X-MC-6 grid", Grid(x.chunk, x.page), x.want)
	}
	c.opts.TrackInterval = 48
	wantInt(t, "decode grid", c.decodeGrid(), 192)
}

// X-MC-4 and X-MC-5: the branch point comes with the match, and leads the
// request to save its state there.
func TestXMC4And5Branch(t *testing.T) {
	for _, x := range []struct{ shared, branch int }{{200, 192}, {100, 0}} {
		m := newModel(t, hybrid(64, 20, 2))
		a := m.start(span(1, 256)...)
		m.compute(a, 64)
		m.ok(m.cache.CacheUnfinished(a))
		m.compute(a, 192)
		m.ok(m.cache.CacheUnfinished(a)) // states at 64 and 256
		m.finish(a)
		b := m.start(join(span(1, x.shared), span(1001, 1200))...)
		wantInt(t, "reused", b.Len(), 64)
		if _, at := b.Branches(); at != x.branch {
			t.Fatalf("shared %d: branch %d, want %d", x.shared, at, x.branch)
		}
		m.prefill(b, 200)
		m.finish(b)
		want := 64
		if x.branch > 0 {
			want = x.branch
			wantInt(t, "inserted", m.cache.Stats().BranchesInserted[tree.Mamba], 1)
		}
		wantInt(t, "next", m.run(200, join(span(1, x.shared), span(2001, 2010))...), want)
	}
}

// X-MC-7 and X-MC-8: which buffer goes to the tree, and what comes back.
func TestXMC7And8Donation(t *testing.T) {
	m := newModel(t, hybrid(4, 6, 2))
	r := m.start(span(1, 10)...)
	k := &r.checkpoint
	state, first, second := k.state, k.buffers[0], k.buffers[1]
	m.compute(r, 4)
	if k.last != 0 || k.next != 1 || k.length != 4 {
		t.Fatalf("%+v", k)
	}
	m.ok(m.cache.CacheUnfinished(r))
	if k.buffers[0] == first || k.buffers[1] != second || k.length != none {
		t.Fatalf("%+v", k)
	}
	value, err := m.cache.tree.ComponentDeviceValue(r.node, tree.Mamba)
	m.ok(err)
	if !value.Equal(tree.SlotsOf(first)) {
		t.Fatalf("the tree has %v, want %d", value, first)
	}
	m.compute(r, 4)
	if k.last != 1 || k.next != 0 {
		t.Fatalf("%+v", k)
	}
	m.finish(r)
	wantInt(t, "free", m.free(tree.Mamba), 4)
	if m.cache.states.Allocated(state) || !m.cache.states.Allocated(first) || !m.cache.states.Allocated(second) {
		t.Fatal("the wrong states came back")
	}
}

func TestXMC9PathCap(t *testing.T) {
	o := hybrid(64, 20, 2)
	o.Tree.MaxStatesPerPath = 2
	m := newModel(t, o)
	m.run(64, span(1, 192)...)
	wantInt(t, "states", m.cache.Usage(tree.Mamba).Evictable, 2)
	wantInt(t, "dropped", int(m.cache.Stats().PathStatesDropped), 1)
	wantInt(t, "reuse", m.reuse(span(1, 100)...).DeviceLen, 0)
	wantInt(t, "reuse", m.reuse(span(1, 150)...).DeviceLen, 128)
}

// X-RQ-8 to X-RQ-10: a chunk is cached up to its checkpoint.
func TestXRQ8To10Checkpoints(t *testing.T) {
	m := newModel(t, hybrid(64, 20, 2))
	r := m.start(span(1, 120)...)
	m.compute(r, 100)
	m.ok(m.cache.CacheUnfinished(r))
	wantInt(t, "protected", r.Protected(), 64)
	if _, _, ok := r.Tracked(); ok {
		t.Fatal("a checkpoint is left")
	}
	wantInt(t, "free", m.free(tree.Full), 1900)
	other := m.start(span(1001, 1064)...) // an equal prompt, cached by two
	twin := m.start(span(1001, 1064)...)
	for _, x := range []*Request{other, twin} {
		m.compute(x, 64)
		m.ok(m.cache.CacheUnfinished(x))
	}
	wantInt(t, "X-RQ-10 existing", int(m.cache.Stats().StatesExisting), 1)
	m.finish(other)
	m.finish(twin)
	m.compute(r, 20)
	free := m.free(tree.Full)
	m.finish(r)
	wantInt(t, "X-RQ-9 free", m.free(tree.Full), free+56)
	wantInt(t, "states", m.free(tree.Mamba), 18)
	wantInt(t, "reuse", m.reuse(span(1, 120)...).DeviceLen, 64)
}

// MC-5: output that is cut off takes the checkpoint that is ahead with it; the
// other buffer's may still do.
func TestMC5CutBelowTheCheckpoint(t *testing.T) {
	for _, x := range []struct{ buffers, cut, want int }{{2, 13, 12}, {2, 11, 8}, {1, 13, 0}, {2, 16, 16}, {2, 7, 0}} {
		o := hybrid(4, 6, x.buffers)
		m := newModel(t, o)
		r := m.start(1, 2, 3)
		m.compute(r, 3)
		m.decode(r, span(4, 16)...)
		if x.cut == 11 {
			m.decode(r) // checkpoints at 12 and 16: none is usable at 11
			x.want = 0
		}
		m.ok(m.cache.FinishAt(r, x.cut, true))
		wantInt(t, "reuse", m.reuse(span(1, 30)...).DeviceLen, x.want)
		wantInt(t, "states", m.free(tree.Mamba)+m.cache.Usage(tree.Mamba).Evictable, 6)
	}
}

// X-RQ-11, and C-054: room for the fresh state is made by evicting the only
// cached one, whose node is on the path of the request.
func TestXRQ11C054MakingRoomForAState(t *testing.T) {
	for _, locked := range []bool{true, false} {
		m := newModel(t, hybrid(4, 3, 1))
		wantInt(t, "first", m.run(4, span(1, 4)...), 0)
		r := m.start(span(1, 8)...) // takes the last two states
		wantInt(t, "reused", r.Len(), 4)
		if !locked {
			// Given back, as after an early release: the state may go now.
			m.ok(m.cache.unlock(r))
			m.ok(m.cache.lock(r, r.node, tree.SetOf(tree.Mamba)))
		}
		m.compute(r, 4)
		m.ok(m.cache.CacheUnfinished(r))
		if locked {
			wantInt(t, "not kept", int(m.cache.Stats().StatesNotKept), 1)
			wantInt(t, "protected", r.Protected(), 4)
		} else {
			wantInt(t, "protected", r.Protected(), 8)
			wantInt(t, "evicted states", m.cache.Stats().Evicted[tree.Mamba], 1)
			wantInt(t, "state of 4 is gone", m.reuse(1, 2, 3, 4, 99).DeviceLen, 0)
		}
		m.finish(r) // the finish needs no fresh state
		wantInt(t, "Full", m.cache.Usage(tree.Full).Evictable, 8)
		wantInt(t, "reuse", m.reuse(span(1, 8)...).DeviceLen, 8)
	}
}

// X-RQ-12 and C-008: no state to be had. Nothing is cached this time, nothing
// is lost, and the next chunk is cached.
func TestXRQ12C008NoStateToBeHad(t *testing.T) {
	m := newModel(t, hybrid(4, 5, 1))
	m.run(4, span(101, 104)...)
	holder := m.start(span(101, 110)...) // locks the only cached state
	wantInt(t, "reused", holder.Len(), 4)
	r := m.start(span(1, 12)...)
	wantInt(t, "free", m.free(tree.Mamba), 0)
	m.compute(r, 4)
	row := r.Row()
	m.ok(m.cache.CacheUnfinished(r))
	wantInt(t, "not kept", int(m.cache.Stats().StatesNotKept), 1)
	wantInt(t, "protected", r.Protected(), 0)
	if n, _, ok := r.Tracked(); !ok || n != 4 || !r.Row().Equal(row) {
		t.Fatal("the request lost something")
	}
	wantInt(t, "reuse", m.reuse(span(1, 12)...).DeviceLen, 0)
	wantInt(t, "in the tree", m.reuse(span(1, 12)...).FullHitLen, 0)
	m.ok(m.cache.CacheUnfinished(r)) // the same again
	wantInt(t, "not kept", int(m.cache.Stats().StatesNotKept), 2)
	_, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 4)})
	m.ok(err)
	m.finish(holder)
	m.compute(r, 4)
	m.ok(m.cache.CacheUnfinished(r))
	wantInt(t, "protected", r.Protected(), 8)
	m.prefill(r, 4)
	m.finish(r)
	wantInt(t, "reuse", m.reuse(span(1, 12)...).DeviceLen, 12)
}

// RQ-5: an admission that gets no states leaves nothing over.
func TestRQ5AdmissionWithoutStates(t *testing.T) {
	m := newModel(t, hybrid(4, 5, 2))
	m.run(4, span(1, 4)...)
	a := m.start(span(11, 14)...)
	b, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 8)})
	m.ok(err)
	wantExhausted(t, m.cache.Admit(b), "mamba")
	m.check()
	wantInt(t, "locked", m.cache.Usage(tree.Full).Protected, 0)
	wantInt(t, "nothing was evicted for it", m.cache.Stats().Evicted[tree.Mamba], 0)
	m.ok(m.cache.Abort(a))
	m.admit(b)
	wantInt(t, "reused", b.Len(), 4)
	m.ok(m.cache.Abort(b))
}

// C-056: checkpoints from the grid on, and the nearest one is used.
func TestC056NearestCheckpoint(t *testing.T) {
	m := newModel(t, hybrid(8, 30, 2))
	turn1 := span(1, 40)
	turn2 := join(span(1, 38), span(101, 110))
	turn3 := join(turn2[:30], span(201, 210))
	wantInt(t, "turn 1", m.run(8, turn1...), 0)
	wantInt(t, "turn 2", m.run(8, turn2...), 32)
	wantInt(t, "turn 3", m.run(8, turn3...), 24)
	wantInt(t, "tiny", m.run(8, span(501, 509)...), 0)
	wantInt(t, "tiny again", m.run(8, span(501, 509)...), 8)
}

// C-075: the state that goes to the tree is that of the key's end. Grid 8 is
// the common multiple of the page and of the 2 at which states exist.
func TestC075StateAndKeyAgree(t *testing.T) {
	o := hybrid(Grid(2, 8), 20, 2)
	o.Tree.PageSize = 8
	m := newModel(t, o)
	reuse := func(want int) {
		t.Helper()
		wantInt(t, "warm", m.reuse(span(1, 40)...).DeviceLen, want)
		r := m.start(span(1, 40)...) // reads all that it reuses
		m.ok(m.cache.Abort(r))
	}
	wantInt(t, "cold", m.run(15, span(1, 15)...), 0)
	reuse(8)
	wantInt(t, "16", m.run(16, span(1, 16)...), 8)
	reuse(16)
	r := m.start(span(1, 17)...)
	m.prefill(r, 17)
	m.decode(r, span(18, 21)...)
	m.finish(r)
	reuse(16)
	// A grid that is no multiple of the page is refused.
	o.Tree.CheckpointGrid = 2
	if _, err := New(o); err == nil {
		t.Fatal("a grid inside the page is accepted")
	}
}

// A window that is kept for a checkpoint which cannot be cached gives way when
// the only request could not go on otherwise, in prefill and in decode.
func TestCheckpointGivesWay(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 16},
		Pools: PoolSizes{Full: 300, SWA: 14, Mamba: 2}, TrackBuffers: 1, TrackInterval: 64,
	}
	m := newModel(t, o)
	r := m.start(span(1, 60)...)
	for r.Len() < 60 {
		n := m.cache.MaxExtend(r, 60-r.Len())
		if n == 0 {
			t.Fatalf("stuck at %d: %+v", r.Len(), m.cache.Usage(tree.SWA))
		}
		m.compute(r, n)
		m.ok(m.cache.CacheUnfinished(r)) // never: no state is free
	}
	wantInt(t, "protected", r.Protected(), 0)
	before := m.cache.Stats().StatesNotKept
	if before == 0 {
		t.Fatal("nothing was counted")
	}
	m.decode(r, span(61, 160)...)
	if m.cache.Stats().StatesNotKept == before {
		t.Fatal("decode dropped no checkpoint")
	}
	m.finish(r)
	wantInt(t, "SWA", m.cache.Available(tree.SWA), 14)
}

// With another request running, the shortage may pass: the checkpoint stays.
func TestCheckpointStaysWhileOthersRun(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 16},
		Pools: PoolSizes{Full: 300, SWA: 20, Mamba: 4}, TrackBuffers: 1,
	}
	m := newModel(t, o)
	other := m.start(span(1001, 1008)...)
	m.compute(other, 8)
	r := m.start(span(1, 60)...)
	m.compute(r, 12)
	m.ok(m.cache.CacheUnfinished(r))
	m.compute(r, 4)
	m.ok(m.cache.CacheUnfinished(r)) // no state is free for the one at 16
	m.compute(r, m.cache.MaxExtend(r, 60))
	wantInt(t, "max", m.cache.MaxExtend(r, 60), 0)
	wantExhausted(t, m.cache.Extend(r, 1), "swa")
	if n, _, ok := r.Tracked(); !ok || n != 16 {
		t.Fatal("the checkpoint is gone")
	}
	m.ok(m.cache.Abort(other))
	m.ok(m.cache.CacheUnfinished(r)) // now there is one
	wantInt(t, "protected", r.Protected(), 16)
	m.ok(m.cache.Abort(r))
}

// An insert that is cut short takes the longest checkpoint that it reaches, and
// the state of that one: one token more in a state than in its key is wrong.
func TestCheckpointOfACutInsert(t *testing.T) {
	k := checkpoint{lengths: [2]int{128, 64}, length: 128, last: 0}
	for _, x := range []struct{ n, length, buffer int }{
		{200, 128, 0}, {128, 128, 0}, {127, 64, 1}, {64, 64, 1}, {63, 0, none},
	} {
		if length, buffer := k.upTo(x.n); length != x.length || buffer != x.buffer {
			t.Errorf("%d tokens: the state of %d in buffer %d, want %d in %d", x.n, length, buffer, x.length, x.buffer)
		}
	}
	k = checkpoint{lengths: [2]int{none, none}, length: none}
	if length, buffer := k.upTo(100); length != 0 || buffer != none {
		t.Errorf("without a checkpoint: %d in buffer %d", length, buffer)
	}
}
