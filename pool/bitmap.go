// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"math/bits"
)

// bitmap is a set of the numbers 0 .. n-1 that finds its next member in a few
// steps however sparse it is: level 0 has a bit a number, and each further
// level has a bit for every word of the level below that is not zero.
type bitmap struct {
	levels [][]uint64
	n      int
	count  int // members
}

func newBitmap(n int) bitmap {
	b := bitmap{n: n}
	for words := n; ; {
		words = (words + 63) / 64
		b.levels = append(b.levels, make([]uint64, words))
		if words <= 1 {
			return b
		}
	}
}

// fill makes every number a member.
func (b *bitmap) fill() {
	members := b.n
	for _, level := range b.levels {
		for i := range level {
			level[i] = ^uint64(0)
		}
		if tail := members % 64; tail != 0 {
			level[len(level)-1] = 1<<tail - 1
		}
		members = len(level)
	}
	b.count = b.n
}

// next returns the smallest member that is from or more, or n if there is none.
func (b *bitmap) next(from int) int {
	at := from // looked for: the first set bit at or after at, on level k
	for k := 0; k < len(b.levels); k++ {
		w := at / 64
		if w >= len(b.levels[k]) {
			return b.n
		}
		if word := b.levels[k][w] >> (at % 64); word != 0 {
			at += bits.TrailingZeros64(word)
			for ; k > 0; k-- {
				at = at*64 + bits.TrailingZeros64(b.levels[k-1][at])
			}
			return at
		}
		at = w + 1
	}
	return b.n
}

// any reports whether one of lo .. hi-1 is a member.
// The zero bitmap has no members.
func (b *bitmap) any(lo, hi int) bool {
	at := b.next(lo)
	return at < hi && at < b.n
}

// runEnd returns the first number in from .. limit that is no member, or limit.
func (b *bitmap) runEnd(from, limit int) int {
	for at := from; at < limit; {
		gaps := ^b.levels[0][at/64] >> (at % 64)
		if gaps != 0 {
			return min(at+bits.TrailingZeros64(gaps), limit)
		}
		at += 64 - at%64
	}
	return limit
}

// add makes lo .. hi-1 members and returns how many were none before.
func (b *bitmap) add(lo, hi int) int {
	before := b.count
	for at := lo; at < hi; {
		w, end := at/64, min(hi, at-at%64+64)
		mask := span(at%64, end-at)
		old := b.levels[0][w]
		b.levels[0][w] = old | mask
		b.count += bits.OnesCount64(mask &^ old)
		if old == 0 {
			b.raise(w)
		}
		at = end
	}
	return b.count - before
}

// remove takes lo .. hi-1 out and returns how many were members.
func (b *bitmap) remove(lo, hi int) int {
	before := b.count
	for at := lo; at < hi; {
		w, end := at/64, min(hi, at-at%64+64)
		mask := span(at%64, end-at)
		old := b.levels[0][w]
		b.levels[0][w] = old &^ mask
		b.count -= bits.OnesCount64(mask & old)
		if old != 0 && old&^mask == 0 {
			b.lower(w)
		}
		at = end
	}
	return before - b.count
}

// span returns a word with n bits set from bit first on; n is 1 to 64.
func span(first, n int) uint64 { return ^uint64(0) >> (64 - n) << first }

// raise notes on the upper levels that word w of level 0 is not zero any more.
func (b *bitmap) raise(w int) {
	for k := 1; k < len(b.levels); k++ {
		word := &b.levels[k][w/64]
		old := *word
		*word |= 1 << (w % 64)
		if old != 0 {
			return
		}
		w /= 64
	}
}

// lower notes on the upper levels that word w of level 0 has become zero.
func (b *bitmap) lower(w int) {
	for k := 1; k < len(b.levels); k++ {
		word := &b.levels[k][w/64]
		*word &^= 1 << (w % 64)
		if *word != 0 {
			return
		}
		w /= 64
	}
}

// check compares the levels and the count with each other.
func (b *bitmap) check() error {
	count := 0
	for k, level := range b.levels {
		for w, word := range level {
			if k == 0 {
				count += bits.OnesCount64(word)
			} else {
				for i := range 64 {
					below := w*64 + i
					want := below < len(b.levels[k-1]) && b.levels[k-1][below] != 0
					if got := word>>i&1 == 1; got != want {
						return fmt.Errorf("level %d says %v for word %d of the level below, which is not so", k, got, below)
					}
				}
			}
		}
	}
	if count != b.count {
		return fmt.Errorf("%d members are set, %d are counted", count, b.count)
	}
	if tail := b.n % 64; tail != 0 && b.levels[0][len(b.levels[0])-1]>>tail != 0 {
		return fmt.Errorf("members beyond %d", b.n)
	}
	return nil
}
