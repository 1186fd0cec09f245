// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
)

// shortage makes room for a request that cannot go on: the one that was admitted
// last makes way. A request that is alone and finds no room, with nothing on its
// way that could bring some, is ended.
func (e *Engine) shortage(ctx context.Context, t *Task) error {
	victim := e.running[len(e.running)-1]
	if victim != t || len(e.running) > 1 {
		return e.retract(ctx, victim)
	}
	if e.inFlight() {
		return nil
	}
	return e.giveUp(t, &NoRoomError{Request: t.id, Tokens: len(t.tokens)})
}

// retract takes a running request off the device.
func (e *Engine) retract(ctx context.Context, t *Task) error {
	e.stats.Retractions++
	e.blocked = true
	t.retracted++
	if e.opts.SaveRetracted && t.request.Len() == len(t.tokens) {
		saved, err := e.cache.Retract(ctx, t.request)
		var failed *cache.RetractionError
		var lost *cache.LoadError
		switch {
		case err == nil:
			e.remove(t)
			t.saved = saved
			e.retracted = append(e.retracted, t)
			return nil
		case errors.As(err, &lost):
			return e.again(t)
		case !room(err) && !errors.As(err, &failed):
			return err
		}
	}
	return e.again(t)
}

// again ends a request in the cache, which keeps what it has computed, and queues
// it anew, before all others, with the tokens that it has so far.
func (e *Engine) again(t *Task) error {
	if err := harmless(e.cache.Finish(t.request, true)); err != nil {
		return err
	}
	return e.anew(t)
}

// anew queues a request whose end in the cache was only one for now.
func (e *Engine) anew(t *Task) error {
	e.remove(t)
	t.saved = nil
	t.tokens, t.pending = append(t.tokens, t.pending...), t.pending[:0]
	if err := e.queue(t); err != nil {
		t.end(FinishFailed, err)
		e.stats.Aborted++
		return nil
	}
	e.waiting = append([]*Task{t}, e.waiting...)
	return nil
}

// restore lets requests run on that were saved on the host, as far as there is
// room.
func (e *Engine) restore(ctx context.Context) error {
	for len(e.retracted) > 0 && !(e.blocked && len(e.running) > 0) {
		t := e.retracted[0]
		if t.request.State() == cache.Lost { // by a reset
			if err := e.again(t); err != nil {
				return err
			}
			continue
		}
		page := e.cache.PageSize()
		if len(e.running) > 0 && e.cache.Available(tree.Full) < t.saved.Units()[tree.Full]+page*(1+len(e.running)) {
			return nil
		}
		err := e.cache.Restore(ctx, t.saved)
		var failed *cache.RetractionError
		switch {
		case err == nil:
			e.retracted = e.retracted[1:]
			t.saved = nil
			e.running = append(e.running, t)
			continue
		case errors.As(err, &failed) && len(e.running) > 0:
			return nil // later
		case errors.As(err, &failed):
			// Nobody else may come who would try again: compute it anew.
			if err := harmless(e.cache.Abort(t.request)); err != nil {
				return err
			}
			if err := e.anew(t); err != nil {
				return err
			}
			continue
		case room(err):
			if len(e.running) == 0 && !e.inFlight() {
				return e.giveUp(t, &NoRoomError{Request: t.id, Tokens: len(t.tokens)})
			}
			return nil
		}
		return err
	}
	return nil
}
