// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"slices"
	"testing"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// deep has two layers of each component, so that slots hold more than one, and
// is narrow, so that there are few values to poison.
func deep(set tree.ComponentSet) Options {
	o := Options{Components: set, Window: 8, Chunk: 4, Layers: "full,", Hidden: 16, Heads: 2, HeadDim: 4}
	if set.Has(tree.SWA) {
		o.Layers += "swa,swa,"
	}
	if set.Has(tree.Mamba) {
		o.Layers += "mamba,mamba,"
	}
	o.Layers += "full"
	return o
}

// pieces are what the tests below compute on a prefix: one token and several,
// inside the first window and behind it.
var pieces = [][2]int{{5, 6}, {5, 20}, {24, 25}, {24, 29}}

// Every single value that a piece reads matters: if one of them is another number,
// the logits of the piece's last position are others.
func TestEveryValueReadMatters(t *testing.T) {
	for _, set := range sets {
		for _, piece := range pieces {
			from, to := piece[0], piece[1]
			r := newRig(t, deep(set), to)
			s := r.sequence(text(1, to))
			r.forward(s, 0, from)
			var state []byte
			if s.State != 0 {
				state = slices.Clone(r.slot(tree.Mamba, s.State))
			}
			again := func() []float32 {
				if s.State != 0 {
					copy(r.slot(tree.Mamba, s.State), state)
				}
				return r.forward(s, from, to)
			}
			want := again()
			poison := func(c tree.Component, position int, bytes []byte) {
				values := make([]float32, len(bytes)/valueBytes)
				load(values, bytes)
				for i, v := range values {
					values[i] = v + 0.25
					store(bytes, values)
					got := again()
					values[i] = v
					store(bytes, values)
					if slices.Equal(got, want) {
						t.Fatalf("components %v, positions %d to %d: value %d of %v at position %d does not matter", set, from, to-1, i, c, position)
					}
				}
			}
			for p := range from {
				poison(tree.Full, p, r.slot(tree.Full, s.Full[p]))
				if s.SWA != nil && p > from-r.model.options.Window {
					poison(tree.SWA, p, r.slot(tree.SWA, s.SWA[p]))
				}
			}
			if s.State != 0 {
				// again starts from a copy of the state, which is what is poisoned.
				poison(tree.Mamba, from, state)
			}
			r.wantSame("after all", again(), want)
		}
	}
}

// Nothing else is read: with every other byte of the memory being no number, the
// logits stay.
func TestNothingElseIsRead(t *testing.T) {
	for _, set := range sets {
		for _, piece := range append(pieces, [2]int{0, 1}, [2]int{0, 20}) {
			from, to := piece[0], piece[1]
			r := newRig(t, deep(set), to+10)
			s := r.sequence(text(1, to))
			if from > 0 {
				r.forward(s, 0, from)
			}
			read := [tree.NumComponents]map[tree.Slot]bool{{}, {}, {}}
			for p := range from {
				read[tree.Full][s.Full[p]] = true
				if s.SWA != nil && p > from-r.model.options.Window {
					read[tree.SWA][s.SWA[p]] = true
				}
			}
			if from > 0 {
				read[tree.Mamba][s.State] = true
			}
			for c, memory := range r.memory.Device {
				for slot := range tree.Slot(memory.Slots()) {
					bytes := memory.At(slot)
					if read[c][slot] {
						bytes = bytes[r.model.spec.SlotBytes[c]:] // what the model has not asked for
					}
					junk(bytes)
				}
			}
			got := r.forward(s, from, to)
			r.wantSame("with junk around", got, cold(t, r.model, s, to).logits)
		}
	}
}

// The network writes the slots of the positions that it computes, the state, and
// the tracked state, and no other byte.
func TestNothingElseIsWritten(t *testing.T) {
	for _, set := range sets {
		r := newRig(t, deep(set), 40)
		s := r.sequence(text(1, 30))
		r.forward(s, 0, 10)
		before := r.snapshot()
		if s.State != 0 {
			s.TrackAt = 20
		}
		r.forward(s, 10, 30)
		written := [tree.NumComponents]map[tree.Slot]bool{{}, {}, {s.State: true, s.Track: true}}
		for p := 10; p < 30; p++ {
			written[tree.Full][s.Full[p]] = true
			if s.SWA != nil {
				written[tree.SWA][s.SWA[p]] = true
			}
		}
		for c, memory := range r.memory.Device {
			for slot := range tree.Slot(memory.Slots()) {
				bytes, old := memory.At(slot), before[c][int(slot)*memory.SlotBytes():][:memory.SlotBytes()]
				if written[c][slot] {
					kept := r.model.spec.SlotBytes[c]
					bytes, old = bytes[kept:], old[kept:]
				}
				if !slices.Equal(bytes, old) {
					t.Errorf("components %v: slot %d of %v has changed", set, slot, tree.Component(c))
				}
			}
		}
	}
}

func (r *rig) snapshot() (out [tree.NumComponents][]byte) {
	for c, memory := range r.memory.Device {
		out[c] = slices.Clone(memory.Run(0, memory.Slots()))
	}
	return out
}

// What a cache could mix up shows: slots of two positions exchanged, a slot of
// another text, a state that is ahead of its key or behind it.
func TestMixUpsShow(t *testing.T) {
	const n = 25
	o := deep(sets[3])
	r := newRig(t, o, 3*n)
	s, other := r.sequence(text(1, n)), r.sequence(text(2, n))
	s.TrackAt = 12
	r.forward(s, 0, n-1)
	r.forward(other, 0, n-1)
	state := slices.Clone(r.slot(tree.Mamba, s.State))
	run := func(change func(*engine.Sequence)) []float32 {
		copy(r.slot(tree.Mamba, s.State), state)
		changed := *s
		changed.TrackAt, changed.Full, changed.SWA = 0, slices.Clone(s.Full), slices.Clone(s.SWA)
		change(&changed)
		return r.forward(&changed, n-1, n)
	}
	want := run(func(*engine.Sequence) {})
	for name, change := range map[string]func(*engine.Sequence){
		"Full slots exchanged":  func(s *engine.Sequence) { s.Full[3], s.Full[4] = s.Full[4], s.Full[3] },
		"a Full slot too early": func(s *engine.Sequence) { s.Full[3] = s.Full[2] },
		"another's Full slot":   func(s *engine.Sequence) { s.Full[20] = other.Full[20] },
		"SWA slots exchanged":   func(s *engine.Sequence) { s.SWA[20], s.SWA[21] = s.SWA[21], s.SWA[20] },
		"another's SWA slot":    func(s *engine.Sequence) { s.SWA[20] = other.SWA[20] },
		"another's state": func(s *engine.Sequence) {
			copy(r.slot(tree.Mamba, s.State), r.slot(tree.Mamba, other.State))
		},
		"a state of fewer tokens": func(s *engine.Sequence) {
			copy(r.slot(tree.Mamba, s.State), r.slot(tree.Mamba, s.Track))
		},
	} {
		if slices.Equal(run(change), want) {
			t.Errorf("%s: the logits are the same", name)
		}
	}
	r.wantSame("in the end", run(func(*engine.Sequence) {}), want)
}
