// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"math"
	"testing"

	"github.com/treecore/treecore/tree"
)

func wantDual(t *testing.T, d *Dual, full, swa int) {
	t.Helper()
	if d.Full().Available() != full || d.SWA().Available() != swa {
		t.Fatalf("available %d/%d, want %d/%d", d.Full().Available(), d.SWA().Available(), full, swa)
	}
	if d.Available() != min(full, swa) {
		t.Fatalf("available %d, want the smaller side", d.Available())
	}
}

func wantSound(t *testing.T, d *Dual, detached ...tree.Slot) {
	t.Helper()
	if err := d.Check(tree.SlotsOf(detached...)); err != nil {
		t.Fatal(err)
	}
}

func TestXAL7NothingTakenFromEither(t *testing.T) {
	d := must[*Dual](t)(NewDual(8, 4, 1))
	_, err := d.Alloc(5)
	wantExhausted(t, err, "swa", 5, 4)
	wantDual(t, d, 8, 4)
	_, err = d.Alloc(9)
	wantExhausted(t, err, "full", 9, 8)
	_, err = d.AllocExtend(nil, Extension{Seq: 5, Last: NoSlot})
	wantExhausted(t, err, "swa", 5, 4)
	wantDual(t, d, 8, 4)
	wantSound(t, d)
}

func TestXAL8FreeSWATwice(t *testing.T) {
	d := must[*Dual](t)(NewDual(8, 4, 1))
	list := must[tree.Slots](t)(d.Alloc(3))
	wantSlots(t, list, 1, 2, 3)
	wantSlots(t, must[tree.Slots](t)(d.Translate(list)), 1, 2, 3)
	for range 2 {
		if err := d.FreeSWA(tree.SlotsOf(1, 2)); err != nil {
			t.Fatal(err)
		}
		wantDual(t, d, 5, 3)
	}
	if err := d.Free(list); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 8, 4)
	wantRefused(t, d.Free(tree.SlotsOf(2)), 2)
	wantSound(t, d)
}

func TestXAL9FreeWithAndWithoutTwin(t *testing.T) {
	d := must[*Dual](t)(NewDual(8, 12, 1))
	must[tree.Slots](t)(d.Alloc(6))
	if err := d.FreeSWA(tree.Numbered(1, 6)); err != nil {
		t.Fatal(err)
	}
	nine := must[tree.Slots](t)(d.SWA().Alloc(3)) // 7, 8, 9
	wantSlots(t, nine, 7, 8, 9)
	if err := d.SWA().Free(tree.SlotsOf(7, 8)); err != nil {
		t.Fatal(err)
	}
	if err := d.SetMap(tree.SlotsOf(5), tree.SlotsOf(9)); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 2, 11)
	if err := d.Free(tree.SlotsOf(5, 6)); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 4, 12)
	if twin := must[int64](t)(d.TwinOf(5)); twin != 0 {
		t.Fatalf("map[5] = %d", twin)
	}
	if twin := must[int64](t)(d.TwinOf(NoSlot)); twin != NoSlot {
		t.Fatalf("map[-1] = %d", twin)
	}
	if _, err := d.TwinOf(9); err == nil {
		t.Fatal("slot 9 of 8 has a twin")
	}
	wantSound(t, d)
}

func TestXAL10MapLengths(t *testing.T) {
	d := must[*Dual](t)(NewDual(8, 8, 1))
	must[tree.Slots](t)(d.Alloc(2))
	var bad *ArgumentError
	if err := d.SetMap(tree.SlotsOf(1, 2), tree.SlotsOf(7)); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	wantSlots(t, must[tree.Slots](t)(d.Translate(tree.SlotsOf(1, 2))), 1, 2)
	wantRefused(t, d.SetMap(tree.SlotsOf(9), tree.SlotsOf(1)), 9)
	wantRefused(t, d.SetMap(tree.SlotsOf(1), tree.SlotsOf(0)), 0)
	wantRefused(t, d.ClearMap(tree.SlotsOf(0)), 0)
	wantRefused(t, d.FreeSWA(tree.SlotsOf(1, 9)), 9)
	if _, err := d.Translate(tree.SlotsOf(9)); err == nil {
		t.Fatal("a foreign slot was translated")
	}
	wantSound(t, d)
}

// X-CT-4's pool part: a twin moves from the incoming slot to the kept one.
func TestAL20MoveMap(t *testing.T) {
	d := must[*Dual](t)(NewDual(9, 9, 1))
	must[tree.Slots](t)(d.Alloc(9))
	if err := d.FreeSWA(tree.SlotsOf(4)); err != nil {
		t.Fatal(err)
	}
	var bad *ArgumentError
	if _, err := d.MoveMap(tree.SlotsOf(9), tree.SlotsOf(4)); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if _, err := d.MoveMap(tree.SlotsOf(5), tree.SlotsOf(9)); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	wantSlots(t, must[tree.Slots](t)(d.MoveMap(tree.SlotsOf(4), tree.SlotsOf(9))), 9)
	if err := d.FreeFullOnly(tree.SlotsOf(9)); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 1, 1)
	if twin := must[int64](t)(d.TwinOf(4)); twin != 9 {
		t.Fatalf("map[4] = %d, want 9", twin)
	}
	wantSound(t, d)
}

func TestAL18PagesAreWidened(t *testing.T) {
	d := must[*Dual](t)(NewDual(32, 16, 4))
	row := must[tree.Slots](t)(d.AllocExtend(nil, Extension{Seq: 10, Last: NoSlot}))
	wantSlots(t, row, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
	if err := d.FreeSWA(tree.SlotsOf(6, 5)); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 20, 8)
	row = must[tree.Slots](t)(d.AllocDecode(row, 11, 13)) // slot 14 has a twin already
	if twin := must[int64](t)(d.TwinOf(14)); twin != 14 {
		t.Fatalf("map[14] = %d", twin)
	}
	// Two runs on one page: freed once, on both sides.
	if err := d.FreeSegments([]Segment{{row.Slice(4, 5), 4}, {row.Slice(7, 11), 7}}); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 28, 16)
	if err := d.FreeSegment(row.Slice(0, 4), 0); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 32, 16)
	wantSound(t, d)
}

func TestAL22Tail(t *testing.T) {
	d := must[*Dual](t)(NewDual(40, 16, 4))
	row := must[tree.Slots](t)(d.AllocExtendTail(nil, Extension{Seq: 18, Last: NoSlot}, 5))
	wantDual(t, d, 20, 8) // positions 13..17: pages of 12 and 16
	wantSlots(t, must[tree.Slots](t)(d.Translate(row)),
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 7, 8, 9)
	row = must[tree.Slots](t)(d.AllocExtendTail(row, Extension{Prefix: 18, Seq: 30, Last: 21}, 0))
	wantDual(t, d, 8, 8)
	wantSlots(t, must[tree.Slots](t)(d.Translate(row.Slice(18, 30))), 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	var bad *ArgumentError
	for _, tail := range []int{-1, 3} {
		if _, err := d.AllocExtendTail(nil, Extension{Prefix: 30, Seq: 32, Last: 33}, tail); !errors.As(err, &bad) {
			t.Fatalf("tail %d: %v", tail, err)
		}
	}
	if err := d.Free(row); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 40, 16)
	wantSound(t, d)
}

func TestDualGroupAndClear(t *testing.T) {
	d := must[*Dual](t)(NewDual(8, 8, 1))
	must[tree.Slots](t)(d.Alloc(8))
	if err := d.BeginFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if d.BeginFreeGroup() == nil {
		t.Fatal("groups nest")
	}
	for _, err := range []error{d.FreeSWA(tree.SlotsOf(1, 2)), d.FreeSWA(tree.SlotsOf(1)), d.Free(tree.SlotsOf(2, 3))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantRefused(t, d.Free(tree.SlotsOf(3)), 3)
	wantDual(t, d, 0, 0)
	wantSound(t, d)
	if err := d.EndFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if d.EndFreeGroup() == nil {
		t.Fatal("a group ends twice")
	}
	wantDual(t, d, 2, 3)
	wantSound(t, d)
	d.Clear()
	wantDual(t, d, 8, 8)
	if err := d.Resize(4, 2); err != nil {
		t.Fatal(err)
	}
	wantDual(t, d, 4, 2)
	if d.Resize(-1, 2) == nil || d.Resize(4, -1) == nil {
		t.Fatal("negative sizes are accepted")
	}
	wantDual(t, d, 4, 2)
	if _, err := NewDual(4, -1, 1); err == nil {
		t.Fatal("a negative size is accepted")
	}
}

// Check finds each kind of damage to the map.
func TestDualCheckFindsDamage(t *testing.T) {
	damage := map[string]func(d *Dual) error{
		"shared twin":       func(d *Dual) error { return d.SetMap(tree.SlotsOf(1), tree.SlotsOf(2)) },
		"twin without Full": func(d *Dual) error { return d.ClearMap(tree.SlotsOf(1)) },
		"free twin":         func(d *Dual) error { return d.SWA().Free(tree.SlotsOf(1)) },
		"free Full":         func(d *Dual) error { return d.Full().Free(tree.SlotsOf(1)) },
		"wrong count":       func(d *Dual) error { d.full.free.count++; return nil },
		"wrong level":       func(d *Dual) error { d.swa.free.levels[1][0] ^= 1; return nil },
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			d := must[*Dual](t)(NewDual(80, 80, 1))
			must[tree.Slots](t)(d.Alloc(3))
			wantSound(t, d)
			if err := do(d); err != nil {
				t.Fatal(err)
			}
			var found *CheckError
			if err := d.Check(nil); !errors.As(err, &found) {
				t.Fatalf("check: %v", err)
			}
		})
	}
}

// Calls with lists that repeat a slot, or sides in different states, are refused
// before anything changes.
func TestDualRefusesWhatItCannotUndo(t *testing.T) {
	d, err := NewDual(16, 16, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(2); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Full().Alloc(2); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"one target twice": func() error { _, err := d.MoveMap(tree.SlotsOf(3, 3), tree.SlotsOf(1, 2)); return err },
		"one source twice": func() error { _, err := d.MoveMap(tree.SlotsOf(3, 4), tree.SlotsOf(1, 1)); return err },
		"set twice":        func() error { return d.SetMap(tree.SlotsOf(3, 4), tree.SlotsOf(5, 5)) },
		"foreign slots":    func() error { return d.Check(tree.SlotsOf(1 << 30)) },
	} {
		if call() == nil {
			t.Errorf("%s was accepted", name)
		}
		if err := d.Check(nil); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	if err := d.SWA().BeginFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if d.BeginFreeGroup() == nil {
		t.Error("a group began although one side's was open")
	}
	if err := d.Full().BeginFreeGroup(); err != nil {
		t.Errorf("the other side's group was left open: %v", err)
	}
}

// A page that was freed in an open group is nobody's to extend.
func TestExtendIntoAFreedPage(t *testing.T) {
	p, err := NewPaged("p", 16, 4)
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.AllocExtend(nil, Extension{Seq: 1, Last: NoSlot})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.BeginFreeGroup(); err != nil {
		t.Fatal(err)
	}
	if err := p.Free(row); err != nil {
		t.Fatal(err)
	}
	if _, err := p.AllocExtend(nil, Extension{Prefix: 1, Seq: 3, Last: int64(row[0].First)}); err == nil {
		t.Error("the freed page was extended")
	}
}

// Lengths that no pool can have are refused, not wrapped.
func TestExtensionsBeyondEveryPool(t *testing.T) {
	for _, page := range []int{1, 4} {
		p, err := NewPaged("p", 64, page)
		if err != nil {
			t.Fatal(err)
		}
		x := Extension{Seq: math.MaxInt, Last: NoSlot}
		if _, err := p.AllocExtend(nil, x, x); err == nil || p.Available() != 64 {
			t.Errorf("page %d: %v, %d available", page, err, p.Available())
		}
	}
}

// A slot without twin does not run on into the pool's first slots.
func TestTranslateKeepsNoneApart(t *testing.T) {
	d := must[*Dual](t)(NewDual(4, 4, 1))
	first := must[tree.Slots](t)(d.SWA().Alloc(1)) // slot 1
	full := must[tree.Slots](t)(d.Alloc(2))
	if err := errors.Join(d.ClearMap(full), d.SetMap(full.Slice(1, 2), first)); err != nil {
		t.Fatal(err)
	}
	if got := must[tree.Slots](t)(d.Translate(full)); len(got) != 2 || got[0] != (tree.Run{Length: 1}) || got[1] != (tree.Run{First: 1, Length: 1}) {
		t.Fatalf("%v", got)
	}
}
