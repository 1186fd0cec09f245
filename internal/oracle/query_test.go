// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// fork builds A[1,2] F=10,11 > {B[3] F=12, C[4,5] F=13,14}.
func fork(t *testing.T, options tree.Options, e int) (r *rig, a, b, c tree.NodeID) {
	r = newRig(t, options)
	r.insert(tree.InsertParams{Key: key(1, 2), Slots: slots(10, 11), SWAEvictedLen: e})
	r.insert(tree.InsertParams{Key: key(1, -3), Slots: slots(10, -12), PrevPrefixLen: 2, SWAEvictedLen: e})
	r.insert(tree.InsertParams{Key: key(1, 2, 4, 5), Slots: slots(10, 11, 13, 14), PrevPrefixLen: 2, SWAEvictedLen: e})
	return r, r.node(1, 2), r.node(3), r.node(4, 5)
}

func TestQueries(t *testing.T) {
	r, a, b, c := fork(t, full(1), 0) // X-Q-1
	r.equal("flatten", r.FlattenFull(), slots(10, -14))
	lower := []tree.CanaryRow{{Slot: 12, Position: 2, Previous: 11}, {Slot: 13, Position: 2, Previous: 11}, {Slot: 14, Position: 3, Previous: 13}}
	upper := []tree.CanaryRow{{Slot: 10, Position: 0, Previous: -1}, {Slot: 11, Position: 1, Previous: 10}}
	r.equal("canary", r.WalkCanary(false, false), append(upper, lower...))
	r.lock(a)
	r.equal("unlocked only", r.WalkCanary(true, false), lower)

	order, err := r.DFSWeightOrder([]tree.NodeID{b, c, c, a}) // X-Q-3
	r.ok(err)
	r.equal("X-Q-3", order, []int{1, 2, 0, 3})
	_, err = r.DFSWeightOrder([]tree.NodeID{b, 99, c})
	e := fails[*tree.NodeAccessError](r, "stale", err)
	r.equal("stale", *e, tree.NodeAccessError{Op: "DFSWeightOrder", Node: 99})

	s, _, _, _ := fork(t, withSWA(1, 4), 2) // X-Q-2
	s.equal("swa only", s.WalkCanary(false, true), lower)

	r, _, b, _ = fork(t, full(1), 0) // X-Q-4
	r.ok(r.SetHostValue(b, tree.Full, slots(90)))
	_, err = r.Demote(b)
	r.ok(err)
	r.equal("X-Q-4", r.WalkCanary(false, false), append(append([]tree.CanaryRow{}, upper...), lower[1:]...))

	r = newRig(t, full(1))
	r.equal("empty tree", []any{r.FlattenFull(), r.FlattenMamba(), len(r.WalkCanary(false, false))}, []any{slots(), slots(), 0})
}

func TestInspect(t *testing.T) {
	options := withSWA(1, 4)
	options.Eagle = true
	r := newRig(t, options)
	r.insert(tree.InsertParams{Key: tree.Key{Tokens: key(1, -5).Tokens, Namespace: tree.Namespace{ExtraKey: "x"}}, Slots: slots(10, -13)})
	receipt := r.lock(2)
	info, err := r.Inspect(2)
	r.ok(err)
	r.equal("info", info, tree.NodeInfo{
		ID: 2, Parent: 1, Namespace: tree.Namespace{ExtraKey: "x", HasExtraKey: true},
		Tokens: key(1, -5).Tokens, Units: 4, Bigram: true, Hits: 1, SWABoundary: receipt.Boundary[tree.SWA],
		Components: [3]tree.ComponentInfo{
			{Device: slots(10, -13), Locks: 1},
			{Device: slots(swaOffset+10, -(swaOffset + 13)), Locks: 1, InDeviceList: true},
			{},
		},
	})
	anchor, err := r.PrefetchAnchor(2)
	r.ok(err)
	r.equal("Q-7", anchor, tree.Namespace{ExtraKey: "x", HasExtraKey: true})
	r.equal("nodes", r.Nodes(), []tree.NodeID{1, 2})
}

func TestStaleIDs(t *testing.T) { // X-A-1
	r := newRig(t, withSWA(1, 4))
	r.add(1, 2)
	stale := r.node(1, 2)
	receipt := r.lock(stale)
	r.unlock(receipt, false)
	r.evict(tree.Full, 2)
	r.equal("absent", []bool{r.Contains(stale), r.IsDeviceEvictableLeaf(stale), r.IsHostEvictableLeaf(stale)}, []bool{false, false, false})
	r.add(7, 8)
	live := r.node(7, 8)
	before, tick := r.shape(), r.lastTick
	for op, call := range map[string]func() error{
		"IsRoot":                    func() error { _, err := r.IsRoot(stale); return err },
		"IsBackedUp":                func() error { _, err := r.IsBackedUp(stale); return err },
		"IsFullDeviceEvicted":       func() error { _, err := r.IsFullDeviceEvicted(stale); return err },
		"PrefetchAnchor":            func() error { _, err := r.PrefetchAnchor(stale); return err },
		"CollectFullDeviceSlots":    func() error { _, err := r.CollectFullDeviceSlots(stale, r.Root()); return err },
		"SetComponentDeviceValue":   func() error { return r.SetComponentDeviceValue(stale, tree.SWA, slots(1, 2)) },
		"ComponentDeviceValue":      func() error { _, err := r.ComponentDeviceValue(stale, tree.SWA); return err },
		"ComponentHasHostValueOnly": func() error { _, err := r.ComponentHasHostValueOnly(stale, tree.SWA); return err },
		"EvictExcessPathStates":     func() error { _, err := r.EvictExcessPathStates(stale); return err },
		"Lock":                      func() error { _, err := r.Lock(stale, 0); return err },
		"Unlock":                    func() error { return r.Unlock(stale, receipt, false) },
		"ReleaseSWALock":            func() error { _, err := r.ReleaseSWALock(stale, receipt); return err },
		"ReleaseWindowLock":         func() error { _, err := r.ReleaseWindowLock(stale, tree.SWA, receipt); return err },
		"PinFull":                   func() error { return r.PinFull(stale) },
		"UnpinFull":                 func() error { return r.UnpinFull(stale) },
		"EvictLeaf":                 func() error { _, err := r.EvictLeaf(stale, false); return err },
		"Demote":                    func() error { _, err := r.Demote(stale); return err },
		"DFSWeightOrder":            func() error { _, err := r.DFSWeightOrder([]tree.NodeID{live, stale}); return err },
		"LastHash":                  func() error { _, _, err := r.LastHash(stale); return err },
		"PrefixHashes":              func() error { _, err := r.PrefixHashes(stale); return err },
		"Hashes":                    func() error { _, err := r.Hashes(stale); return err },
		"Inspect":                   func() error { _, err := r.Inspect(stale); return err },
	} {
		e := fails[*tree.NodeAccessError](r, op, call())
		r.equal(op, *e, tree.NodeAccessError{Op: op, Node: stale})
	}
	fails[*tree.NodeAccessError](r, "X-A-2", r.Unlock(live, receipt, false))
	r.equal("tree", r.shape(), before)
	r.equal("ticks", r.lastTick, tick)
	check := fails[*tree.CheckError](r, "X-V-3", r.SanityCheck([]tree.InFlight{{ID: 1, Node: stale}}, nil))
	r.equal("X-V-3", []any{len(check.Violations), check.Violations[0].Check}, []any{1, "V-34"})
	check = fails[*tree.CheckError](r, "V-33", r.SanityCheck(nil, []tree.InFlight{{ID: 1, Node: live}}))
	r.equal("V-33", check.Violations[0].Check, "V-33")
	r.at(7, 8).locks[tree.SWA]++ // X-V-2
	check = fails[*tree.CheckError](r, "X-V-2", r.SanityCheck(nil, nil))
	r.equal("X-V-2", check.Violations[0].Check, "V-11")
}

func TestSplitIdentityAndReset(t *testing.T) {
	r := newRig(t, full(1)) // X-A-4
	h := r.insert(tree.InsertParams{Key: key(1, -4)}).LastDeviceNode
	r.add(1, 2, 9)
	r.equal("suffix", r.node(3, 4), h)
	info, err := r.Inspect(h)
	r.ok(err)
	r.equal("prefix", info.Parent, r.node(1, 2))

	r = newRig(t, full(1)) // X-N-3
	r.add(1, 2)
	r.add(7, 8)
	r.add(1, 9)
	r.equal("X-N-3", r.FlattenFull(), slots(1, 2, 9, 7, 8))

	old, last := r.Root(), r.lastID // X-N-4
	r.Reset()
	_, err = r.IsRoot(old)
	fails[*tree.NodeAccessError](r, "old root", err)
	r.equal("X-N-4", []bool{r.Contains(old), r.Root() > last}, []bool{false, true})
	r.equal("sizes", r.sizes(tree.Full), "0/0")
	r.sane()
}

func TestKeys(t *testing.T) {
	r := newRig(t, full(4)) // X-K-1, X-K-4
	r.add(1, -10)
	r.looks("1..8 F=1..8")
	r.equal("X-K-4", r.match(key(1, -6, 99, 8)).DeviceLen, 4)
	r = newRig(t, tree.Options{PageSize: 4, Eagle: true}) // X-K-3
	r.add(1, -16)
	r.looks("1..13 F=1..12")
	r = newRig(t, tree.Options{Eagle: true}) // X-K-2, X-K-5
	r.add(1, -3)
	r.equal("X-K-5", r.match(key(1, 2, 9)).DeviceLen, 1)
	r.looks("1..2 F=1", ".2..3 F=2")
	r.equal("one token", r.match(key(1)).Explanation, tree.Explanation{})

	r = newRig(t, full(1)) // X-K-6, X-K-7
	for _, namespace := range []tree.Namespace{{ExtraKey: "a"}, {Salt: "a"}, {}, {HasExtraKey: true}} {
		r.insert(tree.InsertParams{Key: tree.Key{Tokens: key(1, 2).Tokens, Namespace: namespace}})
	}
	r.equal("nodes", len(r.root.children), 4)
}

func TestOptions(t *testing.T) {
	good := []tree.Options{
		{},
		withSWA(4, 6),
		withMamba(4, 8), // X-CF-3
		{Components: tree.SetOf(tree.Full, tree.Mamba), MaxStatesPerPath: -1},
		{Components: tree.SetOf(tree.Full, tree.Mamba), MaxStatesPerPath: 3, Eagle: true},
		policyOf("LRU", nil), // X-CF-5
		policyOf("tlru", map[string]int{"threshold": 3}),
	}
	for _, options := range good {
		if _, err := New(options); err != nil {
			t.Errorf("%+v: %v", options, err)
		}
	}
	bad := map[string]tree.Options{
		"Components":                        {Components: tree.SetOf(tree.SWA), SlidingWindow: 4}, // X-CF-1
		"SlidingWindow":                     withSWA(1, 0),                                        // X-CF-2
		"CheckpointGrid":                    withMamba(4, 6),                                      // X-CF-3
		"MaxStatesPerPath":                  {Components: tree.SetOf(tree.Full, tree.Mamba), MaxStatesPerPath: -2},
		"PageSize":                          {PageSize: -1},
		"Policy.Name":                       policyOf("lruu", nil), // X-CF-5
		"Policy.Params":                     policyOf("slru", map[string]int{"treshold": 1}),
		"Policy.Params.protected_threshold": policyOf("slru", map[string]int{"protected_threshold": -1}),
	}
	for field, options := range bad {
		_, err := New(options)
		joined, is := err.(interface{ Unwrap() []error })
		if !is || len(joined.Unwrap()) != 1 {
			t.Fatalf("%s: %v", field, err)
		}
		if e, is := joined.Unwrap()[0].(*tree.ConfigError); !is || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	r := newRig(t, tree.Options{Components: tree.SetOf(tree.Full, tree.Mamba), Eagle: true}) // X-CF-6
	r.insert(tree.InsertParams{Key: key(1, -3), MambaState: slots(70)})
	r.looks("1..3 F=1..3 M=70")
}
