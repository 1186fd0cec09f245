// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

// group collects frees that take effect together (rule AL-6).
type group struct {
	open  bool
	marks bitmap // pages collected so far; without levels while no group is open
}

// BeginFreeGroup starts a group: from now on frees are checked and collected,
// and take effect together at EndFreeGroup. Within a group a page may be freed
// by one call only. Groups do not nest: a second begin is an *OrderError.
func (p *Paged) BeginFreeGroup() error {
	if p.group.open {
		return &OrderError{Op: "BeginFreeGroup", Problem: "a group of pool " + p.name + " is open: end it first"}
	}
	p.group = group{open: true, marks: newBitmap(p.free.n)}
	return nil
}

// EndFreeGroup makes the frees of the group take effect. Without a group it is
// an *OrderError.
func (p *Paged) EndFreeGroup() error {
	if !p.group.open {
		return &OrderError{Op: "EndFreeGroup", Problem: "no group of pool " + p.name + " is open: begin one first"}
	}
	for lo := p.group.marks.next(0); lo < p.group.marks.n; {
		hi := p.group.marks.runEnd(lo, p.group.marks.n)
		p.free.add(lo, hi)
		lo = p.group.marks.next(hi)
	}
	p.group = group{}
	return nil
}
