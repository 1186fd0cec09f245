// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestMatchFullOnly(t *testing.T) {
	type want struct {
		slots     tree.Slots
		fullHit   int
		last      []int // tokens of the boundary's node; nil: the root
		treeAfter []string
	}
	twoNodes := []string{"1..4 F=10..13", ".5..6 F=14..15"}
	for _, c := range []struct {
		id   string
		page int
		key  tree.Key
		want want
	}{
		{"X-M-1", 1, key(1, -6), want{slots(10, -15), 6, []int{5, 6}, twoNodes}},
		{"X-M-2", 1, key(1, -4, 9), want{slots(10, -13), 4, []int{1, -4}, twoNodes}},
		{"X-M-3", 1, key(1, 2, 7), want{slots(10, 11), 2, []int{1, 2}, []string{"1..2 F=10..11", ".3..4 F=12..13", "..5..6 F=14..15"}}},
		{"X-M-4", 4, key(1, -6, 9, 9), want{slots(20, -23), 4, []int{1, -4}, []string{"1..4 F=20..23", ".5..8 F=24..27"}}},
		{"X-M-5", 4, key(1, -3), want{slots(), 0, nil, []string{"1..8 F=20..27"}}},
		{"X-M-6", 4, key(1, -3, 9), want{slots(), 0, nil, []string{"1..8 F=20..27"}}},
	} {
		t.Run(c.id, func(t *testing.T) {
			r := newRig(t, full(c.page))
			if c.page == 1 {
				r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
				r.insert(tree.InsertParams{Key: key(1, -6), Slots: slots(10, -15), PrevPrefixLen: 4})
			} else {
				r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(20, -27)})
			}
			before, rootBefore := r.lastTick, r.root.stamp
			m := r.match(c.key)
			last := r.Root()
			if c.want.last != nil {
				last = r.node(c.want.last...)
			}
			r.equal("slots", m.DeviceSlots, c.want.slots)
			r.equal("length", m.DeviceLen, c.want.slots.Len())
			r.equal("full hit", m.FullHitLen, c.want.fullHit)
			r.equal("nodes", []tree.NodeID{m.LastDeviceNode, m.BestNode, m.LastHostNode}, []tree.NodeID{last, last, last})
			r.looks(c.want.treeAfter...)
			if c.id == "X-M-5" {
				r.equal("ticks taken", r.lastTick, before)
			} else if !rootBefore.older(r.root.stamp) {
				t.Error("the root was not stamped (M-15)")
			}
		})
	}
}

// twelve builds A[1..8] tombstone > B[9..12] with SWA.
func twelve(t *testing.T, page int) *rig {
	r := newRig(t, withSWA(page, 4))
	r.insert(tree.InsertParams{Key: key(1, -12), Slots: slots(0, -11), SWAEvictedLen: 8})
	r.looks("1..8 F=0..7 S=-", ".9..12 F=8..11 S=1000008..1000011")
	return r
}

func TestMatchSWA(t *testing.T) {
	r := twelve(t, 1)
	m := r.match(key(1, -12)) // X-M-7
	r.equal("X-M-7", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{12, 12, 0})
	r.equal("X-M-7 boundary", m.LastDeviceNode, r.node(9, -12))
	m = r.match(key(1, -11)) // X-M-8
	r.equal("X-M-8", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{0, 11, 11})
	r.equal("X-M-8 boundary", m.LastDeviceNode, r.Root())
	r.looks("1..8 F=0..7 S=-", ".9..11 F=8..10 S=1000008..1000010", "..12 F=11 S=1000011")
	r.equal("X-M-8 reason", m.Explanation, tree.Explanation{FullOnly: 11, Limited: true, LimitedBy: tree.SWA, Reason: tree.ReasonWindowTombstoned, Units: 11})
	m = r.match(key(1, -12)) // X-M-9
	r.equal("X-M-9", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{12, 12, 0})
	r.equal("X-M-9 boundary", m.LastDeviceNode, r.node(12))

	r = twelve(t, 1)
	m = r.match(key(1, -8)) // X-M-10
	r.equal("X-M-10", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{0, 8, 8})

	r = twelve(t, 4)
	m = r.match(key(1, -8, 50, -57)) // X-M-11
	r.equal("X-M-11", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{0, 8, 8})
	r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(100, -107), SWAEvictedLen: 4})
	m = r.match(key(1, -8, 50, -57)) // X-M-12
	r.equal("X-M-12", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{8, 8, 0})
	r.equal("X-M-12 boundary", m.LastDeviceNode, r.node(5, -8))

	r = newRig(t, withSWA(1, 4)) // X-M-13
	r.insert(tree.InsertParams{Key: key(1, 2), SWAEvictedLen: 2})
	r.insert(tree.InsertParams{Key: key(1, -4), SWAEvictedLen: 2, PrevPrefixLen: 2})
	r.insert(tree.InsertParams{Key: key(1, -6), SWAEvictedLen: 4, PrevPrefixLen: 4})
	r.equal("X-M-13 at 4", r.match(key(1, -4)).DeviceLen, 0)
	r.equal("X-M-13 at 6", r.match(key(1, -6)).DeviceLen, 6)

	r = newRig(t, withSWA(1, 4)) // X-M-14
	r.insert(tree.InsertParams{Key: key(1, 2)})
	r.equal("X-M-14", r.match(key(1, 2)).DeviceLen, 2)
}

func TestMatchSWARingLayout(t *testing.T) {
	r := twelve(t, 1)
	r.ok(r.SetSwitches(tree.Switches{WriteThroughThreshold: 256, SWARingLayout: true}))
	m := r.match(key(1, -8)) // M-12: the gap accepts, since Full is there
	r.equal("ring layout", []int{m.DeviceLen, m.SWABranchingLen}, []int{8, 0})
}

func TestMatchMamba(t *testing.T) {
	build := func(t *testing.T) *rig {
		r := newRig(t, withMamba(1, 4))
		r.insert(tree.InsertParams{Key: key(1, -6), MambaState: slots(70)})
		r.insert(tree.InsertParams{Key: key(1, -10), MambaState: slots(71), PrevPrefixLen: 6})
		return r
	}
	r := build(t)
	m := r.match(key(1, -10))
	r.equal("X-M-15", []int{m.DeviceLen, m.FullHitLen, m.MambaBranchingLen}, []int{10, 10, 0})
	m = r.match(key(1, -9))
	r.equal("X-M-16", []int{m.DeviceLen, m.FullHitLen, m.MambaBranchingLen}, []int{6, 9, 8})
	r.equal("X-M-16 boundary", m.LastDeviceNode, r.node(1, -6))
	r.equal("X-M-16 reason", m.Explanation, tree.Explanation{Matched: 6, FullOnly: 9, Limited: true, LimitedBy: tree.Mamba, Reason: tree.ReasonNoState, Device: 6, Units: 9})

	r = build(t) // X-M-17
	r.match(key(1, -6))
	r.lock(r.node(7, -10), tree.Mamba)
	total, leaves := r.evict(tree.Mamba, 1)
	r.equal("X-M-17 evicted", []any{total.Freed, len(leaves)}, []any{tree.Units{tree.Mamba: 1}, 0})
	m = r.match(key(1, -10))
	r.equal("X-M-17", []int{m.DeviceLen, m.FullHitLen, m.MambaBranchingLen}, []int{6, 10, 8})

	r = newRig(t, withMamba(1, 64)) // X-M-18
	r.insert(tree.InsertParams{Key: key(1, -64), MambaState: slots(70)})
	r.insert(tree.InsertParams{Key: key(1, -128), MambaState: slots(71), PrevPrefixLen: 64})
	m = r.match(key(1, -96, 900))
	r.equal("X-M-18", []int{m.DeviceLen, m.FullHitLen, m.MambaBranchingLen}, []int{64, 96, 0})

	// Section 20.3: the state of 192 does not help at 96.
	r.insert(tree.InsertParams{Key: key(1, -96, 900, -995), MambaState: slots(72), PrevPrefixLen: 96})
	r.equal("at 96", r.match(key(1, -96, 2000)).DeviceLen, 64)
	r.equal("at 192", r.match(key(1, -96, 900, -995)).DeviceLen, 192)
}

func TestMatchRecency(t *testing.T) {
	r := newRig(t, withMamba(1, 1)) // X-M-19
	r.insert(tree.InsertParams{Key: key(1), MambaState: slots(70)})
	r.insert(tree.InsertParams{Key: key(1, 2), MambaState: slots(71)})
	r.insert(tree.InsertParams{Key: key(11), MambaState: slots(72)})
	r.insert(tree.InsertParams{Key: key(11, 12), MambaState: slots(73)})
	a1, b1, a2, b2 := r.node(1), r.node(2), r.node(11), r.node(12)
	r.match(key(1, 2))
	r.match(key(11, 12))
	r.match(key(1, 2))
	r.equal("X-M-19", r.order(tree.Mamba), []tree.NodeID{b1, b2, a2, a1})

	for _, c := range []struct { // X-M-20
		length int
		gap    bool
		want   []int
	}{
		{3, false, []int{3, 2, 0, 1}},
		{2, true, []int{3, 2, 0}},
	} {
		r = newRig(t, withSWA(1, 4)) // a span of W+P = 5
		var ids []tree.NodeID
		for i := range 4 {
			n := r.insert(tree.InsertParams{Key: key(1, -c.length*(i+1)), PrevPrefixLen: c.length * i}).LastDeviceNode
			ids = append(ids, n)
		}
		for i := 3; i >= 0; i-- { // MRU to LRU: a, b, c, d
			r.device[tree.SWA].toFront(r.nodes[ids[i]])
		}
		if c.gap {
			r.dropValue(r.nodes[ids[1]], tree.SWA)
		}
		r.match(key(1, -c.length*4))
		var want []tree.NodeID
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		r.equal("X-M-20", r.order(tree.SWA), want)
	}
}

func TestMatchExplanation(t *testing.T) {
	r := newRig(t, full(4))
	r.insert(tree.InsertParams{Key: key(1, -8)})
	for _, c := range []struct {
		name string
		key  tree.Key
		want tree.Explanation
	}{
		{"empty", key(), tree.Explanation{Reason: tree.ReasonComplete}},
		{"less than a page", key(1, -3), tree.Explanation{Reason: tree.ReasonPageRemainder, Units: 3, PageRemainder: 3}},
		{"complete", key(1, -8), tree.Explanation{Matched: 8, FullOnly: 8, Device: 8, Reason: tree.ReasonComplete, Units: 8}},
		{"remainder", key(1, -10), tree.Explanation{Matched: 8, FullOnly: 8, Device: 8, Reason: tree.ReasonPageRemainder, Units: 10, PageRemainder: 2}},
		{"longer", key(1, -12), tree.Explanation{Matched: 8, FullOnly: 8, Device: 8, Reason: tree.ReasonNeverSeen, Units: 12}},
		{"unknown", key(50, -57), tree.Explanation{Reason: tree.ReasonNeverSeen, Units: 8}},
		{"other namespace", tree.Key{Tokens: key(1, -8).Tokens, Namespace: tree.Namespace{Salt: "x"}}, tree.Explanation{Reason: tree.ReasonOtherNamespace, Units: 8}},
	} {
		r.equal(c.name, r.match(c.key).Explanation, c.want)
	}
}

func TestMatchHostTier(t *testing.T) {
	r := newRig(t, withAll(1, 4, 1))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 99}))
	a := r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(0, -3), MambaState: slots(70)}).LastDeviceNode
	b := r.insert(tree.InsertParams{Key: key(1, -6), Slots: slots(0, -5), MambaState: slots(71), PrevPrefixLen: 4}).LastDeviceNode
	r.ok(r.SetHostValue(a, tree.Full, slots(200, -203)))
	r.ok(r.SetHostValue(b, tree.Full, slots(204, 205)))
	r.ok(r.SetHostValue(b, tree.SWA, slots(304, 305)))
	r.ok(r.SetHostValue(b, tree.Mamba, slots(400)))
	_, err := r.Demote(b)
	r.ok(err)
	m := r.match(key(1, -6))
	r.equal("nodes", []tree.NodeID{m.LastDeviceNode, m.BestNode, m.LastHostNode}, []tree.NodeID{a, b, b})
	r.equal("lengths", []int{m.DeviceLen, m.HostHitLen, m.SWAHostHitLen, m.MambaHostHitLen, m.FullHitLen}, []int{4, 2, 2, 1, 6})
	r.equal("reason", m.Explanation, tree.Explanation{Matched: 4, FullOnly: 6, Limited: true, LimitedBy: tree.Mamba, Reason: tree.ReasonHostOnly, Device: 4, Host: 2, Units: 6})
	r.ok(r.SetSwitches(tree.Switches{WriteThroughThreshold: 99}))
	m = r.match(key(1, -6)) // with the host tier off, the device decides alone
	r.equal("off", []tree.NodeID{m.LastDeviceNode, m.BestNode, m.LastHostNode}, []tree.NodeID{a, a, a})
}

func TestMatchFullDevicePrefix(t *testing.T) {
	r := newRig(t, full(1))
	r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
	r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(10, -17), PrevPrefixLen: 4})
	before := r.shape()
	for _, c := range []struct {
		key  tree.Key
		want tree.FullPrefix
	}{
		{key(), tree.FullPrefix{Node: r.Root()}},
		{key(9), tree.FullPrefix{Node: r.Root()}},
		{key(1, -4, 9), tree.FullPrefix{Matched: 4, Node: r.node(1, -4), Pinned: 4}},
		{key(1, -6), tree.FullPrefix{Matched: 6, Node: r.node(5, -8), Pinned: 8}},
	} {
		got, err := r.MatchFullDevicePrefix(c.key)
		r.ok(err)
		r.equal("M-27", got, c.want)
	}
	r.equal("tree", r.shape(), before)

	got, err := r.CollectFullDeviceSlots(r.node(5, -8), r.Root()) // M-29
	r.ok(err)
	r.equal("collected", got, slots(10, -17))
	got, err = r.CollectFullDeviceSlots(r.node(5, -8), r.node(5, -8))
	r.ok(err)
	r.equal("collected", got, slots())
	_, err = r.CollectFullDeviceSlots(r.node(1, -4), r.node(5, -8))
	fails[*tree.ArgumentError](r, "not an ancestor", err)
}
