// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/treecore/treecore/internal/bench"
)

// BenchmarkTree runs the tree's own benchmarks; treecore bench prints the same
// with the machine's floor beside them.
func BenchmarkTree(b *testing.B) {
	floor := bench.MeasureFloor()
	for _, c := range bench.TreeCases() {
		b.Run(c.Name, func(b *testing.B) {
			c.Run(b)
			if ratio := floor.Ratio(c, float64(b.Elapsed().Nanoseconds())/float64(b.N)); ratio > 0 {
				b.ReportMetric(ratio, "x-floor")
			}
		})
	}
}
