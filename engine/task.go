// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strconv"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
)

// Params describe a request.
type Params struct {
	Tokens    []tree.Token // the prompt: one or more; not copied
	Namespace tree.Namespace
	Priority  int64  // the higher ones go first
	Session   string // of the conversation, "" for none
	// MaxTokens is the number of tokens to generate at most. Zero: 128.
	MaxTokens int
	// Temperature 0 takes the likeliest token; above, tokens are drawn with Seed.
	Temperature float64
	Seed        uint64
	// Stop ends the output: it is the last token then. nil: nothing does.
	Stop []tree.Token
	// OnToken is called with each token as it comes, on the engine's goroutine.
	OnToken func(t *Task, token tree.Token)
	// OnEnd is called once when the request has ended.
	OnEnd func(t *Task)
}

// DefaultMaxTokens is what Params.MaxTokens of 0 stands for.
const DefaultMaxTokens = 128

// FinishReason says why a request ended.
type FinishReason uint8

// The reasons.
const (
	Unfinished      FinishReason = iota
	FinishStopped                // a stop token
	FinishLength                 // MaxTokens
	FinishAborted                // Abort, or the engine's end
	FinishFailed                 // see Task.Err
	numFinishReason = 5
)

var finishNames = [numFinishReason]string{"unfinished", "stop", "length", "abort", "error"}

// String returns the reason's name.
func (r FinishReason) String() string {
	if r < numFinishReason {
		return finishNames[r]
	}
	return "finish(" + strconv.Itoa(int(r)) + ")"
}

// Task is a request in an engine. It belongs to the engine's goroutine.
type Task struct {
	params  Params
	id      int64
	request *cache.Request
	saved   *cache.Retraction

	tokens  []tree.Token // the prompt and the output
	output  []tree.Token
	logs    []float32    // log-probabilities of the output
	pending []tree.Token // sampled and not computed yet
	done    FinishReason
	err     error

	admitted   bool
	origin     cache.Origin
	cached     int
	why        tree.Explanation
	retracted  int
	mismatches []Mismatch
}

// ID returns the request's number: 1 for an engine's first one.
func (t *Task) ID() int64 { return t.id }

// Output returns the tokens generated so far. It belongs to the task.
func (t *Task) Output() []tree.Token { return t.output }

// LogProbs returns the natural logarithms of the probabilities of the output
// tokens, at temperature 1. It belongs to the task.
func (t *Task) LogProbs() []float32 { return t.logs }

// Finished says why the task has ended; Unfinished: it has not.
func (t *Task) Finished() FinishReason { return t.done }

// Err returns why a task failed.
func (t *Task) Err() error { return t.err }

// PromptLen returns the number of tokens of the prompt.
func (t *Task) PromptLen() int { return len(t.params.Tokens) }

// CachedTokens returns how many tokens of the prompt were reused when the request
// was admitted first.
func (t *Task) CachedTokens() int { return t.cached }

// Origin says from which tiers they came.
func (t *Task) Origin() cache.Origin { return t.origin }

// Explanation says why they were not more.
func (t *Task) Explanation() tree.Explanation { return t.why }

// Retracted returns how often the request had to make room for others.
func (t *Task) Retracted() int { return t.retracted }

// Mismatches lists values that were not what they should be, at most
// MaxMismatches of them.
func (t *Task) Mismatches() []Mismatch { return t.mismatches }

func (t *Task) end(why FinishReason, err error) {
	if t.done != Unfinished {
		return
	}
	t.done, t.err = why, err
	t.request, t.saved = nil, nil
	if t.params.OnEnd != nil {
		t.params.OnEnd(t)
	}
}

// Submit puts a request into the queue and starts to fetch what the store has of
// it. A prompt that can never fit is a *cache.TooLargeError; other mistakes are
// *cache.ArgumentError.
func (e *Engine) Submit(p Params) (*Task, error) {
	if e.failed != nil {
		return nil, e.failed
	}
	const op = "Submit"
	if p.MaxTokens == 0 {
		p.MaxTokens = DefaultMaxTokens
	}
	switch {
	case p.MaxTokens < 0:
		return nil, &cache.ArgumentError{Op: op, Field: "MaxTokens", Problem: strconv.Itoa(p.MaxTokens) + " tokens: 1 or more, or 0 for 128"}
	case !(p.Temperature >= 0 && p.Temperature <= 100):
		return nil, &cache.ArgumentError{Op: op, Field: "Temperature", Problem: strconv.FormatFloat(p.Temperature, 'g', -1, 64) + ": from 0 to 100"}
	}
	if !e.spec.AnyToken {
		for i, token := range p.Tokens {
			if int64(token) >= int64(e.spec.Vocabulary) {
				return nil, &cache.ArgumentError{Op: op, Field: "Tokens", Problem: fmt.Sprintf("token %d at position %d: the model has 0 to %d", token, i, e.spec.Vocabulary-1)}
			}
		}
	}
	t := &Task{params: p, id: e.lastID + 1, tokens: p.Tokens[:len(p.Tokens):len(p.Tokens)]}
	if err := e.queue(t); err != nil {
		return nil, err
	}
	e.lastID++
	e.waiting = append(e.waiting, t)
	return t, nil
}

// queue makes the cache's request for a task that is to wait.
func (e *Engine) queue(t *Task) error {
	r, err := e.cache.NewRequest(cache.RequestParams{
		Tokens: t.tokens, Namespace: t.params.Namespace, Priority: t.params.Priority, Session: t.params.Session,
	})
	if err != nil {
		return err
	}
	t.request = r
	return e.cache.Prefetch(r)
}

// Abort ends a request: what it held comes back, and nothing of it is kept that
// was not cached before. A task that has ended is left alone.
func (e *Engine) Abort(t *Task) error {
	if t.done != Unfinished {
		return nil
	}
	err := e.cache.Abort(t.request)
	e.stats.Aborted++
	e.over(t, FinishAborted, nil)
	return err
}

// over ends a task, whose request the cache has ended.
func (e *Engine) over(t *Task, why FinishReason, err error) {
	e.remove(t)
	e.blocked = false
	t.end(why, err)
}

// remove takes a task out of the engine's lists.
func (e *Engine) remove(t *Task) {
	for _, list := range []*[]*Task{&e.waiting, &e.running, &e.retracted} {
		for i, x := range *list {
			if x == t {
				*list = append((*list)[:i], (*list)[i+1:]...)
				return
			}
		}
	}
}
