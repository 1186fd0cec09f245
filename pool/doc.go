// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package pool hands out slots: the numbered places in device or host memory
// where one token's keys and values, or one recurrent state, lie.
//
// A pool knows which slots are free and nothing about what is in them. Lists
// of slots are tree.Slots, so a long allocation costs as much as the number of
// its runs, and pools prefer long runs. The order in which slots are handed out
// is a function of the calls made: two pools given the same calls agree.
//
//	Token   slots one by one (pages of one slot)
//	Paged   slots in whole pages
//	Dual    a Full pool and a sliding-window pool, and the map between them
//	States  recurrent states, one slot each, with groups of reserved ones
//
// Slot 0 of a device pool is a dummy target for padding; it is never handed out.
// Pools are not safe for concurrent use.
package pool
