// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"math"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// In a slot of Full lie the keys and then the values of all heads of the first
// full layer, then those of the next; in a slot of SWA those of its layers.

// keyWidth is the number of values in the keys of all heads of a position.
func (m *Model) keyWidth() int { return m.options.KVHeads * m.options.HeadDim }

// reach returns the first position that position p of an attention layer reads.
func (m *Model) reach(c tree.Component, p int) int {
	if c == tree.SWA {
		return max(p-m.options.Window+1, 0)
	}
	return 0
}

// keep computes the keys and values of position p from y and writes them into its
// slot. Keys have a root mean square of 1. They are turned when they are read, by
// the place that they are found at: so a slot in the place of another shows. Values
// are turned here, since else a token that is repeated would have equal ones.
func (m *Model) keep(l *layer, y []float32, slot []byte, p int) {
	width := m.keyWidth()
	both := m.inner[:padded(2*width)]
	l.in.multiply(both, y)
	for at := 0; at < width; at += m.options.HeadDim {
		key := both[at : at+m.options.HeadDim]
		normalise(key, key, 1)
	}
	m.rotate(both[width:2*width], p)
	store(slot[l.offset:], both[:2*width])
}

// angles makes sure that the sine and cosine of each pair of a head are there for
// the positions 0 to p.
func (m *Model) angles(p int) {
	for at := len(m.turns) / m.options.HeadDim; at <= p; at++ {
		speed := 1.0
		for range m.options.HeadDim / 2 {
			sin, cos := turn(float64(float64(at) * speed))
			m.turns = append(m.turns, sin, cos)
			speed /= 8
		}
	}
}

// rotate turns the pairs of each head in x by their angle at position p.
func (m *Model) rotate(x []float32, p int) {
	dim := m.options.HeadDim
	turns := m.turns[p*dim : (p+1)*dim]
	for ; len(x) > 0; x = x[dim:] {
		low, high := x[:dim/2], x[dim/2:dim]
		for i, a := range low {
			sin, cos, b := turns[2*i], turns[2*i+1], high[i]
			low[i] = float32(a*cos) - float32(b*sin)
			high[i] = float32(a*sin) + float32(b*cos)
		}
	}
}

// attend reads the keys and values in slots[first:], of which the last are those of
// the position that y is of, and leaves the mean of the values, by head, in m.mixed.
//
// Queries and keys have fixed lengths, so a score lies within the square root of
// HeadDim on either side of 0. So its exponential needs no maximum taken off, which
// makes the sums a single walk in the order of positions, and no position's weight
// is too small to show. Scaling what a head gives to a root mean square of 1 keeps
// what many positions have added up as loud as what few have.
func (m *Model) attend(l *layer, y []float32, memory *pool.Memory, slots []tree.Slot, first int) {
	dim, width := m.options.HeadDim, m.keyWidth()
	queries := m.inner[:padded(len(m.mixed))]
	l.query.multiply(queries, y)
	for at := 0; at < len(m.mixed); at += dim {
		query := queries[at : at+dim]
		normalise(query, query, 1/float32(math.Sqrt(float64(dim))))
	}
	m.rotate(queries[:len(m.mixed)], len(slots)-1)
	clear(m.mixed)
	clear(m.sums)
	shared := m.options.Heads / m.options.KVHeads // so many heads read the same keys
	for p := first; p < len(slots); p++ {
		bytes := memory.At(slots[p])[l.offset:]
		load(m.key, bytes)
		m.rotate(m.key, p)
		load(m.value, bytes[width*valueBytes:])
		head := 0
		for from := 0; from < width; from += dim {
			key, value := m.key[from:from+dim], m.value[from:from+dim]
			for range shared {
				at := head * dim
				weight := exp(dot(key, queries[at:at+dim]))
				m.sums[head] += weight
				mixed := m.mixed[at:][:len(value)]
				for i, v := range value {
					mixed[i] += float32(weight * v)
				}
				head++
			}
		}
	}
	for at := 0; at < len(m.mixed); at += dim {
		mixed := m.mixed[at : at+dim]
		sum := m.sums[at/dim]
		for i := range mixed {
			mixed[i] /= sum
		}
		normalise(mixed, mixed, 1)
	}
}
