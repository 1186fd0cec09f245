// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench holds the project's benchmarks in one place, so that go test
// -bench and the command line run the same code. Every result can be held
// against the machine's floor, measured in the same run: how fast it copies and
// compares memory. Absolute times differ between machines; ratios tell.
package bench

import (
	"bytes"
	"testing"
	"time"
)

// Case is one benchmark.
type Case struct {
	Name string
	Run  func(b *testing.B)
	// Compared and Copied are the bytes that one operation has to compare and
	// to copy at least; 0 where a floor says nothing.
	Compared, Copied int
	// Nodes is the number of nodes that one operation passes.
	Nodes int
}

// Floor is what the machine can do at best.
type Floor struct {
	CopyBytesPerSecond    float64 `json:"copy_bytes_per_second"`
	CompareBytesPerSecond float64 `json:"compare_bytes_per_second"`
}

const floorBytes = 64 << 20

// MeasureFloor copies and compares 64 MiB a few times and keeps the best.
func MeasureFloor() Floor {
	a, b := make([]byte, floorBytes), make([]byte, floorBytes)
	for i := range a {
		a[i] = byte(i >> 8)
	}
	copy(b, a)
	best := func(f func()) float64 {
		fastest := time.Duration(1<<62 - 1)
		for range 7 {
			start := time.Now()
			f()
			fastest = min(fastest, time.Since(start))
		}
		return floorBytes / fastest.Seconds()
	}
	var f Floor
	f.CopyBytesPerSecond = best(func() { copy(b, a) })
	same := false
	f.CompareBytesPerSecond = best(func() { same = bytes.Equal(a, b) })
	if !same {
		panic("bench: a copy differs from its source")
	}
	return f
}

// Time returns the floor of a case in nanoseconds: what it takes to compare and
// copy as many bytes as the operation must, measured on buffers of that size.
// Small ones stay in the processor's caches, as the tree's do.
func (f Floor) Time(c Case) float64 {
	fastest := func(n int, touch func(a, b []byte)) float64 {
		if n == 0 {
			return 0
		}
		a, b := make([]byte, n), make([]byte, n)
		best := time.Duration(1<<62 - 1)
		rounds := max(1, (1<<20)/n)
		for range 9 {
			start := time.Now()
			for range rounds {
				touch(a, b)
			}
			best = min(best, time.Since(start))
		}
		return float64(best.Nanoseconds()) / float64(rounds)
	}
	return fastest(c.Compared, func(a, b []byte) {
		if !bytes.Equal(a, b) {
			panic("bench: equal buffers differ")
		}
	}) + fastest(c.Copied, func(a, b []byte) { copy(b, a) })
}
