// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/treecore/treecore/workload"
)

// dependencies says who follows whom. Requests that wait for the same others
// share a gate, so that a thousand that wait for a thousand cost two thousand.
type dependencies struct {
	gates   []gate
	closing [][]int // request to the gates that its end may open
}

type gate struct {
	missing int   // requests that have not ended
	waiting []int // requests behind the gate
}

func newDependencies(requests []workload.Request) *dependencies {
	d := &dependencies{closing: make([][]int, len(requests))}
	type list struct {
		first *int
		n     int
	}
	known := map[list]int{} // looked up only
	for i := range requests {
		after := requests[i].After
		if len(after) == 0 {
			continue
		}
		g, ok := known[list{&after[0], len(after)}]
		if !ok {
			g = len(d.gates)
			known[list{&after[0], len(after)}] = g
			d.gates = append(d.gates, gate{missing: len(after)})
			for _, k := range after {
				d.closing[k] = append(d.closing[k], g)
			}
		}
		d.gates[g].waiting = append(d.gates[g].waiting, i)
	}
	return d
}

// ended notes the end of a request and calls open for each that need not wait
// for others any more.
func (d *dependencies) ended(request int, open func(request int)) {
	for _, g := range d.closing[request] {
		if d.gates[g].missing--; d.gates[g].missing == 0 {
			for _, i := range d.gates[g].waiting {
				open(i)
			}
		}
	}
	d.closing[request] = nil
}

// duration gives the time that so many tokens take at a rate.
func duration(tokens int, rate float64) time.Duration {
	return time.Duration(float64(tokens) / rate * float64(time.Second))
}
