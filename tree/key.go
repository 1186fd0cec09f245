// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"math"
	"unsafe"
)

// Token is a token id. Every value of the type is legal.
type Token = uint32

// TokensOf converts wider integers to tokens. A value outside 0 .. 2^32-1 is an
// *ArgumentError that names its position and value; nothing wraps (rule K-3).
func TokensOf(ids []int64) ([]Token, error) {
	out := make([]Token, len(ids))
	for i, id := range ids {
		if id < 0 || id > math.MaxUint32 {
			return nil, &ArgumentError{Op: "TokensOf", Field: "tokens", Problem: fmt.Sprintf("position %d holds %d: allowed is 0 to %d", i, id, uint32(math.MaxUint32))}
		}
		out[i] = Token(id)
	}
	return out, nil
}

// Namespace keeps keys apart that must never share a node, whatever their
// tokens (rule K-9). The zero value is the default namespace.
//
// An empty Salt is the same as none. An empty ExtraKey is not: it counts as
// present when HasExtraKey is set. HasExtraKey false with a non-empty ExtraKey
// is taken as present.
type Namespace struct {
	ExtraKey    string
	HasExtraKey bool
	Salt        string
}

func (n Namespace) canonical() Namespace {
	if n.ExtraKey != "" {
		n.HasExtraKey = true
	}
	return n
}

// Key is a sequence of tokens in a namespace. A caller that wants to match only
// the first n tokens passes Tokens[:n]; nothing is copied or kept by reads.
type Key struct {
	Tokens    []Token
	Namespace Namespace
	// Bigram says that the units of the key are pairs of neighbouring tokens:
	// n tokens are n-1 units. A core with Options.Eagle sees every key so; on
	// any other core a key that is marked so is an *ArgumentError.
	Bigram bool
}

// Units returns the key's length: tokens, or for bigrams one less (rule K-4).
func (k Key) Units() int {
	if k.Bigram && len(k.Tokens) > 0 {
		return len(k.Tokens) - 1
	}
	return len(k.Tokens)
}

// view is a key inside the core: raw tokens that span units units.
// Raw tokens beyond the span are never looked at.
type view struct {
	raw   []Token
	units int
	extra int // raw tokens a non-empty span has beyond its units: 1 for bigrams
}

// from returns the view of the units [n, units).
func (v view) from(n int) view {
	return view{raw: v.raw[n:], units: v.units - n, extra: v.extra}
}

// span returns the raw tokens of the units [0, n): none if n is 0 (rule K-6).
func (v view) span(n int) []Token {
	if n == 0 {
		return nil
	}
	return v.raw[:n+v.extra]
}

// commonTokens returns how many leading tokens a and b share. It reads no more
// than twice that and a block of each (rule K-13). Most nodes on a path match
// whole, so that is tried first: the runtime compares memory much faster than a
// loop, and stops at the first difference.
func commonTokens(a, b []Token) int {
	n := min(len(a), len(b))
	if equalTokens(a[:n], b[:n]) {
		return n
	}
	i := 0
	for _, block := range [...]int{1024, 64} {
		for i+block <= n && equalTokens(a[i:i+block], b[i:i+block]) {
			i += block
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func equalTokens(a, b []Token) bool {
	return tokenBytes(a) == tokenBytes(b)
}

// tokenBytes views tokens as bytes without copying them. The string must not
// outlive the call that asked for it.
func tokenBytes(t []Token) string {
	if len(t) == 0 {
		return ""
	}
	return unsafe.String((*byte)(unsafe.Pointer(&t[0])), len(t)*4)
}

// common returns how many leading units a and b share, rounded down to whole
// pages of p units (rule K-11).
func common(a, b view, p int) int {
	limit := min(a.units, b.units)
	if limit == 0 {
		return 0
	}
	n := commonTokens(a.raw[:limit+a.extra], b.raw[:limit+b.extra]) - a.extra
	if n <= 0 {
		return 0
	}
	return n - n%p
}
