// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// RandomTreeParams describe the workload random-tree: sequences that grow out of
// each other, for measuring a prefix tree.
type RandomTreeParams struct {
	Vocabulary int // tokens are 0 to Vocabulary-1
	RootTokens int // length of the first sequence, of random tokens
	// Chain sequences are made first, one after the other: an earlier sequence,
	// picked at random, and behind it a run of one token, Run long.
	Chain int
	// Burst sequences are made next: to an earlier sequence, picked at random,
	// Children sequences are made that extend it by a run each; and so on until
	// there are as many.
	Burst    int
	Children Range
	Run      Range
	// OutputTokens is the length of an answer, of tokens outside the vocabulary;
	// 0: the sequences are all there is.
	OutputTokens int
	Seed         uint64
}

// DefaultRandomTree gives the tree that prefix trees are commonly measured with:
// 5,001 sequences of 1,100 tokens on average.
func DefaultRandomTree() RandomTreeParams {
	return RandomTreeParams{
		Vocabulary: 32000, RootTokens: 64, Chain: 2500, Burst: 2500,
		Children: Range{2, 10}, Run: Range{1, 256}, Seed: 42,
	}
}

func (p *RandomTreeParams) settings() []setting {
	return []setting{
		{"vocabulary", &p.Vocabulary}, {"root-tokens", &p.RootTokens}, {"chain", &p.Chain}, {"burst", &p.Burst},
		{"children", &p.Children}, {"run", &p.Run}, {"output-tokens", &p.OutputTokens}, {"seed", &p.Seed},
	}
}

func (p *RandomTreeParams) validate() error {
	var bad problems
	bad.check("vocabulary", p.Vocabulary, 1, math.MaxUint32)
	bad.check("root-tokens", p.RootTokens, 1, 1<<24)
	bad.check("chain", p.Chain, 0, maxGenerated/2)
	bad.check("burst", p.Burst, 0, maxGenerated/2-1)
	bad.checkRange("children", p.Children, 1, maxGenerated)
	bad.checkRange("run", p.Run, 1, 1<<20)
	bad.check("output-tokens", p.OutputTokens, 0, MaxLength)
	return bad.err("workload random-tree")
}

// RandomTree makes the workload random-tree, in random order and all at once.
// Equal parameters give equal workloads; the sequences are of the same kind as
// those of other implementations, not the same ones.
func RandomTree(p RandomTreeParams) (*Workload, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	w := &Workload{Name: "random-tree", Format: "random-tree"}
	b := newBuilder(w, 0)
	random := rand.New(rand.NewPCG(p.Seed, 0))
	token := func() uint32 { return uint32(random.Uint64N(uint64(p.Vocabulary))) }

	root := make(tokenList, p.RootTokens)
	for i := range root {
		root[i] = token()
	}
	all := []*piece{{end: len(root), length: len(root), tokens: root}}
	pick := func() *piece { return all[random.IntN(len(all))] }
	grow := func(from *piece) {
		next := from.then(token(), p.Run.pick(random))
		next.repeat = true
		all = append(all, next)
	}
	for range p.Chain {
		grow(pick())
	}
	for end := len(all) + p.Burst; len(all) < end; {
		from := pick()
		for range min(p.Children.pick(random), end-len(all)) {
			grow(from)
		}
	}
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, sequence := range all {
		if sequence.size() > MaxLength {
			return nil, fmt.Errorf("workload random-tree: a sequence of more than %d tokens, use shorter runs (run=%v)", MaxLength, p.Run)
		}
		b.add(Request{InputLen: sequence.size(), OutputLen: p.OutputTokens, prompt: sequence})
	}
	return w, nil
}
