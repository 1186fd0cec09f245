// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"math"
	"testing"

	"github.com/treecore/treecore/tree"
)

func start(t *testing.T, c *Cache, tokens []tree.Token) *Request {
	t.Helper()
	r, err := c.NewRequest(RequestParams{Tokens: tokens})
	if err == nil {
		err = c.Admit(r)
	}
	if err == nil {
		err = c.Extend(r, len(tokens)-r.Protected())
	}
	if err == nil {
		err = c.Commit(r, len(tokens)-r.Protected())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rising(first, n int) []tree.Token {
	t := make([]tree.Token, n)
	for i := range t {
		t[i] = tree.Token(first + i)
	}
	return t
}

// The largest integers are sizes like others: refused or taken at their word.
func TestLargestIntegers(t *testing.T) {
	c, err := New(Options{
		Tree:  tree.Options{Components: tree.SetOf(tree.Full, tree.Mamba), CheckpointGrid: 12},
		Pools: PoolSizes{Full: 64, Mamba: 10}, TrackInterval: math.MaxInt,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, c, rising(1, 8))
	if n, err := c.Decode(r, rising(50, 3)); err != nil || n != 3 {
		t.Fatalf("decoded %d: %v", n, err)
	}
	var large *TooLargeError
	if err := c.Extend(r, math.MaxInt); !errors.As(err, &large) {
		t.Errorf("extend: %v", err)
	}
	if _, _, ok := c.PlanTrack(nil, 4); ok {
		t.Error("a request that is none has a checkpoint to track")
	}
	if err := c.Abort(r); err != nil {
		t.Error(err)
	}
	if err := c.CheckConservation(); err != nil {
		t.Error(err)
	}
	if Grid(64, math.MaxInt) < 64 || Grid(-4, 6) != 0 || Grid(64, 48) != 192 {
		t.Error("the smallest common multiple is wrong")
	}
}

// A short prompt fits a small window pool beside what it reuses.
func TestReuseInASmallWindowPool(t *testing.T) {
	for _, size := range []int{100, 128, 140, 200} {
		c, err := New(Options{
			Tree:  tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), SlidingWindow: 64},
			Pools: PoolSizes{Full: 1000, SWA: size},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{0, 29} {
			r := start(t, c, rising(1, 30))
			if r.Protected() != want {
				t.Errorf("pool of %d: request %d reuses %d tokens, want %d", size, i, r.Protected(), want)
			}
			if err := c.Finish(r, true); err != nil {
				t.Fatal(err)
			}
		}
		if n := c.Stats().ReuseGivenUp; n != 0 {
			t.Errorf("pool of %d: reuse was given up %d times", size, n)
		}
	}
}

// One request is at most two hits of its prompt, however often it is cached
// while it generates.
func TestARequestIsNoCrowd(t *testing.T) {
	c, err := New(Options{Pools: PoolSizes{Full: 200}})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, c, rising(1, 8))
	for i := range 50 {
		if err := c.CacheUnfinished(r); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Decode(r, rising(100+i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Finish(r, true); err != nil {
		t.Fatal(err)
	}
	first, err := c.Tree().Inspect(c.Tree().Nodes()[1])
	if err != nil || first.Hits > 2 {
		t.Errorf("%d hits: %v", first.Hits, err)
	}
}
