// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbolic is a model for engine that computes no numbers but says what a
// value depends on. Each slot holds a 64-bit fingerprint of the component, the
// position and all tokens before it. A forward pass reads back every value that
// the layers of a real model would read, compares it with what the sequence's own
// tokens demand, and folds what it has read, right or wrong, into the next token
// and into what it writes. So a wrong reuse shows twice: as a mismatch that names
// component, position and slot, and as another output.
package symbolic

import (
	"errors"
	"slices"
	"strconv"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Options configures a Model.
type Options struct {
	Components tree.ComponentSet // zero: Full alone
	Window     int               // tokens; needed with SWA
	// Chunk is the number of tokens between two states. Zero: 64.
	Chunk int
	// Vocabulary is the number of tokens that the model can say. Zero: 512.
	Vocabulary int
	// Seed makes models that share no value.
	Seed uint64
}

// Model implements engine.Model.
type Model struct {
	opts   Options
	logits []float32

	// What the latest sequences demand: a next step of one of them goes on from it.
	recent []*demand
	turn   int // of the one that is replaced next
	*demand
}

// demand is what the values of a sequence must be.
type demand struct {
	tokens []tree.Token
	space  uint64
	prefix []uint64                     // fingerprints: at n that of the first n tokens
	stamps [tree.NumComponents][]uint64 // of Full and SWA by position
}

// maxRecent is the number of sequences that are remembered.
const maxRecent = 16

// New returns a model. Options that are wrong are one or more *tree.ConfigError,
// joined.
func New(o Options) (*Model, error) {
	var problems []error
	check := func(ok bool, field string, value int, allowed string) {
		if !ok {
			problems = append(problems, &tree.ConfigError{Field: field, Value: strconv.Itoa(value), Allowed: allowed})
		}
	}
	if o.Components == 0 {
		o.Components = tree.SetOf(tree.Full)
	}
	if o.Chunk == 0 {
		o.Chunk = 64
	}
	if o.Vocabulary == 0 {
		o.Vocabulary = 512
	}
	check(o.Components.Has(tree.Full) && o.Components>>tree.NumComponents == 0, "Components", int(o.Components), "a set with Full")
	check(!o.Components.Has(tree.SWA) || o.Window > 0, "Window", o.Window, "1 or more tokens, with SWA")
	check(o.Chunk > 0, "Chunk", o.Chunk, "1 or more tokens, or 0 for 64")
	check(o.Vocabulary > 0 && o.Vocabulary <= 1<<20, "Vocabulary", o.Vocabulary, "1 to 1048576 tokens, or 0 for 512")
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &Model{opts: o, logits: make([]float32, o.Vocabulary)}, nil
}

// Spec implements engine.Model.
func (m *Model) Spec() engine.Spec {
	s := engine.Spec{Name: "symbolic", Components: m.opts.Components, Vocabulary: m.opts.Vocabulary, AnyToken: true}
	for id := range s.SlotBytes {
		s.SlotBytes[id] = pool.StampBytes
	}
	if m.opts.Components.Has(tree.SWA) {
		s.Window = m.opts.Window
	}
	if m.opts.Components.Has(tree.Mamba) {
		s.Chunk = m.opts.Chunk
	}
	return s
}

// mix folds b into a; the order matters.
func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<12 + a>>4
	a *= 0xbf58476d1ce4e5b9
	a ^= a >> 29
	a *= 0x94d049bb133111eb
	return a ^ a>>32
}

func text(h uint64, s string) uint64 {
	for i := range len(s) {
		h = mix(h, uint64(s[i]))
	}
	return mix(h, uint64(len(s)))
}

// stamp is what a component's value for position i holds; for a state i is the
// number of tokens that it stands for.
func stamp(id tree.Component, i int, prefix uint64) uint64 {
	return mix(mix(uint64(id)+1, uint64(i)), prefix)
}

// fingerprints makes m.demand that of the sequence.
func (m *Model) fingerprints(s *engine.Sequence) {
	space := text(mix(m.opts.Seed, 1), s.Namespace.Salt)
	if s.Namespace.HasExtraKey {
		space = text(mix(space, 2), s.Namespace.ExtraKey)
	}
	d, same := m.find(space, s.Tokens[:s.To])
	m.demand = d
	d.tokens, d.prefix = append(d.tokens[:same], s.Tokens[same:s.To]...), d.prefix[:same+1]
	for i := same; i < s.To; i++ {
		d.prefix = append(d.prefix, mix(d.prefix[i], uint64(s.Tokens[i])))
	}
	for _, id := range [...]tree.Component{tree.Full, tree.SWA} {
		if !m.opts.Components.Has(id) {
			continue
		}
		list := d.stamps[id][:same]
		for i := same; i < s.To; i++ {
			list = append(list, stamp(id, i, d.prefix[i+1]))
		}
		d.stamps[id] = list
	}
}

// find returns the demand of a sequence, and how many tokens of it are still
// right: that which is known if it goes on or is cut, else a fresh one.
func (m *Model) find(space uint64, tokens []tree.Token) (*demand, int) {
	for _, d := range m.recent {
		if d.space == space && len(d.tokens) > 0 && len(d.tokens) <= len(tokens) && slices.Equal(d.tokens, tokens[:len(d.tokens)]) {
			return d, len(d.tokens)
		}
	}
	if len(m.recent) < maxRecent {
		m.recent = append(m.recent, &demand{})
		m.turn = len(m.recent) - 1
	}
	d := m.recent[m.turn]
	m.turn = (m.turn + 1) % maxRecent
	same := 0
	if d.space == space && len(d.prefix) > 0 {
		for same < min(len(d.tokens), len(tokens)) && d.tokens[same] == tokens[same] {
			same++
		}
	} else {
		d.space, d.prefix = space, append(d.prefix[:0], space)
	}
	return d, same
}

// reader collects what a forward pass reads.
type reader struct {
	out   *engine.Output
	fold  [tree.NumComponents]uint64 // of everything that the next token depends on
	wrong uint64                     // of what was not what it should be; 0: nothing
}

func (r *reader) read(memory *pool.Memory, id tree.Component, at int, slot tree.Slot, want uint64, last bool) {
	got := uint64(0)
	if slot != 0 {
		got = memory.Stamp(slot)
	}
	if got != want {
		r.out.Mismatched++
		if len(r.out.Mismatches) < engine.MaxMismatches {
			r.out.Mismatches = append(r.out.Mismatches, engine.Mismatch{Component: id, Position: at, Slot: slot})
		}
		r.wrong = mix(r.wrong, got) | 1
	}
	if last {
		r.fold[id] = mix(r.fold[id], got)
	}
}

// Forward implements engine.Model. Positions read all of Full before them, SWA of
// the window that ends with them, and the state of all tokens before them.
func (m *Model) Forward(memory *pool.Memories, s *engine.Sequence) (engine.Output, error) {
	var out engine.Output
	m.fingerprints(s)
	r := reader{out: &out}
	swa, mamba := m.opts.Components.Has(tree.SWA), m.opts.Components.Has(tree.Mamba)
	// What is there already is read once, for all positions that read it: the last
	// one reads all of Full, and the window of the first reaches furthest back.
	for i := range s.From {
		r.read(memory.Device[tree.Full], tree.Full, i, s.Full[i], m.stamps[tree.Full][i], true)
	}
	if swa {
		for i := max(0, s.From-m.opts.Window+1); i < s.From; i++ {
			last := i > s.To-1-m.opts.Window
			r.read(memory.Device[tree.SWA], tree.SWA, i, s.SWA[i], m.stamps[tree.SWA][i], last)
		}
	}
	state := uint64(0)
	if mamba && s.From > 0 {
		want := stamp(tree.Mamba, s.From, m.prefix[s.From])
		r.read(memory.Device[tree.Mamba], tree.Mamba, s.From, s.State, want, false)
		state = want
	}
	// A value that was computed on something wrong is wrong itself.
	value := func(id tree.Component, i int) uint64 {
		var v uint64
		if id == tree.Mamba {
			v = stamp(id, i, m.prefix[i])
		} else {
			v = m.stamps[id][i]
		}
		if r.wrong != 0 {
			v = mix(v, r.wrong)
		}
		return v
	}
	for i := s.From; i < s.To; i++ {
		v := value(tree.Full, i)
		memory.Device[tree.Full].SetStamp(s.Full[i], v)
		r.fold[tree.Full] = mix(r.fold[tree.Full], v)
		if swa && s.SWA[i] != 0 {
			memory.Device[tree.SWA].SetStamp(s.SWA[i], value(tree.SWA, i))
		}
	}
	if swa {
		for i := max(s.From, s.To-m.opts.Window); i < s.To; i++ {
			r.fold[tree.SWA] = mix(r.fold[tree.SWA], value(tree.SWA, i))
		}
	}
	if mamba {
		if s.To > s.From {
			state = value(tree.Mamba, s.To)
		}
		memory.Device[tree.Mamba].SetStamp(s.State, state)
		if s.TrackAt > 0 {
			memory.Device[tree.Mamba].SetStamp(s.Track, value(tree.Mamba, s.TrackAt))
		}
		r.fold[tree.Mamba] = state
	}
	fold := mix(mix(r.fold[tree.Full], r.fold[tree.SWA]), r.fold[tree.Mamba])
	for i := range m.logits {
		// 24 bits fill a float32 exactly.
		m.logits[i] = float32(mix(fold, uint64(i))>>40) / (1 << 21)
	}
	out.Logits = m.logits
	return out, nil
}
