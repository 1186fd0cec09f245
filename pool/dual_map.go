// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// SetMap lets each Full slot of the first list have the SWA slot at the same
// place of the second as its twin. Lists of different lengths, or slots that
// are not of the pool, are an error before any change. Two Full slots must not
// share a twin for longer than the caller's next step; MoveMap does both.
func (d *Dual) SetMap(full, swa tree.Slots) error {
	if full.Len() != swa.Len() {
		return &ArgumentError{Op: "SetMap", Field: "swa", Problem: fmt.Sprintf("%d slots for %d Full slots: the lists must be equally long", swa.Len(), full.Len())}
	}
	if err := d.known(full); err != nil {
		return err
	}
	for _, r := range swa {
		if r.Length > 0 && !d.swa.inside(r) {
			return d.swa.refuse(swa)
		}
	}
	if twice := repeated(full); len(twice) > 0 {
		return &ArgumentError{Op: "SetMap", Field: "full", Problem: fmt.Sprintf("slots %v stand twice", twice)}
	}
	if twice := repeated(swa); len(twice) > 0 {
		return &ArgumentError{Op: "SetMap", Field: "swa", Problem: fmt.Sprintf("slots %v stand twice: two Full slots must not share one", twice)}
	}
	d.pair(full, swa, 0)
	return nil
}

// ClearMap sets the map entries of the Full slots to 0 and frees nothing.
func (d *Dual) ClearMap(full tree.Slots) error {
	if err := d.known(full); err != nil {
		return err
	}
	for _, r := range full {
		clear(d.twins[r.First : r.First+tree.Slot(r.Length)])
	}
	return nil
}

// MoveMap gives the twins of the Full slots from to the Full slots to, position
// by position, and returns them. The lists must be equally long and disjoint,
// every slot of from must have a twin, and none of to may have one; otherwise
// nothing is changed.
func (d *Dual) MoveMap(to, from tree.Slots) (tree.Slots, error) {
	twins, err := d.Translate(from)
	if err != nil {
		return nil, err
	}
	for _, r := range twins {
		if r.First == 0 {
			return nil, &ArgumentError{Op: "MoveMap", Field: "from", Problem: fmt.Sprintf("some of the slots %v have no SWA slot", from)}
		}
	}
	if err := d.known(to); err != nil {
		return nil, err
	}
	for _, r := range to {
		for f := r.First; f < r.First+tree.Slot(r.Length); f++ {
			if d.twins[f] != 0 {
				return nil, &ArgumentError{Op: "MoveMap", Field: "to", Problem: fmt.Sprintf("slot %d has SWA slot %d already, which would be lost", f, d.twins[f])}
			}
		}
	}
	if err := d.SetMap(to, twins); err != nil {
		return nil, err
	}
	return twins, d.ClearMap(from)
}

// Translate returns the twins of the Full slots, in order; 0 where there is
// none. The list is the caller's.
func (d *Dual) Translate(full tree.Slots) (tree.Slots, error) {
	if err := d.known(full); err != nil {
		return nil, err
	}
	out := make(tree.Slots, 0, 1)
	for _, r := range full {
		run := tree.Run{}
		for _, twin := range d.twins[r.First : r.First+tree.Slot(r.Length)] {
			if run.First != 0 && twin == run.First+tree.Slot(run.Length) {
				run.Length++
				continue
			}
			out = appendTwins(out, run)
			run = tree.Run{First: twin, Length: 1}
		}
		out = appendTwins(out, run)
	}
	return out, nil
}

// AppendTwins appends the twin of each Full slot to dst, in order; 0 where there
// is none.
func (d *Dual) AppendTwins(dst []tree.Slot, full tree.Slots) ([]tree.Slot, error) {
	if err := d.known(full); err != nil {
		return dst, err
	}
	for _, r := range full {
		dst = append(dst, d.twins[r.First:r.First+tree.Slot(r.Length)]...)
	}
	return dst, nil
}

// appendTwins keeps entries of 0 apart: 0 is no slot that could start a run.
func appendTwins(dst tree.Slots, r tree.Run) tree.Slots {
	if r.First == 0 && r.Length > 0 || len(dst) > 0 && dst[len(dst)-1].First == 0 {
		if r.Length > 0 {
			dst = append(dst, r)
		}
		return dst
	}
	return dst.AppendRun(r)
}

// TwinOf returns the twin of one Full slot: 0 for none, and NoSlot for NoSlot,
// so that "no last slot" survives translation.
func (d *Dual) TwinOf(full int64) (int64, error) {
	if full == NoSlot {
		return NoSlot, nil
	}
	if full < 0 || full >= int64(len(d.twins)) {
		return 0, &ArgumentError{Op: "TwinOf", Field: "full", Problem: fmt.Sprintf("slot %d: the Full side has %d to %d", full, d.full.page, len(d.twins)-1)}
	}
	return int64(d.twins[full]), nil
}

// Check verifies both sides and the map: no twin of a free Full slot, no twin
// that is free, none shared by two Full slots, and no allocated SWA page
// without a Full slot. detached lists SWA slots that are known to have no Full
// slot at the moment. Its cost is the size of the pool.
func (d *Dual) Check(detached tree.Slots) error {
	if err := d.full.Check(); err != nil {
		return err
	}
	if err := d.swa.Check(); err != nil {
		return err
	}
	fault := func(format string, args ...any) error {
		return &CheckError{Pool: "full to swa map", Problem: fmt.Sprintf(format, args...)}
	}
	seen := newBitmap(d.swa.page + d.swa.Size())
	for f, twin := range d.twins {
		switch {
		case twin == 0:
		case !d.full.Allocated(tree.Slot(f)):
			return fault("free Full slot %d has SWA slot %d", f, twin)
		case !d.swa.Allocated(twin):
			return fault("Full slot %d has SWA slot %d, which is free", f, twin)
		case seen.any(int(twin), int(twin)+1):
			return fault("SWA slot %d is shared by Full slot %d and another one", twin, f)
		default:
			seen.add(int(twin), int(twin)+1)
		}
	}
	for _, r := range detached {
		if r.Length > 0 && !d.swa.inside(r) {
			return fault("detached SWA slots %v are not the pool's", r)
		}
		seen.add(int(r.First), int(r.First)+int(r.Length))
	}
	for i := range d.swa.free.n {
		lo := (i + 1) * d.swa.page
		if !d.swa.free.any(i, i+1) && !d.swa.group.marks.any(i, i+1) && !seen.any(lo, lo+d.swa.page) {
			return fault("SWA page %d is allocated but no Full slot has it", i+1)
		}
	}
	return nil
}
