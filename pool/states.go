// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import "github.com/treecore/treecore/tree"

// States is a pool of recurrent states: one slot is one whole state.
type States struct {
	Token
	reserve tree.Slots // taken for the open alloc group, not handed out yet
}

// NewStates returns a pool of size states.
func NewStates(name string, size int) (*States, error) {
	t, err := NewToken(name, size)
	if err != nil {
		return nil, err
	}
	return &States{Token: *t}, nil
}

// BeginAllocGroup reserves n states if that many are free, otherwise none, and
// reports whether it did. Alloc(1) takes from the reserve first. A group that
// is open is ended before.
func (p *States) BeginAllocGroup(n int) bool {
	p.EndAllocGroup()
	if n < 0 || n > p.Available() {
		return false
	}
	p.reserve = p.take(p.reserve[:0], n, -1)
	return true
}

// EndAllocGroup gives back what is left of the reserve. Without an open group
// it does nothing.
func (p *States) EndAllocGroup() {
	for _, r := range p.reserve {
		p.free.add(p.index(r))
	}
	p.reserve = p.reserve[:0]
}

// Reserved returns how many states wait in the open group's reserve.
func (p *States) Reserved() int { return p.reserve.Len() }

// Alloc returns n states; see Paged.Alloc.
func (p *States) Alloc(n int) (tree.Slots, error) { return p.AppendAlloc(tree.Slots{}, n) }

// AppendAlloc is Alloc with the states appended to dst.
func (p *States) AppendAlloc(dst tree.Slots, n int) (tree.Slots, error) {
	if n == 1 && len(p.reserve) > 0 {
		first := &p.reserve[0]
		dst = dst.AppendRun(tree.Run{First: first.First, Length: 1})
		first.First, first.Length = first.First+1, first.Length-1
		if first.Length == 0 {
			p.reserve = p.reserve[:copy(p.reserve, p.reserve[1:])]
		}
		return dst, nil
	}
	return p.Token.AppendAlloc(dst, n)
}

// AllocOne returns one state.
func (p *States) AllocOne() (tree.Slot, error) {
	var buf [1]tree.Run
	list, err := p.AppendAlloc(buf[:0], 1)
	if err != nil {
		return 0, err
	}
	return list[0].First, nil
}

// FreeOne takes one state back.
func (p *States) FreeOne(s tree.Slot) error {
	return p.Free(tree.Slots{{First: s, Length: 1}})
}

// Clear brings the pool back to its initial state; an open group is forgotten.
func (p *States) Clear() {
	p.reserve = nil
	p.Token.Clear()
}

// Resize sets the size and clears the pool.
func (p *States) Resize(size int) error {
	if err := p.Token.Resize(size); err != nil {
		return err
	}
	p.reserve = nil
	return nil
}

// Free takes states back; see Paged.Free. A state that waits in the reserve is
// not allocated.
func (p *States) Free(list tree.Slots) error {
	for _, r := range p.reserve {
		for _, l := range list {
			if l.Buffer == 0 && l.First < r.First+tree.Slot(r.Length) && r.First < l.First+tree.Slot(l.Length) {
				lo := max(l.First, r.First)
				hi := min(l.First+tree.Slot(l.Length), r.First+tree.Slot(r.Length))
				return &FreeError{Pool: p.name, Slots: tree.Numbered(lo, int(hi-lo)), Reason: "not allocated"}
			}
		}
	}
	return p.Token.Free(list)
}
