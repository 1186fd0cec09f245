// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"math/rand/v2"

	"github.com/treecore/treecore/tree"
)

// sample picks the token after position at-1 and returns it with its
// log-probability. Sums run in the order of tokens, and what is drawn depends on
// seed and position alone, so that equal logits give equal tokens.
func sample(logits []float32, temperature float64, seed uint64, at int) (tree.Token, float32) {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	top := float64(logits[best])
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	picked := best
	if temperature > 0 {
		total := 0.0
		for _, v := range logits {
			total += math.Exp((float64(v) - top) / temperature)
		}
		left := rand.New(rand.NewPCG(seed, uint64(at))).Float64() * total
		for i, v := range logits {
			picked = i
			if left -= math.Exp((float64(v) - top) / temperature); left < 0 {
				break
			}
		}
	}
	return tree.Token(picked), float32(float64(logits[picked]) - top - math.Log(sum))
}
