// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// sharing invents prompts according to Options.Sharing.
type sharing struct {
	random  *rand.Rand
	system  *piece
	groups  []*piece  // system prompt and prefix; nil: not drawn yet
	length  int       // of a prefix
	weights []float64 // running sums
}

func newSharing(b *builder, o Sharing) *sharing {
	s := &sharing{length: o.GroupTokens}
	if o.none() {
		b.note("no sharing model: the format gives lengths only, so every prompt is unique and the hit rate is 0 by construction")
		return s
	}
	note := fmt.Sprintf("sharing model (chosen, the format gives lengths only): system prompt of %s", count(o.SystemTokens, "token"))
	if o.Groups > 0 {
		note += fmt.Sprintf(", %s with prefixes of %s, Zipf exponent %v, seed %d",
			count(o.Groups, "group"), count(o.GroupTokens, "token"), o.ZipfExponent, o.Seed)
	}
	b.note(note + ", then tokens of the request's own; cut to the length in the trace")
	s.random = rand.New(rand.NewPCG(o.Seed, 0))
	if o.SystemTokens > 0 {
		head, _ := b.ids.fresh() // the first one is always there
		s.system = s.system.then(head, o.SystemTokens)
	}
	s.groups = make([]*piece, o.Groups)
	s.weights = make([]float64, o.Groups)
	sum := 0.0
	for k := range s.weights {
		sum += math.Pow(float64(k+1), -o.ZipfExponent)
		s.weights[k] = sum
	}
	return s
}

// prompt gives the shared beginning of a prompt. What it does not fill are the
// request's own tokens.
func (s *sharing) prompt(b *builder) source {
	shared := s.system
	if n := len(s.groups); n > 0 {
		x := s.random.Float64() * s.weights[n-1]
		k := min(sort.SearchFloat64s(s.weights, x), n-1)
		if s.groups[k] == nil {
			head, _ := b.ids.fresh() // far fewer groups than heads
			s.groups[k] = s.system.then(head, s.length)
		}
		shared = s.groups[k]
	}
	if shared == nil {
		return nil // not a source that holds a nil
	}
	return shared
}
