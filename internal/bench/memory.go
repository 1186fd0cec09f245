// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"

	"github.com/treecore/treecore/tree"
)

// memoryCase reports what five million cached tokens cost at page 64, in nodes
// of the given length. Slots come page by page and out of order, as from a pool
// that has been in use for long.
func memoryCase(node int) Case {
	const page, tokens, chain = 64, 5_000_000, 32768
	return Case{
		Name: fmt.Sprintf("memory/page=64/node=%d", node),
		Run: func(b *testing.B) {
			for b.Loop() {
				r := newRand()
				c := newCore(page)
				var pages []int
				for at := 0; at < tokens; at += chain {
					t := randomTokens(r, chain)
					t[0] = tree.Token(32000 + at)
					var slots tree.Slots
					for len(pages) < chain/page {
						pages = append(pages, r.IntN(1<<20))
					}
					for _, p := range pages {
						slots = slots.AppendRun(tree.Run{First: tree.Slot(p * page), Length: page})
					}
					pages = pages[:0]
					for end := node; end <= chain; end += node {
						insert(c, tree.InsertParams{Key: tree.Key{Tokens: t[:end]}, Slots: slots, PrevPrefixLen: end - node})
					}
				}
				held := c.EvictableSize(tree.Full)
				total := c.MemoryBytes()
				b.ReportMetric(float64(total)/float64(held), "bytes/token")
				b.ReportMetric(float64(total-4*held)/float64(c.NodeCount()), "bytes/node")
			}
		},
	}
}
