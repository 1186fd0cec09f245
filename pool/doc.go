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
//	Host    slots of host memory, by whole pages; a HostGroup knows them by name
//
// Slot 0 of a device pool is a dummy target for padding; it is never handed out.
// Device pools are not safe for concurrent use, host pools are.
//
// Memory is what slots stand for: real bytes. An Engine copies them between
// device and host on goroutines of its own; what it has done is learned only
// when its user asks, and in the order in which it was started, so that nothing
// that decides depends on the goroutines' timing.
package pool
