// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// usage sums up the use of a component's pool over a run.
type usage struct {
	slots             int
	least, mean, most float64 // shares of the pool that were not free
	curve             string
}

const curveWidth = 40

// usage takes the samples evenly in time; each stands for the time until the
// next one.
func (r *Report) usage(id tree.Component) usage {
	u := usage{least: 1}
	var sum, span float64
	var levels [curveWidth]float64
	start := r.Occupancy[0].Seconds
	end := r.Occupancy[len(r.Occupancy)-1].Seconds
	next := 0
	level := 0.0
	for i := range r.Occupancy {
		x := &r.Occupancy[i]
		for ; next < curveWidth && start+(end-start)*float64(next)/curveWidth < x.Seconds; next++ {
			levels[next] = level
		}
		if i > 0 {
			sum += level * (x.Seconds - r.Occupancy[i-1].Seconds)
			span += x.Seconds - r.Occupancy[i-1].Seconds
		}
		use, _ := x.of(id)
		u.slots = use.Free + use.Evictable + use.Protected + use.Held
		level = share(int64(u.slots-use.Free), int64(u.slots))
		u.least, u.most = min(u.least, level), max(u.most, level)
	}
	for ; next < curveWidth; next++ {
		levels[next] = level
	}
	u.mean = level
	if span > 0 {
		u.mean = sum / span
	}
	u.curve = curve(levels[:])
	return u
}

// curve draws shares from 0 to 1 as a row of bars.
func curve(levels []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, level := range levels {
		b.WriteRune(bars[min(int(level*float64(len(bars))), len(bars)-1)])
	}
	return b.String()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
