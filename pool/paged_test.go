// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/treecore/treecore/tree"
)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func numbers(t *testing.T, s tree.Slots) []tree.Slot {
	t.Helper()
	n, err := s.Numbers()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantSlots(t *testing.T, got tree.Slots, want ...tree.Slot) {
	t.Helper()
	if d := cmp.Diff(append([]tree.Slot{}, want...), numbers(t, got)); d != "" {
		t.Fatalf("slots (-want +got):\n%s", d)
	}
}

func wantFree(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("available %d, want %d", got, want)
	}
}

func wantExhausted(t *testing.T, err error, pool string, want, free int) {
	t.Helper()
	var e *ExhaustedError
	if !errors.As(err, &e) || *e != (ExhaustedError{Pool: pool, Want: want, Free: free}) {
		t.Fatalf("error %v, want exhausted %s %d/%d", err, pool, want, free)
	}
}

func wantRefused(t *testing.T, err error, slots ...tree.Slot) {
	t.Helper()
	var e *FreeError
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want *FreeError", err)
	}
	wantSlots(t, e.Slots, slots...)
}

// paged4 is the pool of X-AL-1: pages 1 to 7 of 4 slots, of which 1, 2, 3 are free.
func paged4(t *testing.T) *Paged {
	p := must[*Paged](t)(NewPaged("full", 4*7+3, 4))
	wantFree(t, p.Size(), 28)
	all := must[tree.Slots](t)(p.Alloc(28))
	if len(all) != 1 {
		t.Fatalf("a new pool gives %d runs, want 1", len(all))
	}
	if err := p.Free(tree.Numbered(4, 12)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestXAL1ExtendFillsPageThenTakesNewOnes(t *testing.T) {
	p := paged4(t)
	got := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Prefix: 6, Seq: 11, Last: 29}))
	wantSlots(t, got, 30, 31, 4, 5, 6)
	wantSlots(t, p.FreeSlots(), 8, 9, 10, 11, 12, 13, 14, 15)
}

func TestXAL2Decode(t *testing.T) {
	p := paged4(t)
	row := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Prefix: 6, Seq: 11, Last: 29}))
	row = must[tree.Slots](t)(p.AllocDecode(row, 12, 6))
	wantFree(t, p.Available(), 8)
	row = must[tree.Slots](t)(p.AllocDecode(row, 13, 7))
	wantSlots(t, row, 30, 31, 4, 5, 6, 7, 8)
	wantFree(t, p.Available(), 4)
}

func TestXAL3FreeSegment(t *testing.T) {
	p := paged4(t)
	row := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Prefix: 6, Seq: 11, Last: 29}))
	if err := p.FreeSegment(row, 5); err == nil {
		t.Fatal("a start that does not fit the slots was accepted")
	}
	if err := p.FreeSegment(row, 6); err != nil {
		t.Fatal(err)
	}
	wantSlots(t, p.FreeSlots(), 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 28, 29, 30, 31)
}

func TestXAL4FreeSegmentsSharePage(t *testing.T) {
	p := must[*Paged](t)(NewPaged("full", 40, 4))
	row := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Prefix: 0, Seq: 10, Last: NoSlot}))
	pieces := []Segment{{row.Slice(4, 7), 4}, {row.Slice(7, 10), 7}}
	if err := p.FreeSegments(pieces); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 36)
	if err := p.FreeSegments([]Segment{{row.Slice(2, 4), 2}, {row.Slice(0, 1), 0}}); err == nil {
		t.Fatal("descending pieces were accepted")
	}
	// Two pieces with a hole between them on one page.
	row = must[tree.Slots](t)(p.Alloc(4))
	if err := p.FreeSegments([]Segment{{row.Slice(0, 1), 0}, {row.Slice(3, 4), 3}}); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 36)
}

func TestXAL5Exhausted(t *testing.T) {
	p := must[*Token](t)(NewToken("full", 3))
	wantSlots(t, must[tree.Slots](t)(p.Alloc(3)), 1, 2, 3)
	_, err := p.Alloc(1)
	wantExhausted(t, err, "full", 1, 0)
	wantFree(t, p.Available(), 0)
	if none := must[tree.Slots](t)(p.Alloc(0)); none == nil || len(none) != 0 {
		t.Fatalf("no slots are %v, want an empty list", none)
	}
}

// X-AL-6 and C-052: the same slot twice, free slots, foreign slots.
func TestXAL6C052Refusals(t *testing.T) {
	p := must[*Token](t)(NewToken("full", 4))
	held := must[tree.Slots](t)(p.Alloc(3))
	for _, c := range []struct {
		list  tree.Slots
		named []tree.Slot
	}{
		{tree.Slots{{First: 2, Length: 1}, {First: 2, Length: 1}}, []tree.Slot{2}},
		{tree.SlotsOf(2, 3, 2), []tree.Slot{2}},
		{tree.Slots{{First: 1, Length: 3}, {First: 2, Length: 1}}, []tree.Slot{2}},
		{tree.SlotsOf(4), []tree.Slot{4}},
		{tree.SlotsOf(1, 9), []tree.Slot{9}},
		{tree.SlotsOf(0), []tree.Slot{0}},
		{tree.Numbered(0, 6), []tree.Slot{0, 4, 5}},
		{tree.SlotsOf(2, 4, 1), []tree.Slot{4}},
	} {
		wantRefused(t, p.Free(c.list), c.named...)
		wantSlots(t, p.FreeSlots(), 4)
	}
	var e *FreeError
	if err := p.Free(tree.Slots{{Buffer: 1, First: 1, Length: 1}}); !errors.As(err, &e) {
		t.Fatalf("opaque slots: %v", err)
	}
	if err := p.Free(nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Free(held); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, p.Free(tree.SlotsOf(1)), 1)
	wantFree(t, p.Available(), 4)
	if got := p.Free(tree.SlotsOf(1)).Error(); got != "pool full: slot 1 is not allocated: nothing was freed" {
		t.Fatalf("text %q", got)
	}
}

func TestAL13PageIsFreedOnce(t *testing.T) {
	p := must[*Paged](t)(NewPaged("full", 12, 4))
	must[tree.Slots](t)(p.Alloc(12))
	if err := p.Free(tree.SlotsOf(4, 6, 9, 5)); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 8)
	wantRefused(t, p.Free(tree.SlotsOf(12, 14, 12)), 12)
	wantRefused(t, p.Free(tree.SlotsOf(3)), 3) // the dummy page
	wantRefused(t, p.Free(tree.SlotsOf(4)), 4)
	wantFree(t, p.Available(), 8)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestAL10And11Arguments(t *testing.T) {
	p := must[*Paged](t)(NewPaged("full", 12, 4))
	row := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Seq: 6, Last: NoSlot}))
	wantSlots(t, row, 4, 5, 6, 7, 8, 9)
	var bad *ArgumentError
	for _, x := range []Extension{
		{Prefix: 6, Seq: 5, Last: 9}, {Prefix: -1, Seq: 5, Last: 9}, {Prefix: 6, Seq: 8, Last: 8},
		{Prefix: 6, Seq: 8, Last: 13}, {Prefix: 6, Seq: 8, Last: NoSlot}, {Prefix: 0, Seq: 8, Last: 9},
	} {
		if _, err := p.AllocExtend(nil, x); !errors.As(err, &bad) {
			t.Fatalf("%+v: %v", x, err)
		}
	}
	if _, err := p.Alloc(6); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	_, err := p.AllocExtend(nil, Extension{Prefix: 6, Seq: 13, Last: 9})
	wantExhausted(t, err, "full", 8, 4)
	// Two requests of one call: 1 slot from the rest of a page, 4 new ones.
	two := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Prefix: 6, Seq: 7, Last: 9}, Extension{Seq: 4, Last: NoSlot}))
	wantSlots(t, two, 10, 12, 13, 14, 15)
	if _, err := NewPaged("full", 12, 0); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if _, err := NewPaged("full", -1, 4); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if err := p.Resize(maxSlots + 1); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if err := p.Resize(8); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 8)
}

func TestAL6Groups(t *testing.T) {
	p := must[*Paged](t)(NewPaged("full", 16, 4))
	must[tree.Slots](t)(p.Alloc(16))
	var order *OrderError
	if err := p.EndFreeGroup(); !errors.As(err, &order) {
		t.Fatal(err)
	}
	if err := p.BeginFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if err := p.BeginFreeGroup(); !errors.As(err, &order) {
		t.Fatal(err)
	}
	list := tree.Numbered(4, 4)
	if err := p.Free(list); err != nil {
		t.Fatal(err)
	}
	list[0].First = 8 // the caller's buffer may change
	wantRefused(t, p.Free(tree.SlotsOf(5)), 5)
	wantRefused(t, p.Free(tree.SlotsOf(12, 12)), 12)
	if err := p.Free(tree.SlotsOf(12, 14)); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 0)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if err := p.EndFreeGroup(); err != nil {
		t.Fatal(err)
	}
	wantSlots(t, p.FreeSlots(), 4, 5, 6, 7, 12, 13, 14, 15)

	// Clear ends a group and forgets what it collected.
	if err := p.BeginFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if err := p.Free(tree.SlotsOf(8)); err != nil {
		t.Fatal(err)
	}
	p.Clear()
	if err := p.EndFreeGroup(); !errors.As(err, &order) {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 16)
}

// Freed pages are handed out again late, and a growing row stays in one run.
func TestAL5LongRuns(t *testing.T) {
	p := must[*Paged](t)(NewPaged("full", 400, 4))
	row := must[tree.Slots](t)(p.AllocExtend(nil, Extension{Seq: 10, Last: NoSlot}))
	other := must[tree.Slots](t)(p.Alloc(40))
	if err := p.Free(other.Slice(0, 8)); err != nil {
		t.Fatal(err)
	}
	row = must[tree.Slots](t)(p.AllocExtend(row, Extension{Prefix: 10, Seq: 20, Last: 13}))
	if len(row) != 1 {
		t.Fatalf("row in %d runs, want 1: %v", len(row), row)
	}
	wantSlots(t, must[tree.Slots](t)(p.Alloc(4)), 56, 57, 58, 59)
}

func TestXAL11AllocGroup(t *testing.T) {
	p := must[*States](t)(NewStates("mamba", 4))
	if !p.BeginAllocGroup(3) {
		t.Fatal("3 of 4 states were not reserved")
	}
	wantFree(t, p.Available(), 1)
	first := must[tree.Slot](t)(p.AllocOne())
	second := must[tree.Slots](t)(p.Alloc(1))
	wantFree(t, p.Available(), 1)
	wantRefused(t, p.Free(tree.SlotsOf(first, 3)), 3) // 3 is in the reserve
	p.EndAllocGroup()
	wantFree(t, p.Available(), 2)
	if p.BeginAllocGroup(3) {
		t.Fatal("3 of 2 states were reserved")
	}
	wantFree(t, p.Available(), 2)
	if !p.BeginAllocGroup(2) || !p.BeginAllocGroup(1) || p.Reserved() != 1 {
		t.Fatal("a second begin does not end the first group")
	}
	wantFree(t, p.Available(), 1)
	p.EndAllocGroup()
	if err := p.FreeOne(first); err != nil {
		t.Fatal(err)
	}
	if err := p.Free(second); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, p.FreeOne(first), first)
	wantFree(t, p.Available(), 4)
	p.BeginAllocGroup(2)
	p.Clear()
	wantFree(t, p.Available(), 4)
	if err := p.Resize(2); err != nil {
		t.Fatal(err)
	}
	wantFree(t, p.Available(), 2)
}
