// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package tiny is a small hybrid network in float32, an engine.Model with weights
// from a seed. It is there to prove that reuse of cached state is exact: what it
// says depends on every cached value that it reads, and is the same, bit for bit,
// however a sequence is cut into pieces, whatever else is computed, whichever slots
// are used, and whatever was computed here or found in a cache. It has learned
// nothing, and what it says means nothing.
//
// # The network
//
// A token's embedding runs through the layers of Options.Layers, and each adds to
// it what it makes of the norm of what has come so far: first its mixer of
// positions, then a gated multilayer perceptron of twice the width. A norm, a
// matrix and the embedding once more give the logits.
//
//	layer   mixer                                            keeps
//	full    attention over all positions                     keys and values in the slot of Full
//	swa     attention over the last Window positions,        keys and values in the slot of SWA
//	        the one computed among them
//	mamba   short convolution, then linear attention that    matrices of the heads and the last
//	        fades by a rate that depends on the input        inputs of the convolution in the state
//
// Attention is grouped-query with norms on queries and keys, and rotary: queries,
// keys and values are turned by their position, keys when they are read, so that
// slots in the places of each other show. All norms are by root mean square and have
// no weights. A slot holds the values of all layers of its component, layer by
// layer, each a float32 in little-endian order; what a slot has beyond
// engine.Spec.SlotBytes is not touched. Of a namespace the extra key stands for an
// adapter, which adds a vector of its own to each embedding; the salt changes
// nothing.
//
// # What it reads
//
// Position n reads the Full slots of the positions 0 to n, the SWA slots of the
// positions n-Window+1 to n, and the state after n tokens, which counts for nothing
// where n is 0. A piece reads what its positions read, except that in the last
// layer only its last position looks around. It reads from the slots each time,
// also what it has written itself, so that a slot given to two positions shows.
//
// A slot that is missing or not in the memory is an error before anything is
// computed, also in the window; there is no way to go on without it. The network
// cannot tell whose values it reads and reports no mismatches. It answers with
// other logits instead: scores are bounded, so every position has its weight, and
// the last layer is full, so what any position of a piece has read reaches the
// last. A difference in a cached value gets lost only where it is as small as the
// rounding of a sum.
//
// # What is guaranteed
//
// Positions are computed one by one, and every sum runs in one fixed order: of
// columns in a product, of positions in attention. So the result for a position is
// a function of the values that it reads and of nothing else. Models of equal
// options have equal weights and give equal bits on every architecture, as long as
// all values are numbers (the bits of a NaN are the processor's): products are
// rounded before they are added, and exponential, sine and cosine are the package's
// own. Golden digests in the tests hold it to that.
package tiny
