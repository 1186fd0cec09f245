// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/treecore/treecore/tree"

// row is the part of a position-to-slot table that a request owns. Positions
// count from its start. It remembers where the last look was, since looks move
// forward with the window: so each costs what it yields.
type row struct {
	runs   tree.Slots
	length int

	// Position mark stands off slots into run number run.
	mark, run, off int
}

// seek moves the mark to a position, 0 to length.
func (w *row) seek(to int) {
	if to < w.mark {
		w.mark, w.run, w.off = 0, 0, 0
	}
	for w.mark < to {
		step := min(to-w.mark, int(w.runs[w.run].Length)-w.off)
		w.mark, w.off = w.mark+step, w.off+step
		if w.off == int(w.runs[w.run].Length) && w.mark < to {
			w.run, w.off = w.run+1, 0
		}
	}
}

// appendTo appends the slots of the positions from .. to-1 to dst.
func (w *row) appendTo(dst tree.Slots, from, to int) tree.Slots {
	if from >= to {
		return dst
	}
	w.seek(from)
	run, off := w.run, w.off
	for n := to - from; n > 0; run, off = run+1, 0 {
		r := w.runs[run]
		take := min(n, int(r.Length)-off)
		dst = dst.AppendRun(tree.Run{First: r.First + tree.Slot(off), Length: uint32(take)})
		n -= take
	}
	return dst
}

// dropFront forgets the first n positions.
func (w *row) dropFront(n int) {
	if n <= 0 {
		return
	}
	w.seek(n)
	w.runs = w.runs[:copy(w.runs, w.runs[w.run:])]
	w.length -= n
	if w.off > 0 {
		first := &w.runs[0]
		first.First, first.Length = first.First+tree.Slot(w.off), first.Length-uint32(w.off)
		if first.Length == 0 {
			w.runs = w.runs[:copy(w.runs, w.runs[1:])]
		}
	}
	w.mark, w.run, w.off = 0, 0, 0
}
