// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"encoding/binary"
	"math"
)

// The functions below give the same bits on every machine for all that is not
// NaN. Two things would break that, and are avoided in this package: a product
// that may come to be added is converted to its own type first, since only that
// keeps a compiler from fusing the two into one rounding (the Go specification,
// "Floating-point operators"); and of package math only what IEEE 754 rounds
// exactly is used, the square root, while exponential and sine differ between
// machines.

// block is the number of rows that multiply works on at once: sums that do not
// wait for each other keep the processor busy.
const block = 8

// matrix has rows of cols weights each. They lie in blocks of rows, column by
// column, and the last block is filled up with zeros.
type matrix struct {
	rows, cols int
	weights    []float32
}

// padded rounds a number of rows up to whole blocks.
func padded(rows int) int { return (rows + block - 1) / block * block }

// at returns the place of one weight.
func (m *matrix) at(row, col int) int {
	return (row/block*m.cols+col)*block + row%block
}

// multiply sets out to the product of m and x. Each sum runs over the columns in
// their order. out has a place for each row of m and for those that fill it up.
func (m *matrix) multiply(out, x []float32) {
	weights := m.weights
	for x = x[:m.cols]; len(weights) > 0; out = out[block:] {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for _, v := range x {
			w := (*[block]float32)(weights)
			s0 += float32(w[0] * v)
			s1 += float32(w[1] * v)
			s2 += float32(w[2] * v)
			s3 += float32(w[3] * v)
			s4 += float32(w[4] * v)
			s5 += float32(w[5] * v)
			s6 += float32(w[6] * v)
			s7 += float32(w[7] * v)
			weights = weights[block:]
		}
		*(*[block]float32)(out) = [block]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

func dot(a, b []float32) float32 {
	var sum float32
	b = b[:len(a)]
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

// normalise scales x to a root mean square of 1 and multiplies it by scale.
func normalise(out, x []float32, scale float32) {
	const epsilon = 1e-6 // keeps a vector of zeros what it is
	mean := dot(x, x)/float32(len(x)) + epsilon
	scale /= float32(math.Sqrt(float64(mean)))
	out = out[:len(x)]
	for i, v := range x {
		out[i] = float32(v * scale)
	}
}

// exp is e to the power of x within two units in the last place, by the usual
// way: x = n ln 2 + r, and a polynomial for e to the power of r. It is 0 below -87
// and infinite above 88.
func exp(x float32) float32 {
	switch {
	case x > 88:
		return float32(math.Inf(1))
	case x < -87:
		return 0
	case x != x:
		return x
	}
	const (
		log2e = 1.44269504088896341
		ln2hi = 0.693359375 // few bits, so that its product with n is exact
		ln2lo = -2.12194440e-4
		round = 3 << 22 // what is added to it loses its fraction
	)
	n := float32(x*log2e) + round - round
	r := x - float32(n*ln2hi) - float32(n*ln2lo)
	p := float32(r*1.9875691500e-4) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	p = float32(float32(p*r)*r) + r + 1
	return float32(p * math.Float32frombits(uint32(int32(n)+127)<<23))
}

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

// silu is the gate of the network: x times its sigmoid.
func silu(x float32) float32 { return x / (1 + exp(-x)) }

// turn returns sine and cosine of an angle of at least 0, to about 1e-7 for
// angles below a million. Beyond they are less exact and still the same everywhere.
func turn(angle float64) (sin, cos float32) {
	const (
		halfPi  = 1.57079632679489661923
		first   = 1.57079632673412561417 // the first 33 bits of halfPi
		rest    = 6.07710050650619224932e-11
		quarter = 1 / halfPi
	)
	n := math.Floor(float64(angle*quarter) + 0.5)
	r := angle - float64(n*first) - float64(n*rest)
	q := float64(r * r)
	s := float64(q*(-1./39916800)) + 1./362880
	s = float64(q*s) - 1./5040
	s = float64(q*s) + 1./120
	s = float64(q*s) - 1./6
	s = float64(float64(q*s)*r) + r
	c := float64(q*(1./479001600)) - 1./3628800
	c = float64(q*c) + 1./40320
	c = float64(q*c) - 1./720
	c = float64(q*c) + 1./24
	c = float64(q*c) - 1./2
	c = float64(q*c) + 1
	switch uint64(n) % 4 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	return float32(s), float32(c)
}

// valueBytes is the number of bytes that a value takes in a slot: a float32,
// little-endian.
const valueBytes = 4

// load reads len(out) values.
func load(out []float32, from []byte) {
	from = from[:valueBytes*len(out)]
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[valueBytes*i:]))
	}
}

// store writes values.
func store(to []byte, values []float32) {
	for _, v := range values {
		binary.LittleEndian.PutUint32(to, math.Float32bits(v))
		to = to[valueBytes:]
	}
}
