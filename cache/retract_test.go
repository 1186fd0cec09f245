// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// windowed is a cache with pages of 4 and a window of 8, as the examples of
// chapter 13 have it.
func windowed(t *testing.T, device, host PoolSizes) *model {
	return tiered(t, components(true, false), 4, 8, device, host, WriteThrough)
}

// decoding returns a request with 13 positions, whose length with the token that
// was sampled last is 14.
func (m *model) decoding(cached bool) *Request {
	m.t.Helper()
	r := m.start(span(1, 8)...)
	m.compute(r, 8)
	if cached {
		m.ok(m.cache.CacheUnfinished(r))
		m.sync()
	}
	m.decode(r, span(9, 13)...)
	return r
}

func (m *model) retract(r *Request) *Retraction {
	m.t.Helper()
	s, err := m.cache.Retract(context.Background(), r)
	m.ok(err)
	if s.Request() != r || r.State() != Retracted || r.Allocated() != 0 {
		m.t.Fatalf("request %d is %v and has %d slots", r.ID(), r.State(), r.Allocated())
	}
	return s
}

func (m *model) restore(s *Retraction) {
	m.t.Helper()
	m.ok(m.cache.Restore(context.Background(), s))
	r := s.Request()
	if r.State() != Running || r.Allocated() != r.Len() || r.Protected() != 0 {
		m.t.Fatalf("request %d is %v: %d computed, %d allocated, %d protected", r.ID(), r.State(), r.Len(), r.Allocated(), r.Protected())
	}
	m.read(r, r.Len())
}

// stamps returns what the device has for a request: for each position in Full,
// and for each from its frontier on in SWA.
func (m *model) stamps(r *Request, window int) (out []uint64) {
	for i, s := range m.slots(r) {
		out = append(out, m.get(tree.Full, s))
		if m.cache.swa && i >= r.Len()-window {
			twin, err := m.cache.dual.TwinOf(int64(s))
			m.ok(err)
			out = append(out, m.get(tree.SWA, tree.Slot(twin)))
		}
	}
	return out
}

// X-RT-1: what is saved, what comes back and where to; the request then runs on
// as if nothing had been, and shares its beginning again when it is cached.
func TestRetract(t *testing.T) {
	for _, cached := range []bool{false, true} {
		m := windowed(t, PoolSizes{Full: 64, SWA: 64}, PoolSizes{Full: 64, SWA: 64})
		r := m.decoding(cached)
		wantInt(t, "length", r.Len(), 13)
		before, row := m.stamps(r, 8), m.slots(r)
		held := map[tree.Component]int{tree.Full: m.hostFree(tree.Full), tree.SWA: m.hostFree(tree.SWA)}
		s := m.retract(r)
		if s.Units() != (tree.Units{tree.Full: 16, tree.SWA: 12}) {
			t.Fatalf("saved %v", s.Units())
		}
		for id, n := range held {
			u := m.cache.HostUsage(id)
			if saved := s.Units()[id]; u.Free != n-saved || u.Held != saved {
				t.Fatalf("%v: %+v", id, u)
			}
		}
		for _, id := range []tree.Component{tree.Full, tree.SWA} { // the tree keeps its own
			if u := m.cache.Usage(id); u.Held != 0 || u.Protected != 0 || cached != (u.Evictable > 0) {
				t.Fatalf("%v: %+v", id, u)
			}
		}
		other := m.start(span(101, 120)...) // takes and overwrites the slots
		m.compute(other, 20)
		m.restore(s)
		if !slices.Equal(m.stamps(r, 8), before) {
			t.Fatal("the content is another")
		}
		if slices.Equal(m.slots(r), row) {
			t.Fatal("the slots are the same: the test shows nothing")
		}
		wantInt(t, "frontier", r.Frontier(), 4)
		for id, n := range held {
			wantInt(t, "host slots", m.hostFree(id), n)
		}
		duplicates := m.cache.Stats().DuplicatesFreed
		m.ok(m.cache.CacheUnfinished(r))
		wantInt(t, "protected", r.Protected(), 12)
		if got := m.cache.Stats().DuplicatesFreed - duplicates; cached != (got == 8) {
			t.Fatalf("%d slots were shared again", got)
		}
		m.decode(r, span(14, 30)...)
		m.finish(r)
		wantInt(t, "cached", m.reuse(span(1, 30)...).DeviceLen, 28)
		if x := m.cache.Stats(); x.Retractions != 1 || x.Restores != 1 {
			t.Errorf("%+v", x)
		}
	}
}

// X-RT-2: nothing is computed, so there is nothing to save.
func TestRetractNothing(t *testing.T) {
	m := windowed(t, PoolSizes{Full: 16, SWA: 16}, PoolSizes{Full: 4, SWA: 4})
	r := m.start(1)
	m.ok(m.cache.Extend(r, 1)) // allocated ahead: given up
	s := m.retract(r)
	if s.Units() != (tree.Units{}) || m.hostFree(tree.Full) != 4 {
		t.Fatalf("saved %v", s.Units())
	}
	m.restore(s)
	m.compute(r, 1)
	m.finish(r)
}

// X-RT-3: where room is lacking on the host, as much is evicted there as the
// request takes, or as there is.
func TestRetractEvictsOnTheHost(t *testing.T) {
	for _, evictable := range []int{1, 2} { // pages
		m := windowed(t, PoolSizes{Full: 64, SWA: 64}, PoolSizes{Full: 12 + 4*evictable, SWA: 64})
		for i := range evictable {
			first := 100 * (i + 1)
			m.serve(span(first, first+3)...)
		}
		m.sync()
		m.evict(tree.Full, 64, 4*evictable)
		r := m.decoding(false)
		wantInt(t, "free on the host", m.hostFree(tree.Full), 12)
		s := m.retract(r)
		wantInt(t, "evicted on the host", m.cache.Stats().HostEvicted[tree.Full], 4*evictable)
		wantInt(t, "free on the host", m.hostFree(tree.Full), 4*evictable-4)
		m.restore(s)
	}
}

// A branch point whose window was not saved is forgotten: at its end a request
// caches all that it has, and not up to the branch point only.
func TestRestoreForgetsBranch(t *testing.T) {
	big := PoolSizes{Full: 64, SWA: 64}
	m := tiered(t, components(true, false), 1, 4, big, big, WriteBack)
	m.run(20, span(1, 20)...) // its beginning without a window
	r := m.start(join(span(1, 6), span(101, 104))...)
	swa, _ := r.Branches()
	wantInt(t, "branch point", swa, 6)
	m.compute(r, 10)
	m.decode(r, span(105, 110)...)
	m.restore(m.retract(r))
	swa, _ = r.Branches()
	wantInt(t, "branch point", swa, 0)
	m.finish(r)
	wantInt(t, "cached", m.reuse(join(span(1, 6), span(101, 110))...).DeviceLen, 16)
}

// X-RT-4, X-RT-5: without room on the host, on either side, nothing has changed
// and the request runs on.
func TestRetractCannot(t *testing.T) {
	for _, c := range []struct {
		host  PoolSizes
		short string
	}{{PoolSizes{Full: 16, SWA: 64}, "full"}, {PoolSizes{Full: 64, SWA: 16}, "swa"}} {
		m := windowed(t, PoolSizes{Full: 64, SWA: 64}, c.host)
		m.serve(span(101, 108)...) // on both tiers: nothing to evict
		m.sync()
		r := m.decoding(false)
		row := m.slots(r)
		full, swa := m.cache.HostUsage(tree.Full), m.cache.HostUsage(tree.SWA)
		wantInt(t, "free on the host", min(full.Free, swa.Free), 8)
		s, err := m.cache.Retract(context.Background(), r)
		m.check()
		wantExhausted(t, err, c.short)
		if s != nil || r.State() != Running || !slices.Equal(m.slots(r), row) || m.cache.Stats().RetractionsRefused != 1 {
			t.Fatalf("%v, request is %v, %d refused", s, r.State(), m.cache.Stats().RetractionsRefused)
		}
		if m.cache.HostUsage(tree.Full) != full || m.cache.HostUsage(tree.SWA) != swa {
			t.Fatalf("%+v %+v", m.cache.HostUsage(tree.Full), m.cache.HostUsage(tree.SWA))
		}
		m.decode(r, 14)
	}
}

// X-RT-6: what has been saved by a cache with other pools, or another page, names
// both; one with the same has other slots all the same.
func TestRestoreElsewhere(t *testing.T) {
	big := PoolSizes{Full: 64, SWA: 64}
	saved := windowed(t, big, big)
	s := saved.retract(saved.decoding(false))
	for _, c := range []struct {
		set    tree.ComponentSet
		page   int
		wanted string
	}{{components(false, false), 4, "{full: 16}"}, {components(true, false), 8, "{full: 16, swa: 16}"}, {components(true, false), 4, ""}} {
		m := tiered(t, c.set, c.page, 8, big, big, WriteThrough)
		err := m.cache.Restore(context.Background(), s)
		m.check()
		var mismatch *RetractionMismatchError
		var argument *ArgumentError
		switch {
		case c.wanted == "":
			if !errors.As(err, &argument) {
				t.Errorf("%v", err)
			}
		case !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "{full: 16, swa: 12}") || !strings.Contains(err.Error(), c.wanted):
			t.Errorf("%v", err)
		}
	}
	saved.restore(s)
}

// RT-4 for the device: without room there, or while an allocation fails, the
// record stays, and Restore may be tried again.
func TestRestoreCannot(t *testing.T) {
	m := windowed(t, PoolSizes{Full: 32, SWA: 32}, PoolSizes{Full: 64, SWA: 64})
	s := m.retract(m.decoding(false))
	other := m.start(span(101, 120)...)
	m.compute(other, 20)
	usage := m.cache.HostUsage(tree.Full)
	wantExhausted(t, m.cache.Restore(context.Background(), s), "full")
	m.check()
	m.ok(m.cache.Abort(other))
	for _, failing := range []tree.Component{tree.Full, tree.SWA} {
		m.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool { return !host && id == failing }}
		wantExhausted(t, m.cache.Restore(context.Background(), s), failing.String())
		m.check()
		wantInt(t, "device slots", m.free(failing), 32)
	}
	m.cache.host.faults = nil
	if m.cache.HostUsage(tree.Full) != usage || s.Request().State() != Retracted {
		t.Fatalf("%+v", m.cache.HostUsage(tree.Full))
	}
	m.restore(s)
}

// RT-5: a copy that fails, either way, leaves the request as it was.
func TestRetractionFails(t *testing.T) {
	m := windowed(t, PoolSizes{Full: 64, SWA: 64}, PoolSizes{Full: 64, SWA: 64})
	r := m.decoding(true)
	broken := errors.New("broken")
	fail := &faults{copy: func(pool.Copy) error { return broken }}
	m.cache.host.faults = fail
	host := m.hostFree(tree.Full)
	var failed *RetractionError
	if _, err := m.cache.Retract(context.Background(), r); !errors.As(err, &failed) || !errors.Is(err, broken) || failed.Request != r.ID() {
		t.Fatalf("%v", err)
	}
	m.check()
	wantInt(t, "host slots", m.hostFree(tree.Full), host)
	m.cache.host.faults = nil
	m.decode(r, 14)
	s := m.retract(r)
	free := m.free(tree.Full)
	m.cache.host.faults = fail
	if err := m.cache.Restore(context.Background(), s); !errors.As(err, &failed) || !errors.Is(err, broken) || r.State() != Retracted {
		t.Fatalf("%v, request is %v", err, r.State())
	}
	m.check()
	wantInt(t, "device slots", m.free(tree.Full), free)
	wantInt(t, "failed copies", int(m.cache.Stats().CopiesFailed), 2)
	m.cache.host.faults = nil
	m.restore(s)
	m.decode(r, span(15, 20)...)
	m.finish(r)
}

// A context that ends while a copy is under way, on a manual engine between its
// start and its end.
func TestRetractionIsCutShort(t *testing.T) {
	var cancel context.CancelFunc
	m := newModel(t, Options{
		Tree: tree.Options{Components: components(true, false), PageSize: 4, SlidingWindow: 8}, Pools: PoolSizes{Full: 64, SWA: 64},
		Host: &HostOptions{Pools: PoolSizes{Full: 64, SWA: 64}, Policy: WriteBack, Manual: true, Started: func(int64, pool.Copy) {
			if cancel != nil {
				cancel()
			}
		}},
	})
	t.Cleanup(m.cache.Close)
	r := m.decoding(false)
	var ctx context.Context
	var failed *RetractionError
	ctx, cancel = context.WithCancel(context.Background())
	if _, err := m.cache.Retract(ctx, r); !errors.As(err, &failed) || !errors.Is(err, context.Canceled) || r.State() != Running {
		t.Fatalf("%v, request is %v", err, r.State())
	}
	m.check()
	wantInt(t, "host slots", m.hostFree(tree.Full), 64)
	cancel = nil
	s := m.retract(r)
	ctx, cancel = context.WithCancel(context.Background())
	if err := m.cache.Restore(ctx, s); !errors.As(err, &failed) || !errors.Is(err, context.Canceled) || r.State() != Retracted {
		t.Fatalf("%v, request is %v", err, r.State())
	}
	m.check()
	wantInt(t, "device slots", m.free(tree.Full), 64)
	cancel = nil
	m.restore(s)
	wantInt(t, "in flight", m.cache.Engine().InFlight(pool.ToHost)+m.cache.Engine().InFlight(pool.ToDevice), 0)
}

// A copy that hangs is told to end when its context does, and has ended when the
// call returns.
func TestRetractionHangs(t *testing.T) {
	started, ended := make(chan struct{}, 1), 0
	c, err := New(Options{
		Pools: PoolSizes{Full: 16},
		Host: &HostOptions{Pools: PoolSizes{Full: 16}, Policy: WriteBack, Workers: 1, Copy: func(ctx context.Context, _ pool.Copy) error {
			started <- struct{}{}
			<-ctx.Done()
			ended++
			return ctx.Err()
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.NewRequest(RequestParams{Tokens: span(1, 4)})
	if err == nil {
		err = errors.Join(c.Admit(r), c.Extend(r, 4), c.Commit(r, 4))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-started
		cancel()
	}()
	if _, err := c.Retract(ctx, r); !errors.Is(err, context.Canceled) || ended != 1 || r.State() != Running {
		t.Fatalf("%v, %d copies ended, request is %v", err, ended, r.State())
	}
	if err := errors.Join(c.CheckConservation(), c.Abort(r)); err != nil {
		t.Fatal(err)
	}
}

// RT-7: a record ends exactly once, whichever way.
func TestRecordEndsOnce(t *testing.T) {
	ctx := context.Background()
	for _, way := range []string{"restore", "discard", "abort", "reset", "again"} {
		m := windowed(t, PoolSizes{Full: 64, SWA: 64}, PoolSizes{Full: 64, SWA: 64})
		r := m.decoding(false)
		s := m.retract(r)
		for _, err := range []error{m.cache.Extend(r, 1), m.cache.CacheUnfinished(r), m.cache.Finish(r, true), m.cache.Admit(r)} {
			wantOrder(t, err, Retracted)
		}
		_, err := m.cache.Retract(ctx, r)
		wantOrder(t, err, Retracted)
		wantInt(t, "room of a retracted request", m.cache.MaxExtend(r, 1), 0)
		state := Finished
		switch way {
		case "restore":
			m.restore(s)
			state = Running
		case "discard":
			m.ok(m.cache.Discard(s))
		case "abort":
			m.ok(m.cache.Abort(r))
		case "reset":
			m.ok(m.cache.Reset())
			state = Lost
		case "again":
			m.restore(s)
			first := s
			if s = m.retract(r); s == first {
				t.Fatal("the same record")
			}
			s, state = first, Retracted
		}
		wantOrder(t, m.cache.Restore(ctx, s), state)
		wantOrder(t, m.cache.Discard(s), state)
		if s.Units() != (tree.Units{}) {
			t.Errorf("%s: the record still has %v", way, s.Units())
		}
		if state != Finished {
			m.ok(m.cache.Abort(r))
		}
		wantOrder(t, m.cache.Abort(r), Finished)
		for _, id := range []tree.Component{tree.Full, tree.SWA} {
			wantInt(t, way+": host slots", m.hostFree(id), 64)
			wantInt(t, way+": device slots", m.free(id), 64)
		}
	}
	m := windowed(t, PoolSizes{Full: 64, SWA: 64}, PoolSizes{Full: 64, SWA: 64})
	var argument *ArgumentError
	for _, err := range []error{m.cache.Restore(ctx, nil), m.cache.Discard(nil), m.cache.Discard(&Retraction{})} {
		if !errors.As(err, &argument) {
			t.Errorf("%v", err)
		}
	}
}

// RT-1: where it cannot be, the error says what is in the way.
func TestSupportsRetraction(t *testing.T) {
	host := func(swa int) *HostOptions { return &HostOptions{Pools: PoolSizes{Full: 16, SWA: swa, Mamba: 4}} }
	for _, c := range []struct {
		set   tree.ComponentSet
		host  *HostOptions
		field string // "": it can be
	}{
		{components(false, false), nil, "Host"},
		{components(false, true), host(0), "Tree.Components"},
		{components(true, true), host(16), "Tree.Components"},
		{components(true, false), host(0), "Host.Pools.SWA"},
		{components(true, false), host(16), ""},
		{components(false, false), host(0), ""},
	} {
		m := newModel(t, Options{Tree: tree.Options{Components: c.set, SlidingWindow: 4}, Pools: PoolSizes{Full: 16, SWA: 16, Mamba: 4}, Host: c.host})
		t.Cleanup(m.cache.Close)
		err := m.cache.SupportsRetraction()
		var field *tree.ConfigError
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &field) || field.Field != c.field) {
			t.Errorf("%v: %v, want %q", c.set, err, c.field)
		}
		r := m.start(1, 2)
		if _, got := m.cache.Retract(context.Background(), r); (got == nil) != (err == nil) {
			t.Errorf("%v: %v and %v", c.set, got, err)
		}
		m.check()
	}
}

// Retraction waits for what is in flight and takes its acknowledgements in order:
// backups, and loads that the request reads.
func TestRetractWithCopiesInFlight(t *testing.T) {
	for _, broken := range []bool{false, true} {
		m := demoted(t, 128, WriteThrough, 8, 12)
		m.serve(span(101, 110)...)
		m.serve(span(201, 210)...)
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 40)})
		m.ok(err)
		m.ok(m.cache.Admit(r))
		if !m.cache.Loading(r) || len(m.cache.host.backups) != 2 {
			t.Fatalf("loading %v, %d backups", m.cache.Loading(r), len(m.cache.host.backups))
		}
		if broken {
			m.cache.host.faults = &faults{copy: func(c pool.Copy) error {
				if c.Direction == pool.ToDevice {
					return errors.New("broken")
				}
				return nil
			}}
			var lost *LoadError
			if _, err := m.cache.Retract(context.Background(), r); !errors.As(err, &lost) || r.State() != Lost {
				t.Fatalf("%v, request is %v", err, r.State())
			}
			m.ok(m.cache.Abort(r))
			continue
		}
		s := m.retract(r)
		wantInt(t, "backups in flight", len(m.cache.host.backups), 0)
		other, err := m.cache.NewRequest(RequestParams{Tokens: join(span(101, 110), span(1, 9))})
		m.ok(err)
		m.cache.host.opts.LoadBackThreshold = 1
		m.evict(tree.Full, 99, 40)
		m.ok(m.cache.Admit(other)) // its load is started, and ends while Restore waits
		_, err = m.cache.StartLoading()
		m.ok(err)
		if !m.cache.Loading(other) {
			t.Fatal("nothing is loading")
		}
		m.restore(s)
		m.read(other, other.Len())
		m.compute(r, 20)
		m.finish(r)
		m.ok(m.cache.Abort(other))
		m.sync()
		m.nothingLocked()
	}
}
