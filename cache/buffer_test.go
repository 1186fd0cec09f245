// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// staging is a shelf whose host memory is a staging area: pages of 4, windows of
// 8, as the examples of the specification have it.
func staging(t *testing.T, swa bool) *shelf {
	t.Helper()
	return shelves(t, tiers{buffer: true, set: components(swa, false), page: 4, window: 8, stop: WaitComplete,
		device: PoolSizes{200, 200, 0}, host: PoolSizes{100, 40, 0}})
}

func (s *shelf) books() *buffering { return s.cache.host.buffer }

// backlogged wants intents for these components of nodes of these lengths.
func (s *shelf) backlogged(want ...string) {
	s.t.Helper()
	got := []string{}
	for _, x := range s.books().intents {
		got = append(got, fmt.Sprintf("%v %d", x.component, x.units()))
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("queued are %q, want %q", got, want)
	}
}

// flown wants launches that have not ended.
func (s *shelf) flown(want ...string) {
	s.t.Helper()
	got := []string{}
	for _, l := range s.cache.launches() {
		got = append(got, fmt.Sprintf("%v %d", l.component, l.host.Len()))
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("launched are %q, want %q", got, want)
	}
}

func (s *shelf) droppedWrites(want int) {
	s.t.Helper()
	wantInt(s.t, "dropped", int(s.cache.Stats().Storage.DroppedWriteTokens), want)
}

// believed returns which of the pages of a prompt are believed to be stored.
func (s *shelf) believed(id tree.Component, prompt []tree.Token) (out []int) {
	for i, page := range tree.HashPages(tree.Key{Tokens: prompt}, s.cache.page) {
		if s.books().beliefs.at[pageName{id.String(), page}] != nil {
			out = append(out, i)
		}
	}
	return out
}

// pagesOf counts the pages of a component that the store has.
func (s *shelf) pagesOf(id tree.Component) (n int) {
	for _, k := range s.store.Keys() {
		if k.Pool == id.String() {
			n++
		}
	}
	return n
}

// quiet is idle, with nothing staged, queued or believed to be on its way.
func (s *shelf) quiet() {
	s.t.Helper()
	s.sync()
	s.idle()
	b := s.books()
	if len(b.intents)+len(b.copying)+len(b.flying)+len(b.launched)+len(b.parked)+b.pinned != 0 || s.cache.inFlight("") != nil {
		s.t.Fatalf("left: %+v", b)
	}
	for id := range tree.Component(tree.NumComponents) {
		wantInt(s.t, "protected", s.cache.tree.ProtectedSize(id), 0)
		if u := s.cache.HostUsage(id); u.Free != u.Size {
			s.t.Fatalf("host %v: %+v", id, u)
		}
	}
}

// X-BO-1, X-BO-18, BO-4: what the mode does not work with is refused at the start.
func TestBufferOptions(t *testing.T) {
	for _, x := range []struct {
		name                  string
		set                   tree.ComponentSet
		host                  PoolSizes
		policy                WritePolicy
		field, value, allowed string
	}{
		{"X-BO-1", components(true, false), PoolSizes{100, 12, 0}, WriteThrough, "Host.Pools.SWA", "12", "16 (two windows) or more, with Host.BufferOnly"},
		{"no window pool", components(true, false), PoolSizes{100, 0, 0}, WriteThrough, "Host.Pools.SWA", "0", "16 (two windows) or more, with Host.BufferOnly"},
		{"X-BO-18", components(false, true), PoolSizes{100, 0, 8}, WriteThrough, "Tree.Components", "full,mamba", "{full} or {full,swa}, with Host.BufferOnly"},
		{"write-back", components(false, false), PoolSizes{Full: 100}, WriteBack, "Host.Policy", "write-back", "write-through or write-through-selective, with Host.BufferOnly"},
		{"at the least", components(true, false), PoolSizes{4, 16, 0}, WriteThroughSelective, "", "", ""},
	} {
		c, err := New(Options{
			Tree: tree.Options{Components: x.set, PageSize: 4, SlidingWindow: 8}, Pools: PoolSizes{64, 64, 8},
			Host: &HostOptions{Pools: x.host, Policy: x.policy, BufferOnly: true},
		})
		var wrong *tree.ConfigError
		switch {
		case x.field == "":
			if err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
			c.Close()
		case !errors.As(err, &wrong) || *wrong != tree.ConfigError{Field: x.field, Value: x.value, Allowed: x.allowed}:
			t.Errorf("%s: %+v", x.name, err)
		}
	}
	s := staging(t, false)
	policy := WriteBack
	o := s.options(tiers{})
	o.WritePolicy = &policy
	var wrong *tree.ConfigError
	if err := s.cache.AttachStorage(o); !errors.As(err, &wrong) || wrong.Field != "Storage.WritePolicy" || wrong.Value != "write-back" {
		t.Errorf("%v", err)
	}
}

// X-BO-2, X-BO-3: a node goes to the store through staging, once, and the tree
// never has a host value.
func TestBufferWrite(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 8)...)
	s.backlogged("full 8")
	wantInt(t, "host slots before the flush", s.hostFree(tree.Full), 100)
	wantInt(t, "locked by an intent", s.cache.tree.ProtectedSize(tree.Full), 0)
	s.tick()
	s.backlogged()
	s.flown("full 8")
	wantInt(t, "staged", s.books().staged[tree.Full], 8)
	wantInt(t, "locked by the copy", s.cache.tree.ProtectedSize(tree.Full), 8)
	s.ok(s.cache.Engine().Wait(context.Background(), pool.ToHost))
	s.tick()
	s.flown("full 8")
	wantInt(t, "locked by the write", s.cache.tree.ProtectedSize(tree.Full), 0)
	s.evict(tree.Full, 8, 8) // its content is staged
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 2)
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 2)
	s.serve(span(1, 8)...)
	s.backlogged()
	r := s.fetched(span(1, 9)...)
	s.origin(r, 8, 0, 0)
	s.ok(s.cache.Abort(r))
	s.quiet()
}

// The selective policy writes at the second insert that passes a node.
func TestBufferWriteSelective(t *testing.T) {
	s := shelves(t, tiers{buffer: true, page: 4, policy: WriteThroughSelective, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	s.serve(span(1, 4)...)
	s.backlogged()
	s.serve(span(1, 8)...)
	s.backlogged("full 4")
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 1)
}

// X-BO-4: an intent of a node that was split becomes those of its fragments.
func TestBufferIntentIsSplit(t *testing.T) {
	s := staging(t, true)
	s.serve(span(1, 8)...)
	s.serve(span(101, 104)...)
	s.backlogged("full 8", "swa 8", "full 4", "swa 4")
	s.reuse(span(1, 4)...)
	s.tick()
	s.flown("full 4", "full 4", "swa 4", "swa 4", "full 4", "swa 4")
	first := s.cache.launches()
	if first[0].node != s.node(span(1, 4)...).ID || first[1].node != s.node(span(1, 8)...).ID {
		t.Fatalf("launched %+v", first)
	}
	s.droppedWrites(0)
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 3)
	wantInt(t, "windows stored", s.pagesOf(tree.SWA), 3)
}

// Of several intents for one fragment the earliest place wins.
func TestBufferFragmentAskedBefore(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 8)...)
	s.serve(join(span(1, 4), span(101, 104))...) // its first node asks, too
	s.backlogged("full 8", "full 4", "full 4")
	s.tick()
	s.flown("full 4", "full 4", "full 4")
	s.droppedWrites(0)
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 3)
}

// X-BO-4b: what came back under new nodes is not what was queued.
func TestBufferIntentOfAnotherTime(t *testing.T) {
	s := shelves(t, tiers{buffer: true, page: 4, policy: WriteThroughSelective, device: PoolSizes{Full: 64}, host: PoolSizes{Full: 64}})
	for range 2 {
		s.serve(span(1, 9)...)
	}
	s.backlogged("full 8")
	s.reuse(span(1, 4)...)
	s.evict(tree.Full, 8, 8)
	s.serve(span(1, 9)...)
	s.tick()
	s.flown()
	s.droppedWrites(8)
	s.backlogged()
	s.serve(span(1, 9)...)
	s.backlogged("full 8")
	s.quiet()
}

// X-BO-4c: where Full is stored, a new window alone is written.
func TestBufferWindowAlone(t *testing.T) {
	s := staging(t, true)
	s.serve(span(1, 8)...)
	s.serve(span(1, 16)...)
	s.backlogged("full 8", "swa 8", "full 8", "swa 8")
	s.evict(tree.SWA, 8, 8) // of the first node, whose window is not read
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 4)
	wantInt(t, "windows stored", s.pagesOf(tree.SWA), 2)
	s.droppedWrites(0)
	s.serve(span(1, 9)...)
	s.backlogged("swa 8")
	wantInt(t, "keys", len(s.books().intents[0].pages()), 2)
	s.quiet()
	wantInt(t, "windows stored", s.pagesOf(tree.SWA), 4)
}

// X-BO-5: eviction wins.
func TestBufferEvictionWins(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 4)...)
	s.serve(span(1, 12)...)
	s.backlogged("full 4", "full 8")
	s.evict(tree.Full, 12, 12)
	s.tick()
	s.backlogged()
	s.flown()
	s.droppedWrites(12)
	wantInt(t, "backlog", s.books().backlog[tree.Full], 0)
	s.quiet()
}

// X-BO-6: what could never be staged is not queued, nor what goes on from it.
func TestBufferOversize(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 104)...)
	s.droppedWrites(104)
	s.serve(span(1, 108)...)
	s.droppedWrites(104 + 104 + 4)
	s.backlogged()
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 0)
}

// X-BO-6 at the flush: a drop goes down the chain.
func TestBufferDropsCascade(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 4)...)
	s.quiet()
	s.serve(span(1, 12)...)
	s.serve(span(1, 16)...)
	s.backlogged("full 8", "full 4")
	s.ok(s.cache.ClearStorage(context.Background()))
	s.tick()
	s.flown()
	s.droppedWrites(12)
	s.serve(span(1, 16)...) // from the beginning
	s.backlogged("full 4", "full 8", "full 4")
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 4)
}

// X-BO-7, X-BO-8: what writes may stage beside reads.
func TestBufferLiveCap(t *testing.T) {
	s := staging(t, false)
	for _, x := range []struct{ occupancy, want int }{{0, 90}, {60, 30}, {95, 20}} {
		s.cache.storage.occupancy = x.occupancy
		wantInt(t, fmt.Sprint("live cap at ", x.occupancy), s.cache.liveCap(), x.want)
	}
	s.cache.storage.occupancy = 0
	// It is a cap on when the next one may start.
	for i := range 6 {
		s.serve(span(100*i, 100*i+19)...)
	}
	s.tick()
	s.flown("full 20", "full 20", "full 20", "full 20", "full 20")
	s.backlogged("full 20")
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 30)
}

// X-BO-9: a window is left for reads, and the head is not overtaken.
func TestBufferWindowMargin(t *testing.T) {
	s := staging(t, true)
	for i := range 6 {
		s.serve(span(100*i, 100*i+7)...)
	}
	s.tick()
	wantInt(t, "SWA host slots", s.hostFree(tree.SWA), 8)
	s.backlogged("swa 8", "full 8", "swa 8")
	s.tick()
	s.backlogged("swa 8", "full 8", "swa 8")
	s.quiet()
	wantInt(t, "windows stored", s.pagesOf(tree.SWA), 12)
}

// Storage keys are those of the staged node, not of a window.
func TestBufferKeysOfTheNode(t *testing.T) {
	for _, x := range []struct{ prompt, windows int }{{4, 1}, {8, 2}, {20, 5}} {
		s := staging(t, true)
		s.serve(span(1, x.prompt)...)
		s.quiet()
		wantInt(t, "stored", s.pagesOf(tree.Full), x.prompt/4)
		wantInt(t, "windows stored", s.pagesOf(tree.SWA), x.windows)
	}
}

// X-BO-10: a lookup corrects beliefs, also one whose request has gone.
func TestBufferHealing(t *testing.T) {
	for _, gone := range []bool{false, true} {
		s := staging(t, false)
		s.warm(span(1, 64))
		wantInt(t, "believed", len(s.believed(tree.Full, span(1, 64))), 16)
		pages := tree.HashPages(tree.Key{Tokens: span(1, 64)}, 4)
		s.ok(s.store.Delete(context.Background(), storage.Keys(pages[8:], "full")))
		r := s.ask(span(1, 65)...)
		s.ok(s.cache.storage.queue.Wait(context.Background(), queue.Lookup))
		if gone {
			s.ok(s.cache.Abort(r))
		}
		s.tick()
		if got := s.believed(tree.Full, span(1, 64)); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Fatalf("believed are %v", got)
		}
		if !gone {
			s.ok(s.cache.Abort(r))
		}
		s.serve(span(1, 64)...)
		s.quiet()
		wantInt(t, "stored", s.pagesOf(tree.Full), 16)
	}
}

// A lookup that fails says nothing about pages.
func TestBufferFailedLookupHealsNothing(t *testing.T) {
	s := staging(t, false)
	s.warm(span(1, 8))
	s.faulty.Set(storage.Fault{When: storage.On(storage.OpExists), Fail: true, Kind: storage.Unreachable})
	r := s.ask(span(1, 9)...)
	s.sync()
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 2)
	s.ok(s.cache.Abort(r))
	s.quiet()
}

// BO-13: a write that failed is believed, until a lookup misses it; then it is
// written again.
func TestBufferFailedWriteIsHealed(t *testing.T) {
	s := staging(t, false)
	s.faulty.Set(storage.Fault{When: storage.On(storage.OpPut), Fail: true, Kind: storage.Unreachable})
	s.serve(span(1, 8)...)
	s.quiet()
	s.faulty.Set()
	wantInt(t, "stored", s.pagesOf(tree.Full), 0)
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 2)
	s.serve(span(1, 8)...)
	s.backlogged()
	s.evict(tree.Full, 8, 8)
	r := s.ask(span(1, 9)...)
	s.sync()
	s.ok(s.cache.Abort(r))
	s.serve(span(1, 8)...)
	s.backlogged("full 8")
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 2)
}

// A copy that fails leaves nothing behind, and its node asks again.
func TestBufferFailedCopy(t *testing.T) {
	s := staging(t, true)
	s.cache.host.faults = &faults{copy: func(pool.Copy) error { return errors.New("injected") }}
	s.serve(span(1, 8)...)
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full)+s.pagesOf(tree.SWA), 0)
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 0)
	wantInt(t, "failed", int(s.cache.Stats().CopiesFailed), 2)
	s.cache.host.faults = nil
	s.serve(span(1, 9)...)
	s.backlogged("full 8", "swa 8")
	s.quiet()
}

// BO-5: of too many beliefs the oldest go, and asking makes one recent.
func TestBeliefs(t *testing.T) {
	b := newBeliefs(2)
	name := func(i byte) pageName { return pageName{"full", tree.Digest{i}} }
	b.add(name(1))
	b.add(name(2))
	if !b.has(name(1)) {
		t.Fatal("forgotten")
	}
	b.add(name(3))
	if b.has(name(2)) || !b.has(name(1)) || !b.has(name(3)) {
		t.Fatal("the one that was asked for last has gone")
	}
	b.remove(name(1))
	b.add(name(4))
	if !b.has(name(3)) || b.has(name(1)) || b.order.Len() != len(b.at) {
		t.Fatal("a page too many has gone")
	}
}

// AT-11: what is written while the store is emptied is not believed to be there.
func TestClearDuringAWrite(t *testing.T) {
	s := staging(t, false)
	s.serve(span(1, 8)...)
	s.tick()
	s.ok(s.cache.Engine().Wait(t.Context(), pool.ToHost))
	s.tick()
	s.ok(s.cache.storage.queue.Wait(t.Context(), queue.Write))
	s.ok(s.cache.ClearStorage(t.Context()))
	s.quiet()
	wantInt(t, "stored", s.pagesOf(tree.Full), 0)
	wantInt(t, "believed", len(s.believed(tree.Full, span(1, 8))), 0)
	s.serve(span(1, 9)...)
	s.backlogged("full 8")
	s.quiet()
}
