// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"testing"
)

// Result is one measured benchmark.
type Result struct {
	Name        string  `json:"name"`
	NsPerOp     float64 `json:"ns_per_op"` // the median where the workload times single operations
	P99Ns       float64 `json:"p99_ns,omitempty"`
	AllocsPerOp int64   `json:"allocs_per_op"`
	BytesPerOp  int64   `json:"bytes_per_op"`
	// FloorRatio is the time over the floor: comparing and copying the bytes
	// that the operation must, and 100 ns for each node it passes.
	FloorRatio    float64 `json:"floor_ratio,omitempty"`
	BytesPerToken float64 `json:"bytes_per_token,omitempty"`
	BytesPerNode  float64 `json:"bytes_per_node,omitempty"`
}

// nodeNs is what the floor allows for passing one node.
const nodeNs = 100

// Ratio returns how far a measured time is above the floor; 0 where a floor
// says nothing.
func (f Floor) Ratio(c Case, ns float64) float64 {
	if c.Compared+c.Copied == 0 {
		return 0
	}
	return ns / (f.Time(c) + nodeNs*float64(c.Nodes))
}

// Run measures one case. The cases report what testing.B offers; names of
// further metrics are fixed here and in the cases.
func Run(ctx context.Context, c Case, floor Floor) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	r := testing.Benchmark(c.Run)
	out := Result{
		Name: c.Name, NsPerOp: float64(r.T.Nanoseconds()) / float64(max(r.N, 1)),
		AllocsPerOp: r.AllocsPerOp(), BytesPerOp: r.AllocedBytesPerOp(),
		P99Ns: r.Extra["p99-ns"], BytesPerToken: r.Extra["bytes/token"], BytesPerNode: r.Extra["bytes/node"],
	}
	if median, ok := r.Extra["median-ns"]; ok {
		// Allocations of a whole run say nothing about one operation.
		out.NsPerOp, out.AllocsPerOp, out.BytesPerOp = median, 0, 0
	}
	out.FloorRatio = floor.Ratio(c, out.NsPerOp)
	return out, nil
}
