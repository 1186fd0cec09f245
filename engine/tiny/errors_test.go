// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// A piece that cannot be computed is refused with the place of the fault, and
// nothing has been written.
func TestBadSequences(t *testing.T) {
	const n = 20
	for _, x := range []struct {
		name, field string
		position    int
		change      func(s *engine.Sequence, m *pool.Memories)
	}{
		{"From below 0", "From", -1, func(s *engine.Sequence, _ *pool.Memories) { s.From = -1 }},
		{"an empty piece", "From", -1, func(s *engine.Sequence, _ *pool.Memories) { s.From = s.To }},
		{"too few tokens", "Tokens", -1, func(s *engine.Sequence, _ *pool.Memories) { s.Tokens = s.Tokens[:n-1] }},
		{"a token beyond the vocabulary", "Tokens", 12, func(s *engine.Sequence, _ *pool.Memories) { s.Tokens[12] = 512 }},
		{"too few Full slots", "Full", -1, func(s *engine.Sequence, _ *pool.Memories) { s.Full = s.Full[:n-1] }},
		{"a hole in Full", "Full", 0, func(s *engine.Sequence, _ *pool.Memories) { s.Full[0] = 0 }},
		{"a Full slot beyond the memory", "Full", 19, func(s *engine.Sequence, _ *pool.Memories) { s.Full[19] = 1 << 31 }},
		{"no SWA slots", "SWA", -1, func(s *engine.Sequence, _ *pool.Memories) { s.SWA = nil }},
		{"a hole where the window begins", "SWA", 3, func(s *engine.Sequence, _ *pool.Memories) { s.SWA[3] = 0 }},
		{"a hole where the window ends", "SWA", 9, func(s *engine.Sequence, _ *pool.Memories) { s.SWA[9] = 0 }},
		{"a hole in the piece", "SWA", 15, func(s *engine.Sequence, _ *pool.Memories) { s.SWA[15] = 0 }},
		{"no state", "State", -1, func(s *engine.Sequence, _ *pool.Memories) { s.State = 0 }},
		{"a state beyond the memory", "State", -1, func(s *engine.Sequence, _ *pool.Memories) { s.State = 1 << 31 }},
		{"tracking what is done", "TrackAt", -1, func(s *engine.Sequence, _ *pool.Memories) { s.TrackAt = 8 }},
		{"tracking what is not computed", "TrackAt", -1, func(s *engine.Sequence, _ *pool.Memories) { s.TrackAt = 24 }},
		{"tracking between chunks", "TrackAt", -1, func(s *engine.Sequence, _ *pool.Memories) { s.TrackAt = 14 }},
		{"tracking without a slot", "Track", -1, func(s *engine.Sequence, _ *pool.Memories) { s.Track = 0 }},
		{"tracking into the state", "Track", -1, func(s *engine.Sequence, _ *pool.Memories) { s.Track = s.State }},
		{"no memory", "Memories", -1, func(_ *engine.Sequence, m *pool.Memories) { m.Device[tree.SWA] = nil }},
		{"slots too small", "Memories", -1, func(_ *engine.Sequence, m *pool.Memories) {
			m.Device[tree.Full], _ = pool.NewMemory(64, pool.StampBytes)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t, Options{Components: sets[3], Window: 8, Chunk: 4}, n)
			s := r.sequence(text(1, n))
			r.forward(s, 0, 10)
			before := r.snapshot()
			s.Full, s.SWA = slices.Clone(s.Full), slices.Clone(s.SWA)
			s.From, s.To, s.TrackAt = 10, n, 12
			memories := *r.memory
			x.change(s, &memories)
			_, err := r.model.Forward(&memories, s)
			var bad *SequenceError
			if !errors.As(err, &bad) || bad.Field != x.field || bad.Position != x.position {
				t.Fatalf("error %v, want a *SequenceError of %s at %d", err, x.field, x.position)
			}
			for c, memory := range r.memory.Device {
				if !slices.Equal(before[c], memory.Run(0, memory.Slots())) {
					t.Errorf("memory of %v has changed", tree.Component(c))
				}
			}
		})
	}
}

// What lies before the window needs no slot: the window of position 10 of a window
// of 8 begins at 3.
func TestWindowIsCountedWithThePositionItself(t *testing.T) {
	r := newRig(t, Options{Components: sets[1], Window: 8}, 20)
	s := r.sequence(text(1, 20))
	r.forward(s, 0, 10)
	s.SWA = slices.Clone(s.SWA)
	clear(s.SWA[:3])
	s.From, s.To = 10, 11
	if _, err := r.model.Forward(r.memory, s); err != nil {
		t.Fatal(err)
	}
}

func ExampleSequenceError() {
	fmt.Println(&SequenceError{Field: "SWA", Position: 17, Problem: "slot 0, and position 20 reads it: give one of 1 to 99"})
	// Output: tiny: SWA at position 17: slot 0, and position 20 reads it: give one of 1 to 99
}
