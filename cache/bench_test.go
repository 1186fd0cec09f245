// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/treecore/treecore/tree"
)

func benchOptions(swa, mamba bool, page int) Options {
	return Options{
		Tree:  tree.Options{Components: components(swa, mamba), PageSize: page, SlidingWindow: 128, CheckpointGrid: 64},
		Pools: PoolSizes{Full: 1 << 20, SWA: 1 << 17, Mamba: 256},
	}
}

// BenchmarkRequestLife leads requests of 12,000 tokens, half of them shared,
// with 350 generated ones through a cache that is full.
func BenchmarkRequestLife(b *testing.B) {
	for _, set := range []struct{ swa, mamba bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		for _, page := range []int{1, 16} {
			b.Run(fmt.Sprintf("%v/page%d", components(set.swa, set.mamba), page), func(b *testing.B) {
				c, err := New(benchOptions(set.swa, set.mamba, page))
				if err != nil {
					b.Fatal(err)
				}
				shared, output := span(1, 6000), span(1, 350)
				prompt := join(shared, span(1, 6000))
				n := 0
				next := func() {
					n++
					for i := 6000; i < len(prompt); i++ {
						prompt[i] = tree.Token(n*10_000 + i)
					}
					life(b, c, append([]tree.Token(nil), prompt...), 8192, output)
				}
				for range 200 {
					next()
				}
				b.ReportAllocs()
				for b.Loop() {
					next()
				}
				if c.Stats().Evicted[tree.Full] == 0 {
					b.Fatal("the cache was not full")
				}
			})
		}
	}
}

// BenchmarkDecode appends tokens in bulk to one request; an op is one token.
func BenchmarkDecode(b *testing.B) {
	for _, set := range []struct{ swa, mamba bool }{{false, false}, {true, false}, {true, true}} {
		for _, page := range []int{1, 16} {
			for _, bulk := range []int{1, 512} {
				b.Run(fmt.Sprintf("%v/page%d/bulk%d", components(set.swa, set.mamba), page, bulk), func(b *testing.B) {
					c, err := New(benchOptions(set.swa, set.mamba, page))
					if err != nil {
						b.Fatal(err)
					}
					tokens := span(1, bulk)
					var r *Request
					start := func() {
						if r != nil {
							if err := c.Abort(r); err != nil {
								b.Fatal(err)
							}
						}
						r, _ = c.NewRequest(RequestParams{Tokens: span(1, 1)})
						_ = c.Admit(r)
						_ = c.Extend(r, 1)
						if err := c.Commit(r, 1); err != nil {
							b.Fatal(err)
						}
					}
					start()
					b.ReportAllocs()
					b.ResetTimer()
					for done := 0; done < b.N; done += bulk {
						if _, err := c.Decode(r, tokens); err != nil {
							b.Fatal(err)
						}
						if r.Len() > 4096 {
							start()
						}
					}
				})
			}
		}
	}
}

// BenchmarkLongPrompt prefills 900,000 tokens in chunks of 8,192.
func BenchmarkLongPrompt(b *testing.B) {
	for _, swa := range []bool{false, true} {
		b.Run(fmt.Sprint(components(swa, false)), func(b *testing.B) {
			prompt := span(1, 900_000)
			for b.Loop() {
				c, err := New(benchOptions(swa, false, 16))
				if err != nil {
					b.Fatal(err)
				}
				life(b, c, prompt, 8192, nil)
			}
		})
	}
}
