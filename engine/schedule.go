// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// Progress says what a step did.
type Progress uint8

// What a step can do.
const (
	Idle    Progress = iota // there is nothing to do
	Worked                  // it computed or admitted something
	Waiting                 // requests wait for copies or for the store
)

// Step does one turn of the scheduler: it takes note of I/O that has ended, lets
// requests in, computes at most ChunkTokens of their prompts, and one token of
// each request that is through with its prompt. An error means that the engine
// cannot go on; what concerns one request only ends that request.
func (e *Engine) Step(ctx context.Context) (Progress, error) {
	if e.failed != nil {
		return Idle, e.failed
	}
	if len(e.waiting)+len(e.running)+len(e.retracted) == 0 {
		if err := harmless(e.cache.Tick()); err != nil {
			return Idle, e.fail(err)
		}
		return Idle, e.fail(e.load(ctx)) // for a request that is gone
	}
	e.steps++
	before := e.stamp()
	if err := harmless(e.cache.Tick()); err != nil {
		return Idle, e.fail(err)
	}
	for _, phase := range []func(context.Context) error{e.restore, e.admit, e.load, e.prefill, e.decode} {
		if err := phase(ctx); err != nil {
			return Idle, e.fail(err)
		}
	}
	if e.stamp() != before {
		return Worked, nil
	}
	return Waiting, nil
}

// fail notes an error after which the engine cannot go on. The end of a context
// is none.
func (e *Engine) fail(err error) error {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		e.failed = err
	}
	return err
}

// harmless drops errors after which the cache and its requests go on.
func harmless(err error) error {
	var backup *cache.BackupError
	var store *cache.StorageError
	if errors.As(err, &backup) || errors.As(err, &store) {
		return nil
	}
	return err
}

// stamp changes with everything that a step can do.
func (e *Engine) stamp() [4]int64 {
	s := e.cache.Stats()
	return [4]int64{s.ComputedTokens + s.DecodedTokens, int64(len(e.running)), e.stats.Finished + e.stats.Aborted, e.stats.Retractions}
}

// Drain steps until nothing is left to do.
func (e *Engine) Drain(ctx context.Context) error {
	stood := 0
	for {
		p, err := e.Step(ctx)
		if err != nil {
			return err
		}
		switch p {
		case Idle:
			return nil
		case Worked:
			stood = 0
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if stood++; stood > 3 {
			return e.fail(fmt.Errorf("the engine stands still with %d requests waiting, %d running, and nothing on its way", len(e.waiting), len(e.running)))
		}
		if err := harmless(e.cache.Sync(ctx)); err != nil {
			return e.fail(err)
		}
	}
}

// room reports a shortage that may go away.
func room(err error) bool {
	var short *pool.ExhaustedError
	return errors.As(err, &short)
}

// admit lets waiting requests in while there is room and the step has prompt
// tokens left to compute.
func (e *Engine) admit(ctx context.Context) error {
	if len(e.running) > 0 && (e.blocked || len(e.retracted) > 0) {
		return nil // those who come later must not take the room that one of retracted waits for
	}
	e.blocked = false
	if err := e.sort(); err != nil {
		return err
	}
	left := e.opts.ChunkTokens
	for _, t := range e.running {
		left -= max(0, len(t.tokens)-t.request.Len())
	}
	for i := 0; i < len(e.waiting) && len(e.running) < e.opts.MaxRunning && left > 0; {
		t := e.waiting[i]
		if len(e.running) > 0 && !e.fits(t) {
			break
		}
		err := harmless(e.cache.Admit(t.request))
		var fetching *cache.FetchingError
		switch {
		case errors.As(err, new(*cache.BaseGoneError)):
			// What was fetched stood on something that went: ask again.
			if err := e.cache.Prefetch(t.request); err != nil {
				return err
			}
			i++
			continue
		case errors.As(err, &fetching):
			i++
			continue
		case room(err):
			return e.stuck(t, err)
		case err != nil:
			return err
		}
		e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
		e.running = append(e.running, t)
		if !t.admitted {
			t.admitted, t.why = true, t.request.Explanation()
			t.origin, t.cached = t.request.Origin(), t.request.Protected()
		}
		left -= len(t.tokens) - t.request.Len()
	}
	return nil
}

// load starts what admissions have queued, also those that found no room in the
// end.
func (e *Engine) load(context.Context) error {
	_, err := e.cache.StartLoading()
	return harmless(err)
}

// active reports whether a request runs: one before it may have made it way.
func active(t *Task) bool {
	if t.done != Unfinished {
		return false
	}
	s := t.request.State()
	return s == cache.Running || s == cache.Lost
}

// fits reports whether there is room for a request's next chunk, and a page for
// each one that runs.
func (e *Engine) fits(t *Task) bool {
	page := e.cache.PageSize()
	chunk := min(len(t.tokens)-t.request.Matched(), e.opts.ChunkTokens)
	return e.cache.Available(tree.Full) >= chunk+page*(1+len(e.running))
}

// stuck decides about a shortage: while others run, or something is in flight, it
// may go away; else the request that finds no room can never be served.
func (e *Engine) stuck(t *Task, err error) error {
	if len(e.running) > 0 || e.inFlight() {
		return nil
	}
	return e.giveUp(t, err)
}

func (e *Engine) inFlight() bool {
	c := e.cache
	if x := c.Engine(); x != nil && x.InFlight(pool.ToHost)+x.InFlight(pool.ToDevice) > 0 {
		return true
	}
	if q := c.Storage(); q != nil {
		for k := range queue.Kind(queue.NumKinds) {
			if q.InFlight(k) > 0 {
				return true
			}
		}
	}
	return false
}

// giveUp ends a request that cannot be served.
func (e *Engine) giveUp(t *Task, why error) error {
	err := e.cache.Abort(t.request)
	e.stats.Aborted++
	e.over(t, FinishFailed, why)
	return harmless(err)
}

// prefill computes prompts, those admitted first first, up to ChunkTokens.
func (e *Engine) prefill(ctx context.Context) error {
	left := e.opts.ChunkTokens
	for _, t := range append([]*Task(nil), e.running...) {
		r := t.request
		if left <= 0 || !active(t) || r.Len() >= len(t.tokens) {
			continue
		}
		if gone, err := e.loaded(ctx, t); err != nil || gone {
			if err != nil {
				return err
			}
			continue
		}
		n := e.cache.MaxExtend(r, min(left, len(t.tokens)-r.Len()))
		if n > 0 {
			if err := e.cache.Extend(r, max(0, r.Len()+n-r.Allocated())); room(err) {
				n = 0
			} else if err := harmless(err); err != nil {
				return err
			}
		}
		if n == 0 {
			if err := e.shortage(ctx, t); err != nil {
				return err
			}
			continue
		}
		left -= n
		length, slot, _ := e.cache.PlanTrack(r, n)
		at := r.Len()
		out, err := e.forward(t, t.tokens, at, at+n, length, slot)
		if err != nil {
			if err = e.unable(t, err); err != nil {
				return err
			}
			continue
		}
		var token tree.Token
		var log float32
		if whole := at+n == len(t.tokens); whole {
			token, log = sample(out.Logits, t.params.Temperature, t.params.Seed, len(t.tokens))
		}
		if err := e.cache.Commit(r, n); err != nil {
			return err
		}
		if err := harmless(e.cache.CacheUnfinished(r)); err != nil {
			return err
		}
		if r.Len() == len(t.tokens) {
			if err := e.emit(t, token, log); err != nil {
				return err
			}
		}
	}
	return nil
}

// loaded waits for what a request reads. gone says that it was lost and queued
// again.
func (e *Engine) loaded(ctx context.Context, t *Task) (gone bool, err error) {
	err = e.cache.WaitLoads(ctx, t.request)
	var lost *cache.LoadError
	var order *cache.OrderError
	if errors.As(err, &lost) || errors.As(err, &order) && order.State == cache.Lost {
		return true, e.again(t)
	}
	return false, harmless(err)
}

// unable ends a request that the model cannot compute; other errors stay.
func (e *Engine) unable(t *Task, err error) error {
	if errors.As(err, new(*ModelError)) {
		return e.giveUp(t, err)
	}
	return err
}

// forward runs the model over positions of a request.
func (e *Engine) forward(t *Task, tokens []tree.Token, from, to, trackAt int, track tree.Slot) (Output, error) {
	s, r := &e.sequence, t.request
	s.Tokens, s.Namespace, s.From, s.To = tokens[:to], t.params.Namespace, from, to
	s.State, s.TrackAt, s.Track = r.StateSlot(), trackAt, track
	if from == 0 {
		delete(e.shared, s.State)
	} else if tree, ok := e.shared[s.State]; ok {
		s.State = tree
	}
	var err error
	if s.Full, err = r.AppendSlots(s.Full[:0], tree.Full); err != nil {
		return Output{}, err
	}
	if e.spec.Components.Has(tree.SWA) {
		if s.SWA, err = r.AppendSlots(s.SWA[:0], tree.SWA); err != nil {
			return Output{}, err
		}
	}
	out, err := e.model.Forward(e.memory, s)
	if err != nil {
		return out, &ModelError{Request: t.id, Err: err}
	}
	for _, x := range out.Mismatches {
		e.stats.Mismatched[x.Component]++
		if len(t.mismatches) < MaxMismatches {
			t.mismatches = append(t.mismatches, x)
		}
	}
	return out, nil
}

// emit adds a token to a request's output, and ends the request if it is the
// last.
func (e *Engine) emit(t *Task, token tree.Token, log float32) error {
	t.output, t.logs = append(t.output, token), append(t.logs, log)
	t.pending = append(t.pending, token)
	if t.params.OnToken != nil {
		t.params.OnToken(t, token)
	}
	why := Unfinished
	if slices.Contains(t.params.Stop, token) {
		why = FinishStopped
	}
	if why == Unfinished && len(t.output) >= t.params.MaxTokens {
		why = FinishLength
	}
	if why == Unfinished || t.done != Unfinished { // OnToken may have aborted it
		return nil
	}
	err := harmless(e.cache.Finish(t.request, true))
	e.stats.Finished++
	e.over(t, why, nil)
	return err
}

// decode computes the next token of each request whose prompt is computed.
func (e *Engine) decode(ctx context.Context) error {
	for _, t := range append([]*Task(nil), e.running...) {
		if !active(t) || len(t.pending) == 0 {
			continue
		}
		if gone, err := e.loaded(ctx, t); err != nil || gone {
			if err != nil {
				return err
			}
			continue
		}
		step := e.decodeOne
		if e.opts.Drafts > 0 {
			step = e.decodeDrafts
		}
		err := step(t)
		switch {
		case room(err):
			err = e.shortage(ctx, t)
		case errors.As(err, new(*cache.TooLargeError)):
			err = e.giveUp(t, err)
		default:
			err = e.unable(t, err)
		}
		if err = harmless(err); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) decodeOne(t *Task) error {
	r := t.request
	token := t.pending[0]
	if n, err := e.cache.Decode(r, t.pending[:1]); n == 0 {
		return err
	} else if err := harmless(err); err != nil {
		return err
	}
	t.tokens, t.pending = append(t.tokens, token), t.pending[:0]
	length, slot, ok := r.Tracked()
	if !ok || length != r.Len() {
		length = 0
	}
	out, err := e.forward(t, t.tokens, r.Len()-1, r.Len(), length, slot)
	if err != nil {
		return err
	}
	next, log := sample(out.Logits, t.params.Temperature, t.params.Seed, len(t.tokens))
	return e.emit(t, next, log)
}
