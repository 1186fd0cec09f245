// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"math"
	"math/rand/v2"
)

// generator draws weights. It takes the bits of a PCG, whose sequence for a seed
// is fixed, and makes numbers of them itself.
type generator struct{ bits rand.PCG }

func newGenerator(seed, stream uint64) *generator {
	g := &generator{}
	g.bits.Seed(seed, stream)
	return g
}

// uniform returns a number in -1 to 1.
func (g *generator) uniform() float32 {
	return float32(int64(g.bits.Uint64()>>40)-1<<23) / (1 << 23)
}

// fill draws all of out from a range around 0 whose numbers have the given root
// mean square.
func (g *generator) fill(out []float32, size float32) {
	size *= float32(math.Sqrt(3))
	for i := range out {
		out[i] = float32(g.uniform() * size)
	}
}

// matrix draws weights that keep the size of what they are multiplied with.
func (g *generator) matrix(rows, cols int) matrix {
	m := matrix{rows: rows, cols: cols, weights: make([]float32, padded(rows)*cols)}
	row := make([]float32, cols)
	for r := range rows {
		g.fill(row, 1/float32(math.Sqrt(float64(cols))))
		m.set(r, row)
	}
	return m
}

func (m *matrix) set(row int, values []float32) {
	for col, v := range values {
		m.weights[m.at(row, col)] = v
	}
}
