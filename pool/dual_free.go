// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"

	"github.com/treecore/treecore/tree"
)

// Free takes back the pages that the list touches, and the twins that they
// have; their map entries become 0. Errors are those of Paged.Free.
func (d *Dual) Free(list tree.Slots) error {
	shared, err := d.full.release(list)
	if err != nil {
		return err
	}
	touched := list
	if shared {
		touched = d.full.distinct(list)
	}
	d.scratch = d.collect(d.scratch[:0], touched)
	if len(d.scratch) > 0 {
		if err := d.swa.Free(d.scratch); err != nil {
			d.full.restore(list)
			return err
		}
	}
	d.forget(touched)
	return nil
}

// FreeSegment is Free of a piece of a row; see Paged.FreeSegment.
func (d *Dual) FreeSegment(list tree.Slots, start int) error {
	if err := d.full.checkSegment(list, start); err != nil {
		return err
	}
	return d.Free(list)
}

// FreeSegments is Free of pieces of one row; see Paged.FreeSegments.
func (d *Dual) FreeSegments(pieces []Segment) error {
	list, err := d.full.joinSegments(pieces)
	if err != nil {
		return err
	}
	return d.Free(list)
}

// FreeSWA takes back only the twins of the Full slots in the list, widened to
// whole pages; their map entries become 0. Slots without twin are skipped, so
// repeating the call does no harm.
func (d *Dual) FreeSWA(list tree.Slots) error {
	if err := d.known(list); err != nil {
		return err
	}
	d.scratch = d.collect(d.scratch[:0], list)
	if len(d.scratch) == 0 {
		return nil
	}
	touched := list
	shared, err := d.swa.release(d.scratch)
	if err != nil || shared {
		// Only a list that touches a page twice can get here.
		if err == nil {
			d.swa.restore(d.scratch)
		}
		touched = d.full.distinct(list)
		d.scratch = d.collect(d.scratch[:0], touched)
		if err := d.swa.Free(d.scratch); err != nil {
			return err
		}
	}
	d.forget(touched)
	return nil
}

// FreeFullOnly takes back only the Full side. Twins must be gone or belong to
// somebody else by now; the map entries become 0.
func (d *Dual) FreeFullOnly(list tree.Slots) error {
	if err := d.full.Free(list); err != nil {
		return err
	}
	d.forget(list)
	return nil
}

// known refuses a list with slots that are not of the Full side.
func (d *Dual) known(list tree.Slots) error {
	for _, r := range list {
		if r.Length > 0 && !d.full.inside(r) {
			return d.full.refuse(list)
		}
	}
	return nil
}

// widen returns the slots of the pages that a run touches, as [lo, hi).
func (d *Dual) widen(r tree.Run) (lo, hi tree.Slot) {
	page := tree.Slot(d.full.page)
	return r.First / page * page, (r.First + tree.Slot(r.Length) + page - 1) / page * page
}

// collect appends the twins of all pages that the list touches, in order.
func (d *Dual) collect(dst, list tree.Slots) tree.Slots {
	for _, r := range list {
		if r.Length == 0 {
			continue
		}
		lo, hi := d.widen(r)
		run := tree.Run{}
		for _, twin := range d.twins[lo:hi] {
			if run.Length > 0 && twin == run.First+tree.Slot(run.Length) {
				run.Length++
				continue
			}
			dst, run = dst.AppendRun(run), tree.Run{}
			if twin != 0 {
				run = tree.Run{First: twin, Length: 1}
			}
		}
		dst = dst.AppendRun(run)
	}
	return dst
}

// forget sets the map entries of all pages that the list touches to 0.
func (d *Dual) forget(list tree.Slots) {
	for _, r := range list {
		if r.Length > 0 {
			lo, hi := d.widen(r)
			clear(d.twins[lo:hi])
		}
	}
}

// distinct returns the pages that the list touches as whole runs in rising
// order, each once.
func (p *Paged) distinct(list tree.Slots) tree.Slots {
	sorted := list.Clone()
	slices.SortFunc(sorted, func(a, b tree.Run) int { return int(int64(a.First) - int64(b.First)) })
	out, from := tree.Slots{}, 0
	for _, r := range sorted {
		if r.Length == 0 {
			continue
		}
		lo, hi := p.index(r)
		if lo = max(lo, from); lo < hi {
			out, from = out.AppendRun(p.run(lo, hi)), hi
		}
	}
	return out
}
