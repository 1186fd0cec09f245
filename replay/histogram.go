// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are at most 1/128 wide, relative to
// their value: a quantile is right to within 0.8 %. The zero value is empty.
type histogram struct {
	count   int64
	buckets []int64 // grown as needed
}

const (
	histogramBits = 7
	histogramHalf = 1 << histogramBits // buckets in each power of two
)

// bucket numbers durations: one each up to 256 ns, then 128 in each doubling.
func bucket(ns uint64) int {
	shift := max(0, bits.Len64(ns)-histogramBits-1)
	return shift<<histogramBits + int(ns>>shift)
}

// middle gives the duration in the middle of a bucket.
func middle(b int) int64 {
	shift := max(0, b>>histogramBits-1)
	low := uint64(b-shift<<histogramBits) << shift
	return int64(low + (1<<shift-1)/2)
}

func (h *histogram) add(d time.Duration) {
	b := bucket(uint64(max(d, 0)))
	for b >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]int64, b+1-len(h.buckets))...)
	}
	h.buckets[b]++
	h.count++
}

// quantile gives the duration in nanoseconds below which the share q of all
// durations lies; 0 when there are none.
func (h *histogram) quantile(q float64) int64 {
	rank := max(1, int64(math.Ceil(q*float64(h.count))))
	for b, n := range h.buckets {
		if rank -= n; rank <= 0 && n > 0 {
			return middle(b)
		}
	}
	return 0
}
