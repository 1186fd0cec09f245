// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// TestDecodeBulkEqualsOneByOne runs the same requests on three caches: two
// decode in bulk and must agree slot by slot, the third decodes token by token
// and must agree in all that does not depend on which slots were handed out.
func TestDecodeBulkEqualsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SampledFrom([]int{1, 4}).Draw(t, "page")
		swa, mamba := rapid.Bool().Draw(t, "swa"), rapid.Bool().Draw(t, "mamba")
		o := Options{
			Tree: tree.Options{
				Components: components(swa, mamba), PageSize: page, Eagle: rapid.Bool().Draw(t, "eagle"),
				SlidingWindow: rapid.IntRange(1, 9).Draw(t, "window"), CheckpointGrid: 2 * page,
			},
			Pools: PoolSizes{Full: 120, SWA: rapid.IntRange(40, 120).Draw(t, "size"), Mamba: 9},
		}
		var caches [3]*Cache
		for i := range caches {
			var err error
			if caches[i], err = New(o); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "requests") {
			prompt := tokens(t, page)
			output := span(500, 499+rapid.IntRange(1, 60).Draw(t, "output"))
			insert := rapid.Bool().Draw(t, "insert")
			var told [3]string
			var rows [3]tree.Slots
			for i, c := range caches {
				rows[i], told[i] = decodeWay(t, c, prompt, output, i == 2, insert)
			}
			if told[0] != told[1] || !rows[0].Equal(rows[1]) {
				t.Fatalf("two equal caches differ:\n%s %v\n%s %v", told[0], rows[0], told[1], rows[1])
			}
			if told[0] != told[2] {
				t.Fatalf("in bulk: %s\none by one: %s", told[0], told[2])
			}
		}
	})
}

func decodeWay(t *rapid.T, c *Cache, prompt, output []tree.Token, single, insert bool) (tree.Slots, string) {
	ok := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	r, err := c.NewRequest(RequestParams{Tokens: prompt})
	var large *TooLargeError
	if errors.As(err, &large) {
		return nil, err.Error()
	}
	ok(err)
	ok(c.Admit(r))
	for r.Len() < r.PromptLen() {
		n := c.MaxExtend(r, r.PromptLen()-r.Len())
		if n == 0 {
			t.Fatalf("stuck at %d", r.Len())
		}
		ok(c.Extend(r, n))
		ok(c.Commit(r, n))
		ok(c.CacheUnfinished(r))
	}
	done := 0
	if single {
		for err == nil && done < len(output) {
			var n int
			n, err = c.Decode(r, output[done:done+1])
			done += n
		}
	} else {
		done, err = c.Decode(r, output)
	}
	at, _, tracked := r.Tracked()
	told := fmt.Sprint(done, err, r.Len(), r.Frontier(), r.Allocated(), at, tracked,
		c.Usage(tree.Full), c.Usage(tree.SWA), c.Usage(tree.Mamba), c.Stats().Evicted, c.Stats().EarlyReleases)
	row := r.Row()
	ok(c.Finish(r, insert))
	ok(c.CheckConservation())
	return row, told
}
