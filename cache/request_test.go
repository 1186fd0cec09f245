// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/treecore/treecore/tree"
)

func fullOnly(page, size int) Options {
	return Options{Tree: tree.Options{PageSize: page}, Pools: PoolSizes{Full: size}}
}

func numbers(t *testing.T, s tree.Slots) []tree.Slot {
	t.Helper()
	n, err := s.Numbers()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestXRQ1And2ChunkThenFinish(t *testing.T) {
	m := newModel(t, fullOnly(1, 20))
	m.run(3, 1, 2, 3)
	r := m.start(1, 2, 3, 4, 5, 6)
	wantInt(t, "matched", r.Matched(), 3)
	m.compute(r, 3)
	before := numbers(t, r.Row())
	m.ok(m.cache.CacheUnfinished(r))
	if d := cmp.Diff(before, numbers(t, r.Row())); d != "" {
		t.Fatalf("the row changed: %s", d)
	}
	wantInt(t, "protected", r.Protected(), 6)
	m.decode(r, 7)
	m.finish(r)
	wantInt(t, "free", m.free(tree.Full), 13)
	wantInt(t, "evictable", m.cache.Usage(tree.Full).Evictable, 7)
	wantInt(t, "duplicates", int(m.cache.Stats().DuplicatesFreed), 0)
}

// X-RQ-3 and C-063: the second request gives its copies back and reads the
// tree's slots from then on.
func TestXRQ3C063Duplicates(t *testing.T) {
	m := newModel(t, fullOnly(1, 12))
	a, b := m.start(1, 2, 3, 4), m.start(1, 2, 3, 4, 5, 6)
	m.compute(a, 4)
	m.compute(b, 6)
	own := numbers(t, b.Row())
	m.ok(m.cache.CacheUnfinished(a))
	m.ok(m.cache.CacheUnfinished(b))
	want := append(numbers(t, a.Row()), own[4:]...)
	if d := cmp.Diff(want, numbers(t, b.Row())); d != "" {
		t.Fatalf("row (-want +got):\n%s", d)
	}
	wantInt(t, "free", m.free(tree.Full), 12-6)
	wantInt(t, "duplicates", int(m.cache.Stats().DuplicatesFreed), 4)
	c := m.start(21, 22, 23, 24, 25, 26) // takes the slots that came back
	m.compute(c, 6)
	m.ok(m.cache.Abort(a))
	m.ok(m.cache.Abort(c))
	m.decode(b, 7)
	m.finish(b)
	wantInt(t, "free and evictable", m.cache.Available(tree.Full), 12)
}

func TestXRQ4To6PartialPages(t *testing.T) {
	for _, insert := range []bool{true, false} {
		m := newModel(t, fullOnly(4, 40))
		r := m.start(span(1, 10)...)
		m.prefill(r, 10)
		wantInt(t, "protected", r.Protected(), 8)
		wantInt(t, "free", m.free(tree.Full), 40-12)
		if insert {
			m.decode(r, 11)
			m.finish(r)
		} else {
			m.ok(m.cache.Abort(r))
		}
		wantInt(t, "free", m.free(tree.Full), 40-8)
		wantInt(t, "evictable", m.cache.Usage(tree.Full).Evictable, 8)
	}
}

func TestXRQ7Disabled(t *testing.T) {
	o := Options{
		Tree:     tree.Options{Components: components(true, true), SlidingWindow: 4},
		Pools:    PoolSizes{Full: 20, SWA: 20, Mamba: 1},
		Disabled: true,
	}
	m := newModel(t, o)
	for range 2 {
		r := m.start(span(1, 8)...)
		wantInt(t, "reused", r.Matched(), 0)
		m.prefill(r, 4)
		m.decode(r, 9, 10)
		wantInt(t, "protected", r.Protected(), 0)
		wantInt(t, "row", r.Row().Len(), 10)
		m.finish(r)
		for id, size := range []int{20, 20, 1} {
			wantInt(t, "free", m.free(tree.Component(id)), size)
		}
	}
	freed, err := m.cache.Evict(tree.Full, 5)
	m.ok(err)
	wantInt(t, "evicted", freed[tree.Full], 0)
}

// RQ-17 to RQ-21: what is allocated ahead comes back, and ends come once.
func TestRQ19To21Ends(t *testing.T) {
	m := newModel(t, fullOnly(4, 40))
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 10)})
	m.ok(err)
	wantOrder(t, m.cache.Extend(r, 1), Waiting)
	wantOrder(t, m.cache.Commit(r, 1), Waiting)
	wantOrder(t, m.cache.CacheUnfinished(r), Waiting)
	wantOrder(t, m.cache.Finish(r, true), Waiting)
	_, err = m.cache.Decode(r, span(1, 1))
	wantOrder(t, err, Waiting)
	m.ok(m.cache.Admit(r)) // matches by itself
	wantOrder(t, m.cache.Admit(r), Running)
	_, err = m.cache.Match(r)
	wantOrder(t, err, Running)
	_, err = m.cache.Decode(r, span(1, 1))
	wantOrder(t, err, Running)
	m.ok(m.cache.Extend(r, 25))
	wantInt(t, "free", m.free(tree.Full), 12)
	if m.cache.Commit(r, 11) == nil || m.cache.Commit(r, -1) == nil || m.cache.Extend(r, -1) == nil {
		t.Fatal("impossible numbers are accepted")
	}
	if m.cache.FinishAt(r, 1, true) == nil {
		t.Fatal("FinishAt beyond what is computed")
	}
	m.commit(r, 10)
	m.finish(r)
	wantInt(t, "free", m.free(tree.Full), 32)
	for range 2 {
		wantOrder(t, m.cache.Finish(r, true), Finished)
		wantOrder(t, m.cache.Abort(r), Finished)
		wantInt(t, "free", m.free(tree.Full), 32)
	}
	waiting, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 10)})
	m.ok(err)
	m.ok(m.cache.Abort(waiting))
	wantOrder(t, m.cache.Abort(waiting), Finished)
	other := newModel(t, fullOnly(1, 4))
	if other.cache.Abort(waiting) == nil || other.cache.Finish(nil, true) == nil || other.cache.Abort(nil) == nil {
		t.Fatal("foreign requests are accepted")
	}
}

// FinishAt keeps what comes before a stop word only.
func TestFinishAtCutsOutput(t *testing.T) {
	m := newModel(t, fullOnly(1, 40))
	r := m.start(span(1, 4)...)
	m.prefill(r, 4)
	m.decode(r, span(5, 12)...)
	m.ok(m.cache.FinishAt(r, 6, true))
	wantInt(t, "reuse", m.reuse(span(1, 12)...).DeviceLen, 6)
	wantInt(t, "free", m.free(tree.Full), 34)
}

// C-078: chunks of a request are no reuse, and both sums are the prompt.
func TestC078ReuseIsCountedOnce(t *testing.T) {
	for page, again := range map[int]int{1: 39, 4: 36} {
		m := newModel(t, fullOnly(page, 400))
		wantInt(t, "first", m.run(16, span(1, 40)...), 0)
		wantInt(t, "second", m.run(16, span(1, 40)...), again)
		s := m.cache.Stats()
		wantInt(t, "computed", int(s.ComputedTokens), 80-again)
		wantInt(t, "reused", int(s.ReusedTokens), again)

		// Both at once: neither counts its own chunks, and the slots are shared
		// as soon as both are cached.
		m = newModel(t, fullOnly(page, 400))
		a, b := m.start(span(1, 40)...), m.start(span(1, 40)...)
		for a.Len() < 40 {
			for _, r := range []*Request{a, b} {
				m.compute(r, min(16, 40-r.Len()))
				m.ok(m.cache.CacheUnfinished(r))
			}
		}
		s = m.cache.Stats()
		wantInt(t, "computed", int(s.ComputedTokens), 80)
		wantInt(t, "reused", int(s.ReusedTokens), 0)
		wantInt(t, "cached", m.cache.Usage(tree.Full).Protected, 40)
		m.finish(a)
		m.finish(b)
	}
}

// C-061: a session is closed while a request of it runs.
func TestC061CloseDuringRequest(t *testing.T) {
	ends := map[string]func(m *model, r *Request){
		"finish": func(m *model, r *Request) { m.finish(r) },
		"abort":  func(m *model, r *Request) { m.ok(m.cache.Abort(r)) },
		"split": func(m *model, r *Request) {
			m.run(4, 1, 2, 99)
			m.finish(r)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			o := fullOnly(1, 20)
			o.Tree.Sessions = true
			m := newModel(t, o)
			first, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 4), Session: "s"})
			m.ok(err)
			m.admit(first)
			m.prefill(first, 4)
			m.finish(first)
			r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 5), Session: "s"})
			m.ok(err)
			m.admit(r)
			m.compute(r, 1)
			m.decode(r, 6)
			free := m.free(tree.Full)
			m.ok(m.cache.CloseSession("s"))
			wantInt(t, "free after the close", m.free(tree.Full), free)
			m.decode(r, 7)
			end(m, r)
			for _, id := range m.cache.tree.Nodes() {
				n, err := m.cache.tree.Inspect(id)
				m.ok(err)
				wantInt(t, "session references", n.Components[tree.Full].SessionRefs, 0)
			}
			_, err = m.cache.Evict(tree.Full, 20)
			m.ok(err)
			wantInt(t, "free at the end", m.free(tree.Full), 20)
		})
	}
}

// Namespaces: equal tokens, different salts.
func TestNamespacesShareNothing(t *testing.T) {
	m := newModel(t, fullOnly(1, 40))
	m.run(8, span(1, 8)...)
	for _, ns := range []tree.Namespace{{Salt: "x"}, {ExtraKey: "x"}, {HasExtraKey: true}} {
		r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 8), Namespace: ns})
		m.ok(err)
		m.admit(r)
		wantInt(t, "reused", r.Matched(), 0)
		m.prefill(r, 8)
		m.finish(r)
	}
}
