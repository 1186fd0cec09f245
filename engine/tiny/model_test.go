// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

var _ engine.Model = (*Model)(nil)

// drawOptions draws a network, with more than one layer of a component mostly.
func drawOptions(t *rapid.T) Options {
	o := Options{
		Components: rapid.SampledFrom(sets).Draw(t, "components"),
		Window:     rapid.IntRange(1, 20).Draw(t, "window"),
		Chunk:      rapid.IntRange(1, 8).Draw(t, "chunk"),
		Hidden:     rapid.SampledFrom([]int{8, 32}).Draw(t, "hidden"),
		Heads:      rapid.SampledFrom([]int{1, 3, 4}).Draw(t, "heads"),
		HeadDim:    rapid.SampledFrom([]int{2, 8, 10}).Draw(t, "head dim"),
		Seed:       rapid.Uint64().Draw(t, "seed"),
	}
	for c := range tree.Component(tree.NumComponents) {
		if o.Components.Has(c) {
			for range rapid.IntRange(1, 2).Draw(t, "layers") {
				o.Layers += c.String() + ","
			}
		}
	}
	o.Layers += "full"
	return o
}

// reuse computes sequences that share prefixes, in random pieces that take turns,
// on what others have left where there is something, and compares all that it gets
// with computations in one go.
func reuse(t *rapid.T) {
	o := drawOptions(t)
	r := newRig(t, o, 400)
	o = r.model.options
	type sequence struct {
		*engine.Sequence
		at, length int
	}
	other, err := New(o) // shares nothing with the rig's
	if err != nil {
		t.Fatalf("%v", err)
	}
	var all []*sequence
	tracked := map[int]tree.Slot{} // states of the first sequence, by length
	base := text(uint64(rapid.IntRange(0, 99).Draw(t, "text")), 64)
	for i := range rapid.IntRange(1, 4).Draw(t, "sequences") {
		length := rapid.IntRange(2, 48).Draw(t, "length")
		tokens := slices.Clone(base[:length])
		shared := 0
		if i > 0 && !all[0].Namespace.HasExtraKey {
			// The first sequence has left its slots; this one goes on behind a part
			// of it that has a state.
			shared = rapid.IntRange(0, min(length-1, all[0].at)).Draw(t, "shared")
			if o.Components.Has(tree.Mamba) {
				for shared > 0 && tracked[shared] == 0 {
					shared--
				}
			}
			copy(tokens[shared:], text(uint64(i), length-shared))
		}
		s := &sequence{Sequence: r.sequence(tokens), at: shared, length: length}
		if shared == 0 { // else it is in the namespace of the first one, the plain one
			s.Namespace.HasExtraKey = rapid.Bool().Draw(t, "adapter")
		}
		if shared > 0 {
			copy(s.Full, all[0].Full[:shared])
			if s.SWA != nil {
				copy(s.SWA, all[0].SWA[:shared])
			}
			if s.State != 0 {
				copy(r.slot(tree.Mamba, s.State), r.slot(tree.Mamba, tracked[shared]))
			}
		}
		all = append(all, s)
		for step := 0; ; step++ {
			var open []*sequence
			for _, s := range all {
				if s.at < s.length {
					open = append(open, s)
				}
			}
			if len(open) == 0 || i == 0 && rapid.IntRange(0, 3).Draw(t, "next sequence") == 0 {
				break
			}
			s := rapid.SampledFrom(open).Draw(t, "sequence")
			n := rapid.IntRange(1, s.length-s.at).Draw(t, "piece")
			s.TrackAt = 0
			if point := (s.at + n) / max(o.Chunk, 1) * o.Chunk; s.State != 0 && point > s.at {
				s.TrackAt = point
			}
			got := r.forward(s.Sequence, s.at, s.at+n)
			if s.TrackAt > 0 && s == all[0] && len(r.free[tree.Mamba]) > 8 {
				tracked[s.TrackAt], s.Track = s.Track, r.take(tree.Mamba, 1)[0]
			}
			s.at += n
			alone := cold(t, other, s.Sequence, s.at)
			r.wantSame(fmt.Sprintf("sequence of %d after %d", s.length, s.at), got, alone.logits)
			for p := range s.at {
				r.wantSameSlot(tree.Full, p, r.slot(tree.Full, s.Full[p]), alone.slot(tree.Full, alone.Full[p]))
				if s.SWA != nil {
					r.wantSameSlot(tree.SWA, p, r.slot(tree.SWA, s.SWA[p]), alone.slot(tree.SWA, alone.SWA[p]))
				}
			}
			if s.State != 0 {
				r.wantSameSlot(tree.Mamba, s.at, r.slot(tree.Mamba, s.State), alone.slot(tree.Mamba, alone.State))
			}
		}
	}
}

func TestReuseIsExact(t *testing.T) { rapid.Check(t, reuse) }

func FuzzReuse(f *testing.F) { f.Fuzz(rapid.MakeFuzz(reuse)) }

// A state given out in the middle of a piece is, byte for byte, that of a
// computation that ends there, and the piece goes on as if nothing had been.
func TestTrackedStateIsTheStateOfAShorterRun(t *testing.T) {
	const n, chunk = 40, 5
	o := Options{Layers: "mamba,full,mamba,full", Chunk: chunk}
	for at := chunk; at <= n; at += chunk {
		for _, from := range []int{0, at - 1} {
			r := newRig(t, o, 2*n)
			s := r.sequence(text(1, n))
			if from > 0 {
				r.forward(s, 0, from)
			}
			s.TrackAt = at
			got := r.forward(s, from, n)
			short := cold(t, r.model, s, at)
			r.wantSameSlot(tree.Mamba, at, r.slot(tree.Mamba, s.Track), short.slot(tree.Mamba, short.State))
			r.wantSame(fmt.Sprintf("tracked at %d", at), got, cold(t, r.model, s, n).logits)
		}
	}
}

// The logits of a fixed text. They are what every machine must get; whoever
// changes the network on purpose changes them, and says so.
func TestGoldenLogits(t *testing.T) {
	golden := map[string]string{
		"full":           "44e517436e70a0af",
		"full,swa":       "994209a19a7368dc",
		"full,mamba":     "2dda9799ca3aa73d",
		"full,swa,mamba": "6f6448c8e416bcb6",
	}
	for _, set := range sets {
		r := newRig(t, Options{Components: set}, 300)
		s := r.sequence(text(1, 300))
		sum := sha256.New()
		for at := 0; at < 300; at += 100 {
			for _, v := range r.forward(s, at, at+100) {
				bits := math.Float32bits(v)
				sum.Write([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
			}
		}
		if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != golden[set.String()] {
			t.Errorf("components %v: logits with digest %s, want %s", set, got, golden[set.String()])
		}
	}
}

// Equal options give equal models, other seeds other ones.
func TestSeedPicksTheWeights(t *testing.T) {
	logits := func(seed uint64) []float32 {
		r := newRig(t, Options{Components: sets[3], Seed: seed}, 20)
		return r.forward(r.sequence(text(1, 20)), 0, 20)
	}
	if !slices.Equal(logits(1), logits(1)) {
		t.Error("two models of seed 1 differ")
	}
	if slices.Equal(logits(1), logits(2)) {
		t.Error("seeds 1 and 2 give the same model")
	}
}

// An extra key stands for an adapter; a salt changes no output.
func TestNamespace(t *testing.T) {
	logits := func(n tree.Namespace) []float32 {
		r := newRig(t, Options{}, 20)
		s := r.sequence(text(1, 20))
		s.Namespace = n
		return r.forward(s, 0, 20)
	}
	plain := logits(tree.Namespace{})
	a := logits(tree.Namespace{ExtraKey: "a"})
	for name, other := range map[string][]float32{
		"no extra key":    plain,
		"empty extra key": logits(tree.Namespace{HasExtraKey: true}),
		"extra key b":     logits(tree.Namespace{ExtraKey: "b"}),
	} {
		if slices.Equal(a, other) {
			t.Errorf("%s gives the output of extra key a", name)
		}
	}
	if !slices.Equal(plain, logits(tree.Namespace{Salt: "a"})) {
		t.Error("a salt changes the output")
	}
	if !slices.Equal(a, logits(tree.Namespace{ExtraKey: "a", HasExtraKey: true})) {
		t.Error("one namespace in two forms gives two outputs")
	}
}

// What the model says next is no single token for ever: an engine that mixes up
// sequences would not be seen by it.
func TestGreedyTextVaries(t *testing.T) {
	const n = 200
	for _, set := range sets {
		r := newRig(t, Options{Components: set}, n)
		tokens := make([]tree.Token, n)
		copy(tokens, text(1, 8))
		s := r.sequence(tokens)
		seen := map[tree.Token]bool{}
		logits := r.forward(s, 0, 8)
		for at := 8; at < n; at++ {
			tokens[at] = tree.Token(slices.Index(logits, slices.Max(logits)))
			seen[tokens[at]] = true
			logits = r.forward(s, at, at+1)
		}
		if len(seen) < n/6 {
			t.Errorf("components %v: %d different tokens in %d: %v", set, len(seen), n, tokens)
		}
	}
}

func TestForwardAllocatesNothing(t *testing.T) {
	r := newRig(t, Options{Components: sets[3]}, 20)
	s := r.sequence(text(1, 20))
	s.From, s.To, s.TrackAt, s.Namespace.ExtraKey = 0, 20, 16, "a"
	if n := testing.AllocsPerRun(10, func() {
		if _, err := r.model.Forward(r.memory, s); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
