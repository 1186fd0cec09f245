// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/treecore/treecore/tree"
)

// TestRandom drives the oracle through random calls of a correct caller: the
// consistency check and the conservation of slots hold after each, and a second
// oracle answers the same (section 20.4, 3 and 8).
func TestRandom(t *testing.T) {
	policies := []string{"lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "tlru"}
	seed := int64(0)
	for _, components := range []tree.ComponentSet{
		tree.SetOf(tree.Full), tree.SetOf(tree.Full, tree.SWA),
		tree.SetOf(tree.Full, tree.Mamba), tree.SetOf(tree.Full, tree.SWA, tree.Mamba),
	} {
		for _, page := range []int{1, 4} {
			for _, window := range []int{1, 4, 6, 9} {
				for _, sessions := range []bool{false, true} {
					seed++
					options := tree.Options{
						Components: components, PageSize: page, SlidingWindow: window,
						Eagle: seed%3 == 0, Sessions: sessions, Events: seed%2 == 0,
						MaxStatesPerPath: int(seed%4) - 1,
						Policy:           tree.PolicyOptions{Name: policies[seed%8]},
					}
					t.Run(fmt.Sprintf("%v/page%d/window%d/sessions=%v", components, page, window, sessions), func(t *testing.T) {
						first := randomWalk(t, options, seed, 120)
						second := randomWalk(t, options, seed, 120)
						if !slices.Equal(first, second) {
							t.Fatal("two runs differ")
						}
					})
				}
			}
		}
	}
}

func randomWalk(t *testing.T, options tree.Options, seed int64, calls int) []string {
	p := newPools(newRig(t, options))
	random := rand.New(rand.NewSource(seed))
	for range calls {
		switch random.Intn(16) {
		case 0, 1, 2, 3, 4:
			p.randomInsert(random)
		case 5, 6:
			m := p.r.match(p.randomKey(random))
			p.note("match %+v", m)
		case 7, 8:
			skips := []tree.ComponentSet{0, tree.SetOf(tree.Mamba), tree.SetOf(tree.SWA, tree.Mamba)}
			receipt, err := p.r.Lock(p.randomNode(random), skips[random.Intn(3)])
			p.r.ok(err)
			p.receipts = append(p.receipts, held{receipt: receipt})
			p.note("lock %+v", receipt)
		case 9, 10:
			p.randomUnlock(random)
		case 11, 12, 13:
			c := p.r.components[random.Intn(len(p.r.components))]
			p.randomEvict(c, random.Intn(12))
		case 14:
			id := fmt.Sprint("s", random.Intn(3))
			if random.Intn(3) == 0 {
				p.r.ReleaseSession(id)
			} else {
				p.r.ok(p.r.RegisterSession(id, p.r.EnsureSession(id), p.randomNode(random)))
			}
			p.note("session %s", id)
		case 15:
			p.randomPin(random)
		}
		p.check()
	}
	for _, h := range p.receipts {
		p.r.unlock(h.receipt, h.early)
	}
	for _, id := range p.pins {
		p.r.ok(p.r.UnpinFull(id))
	}
	for _, c := range p.r.components {
		if size := p.r.ProtectedSize(c); size != 0 {
			p.fail("%v: %d units are protected without a lock", c, size)
		}
	}
	p.randomEvict(tree.Full, 1<<30)
	p.check()
	if len(p.r.nodes) != 1 {
		p.fail("%d nodes outlived a full eviction", len(p.r.nodes))
	}
	p.note("events %v", p.r.TakeEvents())
	return p.history
}

func (p *pools) randomKey(random *rand.Rand) tree.Key {
	var k tree.Key
	length := random.Intn(24)
	for len(k.Tokens) < length {
		// Whole pages repeat, so that keys of any page size share prefixes.
		token := tree.Token(random.Intn(2))
		for range p.r.page {
			k.Tokens = append(k.Tokens, token)
		}
	}
	k.Tokens = k.Tokens[:length]
	if random.Intn(4) == 0 {
		k.Namespace.Salt = "x"
	}
	return k
}

func (p *pools) randomNode(random *rand.Rand) tree.NodeID {
	nodes := p.r.Nodes()
	return nodes[random.Intn(len(nodes))]
}

func (p *pools) randomInsert(random *rand.Rand) {
	k := p.randomKey(random)
	units, _, err := p.r.units("test", k)
	p.r.ok(err)
	length := len(p.r.align(units))
	m := p.r.match(k)
	receipt := p.r.lock(m.LastDeviceNode)
	prev := 0
	if random.Intn(4) > 0 {
		prev = m.DeviceLen
	}
	evicted := random.Intn(length/p.r.page+2) * p.r.page
	if random.Intn(3) == 0 {
		evicted = 0
	}
	list := p.numbers(m.DeviceSlots)[:prev]
	for position := prev; position < length; position++ {
		slot := p.fresh()
		p.full[slot] = true
		if p.r.has(tree.SWA) && position >= evicted {
			p.partner[slot] = p.fresh()
		}
		list = append(list, slot)
	}
	params := tree.InsertParams{
		Key: k, Slots: tree.SlotsOf(list...), PrevPrefixLen: prev, SWAEvictedLen: evicted,
		SWABranchingLen: random.Intn(20), Chunked: random.Intn(3) == 0, Priority: int64(random.Intn(3)),
		TrackAdopted: true,
	}
	var state tree.Slot
	if p.r.has(tree.Mamba) {
		state = p.fresh()
		p.states[state] = true
		params.MambaState = tree.SlotsOf(state)
	}
	p.note("insert %+v", params)
	step, err := p.r.BeginInsert(params)
	for {
		p.r.ok(err)
		for _, action := range step.Actions {
			p.execute(action)
		}
		if step.Result != nil {
			break
		}
		step, err = p.r.ResumeInsert()
	}
	result := *step.Result
	result.Adopted = nil // a pointer, printed by its target
	p.note("  result %+v %v", result, *step.Result.Adopted)
	if p.r.has(tree.Mamba) && step.Result.MambaExist {
		delete(p.states, state)
	}
	p.r.unlock(receipt, false)
}

func (p *pools) randomUnlock(random *rand.Rand) {
	if len(p.receipts) == 0 {
		return
	}
	i := random.Intn(len(p.receipts))
	h := p.receipts[i]
	if !h.early && random.Intn(3) == 0 {
		evicted, err := p.r.ReleaseSWALock(h.receipt.Node, h.receipt)
		p.r.ok(err)
		p.take(evicted)
		// Without SWA the call does nothing, and nothing is released early.
		p.receipts[i].early = p.r.has(tree.SWA)
		p.note("early release of %d", h.receipt.Node)
		return
	}
	p.receipts = append(p.receipts[:i:i], p.receipts[i+1:]...)
	p.r.ok(p.r.Unlock(h.receipt.Node, h.receipt, h.early))
	p.note("unlock %d", h.receipt.Node)
}

func (p *pools) randomPin(random *rand.Rand) {
	if len(p.pins) > 0 && random.Intn(2) == 0 {
		p.r.ok(p.r.UnpinFull(p.pins[0]))
		p.pins = p.pins[1:]
		return
	}
	id := p.randomNode(random)
	p.r.ok(p.r.PinFull(id))
	p.pins = append(p.pins, id)
	p.note("pin %d", id)
}

func (p *pools) randomEvict(c tree.Component, n int) {
	p.note("evict %v %d", c, n)
	p.r.ok(p.r.EvictStart(c, n))
	var totals tree.Units
	for {
		step, err := p.r.EvictNext(c, totals)
		p.r.ok(err)
		p.take(step.Evicted)
		totals.Add(step.Freed)
		if step.Node != tree.NoNode {
			leaf, err := p.r.EvictLeaf(step.Node, false)
			p.r.ok(err)
			p.take(leaf.Evicted)
			totals.Add(leaf.Freed)
		} else if !step.MadeProgress {
			break
		}
	}
	p.r.ok(p.r.EvictEnd(c))
}
