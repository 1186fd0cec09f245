// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay drives a prefix cache with a workload and reports what
// happened.
//
// A run is a function of the workload, the model profile, the options and the
// seed: equal inputs, and with a storage tier equal stores, give equal reports
// but for the measured times. Time in a run is virtual; the wall clock measures
// the calls and decides nothing.
//
// # The life of a request
//
// A request becomes ready at its arrival, or when the requests it follows have
// ended and its think time has passed. It waits in line until the cache has
// room. Admission matches its prompt and locks what was found. The prompt's rest
// is computed in steps: a step computes at most Options.Chunk prompt tokens, of
// the request whose prompt is under way and then of new ones, first come first
// served, and every chunk goes into the tree at the end of its step. Then the
// request generates its output beside all others that do, and what it generated
// goes into the tree when it ends.
//
// # When memory runs short
//
// The cache evicts what nobody uses. If that is not enough, a request in line
// waits; a prompt under way waits for the requests that generate; and a request
// that generates takes the youngest running request off: its slots are
// returned, it stands in line again, and nobody is admitted until a request has
// ended. A request that does not fit even alone is refused, and counted with the
// size it would have needed.
//
// # With a storage tier
//
// A request that gets in line asks the store for what device and host lack. When
// its turn comes and what was found is not there yet, it waits as the stop policy
// says, and others may go first unless the order is strict. Copies and storage
// operations take virtual time: each direction and each kind of operation is a
// line, in which one takes a latency and the bytes of the model at the bandwidth.
// What really moves are content stamps of 8 bytes for each slot. They are
// checked when a request reuses them, and a wrong one fails the run.
//
// # What is counted
//
// Every prompt is counted once, refused ones too: cached tokens and the tokens
// of all miss reasons add up to the input tokens. A request that was taken off
// and started again counts as cached the least that any of its runs found, so
// that no request counts its own work as reuse.
package replay
