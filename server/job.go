// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// job is one prompt and one output on their way through the engine. The engine's
// goroutine writes to it, a handler reads: neither waits for the other.
type job struct {
	params engine.Params
	stops  []string // texts that end the output
	wake   chan struct{}
	begun  time.Time

	task   *engine.Task // the loop's
	recent []byte       // the loop's: the end of the output's text, as long as the longest stop
	first  func(time.Duration)

	mu   sync.Mutex
	news progress
}

// progress is what is known of a job.
type progress struct {
	tokens []tree.Token
	logs   []float32
	reuse  reuse
	// finish is engine.Unfinished until the end.
	finish  engine.FinishReason
	matched string      // the stop text that ended it
	stop    *tree.Token // the stop token that ended it
	err     error
	ended   time.Time
}

// reuse says what a request found in the cache, and why it was not more.
type reuse struct {
	known  bool
	cached int
	origin cache.Origin
	why    tree.Explanation
}

// newJobs makes jobs that wake one handler.
func newJobs(n int) []*job {
	wake := make(chan struct{}, 1)
	jobs := make([]*job, n)
	for i := range jobs {
		jobs[i] = &job{wake: wake, begun: time.Now()}
	}
	return jobs
}

// onToken and onEnd are called by the engine.
func (j *job) onToken(e *engine.Engine, t *engine.Task, token tree.Token) {
	stopped := j.stopped(token)
	j.mu.Lock()
	if len(j.news.tokens) == 0 {
		j.learn(t)
		if j.first != nil {
			j.first(time.Since(j.begun))
		}
	}
	j.news.tokens = append(j.news.tokens, token)
	logs := t.LogProbs()
	j.news.logs = append(j.news.logs, logs[len(logs)-1])
	if stopped != "" {
		j.news.matched = stopped
	}
	j.mu.Unlock()
	j.call()
	if stopped != "" {
		_ = e.Abort(t) // what is serious the engine says at its next step
	}
}

func (j *job) learn(t *engine.Task) {
	j.news.reuse = reuse{known: true, cached: t.CachedTokens(), origin: t.Origin(), why: t.Explanation()}
}

// stopped returns the stop text that ends with a token, the longest of them.
func (j *job) stopped(token tree.Token) string {
	if len(j.stops) == 0 || token >= endOfText {
		return ""
	}
	longest := 0
	for _, s := range j.stops {
		longest = max(longest, len(s))
	}
	if j.recent = append(j.recent, byte(token)); len(j.recent) > longest {
		j.recent = append(j.recent[:0], j.recent[len(j.recent)-longest:]...)
	}
	found := ""
	for _, s := range j.stops {
		if len(s) > len(found) && bytes.HasSuffix(j.recent, []byte(s)) {
			found = s
		}
	}
	return found
}

func (j *job) onEnd(t *engine.Task) {
	j.mu.Lock()
	n := &j.news
	if !n.reuse.known {
		j.learn(t)
	}
	n.finish, n.err, n.ended = t.Finished(), t.Err(), time.Now()
	switch {
	case n.matched != "":
		n.finish = engine.FinishStopped
	case n.finish == engine.FinishStopped:
		last := n.tokens[len(n.tokens)-1]
		n.stop = &last
	}
	j.mu.Unlock()
	j.call()
}

// call wakes the handler.
func (j *job) call() {
	select {
	case j.wake <- struct{}{}:
	default: // it is awake
	}
}

// look returns what is known now. Its lists only grow and are not written to.
func (j *job) look() progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.news
	n.tokens, n.logs = n.tokens[:len(n.tokens):len(n.tokens)], n.logs[:len(n.logs):len(n.logs)]
	return n
}

// submit puts jobs into the engine's queue, all of them or none.
func (s *Server) submit(ctx context.Context, jobs []*job) *apiError {
	var refused *apiError
	err := s.loop.do(ctx, func(e *engine.Engine) {
		waiting, _ := e.Queued()
		if waiting+len(jobs) > s.opts.MaxQueue {
			refused = queueFull(waiting, s.opts.MaxQueue)
			return
		}
		for i, j := range jobs {
			j.first = s.metrics.firstToken
			j.params.OnToken = func(t *engine.Task, token tree.Token) { j.onToken(e, t, token) }
			j.params.OnEnd = j.onEnd
			t, err := e.Submit(j.params)
			if err != nil {
				for _, other := range jobs[:i] {
					_ = e.Abort(other.task)
				}
				refused = refusal(err)
				return
			}
			j.task = t
		}
	})
	if err != nil {
		return s.unavailable(err)
	}
	return refused
}

// abort ends the jobs that have not ended, and waits until they have.
func (s *Server) abort(jobs []*job) {
	if !slices.ContainsFunc(jobs, func(j *job) bool { return j.look().finish == engine.Unfinished }) {
		return
	}
	_ = s.loop.do(context.Background(), func(e *engine.Engine) { // after the loop's end nothing is left
		for _, j := range jobs {
			if j.task != nil {
				_ = e.Abort(j.task)
			}
		}
	})
}
