// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"
)

// MaxLength is the largest prompt or output length accepted, in tokens. It is
// far above every published trace; a number beyond it is a mistake in the file.
const MaxLength = 1 << 28

// MaxTime is the largest time accepted: 100 years.
const MaxTime = 100 * 365 * 24 * time.Hour

// Workload is a list of requests ready for replay.
type Workload struct {
	// Name is the base name of the file, without ".gz", or the generator's name.
	Name string
	// Format is one of Formats for a trace, or the generator's name.
	Format string
	// Requests stand in listed order: that of the file or of the generator. Not
	// every workload is sorted by Arrival.
	Requests []Request
	// BlockSize is the number of tokens a block id stands for; 0 where the
	// format has no blocks.
	BlockSize int
	// Chained says that a block id stands for the block and everything before
	// it, so that an id always has the same predecessor. It does not change the
	// tokens. False where the format has no blocks.
	Chained bool
	// Notes says what was chosen because the source does not give it, one line
	// each, to be printed beside results.
	Notes []string
	// Truncated counts the lines dropped because the file ends inside them. It
	// is 0 unless Options.TolerateCutLine is set.
	Truncated int
}

// Request is one request of a workload. A copy gives the same tokens as the
// original.
type Request struct {
	Index   int    // position in Workload.Requests
	ID      string // the request's name in the source; empty if it has none
	Session string // conversation the request belongs to; empty if none
	// Agent names the sub-agent that asked, within the session; empty for the
	// session's own requests.
	Agent string

	// ExtraKey and Salt keep prompts apart that have equal tokens. HasExtraKey
	// tells an empty extra key from none.
	ExtraKey    string
	HasExtraKey bool
	Salt        string

	// Arrival is the time since the start of the workload. For a request with
	// predecessors it is for information only: when the request was made
	// according to the source, or the start of its session in a made-up workload.
	Arrival time.Duration
	// After holds the indices of the requests that must have finished before
	// this one may start, all of them smaller than Index. Empty: the request
	// starts at Arrival. Requests may share one slice: do not change it.
	After []int
	// Think is the wait after the last of After has finished.
	Think time.Duration

	InputLen  int // tokens in the prompt
	OutputLen int // tokens to generate

	stream uint32 // selects the streams of tokens that are this request's alone
	prompt source // nil: all tokens are the request's own
	output source // nil: all tokens are the request's own
}

// AppendPrompt appends the prompt's tokens, exactly InputLen of them, and
// returns the extended slice. The same request always gives the same tokens. It
// allocates nothing when dst has room.
func (r *Request) AppendPrompt(dst []uint32) []uint32 {
	return appendTokens(dst, r.prompt, r.InputLen, promptStream(r.stream))
}

// AppendOutput appends the output's tokens, exactly OutputLen of them, and
// returns the extended slice. Where the source gives the output no identity,
// they are tokens that no other request has; where later requests quote the
// answer, they are the quoted tokens. It allocates nothing when dst has room.
func (r *Request) AppendOutput(dst []uint32) []uint32 {
	return appendTokens(dst, r.output, r.OutputLen, outputStream(r.stream))
}

func appendTokens(dst []uint32, from source, n int, own uint32) []uint32 {
	if n <= 0 {
		return dst
	}
	start := len(dst)
	dst = slices.Grow(dst, n)[:start+n]
	rest := dst[start:]
	if from != nil {
		rest = rest[from.fill(rest):]
	}
	fillRun(rest, own)
	return dst
}

// builder collects the requests of one workload.
type builder struct {
	w     *Workload
	ids   numbering
	limit int // most requests wanted
	line  int // line being read, for messages
}

func newBuilder(w *Workload, limit int) *builder {
	if limit == 0 {
		limit = int(maxRequests)
	}
	return &builder{w: w, ids: newNumbering(regionSize), limit: limit}
}

// full says that no more requests are wanted.
func (b *builder) full() bool { return len(b.w.Requests) >= b.limit }

// add appends a request and gives its index. The caller has looked at full.
func (b *builder) add(r Request) int {
	r.Index = len(b.w.Requests)
	r.stream = uint32(r.Index)
	b.w.Requests = append(b.w.Requests, r)
	return r.Index
}

func (b *builder) note(line string) { b.w.Notes = append(b.w.Notes, line) }
