// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func (r *rig) hits(tokens ...int) int64 { r.t.Helper(); return r.at(tokens...).hits }

func TestInsertFullOnly(t *testing.T) {
	begin := func(t *testing.T) *rig { // X-I-1
		r := newRig(t, full(1))
		result := r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
		r.equal("steps", r.transcript, []string{""})
		r.equal("prefix", result.PrefixLen, 0)
		r.equal("hits", r.hits(1, -4), int64(1))
		r.equal("sizes", r.sizes(tree.Full), "4/0")
		return r
	}
	t.Run("X-I-2", func(t *testing.T) {
		r := begin(t)
		result := r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(20, -27)})
		r.equal("steps", r.transcript, []string{"free(20..23)"})
		r.equal("prefix", result.PrefixLen, 4)
		r.looks("1..4 F=10..13", ".5..8 F=24..27")
		r.equal("hits", r.hits(1, -4), int64(2))
		r.equal("sizes", r.sizes(tree.Full), "8/0")
	})
	t.Run("X-I-3", func(t *testing.T) {
		r := begin(t)
		result := r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(10, -13, 30, -33), PrevPrefixLen: 4})
		r.equal("steps", r.transcript, []string{""})
		r.equal("prefix", result.PrefixLen, 4)
	})
	t.Run("X-I-4", func(t *testing.T) {
		r := begin(t)
		result := r.insert(tree.InsertParams{Key: key(1, 2, 9), Slots: slots(40, -42)})
		r.equal("steps", r.transcript, []string{"free(40..41)"})
		r.equal("prefix", result.PrefixLen, 2)
		r.looks("1..2 F=10..11", ".3..4 F=12..13", ".9 F=42")
		r.equal("hits", []int64{r.hits(1, 2), r.hits(3, 4), r.hits(9)}, []int64{2, 1, 1})
	})
	t.Run("X-I-5", func(t *testing.T) {
		r := begin(t)
		leaf := r.node(1, -4)
		result := r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(50, -53), PrevPrefixLen: 2})
		r.equal("steps", r.transcript, []string{"free(52..53)"})
		r.equal("result", []any{result.PrefixLen, result.LastDeviceNode}, []any{4, leaf})
	})
	t.Run("X-I-6", func(t *testing.T) {
		r := newRig(t, full(4))
		r.insert(tree.InsertParams{Key: key(1, -10), Slots: slots(60, -69)})
		r.looks("1..8 F=60..67")
	})
	t.Run("X-I-17", func(t *testing.T) {
		r := newRig(t, full(1))
		for range 2 {
			r.insert(tree.InsertParams{Key: key(1, -4), Chunked: true})
		}
		r.equal("hits", r.hits(1, -4), int64(0))
	})
	t.Run("X-I-19", func(t *testing.T) {
		r := newRig(t, full(4))
		r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(0, -7)})
		result := r.insert(tree.InsertParams{Key: key(1, -8, 20, -27), Slots: slots(0, -3, 40, -51), PrevPrefixLen: 4})
		r.equal("steps", r.transcript, []string{"free(40..43)"})
		r.equal("prefix", result.PrefixLen, 8)
		r.looks("1..8 F=0..7", ".20..27 F=44..51")
	})
	t.Run("X-I-20", func(t *testing.T) {
		r := newRig(t, tree.Options{PageSize: 4, Eagle: true})
		r.insert(tree.InsertParams{Key: key(1, -16), Slots: slots(0, -15)})
		r.looks("1..13 F=0..11")
	})
	t.Run("X-I-21", func(t *testing.T) {
		r := newRig(t, full(1))
		r.insert(tree.InsertParams{Key: key(1, -3), Priority: 5})
		r.insert(tree.InsertParams{Key: key(1, 2, 9), Priority: 1})
		r.equal("priorities", []int64{r.at(1, 2).priority, r.at(3).priority, r.at(9).priority, r.root.priority}, []int64{5, 5, 1, 5})
		_, leaves := r.evict(tree.Full, 0)
		r.equal("nothing asked", len(leaves), 0)
	})
}

func TestInsertEmptyKeyAndArguments(t *testing.T) {
	r := newRig(t, withAll(4, 4, 4))
	before := r.root.stamp
	result := r.insert(tree.InsertParams{Key: key(1, -3), Priority: 7}) // I-3
	r.equal("I-3", *result, tree.InsertResult{MambaExist: true, LastDeviceNode: r.Root()})
	r.equal("I-2 priority", r.root.priority, int64(7))
	if !before.older(r.root.stamp) {
		t.Error("the root was not stamped (I-2)")
	}

	stamp := r.root.stamp
	for name, p := range map[string]tree.InsertParams{
		"no state":       {Key: key(1, -4)},
		"too few slots":  {Key: key(1, -8), Slots: slots(1, -7), MambaState: slots(1)},
		"empty slots":    {Key: key(1, -4), Slots: slots(), MambaState: slots(1)},
		"off the page":   {Key: key(1, -4), SWAEvictedLen: 3, MambaState: slots(1)},
		"negative e":     {Key: key(1, -4), SWAEvictedLen: -4, MambaState: slots(1)},
		"negative prev":  {Key: key(1, -4), PrevPrefixLen: -1, MambaState: slots(1)},
		"bigram key":     {Key: tree.Key{Tokens: key(1, -4).Tokens, Bigram: true}, MambaState: slots(1)},
		"opaque slots":   {Key: key(1, -4), Slots: tree.Slots{{Buffer: 1, Length: 4}}, MambaState: slots(1)},
		"branch below 0": {Key: key(1, -4), SWABranchingLen: -1, MambaState: slots(1)},
	} {
		_, err := r.BeginInsert(p)
		fails[*tree.ArgumentError](r, name, err)
	}
	r.equal("root's stamp (I-4)", r.root.stamp, stamp)
	r.looks("")
}

func TestInsertRecovery(t *testing.T) {
	t.Run("X-I-7", func(t *testing.T) {
		r := newRig(t, withSWA(4, 4))
		r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(0, -7), SWAEvictedLen: 8})
		r.equal("first", r.transcript, []string{""})
		a := r.node(1, -8)
		result := r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(100, -107), SWAEvictedLen: 4, TrackAdopted: true})
		r.equal("node", r.node(5, -8), a)
		r.equal("steps", r.transcript, []string{"free-full(4..7) rebuild(2,104..107) free-full(100..103)", ""})
		r.looks("1..4 F=0..3 S=-", ".5..8 F=104..107 S=1000104..1000107")
		r.equal("result", []any{result.PrefixLen, result.LastDeviceNode}, []any{8, a})
		r.equal("adopted", *result.Adopted, [tree.NumComponents][]tree.Range{tree.Full: {{Start: 4, End: 8}}, tree.SWA: {{Start: 4, End: 8}}})
		r.equal("hits", []int64{r.hits(5, -8), r.hits(1, -4)}, []int64{2, 1})
	})
	tombstone := func(t *testing.T) *rig {
		r := newRig(t, withSWA(1, 4))
		r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(0, -3), SWAEvictedLen: 4})
		r.looks("1..4 F=0..3 S=-")
		return r
	}
	t.Run("X-I-8", func(t *testing.T) {
		r := tombstone(t)
		r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
		r.equal("steps", r.transcript, []string{"free-full(0..3) rebuild(2,10..13)", ""})
		r.looks("1..4 F=10..13 S=1000010..1000013")
	})
	t.Run("X-I-9", func(t *testing.T) {
		r := tombstone(t)
		r.lock(r.node(1, -4))
		r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
		r.equal("steps", r.transcript, []string{"recover(2,0..3,10..13)", ""})
		r.looks("1..4 F=0..3 S=1000010..1000013 L1/1/0 u1")
		r.equal("sizes", r.sizes(tree.SWA), "0/4")
	})
	t.Run("X-I-10", func(t *testing.T) {
		r := tombstone(t)
		r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13), SWAEvictedLen: 4})
		r.equal("steps", r.transcript, []string{"free-full(10..13)"})
		r.looks("1..4 F=0..3 S=-")
	})
	t.Run("X-I-18", func(t *testing.T) {
		r := tombstone(t)
		r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(10, -17), SWAEvictedLen: 8})
		r.equal("steps", r.transcript, []string{"free-full(10..13)"})
		r.looks("1..4 F=0..3 S=-", ".5..8 F=14..17 S=-")
		result := r.insert(tree.InsertParams{Key: key(1, -12), Slots: slots(20, -31), SWAEvictedLen: 2, TrackAdopted: true})
		r.equal("steps", r.transcript, []string{
			"free-full(2..3) rebuild(2,22..23) free-full(20..21)",
			"free-full(14..17) rebuild(3,24..27)",
			"rebuild(5,28..31)",
			"",
		})
		r.equal("prefix", result.PrefixLen, 8)
		r.equal("adopted", *result.Adopted, [tree.NumComponents][]tree.Range{tree.Full: {{Start: 2, End: 12}}, tree.SWA: {{Start: 2, End: 12}}})
		r.equal("hits", []int64{r.hits(1, 2), r.hits(3, 4), r.hits(5, -8), r.hits(9, -12)}, []int64{2, 3, 2, 1})
		r.equal("list", r.order(tree.SWA), []tree.NodeID{r.node(9, -12), r.node(5, -8), r.node(3, 4)})
	})
}

func TestInsertCommitSWA(t *testing.T) {
	t.Run("X-I-11", func(t *testing.T) {
		r := newRig(t, withSWA(1, 4))
		r.insert(tree.InsertParams{Key: key(1, -10), Slots: slots(0, -9)})
		c, leaf := r.node(1, -6), r.node(7, -10)
		r.equal("steps", r.transcript, []string{"rebuild(3,0..5) rebuild(2,6..9)", ""})
		r.equal("ids", []tree.NodeID{c, leaf}, []tree.NodeID{3, 2})
		r.equal("list", r.order(tree.SWA), []tree.NodeID{leaf, c})
		r.equal("sizes", r.sizes(tree.SWA), "10/0")
		r.equal("hits", []int64{r.hits(1, -6), r.hits(7, -10)}, []int64{0, 1})

		r = newRig(t, withSWA(4, 6))
		r.insert(tree.InsertParams{Key: key(1, -16)})
		r.node(1, -8)
		r.node(9, -16)
		r = newRig(t, withSWA(4, 6))
		r.insert(tree.InsertParams{Key: key(1, -8)})
		r.node(1, -8)
	})
	t.Run("X-I-12", func(t *testing.T) {
		r := newRig(t, withSWA(1, 4))
		result := r.insert(tree.InsertParams{Key: key(1, -10), Slots: slots(0, -9), SWAEvictedLen: 3, TrackAdopted: true})
		r.equal("steps", r.transcript, []string{"rebuild(4,3..5) rebuild(2,6..9)", ""})
		r.looks("1..3 F=0..2 S=-", ".4..6 F=3..5 S=1000003..1000005", "..7..10 F=6..9 S=1000006..1000009")
		r.equal("adopted", *result.Adopted, [tree.NumComponents][]tree.Range{tree.Full: {{Start: 0, End: 10}}, tree.SWA: {{Start: 3, End: 10}}})
	})
	t.Run("X-I-13", func(t *testing.T) {
		for _, c := range []struct {
			raw, branch int
			eagle, want bool
		}{{16, 16, false, true}, {16, 20, false, false}, {17, 16, true, true}, {16, 16, true, false}} {
			options := withSWA(4, 4)
			options.Eagle = c.eagle
			r := newRig(t, options)
			result := r.insert(tree.InsertParams{Key: key(1, -c.raw), SWABranchingLen: c.branch})
			r.equal("published", result.SWABranchInserted, c.want)
		}
	})
}

func TestInsertMambaCap(t *testing.T) { // X-I-14
	options := withMamba(1, 1)
	options.MaxStatesPerPath = 2
	r := newRig(t, options)
	for i, want := range [][]string{
		{"cap(2)", ""},
		{"free(20..23) cap(3)", ""},
		{"free(20..23) free(24..27) cap(4)", ""},
	} {
		units := 4 * (i + 1)
		r.insert(tree.InsertParams{Key: key(1, -units), Slots: slots(20, -(19 + units)), MambaState: slots(70 + i)})
		r.equal("steps", r.transcript, want)
	}
	r.looks("1..4 F=20..23 M=-", ".5..8 F=24..27 M=71", "..9..12 F=28..31 M=72")
	result := r.insert(tree.InsertParams{Key: key(1, -12), MambaState: slots(73)})
	r.equal("exists", result.MambaExist, true)
	r.equal("list", r.order(tree.Mamba), []tree.NodeID{r.node(9, -12), r.node(5, -8)})
	r.equal("states", r.FlattenMamba(), slots(71, 72))
}

func TestInsertUnevicts(t *testing.T) { // X-I-15
	r := newRig(t, tree.Options{PageSize: 1, Events: true})
	r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
	a := r.node(1, -4)
	r.ok(r.SetHostValue(a, tree.Full, slots(200, -203)))
	total, _ := r.evict(tree.Full, 4)
	r.equal("unbacked", total.Unbacked, 0)
	r.looks("1..4 F=-/200..203")
	r.equal("host leaf", []bool{r.IsHostEvictableLeaf(a), r.IsDeviceEvictableLeaf(a)}, []bool{true, false})
	r.TakeEvents()
	r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(80, -83)})
	r.equal("steps", r.transcript, []string{""})
	r.looks("1..4 F=80..83/200..203")
	r.equal("hits", r.hits(1, -4), int64(2))
	events := r.TakeEvents()
	r.equal("events", []any{len(events), events[0].Kind, events[0].Medium}, []any{1, tree.BlockStored, tree.MediumDevice})
}

func TestInsertUnevictSWA(t *testing.T) { // I-25, the split case
	r := newRig(t, withSWA(1, 4))
	r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(10, -13)})
	a := r.node(1, -4)
	r.ok(r.SetHostValue(a, tree.Full, slots(200, -203)))
	r.ok(r.SetHostValue(a, tree.SWA, slots(300, -303)))
	r.ok(r.SetPending(a, 7))
	r.evict(tree.Full, 4)
	r.looks("1..4 F=-/200..203 S=-/300..303")
	r.equal("host list", r.RecencyOrder(tree.SWA, true), []tree.NodeID{a})
	result := r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(80, -83), SWAEvictedLen: 1, TrackAdopted: true})
	r.equal("steps", r.transcript, []string{"replace(7,2,3,2) rebuild(2,81..83)", ""})
	r.looks("1 F=80/200 S=-/300", ".2..4 F=81..83/201..203 S=1000081..1000083/301..303")
	r.equal("adopted", *result.Adopted, [tree.NumComponents][]tree.Range{tree.Full: {{Start: 0, End: 4}}, tree.SWA: {{Start: 1, End: 4}}})
	r.equal("host list", r.RecencyOrder(tree.SWA, true), []tree.NodeID{r.node(1)})
}

func TestInsertOrderAndAbort(t *testing.T) { // X-I-16
	r := newRig(t, full(1))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 2}))
	r.insert(tree.InsertParams{Key: key(1, 2), Slots: slots(3, 4)})
	step, err := r.BeginInsert(tree.InsertParams{Key: key(1, -4), Slots: slots(5, -8)})
	r.ok(err)
	r.equal("step", drawAll(step.Actions), "free(5..6) backup([2],4,false)")
	r.equal("suspended", r.HasOngoingInsert(), true)
	_, err = r.BeginInsert(tree.InsertParams{Key: key(1)})
	fails[*tree.OrderError](r, "second begin", err)
	fails[*tree.OrderError](r, "walk during an insert", r.EvictStart(tree.Full, 1))
	r.equal("end", r.EndInsert(), []tree.Action(nil))
	r.equal("end again", r.EndInsert(), []tree.Action(nil))
	_, err = r.ResumeInsert()
	fails[*tree.OrderError](r, "resume", err)
	r.looks("1..2 F=3..4")
	r.sane()
}

func TestInsertNodeDies(t *testing.T) { // I-11
	r := newRig(t, full(1))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 1}))
	r.insert(tree.InsertParams{Key: key(1, 2)})
	_, err := r.BeginInsert(tree.InsertParams{Key: key(1, -4)})
	r.ok(err)
	_, err = r.EvictLeaf(r.node(1, 2), false)
	r.ok(err)
	_, err = r.ResumeInsert()
	fails[*tree.NodeAccessError](r, "resume", err)
	r.equal("suspended", r.HasOngoingInsert(), true)
	r.EndInsert()
	r.sane()
}

func TestWindowRepair(t *testing.T) { // X-I-22
	r := newRig(t, withSWA(4, 4))
	r.insert(tree.InsertParams{Key: key(1, -12), Slots: slots(0, -11), SWAEvictedLen: 12})
	a := r.node(1, -12)
	ranges, err := r.SWATombstoneRanges(key(1, -12), 0, 12)
	r.ok(err)
	r.equal("ranges", ranges, []tree.Range{{Start: 0, End: 12}})
	actions, err := r.AttachSWAWindow(key(1, -12), 4, 8, slots(500, -503))
	r.ok(err)
	r.sane()
	r.equal("actions", actions, []tree.Action(nil))
	r.looks("1..4 F=0..3 S=-", ".5..8 F=4..7 S=500..503", "..9..12 F=8..11 S=-")
	r.equal("handle", r.node(9, -12), a)
	ranges, err = r.SWATombstoneRanges(key(1, -12), 0, 12)
	r.ok(err)
	r.equal("ranges", ranges, []tree.Range{{Start: 0, End: 4}, {Start: 8, End: 12}})
	_, err = r.AttachSWAWindow(key(1, -12), 4, 8, slots(500, -503))
	fails[*tree.ArgumentError](r, "again", err)
	_, err = r.SWATombstoneRanges(key(1, -12), 0, 16)
	fails[*tree.ArgumentError](r, "beyond", err)
	_, err = r.SWATombstoneRanges(key(1, -12), 2, 4)
	fails[*tree.ArgumentError](r, "off the page", err)
}

func TestBranchingStory(t *testing.T) { // section 20.2
	r := newRig(t, withSWA(1, 4))
	r.equal("A.1 match", r.match(key(1, -12, 101, -108)).DeviceLen, 0)
	r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(0, -7), SWAEvictedLen: 3})
	r.looks("1..3 F=0..2 S=-", ".4 F=3 S=1000003", "..5..8 F=4..7 S=1000004..1000007")
	l1 := r.lock(r.node(5, -8))
	r.insert(tree.InsertParams{Key: key(1, -12, 101, -104), Slots: slots(0, -15), PrevPrefixLen: 8, SWAEvictedLen: 11})
	r.looks("1..3 F=0..2 S=- L1/0/0", ".4 F=3 S=1000003 L1/0/0", "..5..8 F=4..7 S=1000004..1000007 L1/1/0 u1",
		"...9..11 F=8..10 S=-", "....12 F=11 S=1000011", ".....101..104 F=12..15 S=1000012..1000015")
	r.insert(tree.InsertParams{Key: key(1, -12, 101, -108), Slots: slots(0, -19), PrevPrefixLen: 16, SWAEvictedLen: 16})
	r.unlock(l1, false)

	m := r.match(key(1, -12, 201, -208))
	r.equal("B.1", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen}, []int{8, 12, 12})
	r.equal("B.1 boundary", m.LastDeviceNode, r.node(5, -8))
	lb := r.lock(m.LastDeviceNode)
	result := r.insert(tree.InsertParams{Key: key(1, -12), Slots: slots(0, -7, 30, -33), PrevPrefixLen: 8, SWAEvictedLen: 8, SWABranchingLen: 12})
	r.equal("B.2", r.transcript, []string{"free-full(8..10) rebuild(6,30..32)", "free(33)"})
	r.equal("B.2 result", []any{result.PrefixLen, result.SWABranchInserted}, []any{12, true})
	r.unlock(lb, false)
	for _, first := range []int{301, 401} {
		m = r.match(key(1, -12, first, -(first + 7)))
		r.equal("C.1, D.1", []int{m.DeviceLen, m.SWABranchingLen}, []int{12, 0})
	}
}
