// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	for n := 1; n <= 100_000; n++ {
		h.add(time.Duration(n) * 37)
	}
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 1} {
		want := q * 100_000 * 37
		if got := float64(h.quantile(q)); math.Abs(got-want) > want/128+1 {
			t.Errorf("quantile %v: %v, want about %v", q, got, want)
		}
	}
	// Every duration lies in a bucket whose middle is near it.
	for _, ns := range []uint64{0, 1, 127, 128, 255, 256, 257, 511, 512, 1000, 1 << 20, 1<<40 + 12345, 1<<62 + 99} {
		if got := float64(middle(bucket(ns))); math.Abs(got-float64(ns)) > float64(ns)/256+1 {
			t.Errorf("%d ns: the middle of its bucket is %v", ns, got)
		}
	}
	h = histogram{}
	h.add(-5)
	h.add(math.MaxInt64)
	if h.count != 2 || h.quantile(0.1) != 0 {
		t.Errorf("%d counted, first %d", h.count, h.quantile(0.1))
	}
}
