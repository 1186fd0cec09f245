// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/treecore/treecore/tree"
)

// The table of X-OW-1 to X-OW-10.
func TestXOWFrontier(t *testing.T) {
	for _, x := range []struct {
		id                                             string
		page, window, protected, frontier, pre, retain int
		to, freedFrom, freedTo                         int
	}{
		{"X-OW-1", 1, 4, 0, 0, 9, noRetain, 5, 0, 5},
		{"X-OW-2", 1, 4, 0, 5, 15, noRetain, 11, 5, 11},
		{"X-OW-3", 16, 4, 0, 0, 39, noRetain, 16, 0, 16},
		{"X-OW-4", 16, 4, 0, 0, 31, noRetain, 0, 0, 0},
		{"X-OW-5", 16, 32, 32, 0, 63, noRetain, 32, 32, 32},
		{"X-OW-6", 16, 32, 0, 0, 95, noRetain, 48, 0, 48},
		{"X-OW-7", 1, 32, 0, 0, 199, 96, 96, 0, 96},
		{"X-OW-8", 1, 32, 0, 0, 40, -16, 0, 0, 0},
		{"X-OW-9", 4, 8, 0, 4, 15, noRetain, 4, 4, 4},
		{"X-OW-10", 16, 20, 0, 0, 35, noRetain, 0, 0, 0},
		{"X-OW-10, tokens less 1", 16, 20, 0, 0, 36, noRetain, 16, 0, 16},
	} {
		from, to, err := nextFrontier(x.page, x.window, x.protected, x.frontier, 0, x.pre, x.retain, false)
		if err != nil || from != x.freedFrom || to != x.freedTo || to != x.to {
			t.Errorf("%s: frees [%d,%d) %v, want [%d,%d)", x.id, from, to, err, x.freedFrom, x.freedTo)
		}
	}
	if _, _, err := nextFrontier(4, 8, 6, 0, 0, 15, noRetain, false); err == nil {
		t.Error("a protected length inside a page was accepted")
	}
	if from, to, _ := nextFrontier(4, 8, 0, 0, 5, 30, noRetain, false); from != 8 || to != 20 {
		t.Errorf("floor 5: [%d,%d), want [8,20)", from, to)
	}
	if _, to, _ := nextFrontier(1, 4, 0, 0, 0, 10, 2, true); to != 6 {
		t.Errorf("without a tree the frontier is %d, want 6: the retain floor is not looked at", to)
	}
}

// C-003 in its small form, and a sweep: the leaf keeps a window at the boundary
// of the insert, whatever the length, page and window, with and without bigrams.
func TestC003LeafKeepsItsWindow(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, false), PageSize: 4, SlidingWindow: 7, Eagle: true},
		Pools: PoolSizes{Full: 64, SWA: 64},
	}
	m := newModel(t, o)
	r := m.start(span(1, 16)...)
	m.prefill(r, 16)
	wantInt(t, "frontier", r.Frontier(), 12) // raised to what the tree owns
	wantInt(t, "SWA in the tree", m.cache.Usage(tree.SWA).Protected+m.cache.Usage(tree.SWA).Evictable, 8)
	wantInt(t, "protected", r.Protected(), 12)
	m.finish(r)
	wantInt(t, "reuse", m.reuse(span(1, 16)...).DeviceLen, 12)

	for _, page := range []int{1, 4, 16} {
		for window := 1; window <= 2*page+5; window += 1 + page/4 {
			for _, eagle := range []bool{false, true} {
				o.Tree.PageSize, o.Tree.SlidingWindow, o.Tree.Eagle = page, window, eagle
				o.Pools = PoolSizes{Full: 128, SWA: 128}
				m := newModel(t, o)
				for n := 1; n <= 4*page+7; n++ {
					m.ok(m.cache.Reset())
					r := m.start(span(1, n)...)
					m.prefill(r, n)
					units := max(n-m.cache.extra, 0)
					got := m.reuse(span(1, n)...).DeviceLen
					wantInt(t, fmt.Sprintf("page %d window %d eagle %v length %d", page, window, eagle, n), got, units-units%page)
					m.finish(r)
				}
				wantInt(t, "short rematches", int(m.cache.Stats().ShortRematches), 0)
			}
		}
	}
}

// C-005: what decode gave back is never handed to the tree.
func TestC005FinishAfterDecodeFreedTheWindow(t *testing.T) {
	for _, insert := range []bool{true, false} {
		o := Options{
			Tree:  tree.Options{Components: components(true, false), SlidingWindow: 4},
			Pools: PoolSizes{Full: 20, SWA: 12},
		}
		m := newModel(t, o)
		r := m.start(1)
		m.compute(r, 1)
		m.decode(r, span(2, 10)...)
		wantInt(t, "frontier", r.Frontier(), 5)
		m.ok(m.cache.Finish(r, insert))
		if !insert {
			wantInt(t, "free Full", m.free(tree.Full), 20)
			wantInt(t, "free SWA", m.free(tree.SWA), 12)
			continue
		}
		wantInt(t, "free SWA", m.free(tree.SWA), 12-5)
		wantInt(t, "reuse", m.reuse(span(1, 10)...).DeviceLen, 10)
		wantInt(t, "reuse inside", m.reuse(span(1, 6)...).DeviceLen, 0)
	}
}

// C-050: what a kept page more than a window is worth.
func TestC050EditingTheTail(t *testing.T) {
	for _, keep := range []int{12, 8} {
		o := Options{
			Tree:  tree.Options{Components: components(true, false), PageSize: 4, SlidingWindow: 8},
			Pools: PoolSizes{Full: 200, SWA: 200},
		}
		m := newModel(t, o)
		r := m.start(span(1, 22)...)
		m.compute(r, 22)
		// 22 tokens: the insert ends at 20 and the window from 12 is kept.
		if keep == 8 {
			// A page more stays, as if the request had branched there.
			m.cache.window += 4
		}
		m.ok(m.cache.CacheUnfinished(r))
		m.cache.window = 8
		m.finish(r)
		for shared := 1; shared <= 22; shared++ {
			want := 0
			if shared >= 20 {
				want = 20
			} else if shared >= 16 && keep == 8 {
				want = 16
			}
			got := m.reuse(join(span(1, shared), span(101, 110))...)
			wantInt(t, fmt.Sprintf("keep %d, %d shared", keep, shared), got.DeviceLen, want)
			wantInt(t, "Full-only", got.FullHitLen, shared/4*4)
			if e := got.Explanation; want == 0 && shared >= 4 && (!e.Limited || e.LimitedBy != tree.SWA) {
				t.Fatalf("%d shared: %+v does not name the window", shared, e)
			}
		}
	}
}

// OW-3: the window below a checkpoint stays while decode goes on, so that the
// checkpoint can be used after the request's end.
func TestOW3WindowBelowCheckpoint(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 8},
		Pools: PoolSizes{Full: 100, SWA: 100, Mamba: 8},
	}
	m := newModel(t, o)
	r := m.start(span(1, 10)...)
	m.prefill(r, 10)
	wantInt(t, "protected", r.Protected(), 8)
	m.decode(r, span(11, 23)...)
	wantInt(t, "frontier", r.Frontier(), 12) // the checkpoint of 16 needs 12..15
	m.finish(r)
	wantInt(t, "reuse", m.reuse(span(1, 30)...).DeviceLen, 16)
	wantInt(t, "reuse at run time", m.run(8, span(1, 30)...), 16)
}

// OW-5: after a window of decoded tokens the prefix's window may go.
func TestOW5EarlyRelease(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, true), SlidingWindow: 4, CheckpointGrid: 4},
		Pools: PoolSizes{Full: 100, SWA: 100, Mamba: 8},
	}
	m := newModel(t, o)
	m.run(8, span(1, 8)...)
	r := m.start(span(1, 9)...)
	wantInt(t, "reused", r.Len(), 8)
	m.compute(r, 1)
	m.decode(r, 10, 11, 12)
	wantInt(t, "protected SWA", m.cache.Usage(tree.SWA).Protected, 4)
	wantInt(t, "protected states", m.cache.Usage(tree.Mamba).Protected, 1)
	m.decode(r, 13)
	wantInt(t, "protected SWA", m.cache.Usage(tree.SWA).Protected, 0)
	wantInt(t, "protected states", m.cache.Usage(tree.Mamba).Protected, 0)
	wantInt(t, "protected Full", m.cache.Usage(tree.Full).Protected, 8)
	wantInt(t, "releases", int(m.cache.Stats().EarlyReleases), 1)
	if _, err := m.cache.Evict(tree.SWA, 100); err != nil {
		t.Fatal(err)
	}
	m.check()
	m.decode(r, span(14, 20)...)
	m.ok(m.cache.CacheUnfinished(r)) // and on: the row stays sound
	m.decode(r, span(21, 30)...)
	m.finish(r)
	wantInt(t, "protected Full", m.cache.Usage(tree.Full).Protected, 0)
}

// After an early release the window below the lock may be gone, so that the end
// of the next insert is no place to resume. The request is past that: it goes on
// from there all the same, and owns nothing that the tree owns.
func TestCacheAfterEarlyRelease(t *testing.T) {
	o := Options{
		Tree:  tree.Options{Components: components(true, false), PageSize: 4, SlidingWindow: 6},
		Pools: PoolSizes{Full: 100, SWA: 100},
	}
	m := newModel(t, o)
	r := m.start(span(1, 8)...)
	m.prefill(r, 8)
	m.decode(r, span(9, 14)...)
	wantInt(t, "released", int(m.cache.Stats().EarlyReleases), 1)
	_, err := m.cache.Evict(tree.SWA, 8)
	m.ok(err)
	m.ok(m.cache.CacheUnfinished(r))
	wantInt(t, "short rematches", int(m.cache.Stats().ShortRematches), 1)
	wantInt(t, "protected", r.Protected(), 12)
	wantInt(t, "reuse", m.reuse(span(1, 20)...).DeviceLen, 0)
	m.decode(r, span(15, 30)...)
	m.finish(r)
	wantInt(t, "reuse", m.reuse(span(1, 30)...).DeviceLen, 28)
}
