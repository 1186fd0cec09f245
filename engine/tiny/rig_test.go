// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// failer is what *testing.T, *testing.B and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var sets = []tree.ComponentSet{
	tree.SetOf(tree.Full),
	tree.SetOf(tree.Full, tree.SWA),
	tree.SetOf(tree.Full, tree.Mamba),
	tree.SetOf(tree.Full, tree.SWA, tree.Mamba),
}

// rig is a model with memory, and the slots of it that are free, shuffled.
type rig struct {
	t      failer
	model  *Model
	memory *pool.Memories
	free   [tree.NumComponents][]tree.Slot
}

func newRig(t failer, o Options, positions int) *rig {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return newRigOf(t, m, positions)
}

// newRigOf makes a rig with memory for so many positions, and slots that are
// larger than the model needs. All bytes are junk at first.
func newRigOf(t failer, m *Model, positions int) *rig {
	t.Helper()
	spec := m.Spec()
	for c := range spec.SlotBytes {
		spec.SlotBytes[c] += 12
	}
	const states, page = 16, 4
	r := &rig{t: t, model: m}
	var err error
	if r.memory, err = engine.NewMemory(spec, page, tree.Units{positions, positions, states}, tree.Units{}); err != nil {
		t.Fatalf("%v", err)
	}
	rng := rand.New(rand.NewPCG(uint64(positions), 7))
	for c, memory := range r.memory.Device {
		for s := page; s < memory.Slots(); s++ {
			r.free[c] = append(r.free[c], tree.Slot(s))
		}
		rng.Shuffle(len(r.free[c]), func(i, j int) { r.free[c][i], r.free[c][j] = r.free[c][j], r.free[c][i] })
		junk(memory.Run(0, memory.Slots()))
	}
	return r
}

// junk fills bytes with what is no number.
func junk(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

func (r *rig) take(c tree.Component, n int) []tree.Slot {
	r.t.Helper()
	if n > len(r.free[c]) {
		r.t.Fatalf("the rig has %d slots of %v, and the test wants %d", len(r.free[c]), c, n)
	}
	slots := r.free[c][:n:n]
	r.free[c] = r.free[c][n:]
	return slots
}

// sequence returns a sequence with slots of its own for all tokens.
func (r *rig) sequence(tokens []tree.Token) *engine.Sequence {
	r.t.Helper()
	s := &engine.Sequence{Tokens: tokens, Full: r.take(tree.Full, len(tokens))}
	if r.model.options.Components.Has(tree.SWA) {
		s.SWA = r.take(tree.SWA, len(tokens))
	}
	if r.model.options.Components.Has(tree.Mamba) {
		s.State, s.Track = r.take(tree.Mamba, 1)[0], r.take(tree.Mamba, 1)[0]
	}
	return s
}

// forward computes a piece and returns a copy of the logits. What the sequence
// needs no more is not given.
func (r *rig) forward(s *engine.Sequence, from, to int) []float32 {
	r.t.Helper()
	piece := *s
	piece.From, piece.To = from, to
	piece.Full = s.Full[:to]
	if s.SWA != nil {
		piece.SWA = slices.Clone(s.SWA[:to])
		clear(piece.SWA[:max(from-r.model.options.Window+1, 0)])
	}
	out, err := r.model.Forward(r.memory, &piece)
	if err != nil {
		r.t.Fatalf("positions %d to %d: %v", from, to-1, err)
	}
	if out.Mismatched != 0 || len(out.Mismatches) != 0 {
		r.t.Fatalf("positions %d to %d: %d mismatches, and the model cannot tell", from, to-1, out.Mismatched)
	}
	return slices.Clone(out.Logits)
}

// whole is a sequence that was computed in one go, on memory of its own.
type whole struct {
	*rig
	*engine.Sequence
	logits []float32
}

// cold computes the first n tokens of s in one go, on memory full of junk.
func cold(t failer, m *Model, s *engine.Sequence, n int) whole {
	t.Helper()
	r := newRigOf(t, m, n)
	alone := r.sequence(s.Tokens[:n])
	alone.Namespace = s.Namespace
	return whole{r, alone, r.forward(alone, 0, n)}
}

// slot returns what the model keeps in a slot.
func (r *rig) slot(c tree.Component, s tree.Slot) []byte {
	return r.memory.Device[c].At(s)[:r.model.spec.SlotBytes[c]]
}

// wantSame demands equal bits, and that they are numbers.
func (r *rig) wantSame(what string, got, want []float32) {
	r.t.Helper()
	for i, v := range want {
		if v != v || len(got) != len(want) || math.Float32bits(got[i]) != math.Float32bits(v) {
			r.t.Fatalf("%s: logit %d is %v, want %v", what, i, got[i], v)
		}
	}
}

func (r *rig) wantSameSlot(c tree.Component, position int, got, want []byte) {
	r.t.Helper()
	if !bytes.Equal(got, want) {
		r.t.Fatalf("%v of position %d: the slot differs from that of a computation in one go", c, position)
	}
}

// text returns n tokens below 512.
func text(seed uint64, n int) []tree.Token {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := make([]tree.Token, n)
	for i := range out {
		out[i] = tree.Token(rng.IntN(512))
	}
	return out
}
