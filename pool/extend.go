// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// NoSlot stands for "no last slot" in an Extension of an empty row.
const NoSlot = -1

// Extension asks for the slots of the positions Prefix .. Seq-1 of one row.
type Extension struct {
	Prefix int   // positions that have slots already
	Seq    int   // positions that shall have slots
	Last   int64 // slot of position Prefix-1; NoSlot if Prefix is 0
}

// AllocExtend appends the slots that the extensions ask for to dst, one after
// the other: first the rest of the last, partly filled page, then whole new
// pages, then the beginning of one more. New pages follow the last one where
// those are free. Without enough free pages it is an *ExhaustedError with
// nothing taken; a Last that does not stand where its position does is an
// *ArgumentError. After an error the result is dst as it was.
func (p *Paged) AllocExtend(dst tree.Slots, extensions ...Extension) (tree.Slots, error) {
	pages := 0
	for _, x := range extensions {
		n, err := p.newPages("AllocExtend", x)
		if err != nil {
			return dst, err
		}
		pages += n
	}
	if err := p.have(pages); err != nil {
		return dst, err
	}
	for _, x := range extensions {
		dst = p.extend(dst, x)
	}
	return dst, nil
}

// AllocDecode appends one slot a row to dst, for position seq-1 where last is
// the slot of position seq-2 (NoSlot if there is none). Errors are those of
// AllocExtend.
func (p *Paged) AllocDecode(dst tree.Slots, seq int, last int64) (tree.Slots, error) {
	return p.AllocExtend(dst, Extension{Prefix: seq - 1, Seq: seq, Last: last})
}

// newPages validates an extension and returns how many new pages it needs.
func (p *Paged) newPages(op string, x Extension) (int, error) {
	if x.Prefix < 0 || x.Seq < x.Prefix || x.Seq > maxSlots {
		return 0, &ArgumentError{Op: op, Field: "extension", Problem: fmt.Sprintf("positions %d to %d: they must rise from 0 or more to %d at most", x.Prefix, x.Seq, maxSlots)}
	}
	if x.Prefix == 0 && x.Last != NoSlot {
		return 0, &ArgumentError{Op: op, Field: "last", Problem: fmt.Sprintf("slot %d: a row without positions has none, pass NoSlot", x.Last)}
	}
	if x.Prefix > 0 {
		if x.Last < 0 || x.Last > maxSlots || !p.Allocated(tree.Slot(x.Last)) {
			return 0, &ArgumentError{Op: op, Field: "last", Problem: fmt.Sprintf("slot %d is not allocated in pool %s", x.Last, p.name)}
		}
		if (int(x.Last)+1)%p.page != x.Prefix%p.page {
			return 0, &ArgumentError{Op: op, Field: "last", Problem: fmt.Sprintf("slot %d cannot be that of position %d: with pages of %d their remainders must be equal", x.Last, x.Prefix-1, p.page)}
		}
	}
	return PagesFor(x.Seq, p.page) - PagesFor(x.Prefix, p.page), nil
}

// extend appends the slots of a valid extension whose pages are free.
func (p *Paged) extend(dst tree.Slots, x Extension) tree.Slots {
	want := x.Seq - x.Prefix
	if rest := min(want, PagesFor(x.Prefix, p.page)*p.page-x.Prefix); rest > 0 {
		dst = dst.AppendRun(tree.Run{First: tree.Slot(x.Last + 1), Length: uint32(rest)})
		want -= rest
	}
	if want == 0 {
		return dst
	}
	near := -1
	if x.Prefix > 0 {
		near = int(x.Last) / p.page // index of the page behind the last one
	}
	dst = p.take(dst, PagesFor(want, p.page), near)
	return cut(dst, PagesFor(want, p.page)*p.page-want)
}

// cut drops the last n slots of a list, all of them in its last run.
func cut(list tree.Slots, n int) tree.Slots {
	list[len(list)-1].Length -= uint32(n)
	return list
}

// PagesFor returns how many pages of the given size n slots need. page must be 1
// or more.
func PagesFor(n, page int) int {
	pages := n / page
	if n%page > 0 {
		pages++
	}
	return pages
}
