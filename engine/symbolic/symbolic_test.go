// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package symbolic_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

const all = tree.ComponentSet(1<<tree.NumComponents - 1)

type rig struct {
	*testing.T
	model  *symbolic.Model
	memory *pool.Memories
}

func newRig(t *testing.T, o symbolic.Options) *rig {
	t.Helper()
	m, err := symbolic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := engine.NewMemory(m.Spec(), 1, tree.Units{200, 200, 20}, tree.Units{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, m, memory}
}

func sequence(n int) *engine.Sequence {
	s := &engine.Sequence{State: 1}
	for i := range n {
		s.Tokens = append(s.Tokens, tree.Token(i*7))
		s.Full = append(s.Full, tree.Slot(100-i))
		s.SWA = append(s.SWA, tree.Slot(1+i))
	}
	return s
}

// run computes the first n positions in pieces and returns the last logits.
func (r *rig) run(s *engine.Sequence, ends ...int) ([]float32, engine.Output) {
	r.Helper()
	var out engine.Output
	for _, end := range ends {
		s.From, s.To = s.To, end
		var err error
		if out, err = r.model.Forward(r.memory, s); err != nil {
			r.Fatal(err)
		}
	}
	return slices.Clone(out.Logits), out
}

func TestPiecesMakeNoDifference(t *testing.T) {
	r := newRig(t, symbolic.Options{Components: all, Window: 4})
	want, _ := r.run(sequence(20), 20)
	for _, ends := range [][]int{{1, 2, 20}, {19, 20}, {5, 10, 15, 20}} {
		if got, out := r.run(sequence(20), ends...); !slices.Equal(got, want) || out.Mismatched != 0 {
			t.Errorf("in pieces up to %v: other logits, %v", ends, out.Mismatches)
		}
	}
}

// Each value that a position reads is missed when it is wrong, and no other.
func TestEveryValueThatIsReadMatters(t *testing.T) {
	for id, matters := range map[tree.Component]func(position int) bool{
		tree.Full:  func(int) bool { return true },
		tree.SWA:   func(i int) bool { return i >= 10-4+1 }, // what position 10 reads, and those after it
		tree.Mamba: func(int) bool { return true },
	} {
		for i := range 10 {
			r := newRig(t, symbolic.Options{Components: all, Window: 4})
			s := sequence(20)
			want, _ := r.run(sequence(20), 10, 20)
			r.run(s, 10)
			slot := [...]tree.Slot{s.Full[i], s.SWA[i], s.State}[id]
			r.memory.Device[id].SetStamp(slot, 12345)
			got, out := r.run(s, 20)
			if matters(i) == slices.Equal(got, want) || matters(i) != (out.Mismatched == 1) {
				t.Fatalf("%v at %d: %d mismatches", id, i, out.Mismatched)
			}
			if out.Mismatched > 0 && (out.Mismatches[0].Component != id || out.Mismatches[0].Slot != slot) {
				t.Errorf("%v at %d: told %v", id, i, out.Mismatches)
			}
		}
	}
}

func TestTrackedStateIsThatOfItsPrefix(t *testing.T) {
	r := newRig(t, symbolic.Options{Components: all, Window: 4})
	s := sequence(20)
	s.TrackAt, s.Track = 8, 5
	want, _ := r.run(s, 20)
	s = sequence(20)
	s.State, s.To = 5, 8
	if got, out := r.run(s, 20); out.Mismatched != 0 || !slices.Equal(got, want) {
		t.Errorf("resumed at 8: %v", out.Mismatches)
	}
}

func TestNamespacesAndSeedsShareNothing(t *testing.T) {
	base, _ := newRig(t, symbolic.Options{}).run(sequence(5), 5)
	s := sequence(5)
	s.Namespace.Salt = "x"
	salted, _ := newRig(t, symbolic.Options{}).run(s, 5)
	seeded, _ := newRig(t, symbolic.Options{Seed: 1}).run(sequence(5), 5)
	if slices.Equal(base, salted) || slices.Equal(base, seeded) {
		t.Error("equal logits")
	}
}

func TestBadOptions(t *testing.T) {
	for field, o := range map[string]symbolic.Options{
		"Components": {Components: tree.SetOf(tree.SWA), Window: 1},
		"Window":     {Components: all},
		"Chunk":      {Chunk: -1},
		"Vocabulary": {Vocabulary: -1},
	} {
		var bad *tree.ConfigError
		if _, err := symbolic.New(o); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
