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

// Time returns the floor of a case: the time in nanoseconds to compare and copy
// its bytes.
func (f Floor) Time(c Case) float64 {
	return 1e9 * (float64(c.Compared)/f.CompareBytesPerSecond + float64(c.Copied)/f.CopyBytesPerSecond)
}
