// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/treecore/treecore/tree"
)

// count returns the tokens first, first+1, ... last.
func count(first, last tree.Token) []tree.Token {
	var t []tree.Token
	for ; first <= last; first++ {
		t = append(t, first)
	}
	return t
}

func mustCore(t testing.TB, o tree.Options) *tree.Core {
	t.Helper()
	c, err := tree.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// insert pumps an insert to its end. SWA slots are the Full ones plus a million.
func insert(t testing.TB, c *tree.Core, p tree.InsertParams) tree.InsertResult {
	t.Helper()
	step, err := c.BeginInsert(p)
	for {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range step.Actions {
			switch a := a.(type) {
			case tree.SWARebuild:
				err = c.SetComponentDeviceValue(a.Node, tree.SWA, twins(a.Full))
			case tree.RecoverSWAWithLockedFull:
				err = c.SetComponentDeviceValue(a.Node, tree.SWA, twins(a.Incoming))
			case tree.MambaEvictExcessPathStates:
				_, err = c.EvictExcessPathStates(a.Tail)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if step.Result != nil {
			c.EndInsert()
			return *step.Result
		}
		step, err = c.ResumeInsert()
	}
}

func twins(full tree.Slots) tree.Slots {
	s := full.Clone()
	for i := range s {
		s[i].First += 1_000_000
	}
	return s
}

// evictAll walks a component until nothing is left to take.
func evictAll(t testing.TB, c *tree.Core, id tree.Component) {
	t.Helper()
	if err := c.EvictStart(id, 1<<40); err != nil {
		t.Fatal(err)
	}
	var totals tree.Units
	for {
		step, err := c.EvictNext(id, totals)
		if err != nil {
			t.Fatal(err)
		}
		totals.Add(step.Freed)
		if step.Node != tree.NoNode {
			leaf, err := c.EvictLeaf(step.Node, false)
			if err != nil {
				t.Fatal(err)
			}
			totals.Add(leaf.Freed)
		} else if !step.MadeProgress {
			break
		}
	}
	if err := c.EvictEnd(id); err != nil {
		t.Fatal(err)
	}
}

// A path of 200,000 nodes must not exhaust the stack anywhere.
func TestPathOf200000Nodes(t *testing.T) {
	const depth = 200_000
	c := mustCore(t, tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), SlidingWindow: 64, Events: true, Sessions: true})
	tokens := make([]tree.Token, depth)
	for i := range tokens {
		tokens[i] = tree.Token(i)
	}
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: tree.Numbered(1, depth)})
	for _, id := range c.Nodes()[1:] {
		if err := c.SplitIntoUnits(id); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.NodeCount(); n != depth+1 {
		t.Fatalf("%d nodes", n)
	}
	m, err := c.Match(tree.Key{Tokens: tokens})
	if err != nil || m.DeviceLen != depth {
		t.Fatalf("matched %d of %d: %v", m.DeviceLen, depth, err)
	}
	r, err := c.Lock(m.LastDeviceNode, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.FlattenFull().Len(); got != depth {
		t.Fatalf("flattened %d slots", got)
	}
	if rows := c.WalkCanary(false, false); len(rows) != depth || rows[depth-1].Position != depth-1 {
		t.Fatalf("canary has %d rows", len(rows))
	}
	if err := c.SanityCheck(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Unlock(m.LastDeviceNode, r, false); err != nil {
		t.Fatal(err)
	}
	evictAll(t, c, tree.Full)
	if c.NodeCount() != 1 {
		t.Fatalf("%d nodes are left", c.NodeCount())
	}
	if err := c.SanityCheck(nil, nil); err != nil {
		t.Fatal(err)
	}
}

// A lock, its release and a match of an unchanged tree are on every request's
// way; they must not make garbage.
func TestHotPathsAllocateNothing(t *testing.T) {
	c := mustCore(t, tree.Options{Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba), SlidingWindow: 8})
	tokens := count(1, 128)
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: tree.Numbered(1, 128), MambaState: tree.Numbered(1, 1)})
	m, err := c.Match(tree.Key{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		r, err := c.Lock(m.LastDeviceNode, 0)
		if err == nil {
			err = c.Unlock(m.LastDeviceNode, r, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("lock and unlock: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if r, err := c.Match(tree.Key{Tokens: tokens}); err != nil || r.DeviceLen != 128 {
			t.Fatal(r.DeviceLen, err)
		}
	}); n > 1 {
		t.Errorf("match: %v allocations, 1 is the result's", n)
	}
}

// The list of a match and the list handed to an insert are the caller's; what
// the caller does to them must not show in the tree (rule N-4).
func TestSlotListsAreNotShared(t *testing.T) {
	c := mustCore(t, tree.Options{})
	slots := tree.Numbered(10, 4)
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: count(1, 4)}, Slots: slots})
	slots[0].First = 99
	m, _ := c.Match(tree.Key{Tokens: count(1, 4)})
	m.DeviceSlots[0].First = 77
	if got := c.FlattenFull().String(); got != "10..13" {
		t.Fatalf("the tree holds %s", got)
	}
}

// An opaque buffer is dead when the tree holds none of it any more, however it
// was cut meanwhile.
func TestDeadBuffers(t *testing.T) {
	c := mustCore(t, tree.Options{})
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: count(1, 8)}, Slots: tree.Slots{{Buffer: 7, First: 0, Length: 8}}})
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: count(101, 104)}, Slots: tree.Slots{{Buffer: 9, First: 4, Length: 4}}})
	m, err := c.Match(tree.Key{Tokens: count(1, 3)})
	if err != nil || m.DeviceSlots.String() != "buf7[0..2]" {
		t.Fatalf("matched %v: %v", m.DeviceSlots, err)
	}
	if d := c.TakeDeadBuffers(); len(d) != 0 {
		t.Fatalf("dead before anything went: %v", d)
	}
	evictAll(t, c, tree.Full)
	if d := c.TakeDeadBuffers(); len(d) != 2 || d[0] != 9 || d[1] != 7 {
		t.Fatalf("dead: %v", d)
	}
	insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: count(1, 8)}, Slots: tree.Slots{{Buffer: 7, First: 0, Length: 8}}})
	c.Reset()
	if d := c.TakeDeadBuffers(); len(d) != 1 || d[0] != 7 {
		t.Fatalf("dead after reset: %v", d)
	}
}

func TestOptionsErrorsNameTheField(t *testing.T) {
	for name, o := range map[string]tree.Options{
		"Components":                        {Components: tree.SetOf(tree.SWA)},
		"PageSize":                          {PageSize: 1025},
		"SlidingWindow":                     {Components: tree.SetOf(tree.Full, tree.SWA)},
		"CheckpointGrid":                    {Components: tree.SetOf(tree.Full, tree.Mamba), PageSize: 4, CheckpointGrid: 6},
		"MaxStatesPerPath":                  {Components: tree.SetOf(tree.Full, tree.Mamba), MaxStatesPerPath: -2},
		"Policy.Name":                       {Policy: tree.PolicyOptions{Name: "lruu"}},
		"Policy.Params":                     {Policy: tree.PolicyOptions{Name: "slru", Params: map[string]int{"treshold": 1}}},
		"Policy.Params.protected_threshold": {Policy: tree.PolicyOptions{Name: "slru", Params: map[string]int{"protected_threshold": -1}}},
	} {
		_, err := tree.New(o)
		var e *tree.ConfigError
		if !errors.As(err, &e) || e.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := tree.New(tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), PageSize: -1})
	if err == nil || bytes.Count([]byte(err.Error()), []byte("\n")) != 1 {
		t.Errorf("two problems must be reported together: %v", err)
	}
}

func TestTokensOf(t *testing.T) {
	_, err := tree.TokensOf([]int64{1, 4294967296})
	var e *tree.ArgumentError
	if !errors.As(err, &e) || err.Error() != "TokensOf: tokens: position 1 holds 4294967296: allowed is 0 to 4294967295" {
		t.Error(err)
	}
	if got, err := tree.TokensOf([]int64{0, 4294967295}); err != nil || got[1] != 1<<32-1 {
		t.Error(got, err)
	}
}

// Slot numbers end at 2^32-1; a run beyond would name somebody else's slots at
// the next split.
func TestSlotsBeyondTheLastNumber(t *testing.T) {
	c := mustCore(t, tree.Options{Components: tree.SetOf(tree.Full, tree.Mamba)})
	over := tree.Slots{{First: 1<<32 - 2, Length: 4}}
	for name, p := range map[string]tree.InsertParams{
		"slots":       {Slots: over, MambaState: tree.Numbered(1, 1)},
		"mamba_value": {Slots: tree.Numbered(1, 4), MambaState: over},
	} {
		p.Key.Tokens = count(1, 4)
		_, err := c.BeginInsert(p)
		var e *tree.ArgumentError
		if !errors.As(err, &e) || e.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.NodeCount() != 1 {
		t.Error("a refused insert left a node")
	}
	if n := tree.Numbered(1, 1<<32).Len(); n != 1<<32 {
		t.Errorf("a list of 2^32 slots has %d", n)
	}
}

// An empty run of a buffer holds nothing of it.
func TestEmptyRunsHoldNoBuffer(t *testing.T) {
	c := mustCore(t, tree.Options{Components: tree.SetOf(tree.Full, tree.Mamba)})
	insert(t, c, tree.InsertParams{
		Key: tree.Key{Tokens: count(1, 4)}, Slots: tree.Numbered(1, 4),
		MambaState: tree.Slots{{Buffer: 7}, {First: 1, Length: 1}, {First: 2, Length: 1}},
	})
	if got := c.FlattenMamba(); len(got) != 1 || got.String() != "1..2" {
		t.Errorf("the state's slots are %v", got)
	}
	evictAll(t, c, tree.Full)
	if d := c.TakeDeadBuffers(); len(d) != 0 {
		t.Errorf("dead buffers %v", d)
	}
}

// A page size below 1 has no pages; it must not hang or divide by zero.
func TestHashPagesOfNoPage(t *testing.T) {
	for _, page := range []int{0, -1} {
		if got := tree.HashPages(tree.Key{Tokens: count(1, 4)}, page); len(got) != 0 {
			t.Errorf("page %d: %d digests", page, len(got))
		}
	}
}

// Place says of every node what Inspect says of it.
func TestPlace(t *testing.T) {
	c := mustCore(t, tree.Options{})
	for _, tokens := range [][]tree.Token{{1, 2, 3, 4}, {1, 2, 5}, {1, 2, 3, 6, 7}} {
		insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: tree.Numbered(1, len(tokens))})
	}
	for _, id := range c.Nodes() {
		n, err := c.Inspect(id)
		if err != nil {
			t.Fatal(err)
		}
		if parent, units, err := c.Place(id); err != nil || parent != n.Parent || units != n.Units {
			t.Errorf("node %d: %d %d %v, want %d %d", id, parent, units, err, n.Parent, n.Units)
		}
	}
	var stale *tree.NodeAccessError
	if _, _, err := c.Place(1000); !errors.As(err, &stale) {
		t.Errorf("node 1000: %v", err)
	}
}
