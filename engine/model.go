// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Spec says what a model keeps of each token, and in which components.
type Spec struct {
	Name       string
	Components tree.ComponentSet
	// Window is the sliding window in tokens; 0 without SWA.
	Window int
	// Chunk is the number of tokens between two states that the model can give
	// out, so that checkpoints lie on multiples of it; 0 without Mamba.
	Chunk int
	// SlotBytes is the memory that a slot of each component needs: at least 8.
	SlotBytes [tree.NumComponents]int
	// Vocabulary is the number of tokens: 0 to Vocabulary-1.
	Vocabulary int
	// AnyToken says that prompts may have tokens outside of the vocabulary.
	AnyToken bool
}

// Model computes tokens on what a cache keeps. It is used by one goroutine.
type Model interface {
	Spec() Spec
	// Forward computes the positions From to To-1 of one sequence: it reads what
	// earlier positions have left in the memory, as far as its layers read it, and
	// writes what these leave. The result must not depend on where From lies, on
	// what else is computed, or on which slots are used.
	Forward(m *pool.Memories, s *Sequence) (Output, error)
}

// Sequence is a piece of one sequence to be computed. The lists are the
// engine's.
type Sequence struct {
	Tokens    []tree.Token // To tokens at least
	Namespace tree.Namespace
	From, To  int
	Full      []tree.Slot // of the positions 0 to To-1
	// SWA has the slots of the same positions; 0 where the position has left the
	// window. nil without SWA.
	SWA []tree.Slot
	// State is the slot of the recurrent state after From tokens, which must be
	// the one after To tokens at the end. At From 0 its content means nothing.
	State tree.Slot
	// The state after TrackAt tokens is to be copied to Track; 0: none is.
	TrackAt int
	Track   tree.Slot
}

// Output is what a model says about the token after the last one computed.
type Output struct {
	// Logits has one value a token of the vocabulary. It is the model's until its
	// next call.
	Logits []float32
	// Mismatches are values that were not what the sequence's own tokens demand,
	// by a model that can tell. At most MaxMismatches are listed; Mismatched counts
	// all.
	Mismatches []Mismatch
	Mismatched int
}

// MaxMismatches is the most mismatches that one Output lists.
const MaxMismatches = 16

// Mismatch is a value that a model has read and that was not the sequence's own.
type Mismatch struct {
	Component tree.Component
	Position  int       // of the value; for a state the number of tokens that it should stand for
	Slot      tree.Slot // 0: there is none
}

func (m Mismatch) String() string {
	if m.Slot == 0 {
		return fmt.Sprintf("%v at position %d: no slot", m.Component, m.Position)
	}
	return fmt.Sprintf("%v at position %d: slot %d holds something else", m.Component, m.Position, m.Slot)
}

// NewMemory returns memory for so many device and host slots of each component,
// pages of the given number of tokens; none where a number is 0.
func NewMemory(s Spec, page int, device, host tree.Units) (*pool.Memories, error) {
	m := &pool.Memories{}
	for id := range tree.Component(tree.NumComponents) {
		each := max(s.SlotBytes[id], pool.StampBytes)
		first := page // device pools begin with a page that is never given out
		if id == tree.Mamba {
			first = 1
		}
		var err error
		if device[id] > 0 {
			if m.Device[id], err = pool.NewMemory(first+device[id], each); err != nil {
				return nil, err
			}
		}
		if host[id] > 0 {
			if m.Host[id], err = pool.NewMemory(host[id], each); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}
