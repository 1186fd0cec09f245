// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload turns published request traces, and a few generators, into
// lists of requests that can be replayed against a prefix cache.
//
// [Open] and [Read] take a trace in one of the [Formats]; [SharedPrefix],
// [Agents] and [RandomTree] (or [Generate], by name) make one up. The result is
// a [Workload]: requests in listed order, each with its lengths, its arrival
// time or the requests it waits for, and its prompt as token ids, made by
// [Request.AppendPrompt] on demand.
//
// # Block ids and tokens
//
// The traces give no tokens but ids of blocks. An id is turned into a fixed run
// of made-up tokens, one run an id: equal prefixes of ids stay equal prefixes of
// tokens, and two different ids do not share even their first token. Ids are
// held compactly and expanded when asked for; a trace of 144 million tokens
// takes a few megabytes.
//
// # Open and closed loop
//
// A request without predecessors ([Request.After] is empty) starts at its
// [Request.Arrival]. A request with predecessors starts when all of them have
// finished and [Request.Think] has passed. Predecessors always stand earlier in
// the list.
//
// # Errors
//
// Every broken line of a trace is reported as a [*LineError] with the file, the
// line, the field, what was found and what would be right. Nothing is silently
// corrected, cut or skipped; what a reader had to choose because the trace does
// not say it stands in [Workload.Notes].
package workload
