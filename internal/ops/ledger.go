// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// ledgerLimit bounds the slot numbers of a story's pools.
const ledgerLimit = 1_000_000

// swaBase is added to the number of an SWA slot where the tree sees it, so that
// the two pools never share a number. Stories show SWA slot 5 as s5.
const swaBase = 1_000_000

// ledger is the story's pools: which Full, SWA and Mamba slots are in use, which
// SWA slot is the twin of a Full slot, and which host slots are in use. Whoever
// is neither in use by the tree nor by the request at hand is free.
//
// A fault (a slot freed twice, a twin lost) is kept in problems.
type ledger struct {
	swa bool

	full  pool
	twins []uint32 // Full slot -> SWA slot + 1; 0: no twin
	swas  pool
	mamba pool
	host  [tree.NumComponents]pool

	mine      []uint32 // Full slots that the request at hand brought
	mineState []uint32 // state slots that it brought

	problems []string
}

func (l *ledger) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// pool is a set of slots in use.
type pool struct {
	used  []bool
	seen  []uint32 // epoch in which an audit saw the slot
	epoch uint32
	count int
	next  uint32
}

func (p *pool) has(s uint32) bool { return int(s) < len(p.used) && p.used[s] }

func (p *pool) take(s uint32) {
	for int(s) >= len(p.used) {
		n := max(64, 2*len(p.used))
		p.used = append(p.used, make([]bool, n)...)
		p.seen = append(p.seen, make([]uint32, n)...)
	}
	if !p.used[s] {
		p.used[s] = true
		p.count++
	}
	p.next = max(p.next, s+1)
}

func (p *pool) release(s uint32) bool {
	if !p.has(s) {
		return false
	}
	p.used[s] = false
	p.count--
	return true
}

// alloc takes n free slots in a row, going round once the numbers are used up.
func (p *pool) alloc(n int) []uint32 {
	const wrap = 1 << 17
	start := p.next
	if start > wrap {
		start = 1
	}
	for run := 0; run < n; {
		if p.has(start + uint32(run)) {
			start, run = start+uint32(run)+1, 0
			continue
		}
		run++
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = start + uint32(i)
		p.take(out[i])
	}
	p.next = start + uint32(n)
	return out
}

// begin starts a new audit.
func (p *pool) begin() { p.epoch++ }

// mark notes that an audit met slot s; twice is false.
func (p *pool) mark(s uint32) bool {
	if int(s) >= len(p.seen) || p.seen[s] == p.epoch {
		return false
	}
	p.seen[s] = p.epoch
	return true
}

func (p *pool) marked(s uint32) bool { return int(s) < len(p.seen) && p.seen[s] == p.epoch }

// numbersOf lists the numbers of numbered slots that a story can own.
func numbersOf(s tree.Slots, base uint32) ([]uint32, error) {
	out := make([]uint32, 0, s.Len())
	for _, r := range s {
		if r.Buffer != 0 || uint64(r.First) < uint64(base) || uint64(r.First)+uint64(r.Length) > uint64(base)+ledgerLimit {
			return nil, fmt.Errorf("slots %s are not numbers that a story can own", r)
		}
		for i := range r.Length {
			out = append(out, uint32(r.First)+i-base)
		}
	}
	return out, nil
}

func slotsFrom(numbers []uint32, base uint32) tree.Slots {
	out := make(tree.Slots, 0, 2)
	for _, n := range numbers {
		out = out.AppendRun(tree.Run{First: tree.Slot(n + base), Length: 1})
	}
	return out
}

// bring takes Full slots for the request, each with an SWA twin of the same
// number where that is free.
func (l *ledger) bring(slots []uint32) {
	for _, f := range slots {
		if l.full.has(f) {
			l.problem("slot %d is in use already", f)
			continue
		}
		l.full.take(f)
		l.mine = append(l.mine, f)
		if !l.swa {
			continue
		}
		twin := f
		if l.swas.has(twin) {
			twin = l.swas.alloc(1)[0]
		}
		l.swas.take(twin)
		l.setTwin(f, twin)
	}
}

func (l *ledger) setTwin(f, twin uint32) {
	for int(f) >= len(l.twins) {
		l.twins = append(l.twins, make([]uint32, max(64, 2*len(l.twins)))...)
	}
	l.twins[f] = twin + 1
}

func (l *ledger) twin(f uint32) (uint32, bool) {
	if int(f) >= len(l.twins) || l.twins[f] == 0 {
		return 0, false
	}
	return l.twins[f] - 1, true
}

// freeTwin gives back the SWA twin of f if it has one.
func (l *ledger) freeTwin(f uint32) {
	twin, ok := l.twin(f)
	if !ok {
		return
	}
	l.twins[f] = 0
	if !l.swas.release(twin) {
		l.problem("SWA slot s%d was freed twice", twin)
	}
}

// freeFull gives back the Full side of f.
func (l *ledger) freeFull(f uint32) {
	if !l.full.release(f) {
		l.problem("slot %d was freed and is not in use", f)
	}
}

func (l *ledger) freeBoth(f uint32) {
	l.freeTwin(f)
	l.freeFull(f)
}

func (l *ledger) numbers(s tree.Slots, base uint32) []uint32 {
	out, err := numbersOf(s, base)
	if err != nil {
		l.problem("%v", err)
	}
	return out
}

// freeFullOnly frees slots whose twins must be gone already.
func (l *ledger) freeFullOnly(s tree.Slots) {
	for _, f := range l.numbers(s, 0) {
		if twin, ok := l.twin(f); ok {
			l.problem("slot %d was freed Full-only and still has the twin s%d", f, twin)
		}
		l.freeFull(f)
	}
}

// dropped frees what an eviction handed back (rule E-11).
func (l *ledger) dropped(v *tree.Evicted) {
	full := l.numbers(v.Frees.Device[tree.Full], 0)
	for _, f := range full {
		l.freeFull(f)
	}
	for _, f := range l.numbers(v.Frees.Device[tree.SWA], 0) {
		l.freeTwin(f)
	}
	for _, f := range full {
		if twin, ok := l.twin(f); ok {
			l.problem("slot %d was evicted and its twin s%d was not", f, twin)
		}
	}
	for _, s := range l.numbers(v.Frees.Device[tree.Mamba], 0) {
		if !l.mamba.release(s) {
			l.problem("state slot %d was freed and is not in use", s)
		}
	}
	for c := range l.host {
		for _, s := range l.numbers(v.Frees.Host[c], 0) {
			if !l.host[c].release(s) {
				l.problem("%s host slot %d was freed and is not in use", tree.Component(c), s)
			}
		}
	}
}

// endRequest frees what the request still owns after an insert: everything it
// brought that the tree did not take. It returns what that was.
func (l *ledger) endRequest(m Machine) (full, states []uint32) {
	l.full.begin()
	l.mamba.begin()
	for _, r := range m.FlattenFull() {
		for i := range r.Length {
			l.full.mark(uint32(r.First) + i)
		}
	}
	for _, r := range m.FlattenMamba() {
		for i := range r.Length {
			l.mamba.mark(uint32(r.First) + i)
		}
	}
	for _, f := range l.mine {
		if l.full.has(f) && !l.full.marked(f) {
			full = append(full, f)
			l.freeBoth(f)
		}
	}
	for _, s := range l.mineState {
		if l.mamba.has(s) && !l.mamba.marked(s) {
			states = append(states, s)
			l.mamba.release(s)
		}
	}
	l.mine, l.mineState = l.mine[:0], l.mineState[:0]
	return full, states
}

// reset empties all pools, as their owner does when the tree is reset.
func (l *ledger) reset() {
	*l = ledger{swa: l.swa, problems: l.problems}
}
