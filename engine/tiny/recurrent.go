// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

// A recurrent layer is linear attention with a gate: queries, keys and values go
// through a short convolution over the last positions; then each head adds the
// product of key and value to its matrix, which fades by a rate that depends on the
// position's input, and reads the matrix with its query.
//
// In a state lie, for each recurrent layer, the matrices of its heads and then the
// last inputs of the convolution, the oldest first.

// taps is the width of the convolution: the position computed and three before.
const taps = 4

// channels is the number of values that the convolution runs over.
func (m *Model) channels() int { return 3 * m.options.Heads * m.options.HeadDim }

// recurrentRows is the number of values that a recurrent layer starts from: the
// channels, an output gate for each value of a head, a fading for each head.
func (m *Model) recurrentRows() int {
	return m.channels() + m.options.Heads*m.options.HeadDim + m.options.Heads
}

// matrixValues is the number of values in the matrices of all heads of a layer.
func (m *Model) matrixValues() int {
	return m.options.Heads * m.options.HeadDim * m.options.HeadDim
}

// stateValues is the number of values that a recurrent layer keeps.
func (m *Model) stateValues() int { return m.matrixValues() + (taps-1)*m.channels() }

// fading returns the largest part that head h of a recurrent layer forgets from one
// position to the next: half, an eighth, and so on down to 1/512, so that some
// heads remember what is long ago.
func fading(h int) float32 { return 1 / float32(int(2)<<(h%5*2)) }

// recur takes y into the layer's state and leaves what its heads read in m.mixed.
func (m *Model) recur(l *layer, y []float32) {
	dim, heads := m.options.HeadDim, m.options.Heads
	all := heads * dim
	in := m.inner[:padded(l.in.rows)]
	l.in.multiply(in, y)
	state := m.state[l.offset:][:m.stateValues()]
	m.convolve(l, in[:m.channels()], state[m.matrixValues():])
	queries, keys, values := in[:all], in[all:2*all], in[2*all:3*all]
	gates, fadings := in[3*all:4*all], in[4*all:4*all+heads]
	clear(m.mixed)
	for h := range heads {
		at := h * dim
		query, key, value := queries[at:at+dim], keys[at:at+dim], values[at:at+dim]
		normalise(query, query, 1)
		normalise(key, key, 1)
		left := 1 - float32(fading(h)*sigmoid(fadings[h]))
		mixed := m.mixed[at : at+dim]
		for i, k := range key {
			q := query[i]
			row := state[(at+i)*dim:][:dim]
			for j, v := range value {
				s := float32(left*row[j]) + float32(k*v)
				row[j] = s
				mixed[j] += float32(q * s)
			}
		}
		normalise(mixed, mixed, 1)
		for i := range mixed {
			mixed[i] = float32(mixed[i] * silu(gates[at+i]))
		}
	}
}

// convolve replaces in by its convolution with the inputs before it, which last
// holds, and takes it into last.
func (m *Model) convolve(l *layer, in, last []float32) {
	n := len(in)
	first, second, third := last[:n], last[n:2*n], last[2*n:3*n]
	for i, v := range in {
		sum := float32(l.taps[i] * first[i])
		sum += float32(l.taps[n+i] * second[i])
		sum += float32(l.taps[2*n+i] * third[i])
		sum += float32(l.taps[3*n+i] * v)
		first[i], second[i], third[i] = second[i], third[i], v
		in[i] = silu(sum)
	}
}
