// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine is a small serving engine over a cache: a scheduler with
// continuous batching, and models whose output depends on every cached value that
// they read. It is there to prove that reuse is exact, and to be talked to: what a
// warm cache answers must be what a cold one answers, token for token.
//
// An Engine belongs to one goroutine, which calls Step. Models are in packages of
// their own: engine/symbolic runs prompts of full size in a moment and checks all
// that it reads; engine/tiny is a real, small network.
package engine
