// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// job is a request of the workload on its way.
type job struct {
	index   int
	request *workload.Request

	ready time.Duration // got in line
	begun time.Duration // was admitted for the first time
	first time.Duration // its first token came, in the latest run

	// Of the latest run:
	run      int            // counts admissions, so that stale events are known
	running  bool           //
	live     *cache.Request // nil when it is not running
	start    int            // prompt tokens reused
	computed int            // prompt tokens reused or computed
	decoded  int            // output tokens generated

	// Of all runs the one that reused least counts: how much that was, and what
	// its match said.
	reused int
	origin
	loaded   origin // what attempts that came to nothing have brought for the admission to come
	found    tree.Explanation
	admitted bool
	done     bool // served to its end

	// While it is in line, with a storage tier:
	asked    bool           // storage was asked for it
	waiting  *cache.Request // nil: there is no need for one yet
	dropped  int            // how often what was fetched was lost, since what it went on from had gone
	fetching bool           // it was its turn, and what is fetched was not there
	since    time.Duration  // from when on

	sum    uint64       // stamp of what is computed, see stamps
	unread bool         // what it reuses was not looked at
	tokens []tree.Token // prompt and output; nil when it does not run
}

// promptLeft gives the prompt tokens still to be computed.
func (j *job) promptLeft() int { return j.request.InputLen - j.computed }

// outputLeft gives the tokens still to be generated.
func (j *job) outputLeft() int { return j.request.OutputLen - j.decoded }

// origin says where reused tokens were brought from.
type origin struct {
	fromHost  int // loaded from the host
	fromStore int // fetched from storage
	missed    int // that storage has and did not come
}

// brought adds what an admission says to what earlier attempts have brought.
func (j *job) brought(o cache.Origin) {
	j.loaded.fromStore = max(j.loaded.fromStore, o.Storage)
	j.loaded.fromHost = max(j.loaded.fromHost, o.Host)
	j.loaded.missed = max(j.loaded.missed, o.StorageMissed)
}

// note remembers what a run reuses.
func (j *job) note(reused int, found tree.Explanation) {
	if !j.admitted || reused < j.reused {
		j.reused, j.found, j.origin = reused, found, j.loaded
		j.fromStore = min(j.fromStore, reused)
		j.fromHost = min(j.fromHost, reused-j.fromStore)
	}
	j.admitted, j.loaded = true, origin{}
}

// buffers lends token slices to running requests.
type buffers struct{ free [][]tree.Token }

// prompt gives a slice with the request's prompt, and room for its output.
func (b *buffers) prompt(r *workload.Request) []tree.Token {
	var tokens []tree.Token
	if n := len(b.free); n > 0 {
		tokens, b.free = b.free[n-1], b.free[:n-1]
	}
	if need := r.InputLen + r.OutputLen; cap(tokens) < need {
		tokens = make([]tree.Token, 0, need)
	}
	return r.AppendPrompt(tokens[:0])
}

func (b *buffers) back(tokens []tree.Token) {
	const keep = 64
	if len(b.free) < keep {
		b.free = append(b.free, tokens)
	}
}
