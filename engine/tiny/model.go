// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"fmt"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Model is a network. It implements engine.Model, and is for one goroutine. Its
// weights do not change, so two models of the same options give the same output.
type Model struct {
	options Options
	spec    engine.Spec
	layers  []layer

	embedding []float32 // one row a token
	mix       matrix    // between the last layer and the head
	head      matrix    // the embedding once more, as multiply wants it
	turns     []float32 // sine and cosine of each pair of a head, by position, as far as needed yet

	// What follows is scratch of one call.
	adapter    []float32 // what the namespace adds to each embedding
	x, y       []float32 // of the position being computed, and a norm of it
	inner      []float32 // what a layer makes of y first
	mixed      []float32 // what its heads give
	key, value []float32 // of one position that is read, all heads
	sums       []float32 // of attention weights, by head
	state      []float32 // of all recurrent layers
	output     []float32
}

// layer is one layer: what mixes positions, and what mixes the values of one.
type layer struct {
	component tree.Component
	offset    int    // of its part of a slot: in bytes, for a recurrent layer in values
	in, out   matrix // around the attention or the recurrence
	query     matrix // of an attention layer, whose in makes keys and values
	taps      []float32
	gates     matrix // a gate, and a value that passes it
	down      matrix
}

// New returns a network with seeded weights. Options that are wrong are one or
// more *tree.ConfigError, joined.
func New(o Options) (*Model, error) {
	o, components, err := o.complete()
	if err != nil {
		return nil, err
	}
	m := &Model{options: o}
	m.spec = engine.Spec{
		Name:       o.name(),
		Components: o.Components,
		Window:     o.Window,
		Chunk:      o.Chunk,
		Vocabulary: o.Vocabulary,
	}
	const weights, inner = 1, 2 // the stream of the generator, and the width of gates in units of Hidden
	g := newGenerator(o.Seed, weights)
	for _, c := range components {
		l := layer{component: c, offset: m.spec.SlotBytes[c]}
		heads := o.Heads * o.HeadDim
		if c == tree.Mamba {
			l.offset /= valueBytes
			l.in = g.matrix(m.recurrentRows(), o.Hidden)
			l.taps = make([]float32, taps*m.channels())
			g.fill(l.taps, 0.5)
			m.spec.SlotBytes[c] += m.stateValues() * valueBytes
		} else {
			l.in = g.matrix(2*m.keyWidth(), o.Hidden)
			l.query = g.matrix(heads, o.Hidden)
			m.spec.SlotBytes[c] += 2 * m.keyWidth() * valueBytes
		}
		l.out = g.matrix(o.Hidden, heads)
		l.gates = g.matrix(2*inner*o.Hidden, o.Hidden)
		l.down = g.matrix(o.Hidden, inner*o.Hidden)
		m.layers = append(m.layers, l)
	}
	m.mix = g.matrix(o.Hidden, o.Hidden)
	m.embedding = make([]float32, o.Vocabulary*o.Hidden)
	g.fill(m.embedding, 1)
	m.head = matrix{rows: o.Vocabulary, cols: o.Hidden, weights: make([]float32, padded(o.Vocabulary)*o.Hidden)}
	for t := range o.Vocabulary {
		m.head.set(t, m.row(tree.Token(t)))
	}
	m.scratch(2 * inner * o.Hidden)
	return m, nil
}

// name tells networks apart whose outputs or slots differ.
func (o Options) name() string {
	return fmt.Sprintf("tiny(layers=%s,window=%d,chunk=%d,hidden=%d,heads=%d/%dx%d,vocabulary=%d,seed=%d)",
		o.Layers, o.Window, o.Chunk, o.Hidden, o.Heads, o.KVHeads, o.HeadDim, o.Vocabulary, o.Seed)
}

func (m *Model) scratch(gates int) {
	o := &m.options
	heads := o.Heads * o.HeadDim
	m.adapter = make([]float32, o.Hidden)
	m.x, m.y = make([]float32, o.Hidden), make([]float32, o.Hidden)
	m.inner = make([]float32, padded(max(gates, heads, 2*m.keyWidth(), m.recurrentRows())))
	m.mixed = make([]float32, heads)
	m.key, m.value = make([]float32, m.keyWidth()), make([]float32, m.keyWidth())
	m.sums = make([]float32, o.Heads)
	m.state = make([]float32, m.spec.SlotBytes[tree.Mamba]/valueBytes)
	m.output = make([]float32, padded(o.Vocabulary))
}

// Spec returns what the model keeps of each token.
func (m *Model) Spec() engine.Spec { return m.spec }

// row returns the embedding of a token.
func (m *Model) row(t tree.Token) []float32 {
	return m.embedding[int(t)*m.options.Hidden:][:m.options.Hidden]
}

// Forward computes a piece of a sequence; see the package comment for what it
// reads. A piece that cannot be computed as it is given is a *SequenceError, and
// nothing has been read or written then: so a position inside the window that has
// no SWA slot can not be overlooked. The network cannot tell whose values it
// reads: it reports no mismatches.
func (m *Model) Forward(memories *pool.Memories, s *engine.Sequence) (engine.Output, error) {
	if err := m.check(memories, s); err != nil {
		return engine.Output{}, err
	}
	clear(m.state)
	states := memories.Device[tree.Mamba]
	if s.From > 0 && len(m.state) > 0 {
		load(m.state, states.At(s.State))
	}
	m.adapt(s.Namespace)
	for p := s.From; p < s.To; p++ {
		m.compute(memories, s, p)
		if p+1 == s.TrackAt && len(m.state) > 0 {
			store(states.At(s.Track), m.state)
		}
	}
	if len(m.state) > 0 {
		store(states.At(s.State), m.state)
	}
	normalise(m.x, m.x, 1)
	m.mix.multiply(m.y, m.x)
	m.head.multiply(m.output, m.y)
	return engine.Output{Logits: m.output[:m.options.Vocabulary]}, nil
}

// adapt sets what the namespace adds to each embedding: its extra key stands for
// an adapter, which changes what a model computes. A salt keeps caches apart and
// changes nothing.
func (m *Model) adapt(n tree.Namespace) {
	clear(m.adapter)
	if n.ExtraKey == "" && !n.HasExtraKey {
		return
	}
	const adapters = 2 // the stream of the generator
	hash := uint64(14695981039346656037)
	for i := range len(n.ExtraKey) { // FNV-1a
		hash = (hash ^ uint64(n.ExtraKey[i])) * 1099511628211
	}
	newGenerator(m.options.Seed^hash, adapters).fill(m.adapter, 0.5)
}

// compute computes position p: it leaves the position's keys and values in its
// slots, the state after it in m.state and what the layers make of it in m.x.
func (m *Model) compute(memories *pool.Memories, s *engine.Sequence, p int) {
	for i, v := range m.row(s.Tokens[p]) {
		m.x[i] = v + m.adapter[i]
	}
	m.angles(p)
	y := m.y
	for i := range m.layers {
		l := &m.layers[i]
		normalise(y, m.x, 1)
		switch l.component {
		case tree.Full:
			m.keep(l, y, memories.Device[tree.Full].At(s.Full[p]), p)
			if i == len(m.layers)-1 && p < s.To-1 {
				return // nobody reads what the last layer makes of this position
			}
			m.attend(l, y, memories.Device[tree.Full], s.Full[:p+1], 0)
		case tree.SWA:
			m.keep(l, y, memories.Device[tree.SWA].At(s.SWA[p]), p)
			m.attend(l, y, memories.Device[tree.SWA], s.SWA[:p+1], m.reach(tree.SWA, p))
		case tree.Mamba:
			m.recur(l, y)
		}
		l.out.multiply(y, m.mixed)
		add(m.x, y)
		m.feed(l, y)
		add(m.x, y)
	}
}

// feed is the part of a layer that looks at one position only. It leaves its
// result in y.
func (m *Model) feed(l *layer, y []float32) {
	normalise(y, m.x, 1)
	gates := m.inner[:l.gates.rows]
	l.gates.multiply(gates, y)
	half := len(gates) / 2
	for i, v := range gates[half:] {
		gates[i] = float32(silu(gates[i]) * v)
	}
	l.down.multiply(y, gates[:half])
}

func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
