// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/treecore/treecore/tree"
)

// TreeCases are the benchmarks of the tree alone, on made-up keys.
func TreeCases() []Case {
	var cases []Case
	for _, tokens := range []int{128, 2048, 32768, 131072} {
		for _, layout := range []struct {
			name string
			node int
		}{{"one", tokens}, {"2048", 2048}, {"64", 64}} {
			if layout.name != "one" && layout.node >= tokens {
				continue
			}
			cases = append(cases, matchCase(fmt.Sprintf("match/tokens=%d/node=%s", tokens, layout.name), tokens, layout.node, false))
		}
	}
	cases = append(cases,
		matchCase("match/tokens=131072/node=one/slots=scattered", 131072, 131072, true),
		insertCase("insert/tokens=2048/cached=32768/node=one", 32768),
		insertCase("insert/tokens=2048/cached=32768/node=2048", 2048),
		insertCase("insert/tokens=2048/cached=32768/node=64", 64),
		splitCase("split/tokens=2048", 2048),
		splitCase("split/tokens=131072", 131072),
	)
	for _, depth := range []int{1, 16, 256} {
		cases = append(cases, lockCase(depth))
	}
	cases = append(cases,
		evictCase("evict/leaves=20000/call=leaf", 1),
		evictCase("evict/leaves=20000/call=2500", 2500),
		evictCase("evict/leaves=20000/call=half", 20000*evictLeafTokens/2),
	)
	cases = append(cases, memoryCase(2048), memoryCase(64))
	for _, leaves := range []int{10000, 20000, 40000, 80000} {
		cases = append(cases, evictGrowthCase(leaves))
	}
	return cases
}

// newCore returns a core for Full with the given page.
func newCore(page int) *tree.Core {
	c, err := tree.New(tree.Options{PageSize: page})
	if err != nil {
		panic(err)
	}
	return c
}

// randomTokens returns tokens of a vocabulary of 32,000.
func randomTokens(r *rand.Rand, n int) []tree.Token {
	t := make([]tree.Token, n)
	for i := range t {
		t[i] = tree.Token(r.IntN(32000))
	}
	return t
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(42, 0)) }

// insert puts a key in as a user without pools would.
func insert(c *tree.Core, p tree.InsertParams) tree.InsertResult {
	step, err := c.BeginInsert(p)
	for {
		if err != nil {
			panic(err)
		}
		for _, a := range step.Actions {
			if r, ok := a.(tree.SWARebuild); ok {
				if err := c.SetComponentDeviceValue(r.Node, tree.SWA, r.Full); err != nil {
					panic(err)
				}
			}
		}
		if step.Result != nil {
			c.EndInsert()
			return *step.Result
		}
		step, err = c.ResumeInsert()
	}
}

// cached returns a core that holds tokens as a chain of nodes.
func cached(tokens []tree.Token, node int, slots tree.Slots) *tree.Core {
	c := newCore(1)
	for end := node; ; end += node {
		end = min(end, len(tokens))
		insert(c, tree.InsertParams{Key: tree.Key{Tokens: tokens[:end]}, Slots: slots, PrevPrefixLen: max(end-node, 0)})
		if end == len(tokens) {
			return c
		}
	}
}

func matchCase(name string, tokens, node int, scattered bool) Case {
	copied := 4 * tokens // a slot number a token
	if scattered {
		copied = 12 * tokens // a run a token
	}
	return Case{
		Name: name, Compared: 4 * tokens, Copied: copied, Nodes: tokens / node,
		Run: func(b *testing.B) {
			t := randomTokens(newRand(), tokens)
			slots := tree.Numbered(1, tokens)
			if scattered {
				slots = slots[:0]
				for i := range tokens {
					slots = append(slots, tree.Run{First: tree.Slot(1 + i*2), Length: 1})
				}
			}
			c := cached(t, node, slots)
			key := tree.Key{Tokens: append([]tree.Token(nil), t...)}
			b.ReportAllocs()
			b.SetBytes(int64(4 * tokens))
			for b.Loop() {
				r, err := c.Match(key)
				if err != nil || r.DeviceLen != tokens {
					b.Fatal(r.DeviceLen, err)
				}
			}
		},
	}
}

func insertCase(name string, node int) Case {
	const had, added = 32768, 2048
	return Case{
		Name: name, Compared: 4 * had, Copied: 4 * added, Nodes: had / node,
		Run: func(b *testing.B) {
			r := newRand()
			t := randomTokens(r, had+added)
			c := cached(t[:had], node, tree.Numbered(1, had))
			slots := tree.Numbered(1, had+added)
			b.ReportAllocs()
			for b.Loop() {
				t[had]++ // a new question each time
				insert(c, tree.InsertParams{Key: tree.Key{Tokens: t}, Slots: slots, PrevPrefixLen: had})
			}
		},
	}
}

func splitCase(name string, tokens int) Case {
	return Case{
		Name: name, Compared: 2 * tokens, Copied: 4 * tokens, Nodes: 1,
		Run: func(b *testing.B) {
			t := randomTokens(newRand(), tokens)
			half := append([]tree.Token(nil), t[:tokens/2]...)
			c := newCore(1)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				c.Reset()
				insert(c, tree.InsertParams{Key: tree.Key{Tokens: t}, Slots: tree.Numbered(1, tokens)})
				b.StartTimer()
				if _, err := c.Match(tree.Key{Tokens: half}); err != nil {
					b.Fatal(err)
				}
			}
		},
	}
}

func lockCase(depth int) Case {
	return Case{
		Name: fmt.Sprintf("lock+unlock/depth=%d", depth), Nodes: depth,
		Run: func(b *testing.B) {
			const node = 16
			t := randomTokens(newRand(), node*depth)
			c := cached(t, node, tree.Numbered(1, len(t)))
			m, err := c.Match(tree.Key{Tokens: t})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.Lock(m.LastDeviceNode, 0)
				if err == nil {
					err = c.Unlock(m.LastDeviceNode, r, false)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		},
	}
}

const evictLeafTokens = 32

// manyLeaves returns a core with so many leaves below one shared prefix.
func manyLeaves(leaves int) *tree.Core {
	r := newRand()
	c := newCore(1)
	prefix := randomTokens(r, 64)
	for i := range leaves {
		t := append(append([]tree.Token(nil), prefix...), randomTokens(r, evictLeafTokens)...)
		t[len(prefix)] = tree.Token(32000 + i)
		insert(c, tree.InsertParams{Key: tree.Key{Tokens: t}, Slots: tree.Numbered(tree.Slot(i*128), len(t))})
	}
	return c
}

// evict frees n units of Full, as a controller does.
func evict(c *tree.Core, n int) int {
	if err := c.EvictStart(tree.Full, n); err != nil {
		panic(err)
	}
	var totals tree.Units
	for {
		step, err := c.EvictNext(tree.Full, totals)
		if err != nil {
			panic(err)
		}
		if step.Node == tree.NoNode {
			break
		}
		leaf, err := c.EvictLeaf(step.Node, false)
		if err != nil {
			panic(err)
		}
		totals.Add(leaf.Freed)
	}
	if err := c.EvictEnd(tree.Full); err != nil {
		panic(err)
	}
	return totals[tree.Full]
}

func evictCase(name string, units int) Case {
	return Case{
		Name: name,
		Run: func(b *testing.B) {
			c := manyLeaves(20000)
			b.ReportAllocs()
			for b.Loop() {
				if evict(c, units) == 0 || c.NodeCount() < 10000 {
					b.StopTimer()
					c = manyLeaves(20000)
					b.StartTimer()
				}
			}
		},
	}
}

// evictGrowthCase shows what one eviction costs as the cache grows.
func evictGrowthCase(leaves int) Case {
	return Case{
		Name: fmt.Sprintf("evict-one/leaves=%d", leaves),
		Run: func(b *testing.B) {
			c := manyLeaves(leaves)
			b.ReportAllocs()
			for b.Loop() {
				if evict(c, 1) == 0 || c.NodeCount() < leaves*9/10 {
					b.StopTimer()
					c = manyLeaves(leaves)
					b.StartTimer()
				}
			}
		},
	}
}
