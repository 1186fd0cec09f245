// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// churn allocates and frees rows of n slots in a pool of a million that is kept
// nearly full, so that free space is scattered.
func BenchmarkPagedChurn(b *testing.B) {
	for _, page := range []int{1, 16} {
		b.Run(map[int]string{1: "page1", 16: "page16"}[page], func(b *testing.B) {
			p, _ := NewPaged("full", 1<<20, page)
			var rows []tree.Slots
			for p.Available() >= 512 {
				row, _ := p.Alloc(512)
				rows = append(rows, row)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k := i * 7919 % len(rows)
				if err := p.Free(rows[k]); err != nil {
					b.Fatal(err)
				}
				var err error
				if rows[k], err = p.AppendAlloc(rows[k][:0], 512); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDualDecode(b *testing.B) {
	for _, page := range []int{1, 16} {
		b.Run(map[int]string{1: "page1", 16: "page16"}[page], func(b *testing.B) {
			d, _ := NewDual(1<<20, 1<<16, page)
			row := make(tree.Slots, 0, 16)
			last, n := int64(NoSlot), 0
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if n == 4096 {
					if err = d.Free(row); err != nil {
						b.Fatal(err)
					}
					row, last, n = row[:0], NoSlot, 0
				}
				n++
				if row, err = d.AllocDecode(row, n, last); err != nil {
					b.Fatal(err)
				}
				r := row[len(row)-1]
				last = int64(r.First) + int64(r.Length) - 1
			}
		})
	}
}

func BenchmarkNewDual10M(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewDual(10_000_000, 1_000_000, 1); err != nil {
			b.Fatal(err)
		}
	}
}
