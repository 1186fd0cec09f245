// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// C-030 on the device: exactly what is missing is evicted, in each pool.
func TestC030ExactlyTheShortfall(t *testing.T) {
	build := func(o Options) *model {
		m := newModel(t, o)
		m.run(2, 1, 2)
		m.run(8, span(11, 18)...)
		return m
	}
	for _, free := range []int{6, 8, 9} {
		want := max(8-free, 0)
		o := fullOnly(1, 10+free)
		m := build(o)
		r := m.start(span(21, 28)...)
		m.ok(m.cache.Extend(r, 8))
		wantInt(t, "evicted Full", m.cache.Stats().Evicted[tree.Full], want)
		wantInt(t, "the node of 8", m.reuse(span(11, 18)...).DeviceLen, 8)

		o = Options{Tree: tree.Options{Components: components(true, false), SlidingWindow: 8}, Pools: PoolSizes{Full: 100, SWA: 10 + free}}
		m = build(o)
		r = m.start(span(21, 28)...)
		m.ok(m.cache.Extend(r, 8))
		wantInt(t, "evicted SWA", m.cache.Stats().Evicted[tree.SWA], want)
		wantInt(t, "the node of 8", m.reuse(span(11, 18)...).DeviceLen, 8)
	}
	// States: 5 of 6 are cached, 1 is free, 2 are needed: 1 goes.
	m := newModel(t, hybrid(4, 6, 1))
	for k := range 5 {
		m.run(4, span(100*k, 100*k+3)...)
	}
	m.start(span(1000, 1003)...)
	wantInt(t, "evicted states", m.cache.Stats().Evicted[tree.Mamba], 1)
}

// X-CT-5 and the failure rule: an Extend that cannot succeed evicts nothing.
func TestExtendFailsWithoutEvicting(t *testing.T) {
	m := newModel(t, fullOnly(1, 20))
	m.run(8, span(11, 18)...)
	a := m.start(span(1, 10)...)
	m.ok(m.cache.Extend(a, 10))
	b := m.start(span(31, 45)...)
	wantInt(t, "max", m.cache.MaxExtend(b, 15), 10)
	err := m.cache.Extend(b, 11)
	wantExhausted(t, err, "full")
	wantInt(t, "evicted", m.cache.Stats().Evicted[tree.Full], 0)
	m.ok(m.cache.Extend(b, 10))
	wantInt(t, "evicted", m.cache.Stats().Evicted[tree.Full], 8)
	wantInt(t, "max", m.cache.MaxExtend(b, 15), 0)
	n, err := m.cache.Decode(a, span(1, 3))
	wantInt(t, "decoded", n, 0)
	wantOrder(t, err, Running) // a's prompt is not computed
	m.commit(a, 10)
	n, err = m.cache.Decode(a, span(1, 3))
	wantInt(t, "decoded", n, 0)
	wantExhausted(t, err, "full")
	m.ok(m.cache.Abort(b))
	n, err = m.cache.Decode(a, span(1, 3))
	wantInt(t, "decoded", n, 3)
	m.ok(err)
}

// C-006: under plain recency the idle branch may be lost, but the loss is seen,
// and exactly what was asked for goes.
func TestC006WindowEviction(t *testing.T) {
	o := Options{Tree: tree.Options{Components: components(true, false), SlidingWindow: 4}, Pools: PoolSizes{Full: 200, SWA: 24}, KeepOutOfWindow: true}
	m := newModel(t, o)
	m.run(4, span(1, 12)...)
	m.run(4, span(101, 112)...)
	freed, err := m.cache.Evict(tree.SWA, 12)
	m.ok(err)
	wantInt(t, "freed", freed[tree.SWA], 12)
	a, b := m.reuse(span(1, 12)...), m.reuse(span(101, 112)...)
	wantInt(t, "B", b.DeviceLen, 12)
	// The last node of A was a leaf: it went whole, the others lost their window.
	wantInt(t, "A's Full", a.FullHitLen, 8)
	if a.DeviceLen != 0 && a.DeviceLen != 12 {
		t.Fatalf("A %d", a.DeviceLen)
	}
	if a.DeviceLen == 0 && (a.Explanation.LimitedBy != tree.SWA || a.Explanation.Reason != tree.ReasonWindowTombstoned) {
		t.Fatalf("the loss is not told: %+v", a.Explanation)
	}
}

// C-079: prompts alone and at once, with and without caching, in all window
// pools from one that is hardly a window up. Each ends, or is refused at once
// with the size it needs.
func TestC079NeverStuck(t *testing.T) {
	for _, page := range []int{1, 2, 4} {
		for _, mamba := range []bool{false, true} {
			for _, eagle := range []bool{false, true} {
				for _, disabled := range []bool{false, true} {
					step := page
					if mamba || eagle || disabled {
						step = 3 * page // the plain case has all sizes
					}
					for size := 4 + page; size <= 40; size += step {
						if eagle && mamba {
							continue
						}
						o := Options{
							Tree:     tree.Options{Components: components(true, mamba), PageSize: page, SlidingWindow: 4, Eagle: eagle, CheckpointGrid: 2 * page},
							Pools:    PoolSizes{Full: 400, SWA: size, Mamba: 12},
							Disabled: disabled,
						}
						name := fmt.Sprintf("page %d, mamba %v, eagle %v, disabled %v, pool %d", page, mamba, eagle, disabled, size)
						m := newModel(t, o)
						starve(t, name, m, 1, 1000)
						starve(t, name, m, 4, 2000)
						starve(t, name, m, 4, 2000) // prompts that are cached in part
					}
				}
			}
		}
	}
}

// starve runs n prompts of 64 tokens at once, oldest first, as a scheduler
// would: a chunk shrinks to what is to be had; if none of the requests gets
// anything, the youngest starts over.
func starve(t *testing.T, name string, m *model, n, first int) {
	t.Helper()
	var waiting, running []*Request
	fresh := func(i int) *Request {
		shared := span(first, first+19+i)
		r, err := m.cache.NewRequest(RequestParams{Tokens: join(shared, span(first+100*i+100, first+100*i+143-i))})
		var large *TooLargeError
		if errors.As(err, &large) {
			if large.Component != tree.SWA || large.Needed <= large.Size || large.Size >= m.cache.windowNeed() {
				t.Fatalf("%s: %v", name, err)
			}
			return nil
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return r
	}
	for i := range n {
		r := fresh(i)
		if r == nil {
			return
		}
		waiting = append(waiting, r)
	}
	index := map[*Request]int{}
	for i, r := range waiting {
		index[r] = i
	}
	progress := true
	for pass := 0; len(waiting)+len(running) > 0; pass++ {
		if pass > 3000 {
			t.Fatalf("%s: no end in sight: %+v", name, m.cache.Usage(tree.SWA))
		}
		// A request that was sent back must not take its lock again before the
		// others have moved.
		if len(waiting) > 0 && (progress || len(running) == 0) {
			if err := m.cache.Admit(waiting[0]); err == nil {
				running, waiting = append(running, waiting[0]), waiting[1:]
				if r := running[len(running)-1]; m.cache.mamba && r.Len() == 0 {
					m.state[r.StateSlot()] = m.prefix(r, 0)
				}
			} else if !momentary(err) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		progress = false
		var still []*Request
		for _, r := range running {
			moved, done := turn(t, name, m, r)
			progress = progress || moved
			if !done {
				still = append(still, r)
			}
		}
		running = still
		m.check()
		if !progress && len(running) > 0 {
			if len(running) == 1 {
				t.Fatalf("%s: alone and stuck at %d: %+v", name, running[0].Len(), m.cache.Usage(tree.SWA))
			}
			last := running[len(running)-1]
			if err := m.cache.Abort(last); err != nil {
				t.Fatal(err)
			}
			again := fresh(index[last])
			index[again] = index[last]
			running, waiting = running[:len(running)-1], append(waiting, again)
		}
	}
	for id, size := range []int{400, m.cache.opts.Pools.SWA / m.cache.page * m.cache.page} {
		wantInt(t, name+": back at the end", m.cache.Available(tree.Component(id)), size)
	}
}

// turn gives a request a chunk of 16 at most, or a generated token.
func turn(t *testing.T, name string, m *model, r *Request) (moved, done bool) {
	t.Helper()
	if rest := r.PromptLen() - r.Len(); rest > 0 {
		n := m.cache.MaxExtend(r, min(rest, 16))
		if n == 0 {
			return false, false
		}
		if err := m.cache.Extend(r, n); err != nil {
			t.Fatalf("%s: MaxExtend promised %d: %v", name, n, err)
		}
		m.commit(r, n)
		if err := m.cache.CacheUnfinished(r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.cache.opts.Disabled && m.cache.page == 1 {
			if held := r.Allocated() - r.Frontier(); held > 4 {
				t.Fatalf("%s: %d SWA slots are held between chunks", name, held)
			}
		}
		return true, false
	}
	if r.Len() >= r.PromptLen()+12 {
		if err := m.cache.Finish(r, true); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return true, true
	}
	at := r.Len()
	n, err := m.cache.Decode(r, span(7, 7))
	if err != nil && !momentary(err) {
		t.Fatalf("%s: %v", name, err)
	}
	if n > 0 {
		m.write(r, at, at+1)
		if length, slot, ok := r.Tracked(); ok && length == at+1 {
			m.state[slot] = m.prefix(r, length)
		}
	}
	return n > 0, false
}

// A lock on a long node that would fill the SWA pool is given up for a start
// from nothing, since nobody else could ever make room.
func TestAdmitGivesUpCrampingReuse(t *testing.T) {
	o := Options{Tree: tree.Options{Components: components(true, false), SlidingWindow: 4}, Pools: PoolSizes{Full: 200, SWA: 25}}
	m := newModel(t, o)
	first := m.start(span(1, 24)...)
	m.compute(first, 24)
	m.finish(first) // all 24 in one go: the window and a node of 20
	r := m.start(join(span(1, 22), span(101, 120))...)
	wantInt(t, "reused", r.Len(), 0)
	wantInt(t, "given up", int(m.cache.Stats().ReuseGivenUp), 1)
	wantInt(t, "Full-only", r.Explanation().FullOnly, 22)
	for r.Len() < r.PromptLen() {
		n := m.cache.MaxExtend(r, 16)
		if n = min(n, r.PromptLen()-r.Len()); n == 0 {
			t.Fatalf("stuck at %d", r.Len())
		}
		m.compute(r, n)
		m.ok(m.cache.CacheUnfinished(r))
	}
	m.finish(r)
}

func TestTooLarge(t *testing.T) {
	m := newModel(t, fullOnly(4, 18)) // 16 are usable
	var large *TooLargeError
	_, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 17)})
	if !errors.As(err, &large) || large.Needed != 20 || large.Size != 16 || large.Component != tree.Full {
		t.Fatal(err)
	}
	if _, err := m.cache.NewRequest(RequestParams{}); err == nil {
		t.Fatal("an empty prompt is accepted")
	}
	r := m.start(span(1, 14)...)
	if err := m.cache.Extend(r, 17); !errors.As(err, &large) {
		t.Fatal(err)
	}
	m.compute(r, 14)
	n, err := m.cache.Decode(r, span(15, 20))
	if n != 2 || !errors.As(err, &large) || large.Needed != 20 {
		t.Fatalf("%d %v", n, err)
	}
	m.finish(r)
	o := Options{Tree: tree.Options{Components: components(true, false), SlidingWindow: 4}, Pools: PoolSizes{Full: 100, SWA: 13}}
	m = newModel(t, o)
	r = m.start(span(1, 60)...)
	if err := m.cache.Extend(r, 14); !errors.As(err, &large) || large.Component != tree.SWA || large.Needed != 14 {
		t.Fatal(err)
	}
	m.ok(m.cache.Extend(r, 13))
}

func TestReset(t *testing.T) {
	o := Options{Tree: tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 4, Events: true}, Pools: PoolSizes{Full: 100, SWA: 100, Mamba: 10}}
	m := newModel(t, o)
	m.run(8, span(1, 8)...)
	r := m.start(span(1, 12)...)
	waiting, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 12)})
	m.ok(err)
	_, err = m.cache.Match(waiting)
	m.ok(err)
	wantInt(t, "matched", waiting.Matched(), 8)
	m.compute(r, 2)
	m.cache.tree.TakeEvents()
	m.ok(m.cache.Reset())
	wantInt(t, "free", m.free(tree.Full), 98)
	wantInt(t, "held", m.cache.Usage(tree.Mamba).Held, 3)
	if e := m.cache.tree.TakeEvents(); len(e) == 0 || e[len(e)-1].Kind != tree.AllBlocksCleared {
		t.Fatalf("events %v", e)
	}
	wantOrder(t, m.cache.Extend(r, 1), Lost)
	wantOrder(t, m.cache.CacheUnfinished(r), Lost)
	m.finish(r)
	m.admit(waiting)
	wantInt(t, "reused", waiting.Len(), 0)
	m.ok(m.cache.Abort(waiting))
	for id, size := range []int{100, 100, 10} {
		wantInt(t, "free", m.free(tree.Component(id)), size)
	}
}

// The host tier is not there: its actions are a clear error, after which the
// cache serves no more.
func TestHostActionsAreRefused(t *testing.T) {
	m := newModel(t, fullOnly(1, 20))
	m.ok(m.cache.tree.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 1}))
	r := m.start(span(1, 4)...)
	m.compute(r, 4)
	err := m.cache.CacheUnfinished(r)
	var refused *UnsupportedError
	var closed *InternalError
	if !errors.As(err, &refused) || !errors.As(err, &closed) || !strings.Contains(err.Error(), "BackupKV") {
		t.Fatal(err)
	}
	if m.cache.tree.HasOngoingInsert() {
		t.Fatal("the insert is suspended")
	}
	for _, err := range []error{m.cache.Finish(r, true), m.cache.Reset(), m.cache.CheckConservation(), m.cache.CloseSession("s")} {
		if !errors.As(err, &closed) {
			t.Fatal(err)
		}
	}
	if _, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 4)}); !errors.As(err, &closed) {
		t.Fatal(err)
	}
	if _, err := m.cache.Evict(tree.Full, 1); !errors.As(err, &closed) {
		t.Fatal(err)
	}
}

// FL-8: a slot that comes back twice ends the service instead of being handed
// out twice. CheckConservation finds the damage.
func TestFL8FailClosed(t *testing.T) {
	m := newModel(t, fullOnly(1, 20))
	r := m.start(span(1, 4)...)
	m.compute(r, 4)
	if err := m.cache.full.Free(r.Row().Slice(1, 3)); err != nil {
		t.Fatal(err)
	}
	var found *ConservationError
	if err := m.cache.CheckConservation(); !errors.As(err, &found) || found.Findings[0].Rule != "IN-5" {
		t.Fatal(err)
	}
	err := m.cache.Finish(r, false)
	var closed *InternalError
	var refused *pool.FreeError
	if !errors.As(err, &closed) || !errors.As(err, &refused) || refused.Slots.Len() != 2 {
		t.Fatal(err)
	}
}

// The other findings: an ownerless slot, a wrong map, a lock too many.
func TestCheckConservationFinds(t *testing.T) {
	damage := map[string]func(m *model, r *Request) error{
		"IN-1": func(m *model, r *Request) error { _, err := m.cache.dual.Alloc(1); return err },
		"IN-3": func(m *model, r *Request) error { _, err := m.cache.states.AllocOne(); return err },
		"IN-6": func(m *model, r *Request) error { return m.cache.dual.FreeSWA(r.Row().Slice(3, 4)) },
		"IN-7": func(m *model, r *Request) error { return m.cache.tree.PinFull(r.node) },
		"RQ-1": func(m *model, r *Request) error { r.committed = 100; return nil },
	}
	for rule, do := range damage {
		t.Run(rule, func(t *testing.T) {
			o := Options{Tree: tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 4}, Pools: PoolSizes{Full: 50, SWA: 50, Mamba: 8}}
			m := newModel(t, o)
			r := m.start(span(1, 6)...)
			m.prefill(r, 6)
			m.check()
			if err := do(m, r); err != nil {
				t.Fatal(err)
			}
			err := m.cache.CheckConservation()
			var found *ConservationError
			if !errors.As(err, &found) || !strings.Contains(err.Error(), rule) {
				t.Fatalf("%v does not name %s", err, rule)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	good := Options{Tree: tree.Options{Components: components(true, true), PageSize: 4, SlidingWindow: 8, CheckpointGrid: 8}, Pools: PoolSizes{Full: 40, SWA: 40, Mamba: 3}}
	if c, err := New(good); err != nil || c.Options().TrackBuffers != 2 || c.PageSize() != 4 || c.Tree() == nil {
		t.Fatal(err)
	}
	for field, bad := range map[string]func(o *Options){
		"Pools.Full":    func(o *Options) { o.Pools.Full = 3 },
		"Pools.SWA":     func(o *Options) { o.Pools.SWA = 0 },
		"Pools.Mamba":   func(o *Options) { o.Pools.Mamba = 2 },
		"TrackBuffers":  func(o *Options) { o.TrackBuffers = 3; o.Pools.Mamba = 9 },
		"TrackInterval": func(o *Options) { o.TrackInterval = -1 },
		"SlidingWindow": func(o *Options) { o.Tree.SlidingWindow = 0 },
	} {
		o := good
		bad(&o)
		_, err := New(o)
		var config *tree.ConfigError
		if !errors.As(err, &config) || config.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// X-IN-1, X-IN-2, X-IN-4: what Usage says.
func TestXINUsage(t *testing.T) {
	m := newModel(t, fullOnly(4, 16))
	r := m.start(span(1, 10)...)
	m.compute(r, 8)
	m.ok(m.cache.CacheUnfinished(r))
	m.compute(r, 2)
	if u := m.cache.Usage(tree.Full); u != (Usage{Size: 16, Free: 4, Protected: 8, Held: 4}) || u.Available() != 4 {
		t.Fatalf("X-IN-1: %+v", u)
	}
	if u := m.cache.Usage(tree.SWA); u != (Usage{}) {
		t.Fatalf("%+v", u)
	}
	if _, err := m.cache.Evict(tree.SWA, 1); err == nil {
		t.Fatal("a component that is not there was evicted")
	}
	o := Options{Tree: tree.Options{Components: components(true, false), SlidingWindow: 4}, Pools: PoolSizes{Full: 20, SWA: 20}}
	m = newModel(t, o)
	r = m.start(span(1, 1)...)
	m.compute(r, 1)
	m.decode(r, span(2, 10)...)
	wantInt(t, "X-IN-2 frontier", r.Frontier(), 5)
	wantInt(t, "X-IN-2 held", m.cache.Usage(tree.SWA).Held, 5)
	m = newModel(t, hybrid(4, 8, 2))
	m.run(4, span(1, 4)...)
	m.start(span(11, 14)...)
	m.start(span(21, 24)...)
	wantInt(t, "X-IN-4", m.free(tree.Mamba), 1)
}
