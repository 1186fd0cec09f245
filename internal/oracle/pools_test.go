// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"

	"github.com/treecore/treecore/tree"
)

// pools is a controller's books: which slots are taken, and which SWA slot a
// Full slot points at. It fails the test on a double free or a leak.
type pools struct {
	r        *rig
	next     tree.Slot
	full     map[tree.Slot]bool
	partner  map[tree.Slot]tree.Slot // SWA slot of a Full slot
	states   map[tree.Slot]bool
	history  []string // one line a call
	receipts []held
	pins     []tree.NodeID
}

// held is a lock that the walk holds.
type held struct {
	receipt tree.Receipt
	early   bool // its SWA part is released already
}

func newPools(r *rig) *pools {
	return &pools{r: r, full: map[tree.Slot]bool{}, partner: map[tree.Slot]tree.Slot{}, states: map[tree.Slot]bool{}}
}

func (p *pools) note(format string, args ...any) {
	p.history = append(p.history, fmt.Sprintf(format, args...))
}

func (p *pools) fail(format string, args ...any) {
	p.r.t.Helper()
	p.r.t.Fatalf("%s\nafter\n%v\ntree\n%s", fmt.Sprintf(format, args...), p.history[max(0, len(p.history)-12):], p.r.shape())
}

func (p *pools) fresh() tree.Slot { p.next++; return p.next }

func (p *pools) numbers(s tree.Slots) []tree.Slot {
	list, err := s.Numbers()
	p.r.ok(err)
	return list
}

func (p *pools) freeFull(s tree.Slots, partnersToo bool) {
	for _, slot := range p.numbers(s) {
		if !p.full[slot] {
			p.fail("full slot %d was freed twice", slot)
		}
		if _, has := p.partner[slot]; has && !partnersToo {
			p.fail("full slot %d was freed without its SWA partner", slot)
		}
		delete(p.full, slot)
		delete(p.partner, slot)
	}
}

func (p *pools) freeStates(s tree.Slots) {
	for _, slot := range p.numbers(s) {
		if !p.states[slot] {
			p.fail("state %d was freed twice", slot)
		}
		delete(p.states, slot)
	}
}

func (p *pools) take(e tree.Evicted) {
	for _, slot := range p.numbers(e.Frees.Device[tree.SWA]) {
		if _, has := p.partner[slot]; !has {
			p.fail("full slot %d has no SWA partner to free", slot)
		}
		delete(p.partner, slot)
	}
	p.freeFull(e.Frees.Device[tree.Full], false)
	p.freeStates(e.Frees.Device[tree.Mamba])
	p.note("  freed %v %v unbacked %d", e.Freed, e.Frees.Device, e.Unbacked)
}

func (p *pools) execute(a tree.Action) {
	p.note("  %s", draw(a))
	switch a := a.(type) {
	case tree.FreeDeviceKV:
		p.freeFull(a.Slots, true)
	case tree.FreeDeviceKVFullOnly:
		p.freeFull(a.Slots, false)
	case tree.SWARebuild:
		p.store(a.Node, p.numbers(a.Full))
	case tree.RecoverSWAWithLockedFull:
		kept, incoming := p.numbers(a.Kept), p.numbers(a.Incoming)
		for i := range kept {
			p.partner[kept[i]] = p.partner[incoming[i]]
			delete(p.partner, incoming[i])
		}
		p.freeFull(a.Incoming, false)
		p.store(a.Node, kept)
	case tree.MambaEvictExcessPathStates:
		evicted, err := p.r.EvictExcessPathStates(a.Tail)
		p.r.ok(err)
		p.take(evicted)
	default:
		p.fail("unexpected action %T", a)
	}
}

func (p *pools) store(id tree.NodeID, full []tree.Slot) {
	var swa []tree.Slot
	for _, slot := range full {
		partner, has := p.partner[slot]
		if !has {
			p.fail("full slot %d has no SWA partner to rebuild from", slot)
		}
		swa = append(swa, partner)
	}
	p.r.ok(p.r.SetComponentDeviceValue(id, tree.SWA, tree.SlotsOf(swa...)))
}

// check compares the books with the tree: no call leaves a slot in flight.
func (p *pools) check() {
	p.r.t.Helper()
	if err := p.r.SanityCheck(nil, nil); err != nil {
		p.fail("%v", err)
	}
	held := p.numbers(p.r.FlattenFull())
	if !slices.Equal(slices.Sorted(slices.Values(held)), sortedKeys(p.full)) {
		p.fail("full slots: the tree holds %v, the pool has handed out %v", held, sortedKeys(p.full))
	}
	if states := p.numbers(p.r.FlattenMamba()); !slices.Equal(slices.Sorted(slices.Values(states)), sortedKeys(p.states)) {
		p.fail("states: the tree holds %v, the pool has handed out %v", states, sortedKeys(p.states))
	}
	partners := 0
	for _, n := range p.r.preorder() {
		for i, slot := range n.device[tree.SWA] {
			if p.partner[n.device[tree.Full][i]] != slot {
				p.fail("node %d: SWA slot %d is not the partner of its full slot", n.id, slot)
			}
			partners++
		}
	}
	if partners != len(p.partner) {
		p.fail("%d SWA slots are in the tree, %d are handed out", partners, len(p.partner))
	}
}
