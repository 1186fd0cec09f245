// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is the controller of a prefix cache: it owns the device pools
// and a tree, leads requests through their life, and executes what the tree
// decides.
//
// A request's way is NewRequest, Match, Admit, then Extend and Commit for each
// chunk of its prompt, each followed by CacheUnfinished, then Decode, and at
// last Finish. Abort ends it at any point. Under pressure Extend, Decode and
// Admit evict exactly what is missing.
//
// A call either does what it says or changes nothing but what it had to evict;
// the errors say which call would be right. A *pool.ExhaustedError is
// momentary: it goes away when other requests end. A *TooLargeError does not.
//
// With a host tier (Options.Host) what is evicted from the device may live on in
// host memory. Admit queues what it loads back; StartLoading starts it with the
// batch, and a request computes when Loading says no. Tick takes note of copies
// that have ended; nothing else about them is known, or decides. Close ends the
// goroutines. Under pressure Retract takes a request that decodes off the device,
// saved on the host, and Restore lets it run on. With HostOptions.BufferOnly host
// memory only stages what goes to storage and what comes from there.
//
// Lengths and positions of requests are in tokens. With an eagle tree a key of
// n tokens has n-1 units, which only the tree sees.
//
// A Cache is not safe for concurrent use, and its answers are a function of the
// calls made.
package cache
