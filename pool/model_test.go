// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// TestRandomPagedAgainstModel compares a paged pool with a plain set of pages.
func TestRandomPagedAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SampledFrom([]int{1, 3, 4, 16}).Draw(t, "page")
		pages := rapid.IntRange(0, 200).Draw(t, "pages")
		p, err := NewPaged("full", pages*page+rapid.IntRange(0, page-1).Draw(t, "rest"), page)
		if err != nil {
			t.Fatal(err)
		}
		held := map[int]bool{} // allocated pages
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.IntRange(0, pages/2+1).Draw(t, "n")
				got, err := p.Alloc(n * page)
				if n > pages-len(held) {
					var e *ExhaustedError
					if !errors.As(err, &e) || e.Free != (pages-len(held))*page {
						t.Fatalf("%v", err)
					}
					return
				}
				if err != nil || got.Len() != n*page {
					t.Fatalf("%v %v", got, err)
				}
				for _, s := range sample(t, got) {
					if s%page == 0 {
						if held[s/page] || s/page < 1 || s/page > pages {
							t.Fatalf("page %d handed out", s/page)
						}
						held[s/page] = true
					}
				}
			},
			"free": func(t *rapid.T) {
				var list tree.Slots
				touched := map[int]bool{}
				used := map[int]bool{}
				wrong := false
				for range rapid.IntRange(0, 4).Draw(t, "runs") {
					first := rapid.IntRange(0, (pages+2)*page).Draw(t, "first")
					length := rapid.IntRange(1, 3*page).Draw(t, "length")
					list = append(list, tree.Run{First: tree.Slot(first), Length: uint32(length)})
					for s := first; s < first+length; s++ {
						wrong = wrong || !held[s/page] || used[s]
						used[s], touched[s/page] = true, true
					}
				}
				err := p.Free(list)
				var e *FreeError
				if wrong {
					if !errors.As(err, &e) || e.Slots.Len() == 0 || e.Reason == "" {
						t.Fatalf("free %v: %v", list, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for k := range touched {
					delete(held, k)
				}
			},
			"": func(t *rapid.T) {
				if err := p.Check(); err != nil {
					t.Fatal(err)
				}
				if p.Available() != (pages-len(held))*page {
					t.Fatalf("available %d, held %d pages", p.Available(), len(held))
				}
				free := sample(t, p.FreeSlots())
				for _, s := range free {
					if held[s/page] {
						t.Fatalf("slot %d is held and free", s)
					}
				}
				if !slices.IsSorted(free) || len(free) != p.Available() {
					t.Fatalf("free slots %v", free)
				}
			},
		})
	})
}

func sample(t *rapid.T, list tree.Slots) []int {
	n, err := list.Numbers()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int, len(n))
	for i, s := range n {
		out[i] = int(s)
	}
	return out
}

// TestRandomDualAgainstModel drives rows as requests do, and compares the twins
// of every position with a plain model.
func TestRandomDualAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SampledFrom([]int{1, 4}).Draw(t, "page")
		full, swa := rapid.IntRange(1, 30).Draw(t, "full")*page, rapid.IntRange(1, 20).Draw(t, "swa")*page
		d, err := NewDual(full, swa, page)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := NewDual(full, swa, page) // must stay equal: determinism
		type row struct {
			slots    tree.Slots
			frontier int // twins below are gone
		}
		var rows []*row
		freeFull, freeSWA := full, swa
		pick := func(t *rapid.T) *row {
			if len(rows) == 0 {
				t.Skip()
			}
			return rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")]
		}
		same := func(err, twin error) {
			if fmt.Sprint(err) != fmt.Sprint(twin) {
				t.Fatalf("two pools disagree: %v and %v", err, twin)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(*rapid.T) { rows = append(rows, &row{}) },
			"extend": func(t *rapid.T) {
				r := pick(t)
				n := r.slots.Len()
				x := Extension{Prefix: n, Seq: n + rapid.IntRange(0, 3*page+1).Draw(t, "n"), Last: NoSlot}
				if n > 0 {
					_, last := r.slots.At(n - 1)
					x.Last = int64(last)
				}
				need := (PagesFor(x.Seq, page) - PagesFor(n, page)) * page
				got, err := d.AllocExtend(r.slots.Clone(), x)
				again, err2 := other.AllocExtend(r.slots.Clone(), x)
				same(err, err2)
				if !got.Equal(again) {
					t.Fatalf("two pools disagree: %v and %v", got, again)
				}
				if need > min(freeFull, freeSWA) {
					var e *ExhaustedError
					if !errors.As(err, &e) || !got.Equal(r.slots) {
						t.Fatalf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r.slots = got
				freeFull, freeSWA = freeFull-need, freeSWA-need
			},
			"window": func(t *rapid.T) {
				r := pick(t)
				to := rapid.IntRange(0, r.slots.Len()).Draw(t, "to") / page * page
				from := rapid.IntRange(0, to).Draw(t, "from")
				list := r.slots.Slice(from, to)
				same(d.FreeSWA(list), other.FreeSWA(list))
				if err := d.FreeSWA(list); err != nil {
					t.Fatal(err)
				}
				// The model frees from the frontier only, so free the gap too.
				if from > r.frontier {
					rest := r.slots.Slice(r.frontier, from)
					same(d.FreeSWA(rest), other.FreeSWA(rest))
				}
				if to > r.frontier && from < to {
					freeSWA += to - r.frontier
					r.frontier = to
				} else if from/page*page > r.frontier {
					freeSWA += from/page*page - r.frontier
					r.frontier = from / page * page
				}
			},
			"free": func(t *rapid.T) {
				r := pick(t)
				same(d.Free(r.slots), other.Free(r.slots))
				held := PagesFor(r.slots.Len(), page) * page
				freeFull, freeSWA = freeFull+held, freeSWA+held-r.frontier
				rows = slices.DeleteFunc(rows, func(x *row) bool { return x == r })
				if held > 0 {
					var e *FreeError
					if err := d.Free(r.slots); !errors.As(err, &e) {
						t.Fatalf("freed twice: %v", err)
					}
				}
			},
			"": func(t *rapid.T) {
				if err := d.Check(nil); err != nil {
					t.Fatal(err)
				}
				if d.Full().Available() != freeFull || d.SWA().Available() != freeSWA {
					t.Fatalf("available %d/%d, model %d/%d", d.Full().Available(), d.SWA().Available(), freeFull, freeSWA)
				}
				for _, r := range rows {
					twins, err := d.Translate(r.slots)
					if err != nil {
						t.Fatal(err)
					}
					for i, twin := range sample(t, twins) {
						if (twin == 0) != (i < r.frontier) {
							t.Fatalf("position %d of a row with frontier %d has twin %d", i, r.frontier, twin)
						}
					}
				}
			},
		})
	})
}
