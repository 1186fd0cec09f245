// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
)

// errEnded answers commands after the loop's end.
var errEnded = errors.New("the server has ended: connect to another one, or start it again")

// loop is the goroutine that owns the engine. Everybody else asks it by commands,
// which it carries out between two steps.
type loop struct {
	engine   *engine.Engine
	commands chan func(*engine.Engine)
	quit     chan struct{} // closed to end it
	done     chan struct{} // closed when it has ended
	failed   atomic.Pointer[error]
}

// While something is in flight the loop looks for its end: soon at first, then
// less often.
const (
	soonest = 100 * time.Microsecond
	latest  = 10 * time.Millisecond
	// burst is the most commands that are taken between two steps.
	burst = 256
)

func newLoop(e *engine.Engine) *loop {
	l := &loop{engine: e, commands: make(chan func(*engine.Engine)), quit: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *loop) run() {
	defer close(l.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer l.engine.Close()
	wait := soonest
	for {
		for range burst {
			if !l.take() {
				break
			}
		}
		select {
		case <-l.quit:
			return
		default:
		}
		p, err := l.engine.Step(ctx)
		if err != nil {
			l.fail(err)
			return
		}
		if p == engine.Worked {
			wait = soonest
			continue
		}
		var poll <-chan time.Time
		if p == engine.Waiting || inFlight(l.engine) {
			timer.Reset(wait)
			poll = timer.C
			wait = min(2*wait, latest)
		}
		select {
		case f := <-l.commands:
			f(l.engine)
			wait = soonest
		case <-poll:
		case <-l.quit:
			return
		}
	}
}

// take carries out one command, if there is one.
func (l *loop) take() bool {
	select {
	case f := <-l.commands:
		f(l.engine)
		return true
	default:
		return false
	}
}

// fail ends the loop after an error of the engine, which serves no more.
func (l *loop) fail(err error) {
	err = fmt.Errorf("the engine has failed and serves no more, start the server again: %w", err)
	l.failed.Store(&err)
}

// err says why no command is taken any more; nil while they are.
func (l *loop) err() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	if l.over() {
		return errEnded
	}
	return nil
}

// over reports that the loop has ended, and the engine with it.
func (l *loop) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// do carries out f on the loop's goroutine and waits for it. If the context ends
// before f has begun, f is not carried out; else do waits for its end.
func (l *loop) do(ctx context.Context, f func(*engine.Engine)) error {
	over := make(chan struct{})
	select {
	case l.commands <- func(e *engine.Engine) { defer close(over); f(e) }:
		<-over
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return l.err()
	}
}

// inFlight reports copies and storage operations whose end the engine has to take
// note of.
func inFlight(e *engine.Engine) bool {
	c := e.Cache()
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
