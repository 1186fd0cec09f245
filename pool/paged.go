// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"slices"

	"github.com/treecore/treecore/tree"
)

// Paged is a pool that gives and takes whole pages of consecutive slots. With
// pages of P slots, page k holds the slots kP .. kP+P-1; pages are numbered
// from 1. NewPaged makes one; the zero value is of no use.
type Paged struct {
	name  string
	page  int
	first int    // slot at which the first page begins: page on the device, 0 on the host
	free  bitmap // free pages, by their order
	next  int    // where the search for free pages goes on
	group group
}

// NewPaged returns a pool of size slots in pages of page slots. A rest of size
// that does not fill a page is not used. The name appears in errors. A page
// below 1, or a size below 0 or beyond 32 bits, is an *ArgumentError.
func NewPaged(name string, size, page int) (*Paged, error) {
	p := &Paged{name: name, page: page, first: page}
	if page < 1 || page > maxSlots {
		return nil, &ArgumentError{Op: "NewPaged", Field: "page", Problem: fmt.Sprintf("%d slots: a page has 1 slot or more", page)}
	}
	if err := p.Resize(size); err != nil {
		return nil, err
	}
	return p, nil
}

// Name returns the pool's name.
func (p *Paged) Name() string { return p.name }

// PageSize returns the number of slots in a page.
func (p *Paged) PageSize() int { return p.page }

// Size returns the number of slots that can be handed out: those of whole pages.
func (p *Paged) Size() int { return p.free.n * p.page }

// Available returns the number of free slots. Slots freed inside a group count
// from the group's end on.
func (p *Paged) Available() int { return p.free.count * p.page }

// Clear brings the pool back to its initial state: everything is free, and an
// open group is ended and what it collected forgotten.
func (p *Paged) Clear() {
	p.free.fill()
	p.next = 0
	p.group = group{}
}

// Resize sets the size and clears the pool.
func (p *Paged) Resize(size int) error {
	if size < 0 || size > maxSlots {
		return &ArgumentError{Op: "Resize", Field: "size", Problem: fmt.Sprintf("%d slots: allowed is 0 to %d", size, maxSlots)}
	}
	p.free = newBitmap(size / p.page)
	p.Clear()
	return nil
}

// Alloc returns n slots, whole pages in the order in which they were found.
// It is an *ArgumentError if n is no multiple of the page, and an
// *ExhaustedError with nothing taken if fewer are free. The list is the
// caller's.
func (p *Paged) Alloc(n int) (tree.Slots, error) { return p.AppendAlloc(tree.Slots{}, n) }

// AppendAlloc is Alloc with the slots appended to dst. After an error the
// result is dst as it was.
func (p *Paged) AppendAlloc(dst tree.Slots, n int) (tree.Slots, error) {
	pages, err := p.pages("Alloc", n)
	if err == nil {
		err = p.have(pages)
	}
	if err != nil {
		return dst, err
	}
	return p.take(dst, pages, -1), nil
}

// pages converts a number of slots to pages.
func (p *Paged) pages(op string, n int) (int, error) {
	if n < 0 || n%p.page != 0 {
		return 0, &ArgumentError{Op: op, Field: "n", Problem: fmt.Sprintf("%d slots: it must be a multiple of the page of %d, and not negative", n, p.page)}
	}
	return n / p.page, nil
}

// have reports a shortage of free pages.
func (p *Paged) have(pages int) error {
	if pages > p.free.count {
		return &ExhaustedError{Pool: p.name, Want: pages * p.page, Free: p.Available()}
	}
	return nil
}

// take allocates pages that are known to be free. It begins at the page index
// near if that is free, so that a growing request stays in one run; after that,
// and with near below 0, it goes on where the last search ended. Going round
// leaves freed pages time to grow together before they are handed out again.
func (p *Paged) take(dst tree.Slots, pages, near int) tree.Slots {
	if near >= 0 && near < p.free.n && pages > 0 {
		if end := p.free.runEnd(near, min(p.free.n, near+pages)); end > near {
			pages -= p.free.remove(near, end)
			dst = dst.AppendRun(p.run(near, end))
			if p.next == near {
				p.next = end
			}
		}
	}
	for pages > 0 {
		lo := p.free.next(p.next)
		if lo == p.free.n {
			lo = p.free.next(0)
		}
		hi := p.free.runEnd(lo, min(p.free.n, lo+pages))
		pages -= p.free.remove(lo, hi)
		dst = dst.AppendRun(p.run(lo, hi))
		p.next = hi
	}
	return dst
}

// run returns the slots of the pages with indices lo .. hi-1.
func (p *Paged) run(lo, hi int) tree.Run {
	return tree.Run{First: tree.Slot(p.first + lo*p.page), Length: uint32((hi - lo) * p.page)}
}

// index returns the indices lo .. hi-1 of the pages that a run touches. The run
// must lie in the pool.
func (p *Paged) index(r tree.Run) (lo, hi int) {
	return (int(r.First) - p.first) / p.page, (int(r.First)+int(r.Length)-1-p.first)/p.page + 1
}

// inside reports whether all slots of a run are slots of this pool.
func (p *Paged) inside(r tree.Run) bool {
	return r.Buffer == 0 && int(r.First) >= p.first && int(r.First)+int(r.Length) <= p.first+p.Size()
}

// Free takes back the pages that the list touches, each once whatever number of
// its slots is named. A list that names a slot twice, or slots that are free or
// not of this pool, is refused as a whole with a *FreeError.
func (p *Paged) Free(list tree.Slots) error {
	_, err := p.release(list)
	return err
}

// FreeSegment frees a piece of one request's row: the slots of the positions
// from start on. It is Free with a check that the piece lies on the pages as
// positions do.
func (p *Paged) FreeSegment(list tree.Slots, start int) error {
	if err := p.checkSegment(list, start); err != nil {
		return err
	}
	return p.Free(list)
}

func (p *Paged) checkSegment(list tree.Slots, start int) error {
	at := start
	for _, r := range list {
		if r.Length > 0 && (start < 0 || int(r.First)%p.page != at%p.page) {
			return &ArgumentError{Op: "FreeSegment", Field: "list", Problem: fmt.Sprintf("slot %d stands at position %d: with pages of %d their remainders must be equal", r.First, at, p.page)}
		}
		at += int(r.Length)
	}
	return nil
}

// Segment is a piece of a row: the slots of the positions from Start on.
type Segment struct {
	Slots tree.Slots
	Start int
}

// FreeSegments frees ascending, disjoint pieces of one row. A page that one
// piece ends in and the next begins in is freed once.
func (p *Paged) FreeSegments(pieces []Segment) error {
	list, err := p.joinSegments(pieces)
	if err != nil {
		return err
	}
	return p.Free(list)
}

func (p *Paged) joinSegments(pieces []Segment) (tree.Slots, error) {
	list, end := tree.Slots{}, 0
	for _, s := range pieces {
		if s.Start < end {
			return nil, &ArgumentError{Op: "FreeSegments", Field: "pieces", Problem: fmt.Sprintf("a piece starts at %d, before the end %d of the one before it", s.Start, end)}
		}
		if err := p.checkSegment(s.Slots, s.Start); err != nil {
			return nil, err
		}
		list, end = list.Append(s.Slots), s.Start+s.Slots.Len()
	}
	return list, nil
}

// release frees the list. shared tells that two runs of it touch one page.
func (p *Paged) release(list tree.Slots) (shared bool, err error) {
	for _, r := range list {
		if r.Length == 0 {
			continue
		}
		if !p.inside(r) {
			return false, p.refuse(list)
		}
		if lo, hi := p.index(r); p.free.any(lo, hi) || p.group.marks.any(lo, hi) {
			return false, p.refuse(list)
		}
	}
	target := &p.free
	if p.group.open {
		target = &p.group.marks
	}
	for i, r := range list {
		if r.Length == 0 {
			continue
		}
		lo, hi := p.index(r)
		if target.any(lo, hi) && !shared {
			// A page that an earlier run of this list has touched.
			if twice := repeated(list); len(twice) > 0 {
				undo(p, target, list[:i])
				return false, &FreeError{Pool: p.name, Slots: twice, Reason: "named twice in one call"}
			}
			shared = true
		}
		target.add(lo, hi)
	}
	return shared, nil
}

// restore undoes a release of the list that succeeded.
func (p *Paged) restore(list tree.Slots) {
	if p.group.open {
		undo(p, &p.group.marks, list)
		return
	}
	undo(p, &p.free, list)
}

func undo(p *Paged, target *bitmap, list tree.Slots) {
	for _, r := range list {
		if r.Length > 0 {
			target.remove(p.index(r))
		}
	}
}

// refuse finds out which slots of a list cannot be freed. It takes time per
// slot, which does not matter since it ends in an error.
func (p *Paged) refuse(list tree.Slots) error {
	e := &FreeError{Pool: p.name}
	add := func(reason string, r tree.Run) {
		if e.Reason == "" && r.Length > 0 {
			e.Reason = reason
		}
		e.Slots = e.Slots.AppendRun(r)
	}
	outside := fmt.Sprintf("not of this pool, which has %d to %d", p.first, p.first+p.Size()-1)
	for _, r := range list {
		if r.Buffer != 0 {
			add("opaque: a pool frees numbered slots only", r)
			continue
		}
		first, end := int(r.First), int(r.First)+int(r.Length)
		lo, hi := min(max(first, p.first), end), max(min(end, p.first+p.Size()), first)
		add(outside, tree.Run{First: r.First, Length: uint32(lo - first)})
		for i := lo; i < hi; i++ {
			one := tree.Run{First: tree.Slot(i), Length: 1}
			switch {
			case p.free.any(p.index(one)):
				add("not allocated", one)
			case p.group.marks.any(p.index(one)):
				add("freed already in this group", one)
			}
		}
		if hi = max(lo, hi); hi < end {
			add(outside, tree.Run{First: tree.Slot(hi), Length: uint32(end - hi)})
		}
	}
	return e
}

// repeated returns the slots that a list names more than once.
func repeated(list tree.Slots) tree.Slots {
	sorted := list.Clone()
	slices.SortFunc(sorted, func(a, b tree.Run) int {
		if a.First != b.First {
			return int(int64(a.First) - int64(b.First))
		}
		return int(int64(a.Length) - int64(b.Length))
	})
	var twice tree.Slots
	end := 0
	for _, r := range sorted {
		stop := int(r.First) + int(r.Length)
		if over := min(end, stop) - int(r.First); over > 0 {
			twice = twice.AppendRun(tree.Run{First: r.First, Length: uint32(over)})
		}
		end = max(end, stop)
	}
	return twice
}

// Allocated reports whether the slot is one of this pool and handed out. One
// that was freed in an open group is not.
func (p *Paged) Allocated(s tree.Slot) bool {
	one := tree.Run{First: s, Length: 1}
	if !p.inside(one) {
		return false
	}
	lo, hi := p.index(one)
	return !p.free.any(lo, hi) && !(p.group.open && p.group.marks.any(lo, hi))
}

// FreeSlots returns all free slots in rising order.
func (p *Paged) FreeSlots() tree.Slots {
	list := tree.Slots{}
	for lo := p.free.next(0); lo < p.free.n; {
		hi := p.free.runEnd(lo, p.free.n)
		list = list.AppendRun(p.run(lo, hi))
		if hi == p.free.n {
			break
		}
		lo = p.free.next(hi)
	}
	return list
}

// Check verifies the pool's own books. Its cost is the size of the pool.
func (p *Paged) Check() error {
	if err := p.free.check(); err != nil {
		return &CheckError{Pool: p.name, Problem: err.Error()}
	}
	for lo := p.group.marks.next(0); lo < p.group.marks.n; lo = p.group.marks.next(lo + 1) {
		if p.free.any(lo, lo+1) {
			return &CheckError{Pool: p.name, Problem: fmt.Sprintf("page %d is free and waits in a group at once", lo+1)}
		}
	}
	return nil
}
