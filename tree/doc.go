// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree is the TreeCore: a radix tree over token sequences that knows
// which attention state an LLM server has computed already, and where.
//
// It holds three kinds of state, called components, on one tree. Full attention
// keeps one slot a token, and a reader needs all of its prefix. Sliding-window
// attention (SWA) keeps one slot a token, too, but a reader needs only the last
// window. A recurrent state (Mamba) is one state for a whole prefix, usable at
// exactly the position where it was taken. Full is the backbone: the others may
// be missing on a node that has it. A node without SWA is a tombstone; what it
// lost does not come back by itself, and a match can end only where a window
// without tombstones, and a state, allow it.
//
// The tree decides and its caller executes. It never touches memory or I/O: it
// stores, cuts and joins numbered slots, and returns what to free, to copy or
// to look up as [Action] values. It has no goroutines, no clock and no
// randomness that shows; equal calls on two cores give equal answers.
//
// # A request's way
//
// [Core.Match] finds the longest prefix that can be reused and says why it was
// not longer. [Core.Lock] protects what the request reads. After each chunk of
// prefill [Core.BeginInsert] hands the new slots over, [Core.ResumeInsert] goes
// on after the actions of a step have been executed, [Core.EndInsert] ends it
// in any case. [Core.Unlock] ends the request. Under memory pressure
// [Core.EvictStart], [Core.EvictNext] and [Core.EvictLeaf] walk through the
// victims, one change a call.
//
// # Where things are
//
// One file a verb: match, insert, split, lock, evict, window (repair), session,
// record (events), cascade, backup, loadback, hash, check, query, inspect, draw, oplog. One file a noun:
// core, node, arena, edges, leaves, recency, slots, key, namespace, policy,
// action, results, errors, options, and full, swa and mamba, the components
// behind the interface in hooks. Comments cite rules of the behaviour
// specification by their number, as in M-13 or L-6.
package tree
