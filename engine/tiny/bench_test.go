// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"fmt"
	"testing"
)

// The floor of the benchmarks below: products of a matrix that lies in the nearest
// cache, which is what most of the network is.
func BenchmarkFloor(b *testing.B) {
	m := newGenerator(1, 1).matrix(64, 32)
	x, out := make([]float32, 32), make([]float32, 64)
	for b.Loop() {
		m.multiply(out, x)
	}
	b.ReportMetric(float64(b.N)*64*32/b.Elapsed().Seconds(), "products/s")
}

// A whole prompt.
func BenchmarkPrefill(b *testing.B) {
	for _, set := range sets {
		for _, n := range []int{200, 2000} {
			b.Run(fmt.Sprintf("components=%v/tokens=%d", set, n), func(b *testing.B) {
				r := newRig(b, Options{Components: set}, n+1)
				s := r.sequence(text(1, n))
				b.ReportAllocs()
				for b.Loop() {
					r.forward(s, 0, n)
				}
				b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// A single token behind a text.
func BenchmarkDecode(b *testing.B) {
	for _, set := range sets {
		for _, n := range []int{200, 2000} {
			b.Run(fmt.Sprintf("components=%v/tokens=%d", set, n), func(b *testing.B) {
				r := newRig(b, Options{Components: set}, n+1)
				s := r.sequence(text(1, n))
				r.forward(s, 0, n-1)
				b.ReportAllocs()
				for b.Loop() {
					r.forward(s, n-1, n)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
