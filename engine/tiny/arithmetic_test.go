// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestExp(t *testing.T) {
	for x := float32(-87); x <= 88; x += 0.0137 {
		want := math.Exp(float64(x))
		if got := float64(exp(x)); math.Abs(got-want) > want*2.5e-7 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, x := range []struct{ given, want float32 }{{0, 1}, {89, inf}, {inf, inf}, {-88, 0}, {-inf, 0}} {
		if got := exp(x.given); got != x.want {
			t.Errorf("exp(%v) = %v, want %v", x.given, got, x.want)
		}
	}
	if got := exp(nan); got == got {
		t.Errorf("exp(NaN) = %v", got)
	}
}

func TestTurn(t *testing.T) {
	check := func(angle float64) {
		wantSin, wantCos := math.Sincos(angle)
		sin, cos := turn(angle)
		if math.Abs(float64(sin)-wantSin) > 2e-7 || math.Abs(float64(cos)-wantCos) > 2e-7 {
			t.Fatalf("angle %v: %v and %v, want %v and %v", angle, sin, cos, wantSin, wantCos)
		}
	}
	for angle := 0.0; angle < 30; angle += 0.01 {
		check(angle)
	}
	for angle := 1.0; angle < 1e6; angle *= 1.01 {
		check(math.Floor(angle))
	}
}

// The blocks of multiply are a way to store a matrix and to be quick: each result
// is, bit for bit, the plain sum in the order of columns.
func TestMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 30).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "cols")
		g := newGenerator(rapid.Uint64().Draw(t, "seed"), 0)
		m := matrix{rows: rows, cols: cols, weights: make([]float32, padded(rows)*cols)}
		plain := make([][]float32, rows)
		for r := range plain {
			plain[r] = make([]float32, cols)
			g.fill(plain[r], 1)
			m.set(r, plain[r])
		}
		x, out := make([]float32, cols), make([]float32, padded(rows))
		g.fill(x, 1)
		m.multiply(out, x)
		for r, row := range plain {
			if want := dot(row, x); math.Float32bits(out[r]) != math.Float32bits(want) {
				t.Fatalf("row %d: %v, want %v", r, out[r], want)
			}
		}
	})
}

// A fused product and sum would give another sum here.
func TestDotRoundsEachProduct(t *testing.T) {
	const tiny = 1.0 / (1 << 12)
	a := []float32{1 + 2*tiny + tiny*tiny, 1 + tiny}
	b := []float32{-1, 1 + tiny}
	if got := dot(a, b); got != 0 {
		t.Errorf("sum of products %v, want 0: they were not rounded one by one", got)
	}
	m := matrix{rows: 1, cols: 2, weights: make([]float32, 2*block)}
	m.set(0, a)
	var out [block]float32
	if m.multiply(out[:], b); out[0] != 0 {
		t.Errorf("product of a matrix %v, want 0: products were not rounded one by one", out[0])
	}
}

func TestLoadIsWhatWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float32()).Draw(t, "values")
		bytes := make([]byte, len(values)*valueBytes+3)
		store(bytes, values)
		got := make([]float32, len(values))
		load(got, bytes)
		for i, v := range values {
			if math.Float32bits(got[i]) != math.Float32bits(v) {
				t.Fatalf("value %d: %v, want %v", i, got[i], v)
			}
		}
	})
	var one [valueBytes]byte
	if store(one[:], []float32{1}); one != [valueBytes]byte{0, 0, 0x80, 0x3f} {
		t.Errorf("1 is stored as % x, want 00 00 80 3f", one)
	}
}
