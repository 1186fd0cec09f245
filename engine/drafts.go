// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"slices"

	"github.com/treecore/treecore/tree"
)

// decodeDrafts computes the pending token and a few proposed ones at once, and
// keeps as many of them as are right (speculative decoding). What the wrong ones
// have left in their slots is overwritten by the next step; the cache must never
// hand it out.
func (e *Engine) decodeDrafts(t *Task) error {
	r := t.request
	at := r.Len()
	k := min(e.opts.Drafts, max(0, t.params.MaxTokens-len(t.output)-1))
	if err := e.cache.Extend(r, max(0, at+1+k-r.Allocated())); err != nil {
		return err
	}
	draw := rand.New(rand.NewPCG(t.params.Seed, uint64(at)+1<<40))
	right := draw.IntN(k + 1)
	proposed := append(append([]tree.Token(nil), t.tokens...), t.pending[0])
	type said struct {
		token tree.Token
		log   float32
	}
	var next []said
	for i := 0; i <= k; i++ {
		out, err := e.forward(t, proposed, at+i, at+i+1, 0, 0)
		if err != nil {
			return err
		}
		if i > right { // computed all the same, as a batch would
			proposed = append(proposed, tree.Token(draw.IntN(e.spec.Vocabulary)))
			continue
		}
		token, log := sample(out.Logits, t.params.Temperature, t.params.Seed, at+i+1)
		next = append(next, said{token, log})
		if i < right {
			proposed = append(proposed, token)
		} else if e.spec.Vocabulary > 1 {
			proposed = append(proposed, (token+1)%tree.Token(e.spec.Vocabulary))
		}
	}
	// A stop token ends the output, and what was right after it does not count.
	keep := len(next)
	for i, x := range next {
		if slices.Contains(t.params.Stop, x.token) {
			keep = i + 1
			break
		}
	}
	accepted := proposed[at : at+keep]
	if n, err := e.cache.Decode(r, accepted); n < len(accepted) && harmless(err) != nil {
		return err
	}
	t.tokens, t.pending = append(t.tokens, accepted...), t.pending[:0]
	for _, x := range next[:keep] {
		t.pending = t.pending[:0] // only the last one is still to be computed
		if err := e.emit(t, x.token, x.log); err != nil || t.done != Unfinished {
			return err
		}
	}
	return nil
}
