// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"fmt"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// SequenceError reports a piece of a sequence that cannot be computed, or memory
// that does not fit the model. Nothing was read or written.
type SequenceError struct {
	Field    string // of engine.Sequence, or Memories
	Position int    // in the sequence; -1 where the problem concerns none
	Problem  string // what is wrong and what would be right
}

func (e *SequenceError) Error() string {
	if e.Position < 0 {
		return fmt.Sprintf("tiny: %s: %s", e.Field, e.Problem)
	}
	return fmt.Sprintf("tiny: %s at position %d: %s", e.Field, e.Position, e.Problem)
}

// check finds all that would keep s from being computed, before anything is
// written.
func (m *Model) check(memories *pool.Memories, s *engine.Sequence) error {
	bad := func(field string, position int, problem string, args ...any) error {
		return &SequenceError{Field: field, Position: position, Problem: fmt.Sprintf(problem, args...)}
	}
	if s.From < 0 || s.From >= s.To {
		return bad("From", -1, "%d with To %d: From must be 0 or more, and To above it", s.From, s.To)
	}
	if len(s.Tokens) < s.To {
		return bad("Tokens", -1, "%d for the positions 0 to %d: give one for each", len(s.Tokens), s.To-1)
	}
	for p := s.From; p < s.To; p++ {
		if t := s.Tokens[p]; uint64(t) >= uint64(m.options.Vocabulary) {
			return bad("Tokens", p, "token %d: the vocabulary is 0 to %d", t, m.options.Vocabulary-1)
		}
	}
	for c := range tree.Component(tree.NumComponents) {
		if !m.options.Components.Has(c) {
			continue
		}
		memory := memories.Device[c]
		if memory == nil {
			return bad("Memories", -1, "no device memory for %v: the model keeps %d bytes a slot there", c, m.spec.SlotBytes[c])
		}
		if memory.SlotBytes() < m.spec.SlotBytes[c] {
			return bad("Memories", -1, "%d bytes a slot of %v: the model keeps %d", memory.SlotBytes(), c, m.spec.SlotBytes[c])
		}
	}
	if err := m.checkSlots("Full", memories.Device[tree.Full], s.Full, 0, s); err != nil {
		return err
	}
	if m.options.Components.Has(tree.SWA) {
		if err := m.checkSlots("SWA", memories.Device[tree.SWA], s.SWA, m.reach(tree.SWA, s.From), s); err != nil {
			return err
		}
	}
	if !m.options.Components.Has(tree.Mamba) {
		return nil
	}
	states := memories.Device[tree.Mamba]
	if s.State == 0 || int(s.State) >= states.Slots() {
		return bad("State", -1, "slot %d: give one of 1 to %d", s.State, states.Slots()-1)
	}
	if s.TrackAt == 0 {
		return nil
	}
	switch {
	case s.TrackAt <= s.From || s.TrackAt > s.To:
		return bad("TrackAt", -1, "%d: give 0 or one of %d to %d", s.TrackAt, s.From+1, s.To)
	case s.TrackAt%m.options.Chunk != 0:
		return bad("TrackAt", -1, "%d: the model gives out states at multiples of %d", s.TrackAt, m.options.Chunk)
	case s.Track == 0 || int(s.Track) >= states.Slots() || s.Track == s.State:
		return bad("Track", -1, "slot %d: give one of 1 to %d other than State, %d", s.Track, states.Slots()-1, s.State)
	}
	return nil
}

// checkSlots finds a position from first on that has no slot.
func (m *Model) checkSlots(field string, memory *pool.Memory, slots []tree.Slot, first int, s *engine.Sequence) error {
	if len(slots) < s.To {
		return &SequenceError{Field: field, Position: -1, Problem: fmt.Sprintf("%d slots for the positions 0 to %d: give one for each", len(slots), s.To-1)}
	}
	for p := first; p < s.To; p++ {
		if slot := slots[p]; slot == 0 || int(slot) >= memory.Slots() {
			return &SequenceError{Field: field, Position: p, Problem: fmt.Sprintf("slot %d, and position %d reads it: give one of 1 to %d", slot, max(p, s.From), memory.Slots()-1)}
		}
	}
	return nil
}
