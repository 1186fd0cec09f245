// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// Dual is a Full pool and a sliding-window (SWA) pool with pages of one size,
// and the map from each Full slot to its SWA slot, its twin. The map takes four
// bytes a Full slot. A Full slot without twin maps to 0.
//
// A request allocates both sides together. The SWA side can be freed alone when
// a position leaves the window.
type Dual struct {
	full, swa Paged
	twins     []tree.Slot // by Full slot; 0: none
	// Reused by calls, so that they allocate nothing.
	fresh, scratch tree.Slots
}

// NewDual returns a pool of full and swa slots in pages of page slots.
func NewDual(full, swa, page int) (*Dual, error) {
	f, err := NewPaged("full", full, page)
	if err != nil {
		return nil, err
	}
	s, err := NewPaged("swa", swa, page)
	if err != nil {
		return nil, err
	}
	return &Dual{full: *f, swa: *s, twins: make([]tree.Slot, page+f.Size())}, nil
}

// Full returns the Full side, for questions. Allocating or freeing there
// bypasses the map; FreeFullOnly and Free are the ways to do it.
func (d *Dual) Full() *Paged { return &d.full }

// SWA returns the SWA side, for questions, and for slots that get their Full
// twin later through SetMap.
func (d *Dual) SWA() *Paged { return &d.swa }

// Available returns the number of slots that Alloc could give: that of the side
// which has fewer.
func (d *Dual) Available() int { return min(d.full.Available(), d.swa.Available()) }

// Clear brings both sides and the map back to their initial state.
func (d *Dual) Clear() {
	d.full.Clear()
	d.swa.Clear()
	clear(d.twins)
}

// Resize sets both sizes and clears.
func (d *Dual) Resize(full, swa int) error {
	for _, size := range []int{full, swa} {
		if size < 0 || size > maxSlots {
			return &ArgumentError{Op: "Resize", Field: "size", Problem: fmt.Sprintf("%d slots: allowed is 0 to %d", size, maxSlots)}
		}
	}
	if err := d.full.Resize(full); err != nil {
		return err
	}
	if err := d.swa.Resize(swa); err != nil {
		return err
	}
	d.twins = make([]tree.Slot, d.full.page+d.full.Size())
	return nil
}

// Alloc returns n Full slots with twins. If either side is short, nothing is
// taken from either and the *ExhaustedError names the side.
func (d *Dual) Alloc(n int) (tree.Slots, error) {
	dst := tree.Slots{}
	pages, err := d.full.pages("Alloc", n)
	if err == nil {
		err = d.have(pages, pages)
	}
	if err != nil {
		return dst, err
	}
	dst = d.full.take(dst, pages, -1)
	d.scratch = d.swa.take(d.scratch[:0], pages, -1)
	d.pair(dst, d.scratch, 0)
	return dst, nil
}

func (d *Dual) have(full, swa int) error {
	if err := d.full.have(full); err != nil {
		return err
	}
	return d.swa.have(swa)
}

// AllocExtend is Paged.AllocExtend with a twin for each slot.
func (d *Dual) AllocExtend(dst tree.Slots, extensions ...Extension) (tree.Slots, error) {
	pages := 0
	for _, x := range extensions {
		n, err := d.full.newPages("AllocExtend", x)
		if err != nil {
			return dst, err
		}
		pages += n
	}
	if err := d.have(pages, pages); err != nil {
		return dst, err
	}
	for _, x := range extensions {
		dst = d.extend(dst, x, x.Seq-x.Prefix)
	}
	return dst, nil
}

// AllocDecode is Paged.AllocDecode with a twin for the slot.
func (d *Dual) AllocDecode(dst tree.Slots, seq int, last int64) (tree.Slots, error) {
	return d.AllocExtend(dst, Extension{Prefix: seq - 1, Seq: seq, Last: last})
}

// AllocExtendTail is AllocExtend of one row where only the last tail positions,
// rounded up to whole pages, get twins. The tail is 0 to the number of new
// positions; anything else is an *ArgumentError.
func (d *Dual) AllocExtendTail(dst tree.Slots, x Extension, tail int) (tree.Slots, error) {
	pages, err := d.full.newPages("AllocExtendTail", x)
	if err != nil {
		return dst, err
	}
	if tail < 0 || tail > x.Seq-x.Prefix {
		return dst, &ArgumentError{Op: "AllocExtendTail", Field: "tail", Problem: fmt.Sprintf("%d positions: allowed is 0 to %d, the number of new ones", tail, x.Seq-x.Prefix)}
	}
	if err := d.have(pages, d.tailPages(x, tail)); err != nil {
		return dst, err
	}
	return d.extend(dst, x, tail), nil
}

// tailPages returns how many of the new pages of x hold the last tail positions.
func (d *Dual) tailPages(x Extension, tail int) int {
	if tail == 0 {
		return 0
	}
	first := max((x.Seq-tail)/d.full.page, PagesFor(x.Prefix, d.full.page))
	return PagesFor(x.Seq, d.full.page) - first
}

// extend appends the slots of a valid extension that both sides have room for,
// and gives twins to the new pages of the last tail positions. The rest of a
// page that is partly filled has its twins already: pages are paired whole.
func (d *Dual) extend(dst tree.Slots, x Extension, tail int) tree.Slots {
	want := x.Seq - x.Prefix
	if rest := min(want, PagesFor(x.Prefix, d.full.page)*d.full.page-x.Prefix); rest > 0 {
		dst = dst.AppendRun(tree.Run{First: tree.Slot(x.Last + 1), Length: uint32(rest)})
		want -= rest
	}
	if want == 0 {
		return dst
	}
	near, nearTwin := -1, -1
	if x.Prefix > 0 {
		near = int(x.Last) / d.full.page
		if twin := d.twins[x.Last]; twin != 0 {
			nearTwin = int(twin) / d.full.page
		}
	}
	pages, paired := PagesFor(want, d.full.page), d.tailPages(x, tail)
	d.fresh = d.full.take(d.fresh[:0], pages, near)
	d.scratch = d.swa.take(d.scratch[:0], paired, nearTwin)
	d.pair(d.fresh, d.scratch, (pages-paired)*d.full.page)
	return cut(dst.Append(d.fresh), pages*d.full.page-want)
}

// pair writes the map: the Full slots from the given place of their list on get
// the SWA slots in order, of which there are exactly as many.
func (d *Dual) pair(full, swa tree.Slots, from int) {
	source := reader{list: swa}
	for _, r := range full {
		skip := min(from, int(r.Length))
		from -= skip
		for i := range d.twins[int(r.First)+skip : int(r.First)+int(r.Length)] {
			d.twins[int(r.First)+skip+i] = source.next()
		}
	}
}

// reader reads a list slot by slot. It is the user's duty not to read more than
// there is.
type reader struct {
	list tree.Slots
	at   uint32
}

func (r *reader) next() tree.Slot {
	for r.at == r.list[0].Length {
		r.list, r.at = r.list[1:], 0
	}
	r.at++
	return r.list[0].First + tree.Slot(r.at) - 1
}

// BeginFreeGroup begins a group on both sides; see Paged.BeginFreeGroup. The map
// forgets freed slots at once.
func (d *Dual) BeginFreeGroup() error {
	if d.swa.group.open { // found before the other side's group begins
		return d.swa.BeginFreeGroup()
	}
	if err := d.full.BeginFreeGroup(); err != nil {
		return err
	}
	return d.swa.BeginFreeGroup()
}

// EndFreeGroup ends the group of both sides.
func (d *Dual) EndFreeGroup() error {
	if !d.swa.group.open {
		return d.swa.EndFreeGroup()
	}
	if err := d.full.EndFreeGroup(); err != nil {
		return err
	}
	return d.swa.EndFreeGroup()
}
