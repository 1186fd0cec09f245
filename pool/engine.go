// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/treecore/treecore/tree"
)

// Direction says which way a copy goes.
type Direction uint8

// The directions.
const (
	ToHost   Direction = iota // device to host
	ToDevice                  // host to device

	numDirections = 2
)

// String returns the direction's lower-case name.
func (d Direction) String() string {
	if d == ToHost {
		return "to host"
	}
	return "to device"
}

// Part is what a copy moves of one component: slot by slot, both lists equally
// long.
type Part struct {
	Component    tree.Component
	Device, Host tree.Slots
}

// Copy is one operation of an Engine. The lists must not change before its
// acknowledgement.
type Copy struct {
	Direction Direction
	Parts     []Part
}

// Slots returns how many slots the copy moves of each component.
func (c Copy) Slots() tree.Units {
	var n tree.Units
	for _, p := range c.Parts {
		n[p.Component] += p.Device.Len()
	}
	return n
}

// Ack says that a copy has ended.
type Ack struct {
	ID  int64
	Err error // nil: done; else nothing may be said about the target's content
}

// EngineOptions configures an Engine. Copy is required.
type EngineOptions struct {
	// Copy moves the bytes. It runs on worker goroutines, several at a time, and
	// must return soon after its context has ended.
	Copy func(context.Context, Copy) error
	// Workers is the number of goroutines that copy. Zero: 2.
	Workers int
	// Queue is the most copies of one direction that are started and have not
	// ended: Start waits while there are as many. Zero: 64.
	Queue int
	// Manual makes copies end only when Complete says so, or when somebody
	// waits for them; there are no goroutines then. Replays in virtual time and
	// tests need that.
	Manual bool
	// Started is called by Start with each copy, and Waited whenever a call had
	// to wait until the copy ended, both on the caller's goroutine; nil: not.
	Started func(id int64, c Copy)
	Waited  func(id int64)
}

// Engine copies slots between device and host asynchronously. Start, Finished,
// Take, Wait, Complete and Cancel belong to one goroutine; only the copying is
// done by others. Acknowledgements come in the order of starting, for each
// direction: a copy that ended early waits for those before it (rule CT-12).
// End it with Close.
type Engine struct {
	opts   EngineOptions
	ctx    context.Context
	cancel context.CancelFunc
	work   chan *operation
	wait   sync.WaitGroup
	lines  [numDirections][]*operation // started and not taken, the oldest first
	lastID int64
	closed bool
}

type operation struct {
	id     int64
	copy   Copy
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when err is final
	err    error
}

func (o *operation) ended() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// NewEngine returns an engine with its workers running.
func NewEngine(o EngineOptions) (*Engine, error) {
	bad := func(field string, value int) error {
		return &ArgumentError{Op: "NewEngine", Field: field, Problem: fmt.Sprintf("%d: give 1 or more, or 0 for the default", value)}
	}
	switch {
	case o.Copy == nil:
		return nil, &ArgumentError{Op: "NewEngine", Field: "Copy", Problem: "it is nil: say how bytes are moved"}
	case o.Workers < 0:
		return nil, bad("Workers", o.Workers)
	case o.Queue < 0:
		return nil, bad("Queue", o.Queue)
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.Queue == 0 {
		o.Queue = 64
	}
	e := &Engine{opts: o}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if o.Manual {
		return e, nil
	}
	// Both directions fit, so handing work over never blocks: Start has waited
	// for room before.
	e.work = make(chan *operation, numDirections*o.Queue)
	for range o.Workers {
		e.wait.Add(1)
		go func() {
			defer e.wait.Done()
			for op := range e.work {
				e.run(op)
			}
		}()
	}
	return e, nil
}

// run moves the bytes of an operation and ends it.
func (e *Engine) run(op *operation) {
	op.err = op.ctx.Err()
	if op.err == nil {
		op.err = e.opts.Copy(op.ctx, op.copy)
	}
	op.cancel()
	close(op.done)
}

// errClosed is what a call on a closed engine returns.
var errClosed = errors.New("the transfer engine is closed: make a new one")

// Start starts a copy and returns its number. While Queue copies of its
// direction have not ended, it waits, until ctx ends. Lists of different lengths
// are an *ArgumentError.
func (e *Engine) Start(ctx context.Context, c Copy) (int64, error) {
	if e.closed {
		return 0, errClosed
	}
	if c.Direction >= numDirections {
		return 0, &ArgumentError{Op: "Start", Field: "Direction", Problem: fmt.Sprintf("%d: it is ToHost or ToDevice", c.Direction)}
	}
	for _, p := range c.Parts {
		if p.Device.Len() != p.Host.Len() {
			return 0, &ArgumentError{Op: "Start", Field: "Parts", Problem: fmt.Sprintf("%d device and %d host slots of %v: both must be equally many", p.Device.Len(), p.Host.Len(), p.Component)}
		}
	}
	for {
		oldest := e.crowded(c.Direction)
		if oldest == nil {
			break
		}
		if err := e.await(ctx, oldest); err != nil {
			return 0, err
		}
	}
	e.lastID++
	op := &operation{id: e.lastID, copy: c, done: make(chan struct{})}
	op.ctx, op.cancel = context.WithCancel(e.ctx)
	e.lines[c.Direction] = append(e.lines[c.Direction], op)
	if e.opts.Started != nil {
		e.opts.Started(op.id, c)
	}
	if !e.opts.Manual {
		e.work <- op
	}
	return op.id, nil
}

// crowded returns the oldest copy that has not ended if Queue of them have not.
func (e *Engine) crowded(d Direction) *operation {
	var oldest *operation
	n := 0
	for _, op := range e.lines[d] {
		if !op.ended() {
			if n++; oldest == nil {
				oldest = op
			}
		}
	}
	if n < e.opts.Queue {
		return nil
	}
	return oldest
}

// await waits until a copy has ended. On a manual engine that makes it end.
func (e *Engine) await(ctx context.Context, op *operation) error {
	if op.ended() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.opts.Waited != nil {
		e.opts.Waited(op.id)
	}
	if e.opts.Manual {
		e.run(op)
		return nil
	}
	select {
	case <-op.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InFlight returns how many copies of the direction were started and have not
// been taken.
func (e *Engine) InFlight(d Direction) int { return len(e.lines[d]) }

// Finished returns how many copies of the direction have ended in a row, from
// the one that was started first. Only those can be taken.
func (e *Engine) Finished(d Direction) int {
	for n, op := range e.lines[d] {
		if !op.ended() {
			return n
		}
	}
	return len(e.lines[d])
}

// Take returns the acknowledgements of the n copies that were started first, or
// of as many as have ended in a row.
func (e *Engine) Take(d Direction, n int) []Ack {
	n = min(n, e.Finished(d))
	if n <= 0 {
		return nil
	}
	acks := make([]Ack, n)
	for i, op := range e.lines[d][:n] {
		acks[i] = Ack{ID: op.id, Err: op.err}
	}
	e.lines[d] = append([]*operation(nil), e.lines[d][n:]...)
	return acks
}

// Wait waits until all copies of the direction have ended, or ctx has.
func (e *Engine) Wait(ctx context.Context, d Direction) error {
	for _, op := range e.lines[d] {
		if err := e.await(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// Complete makes a copy of a manual engine end: its bytes move now. It reports
// whether there was such a copy that had not ended.
func (e *Engine) Complete(id int64) bool {
	op := e.find(id)
	if !e.opts.Manual || op == nil || op.ended() {
		return false
	}
	e.run(op)
	return true
}

// Cancel asks a copy to end early; its acknowledgement then has an error. It
// reports whether there was such a copy that had not ended.
func (e *Engine) Cancel(id int64) bool {
	op := e.find(id)
	if op == nil || op.ended() {
		return false
	}
	op.cancel()
	return true
}

func (e *Engine) find(id int64) *operation {
	for _, line := range e.lines {
		for _, op := range line {
			if op.id == id {
				return op
			}
		}
	}
	return nil
}

// Close cancels what has not ended and waits for the workers. Closing twice is
// harmless. Acknowledgements can still be taken afterwards.
func (e *Engine) Close() {
	if e.closed {
		return
	}
	e.closed = true
	e.cancel()
	if e.opts.Manual {
		for _, line := range e.lines {
			for _, op := range line {
				if !op.ended() {
					e.run(op)
				}
			}
		}
		return
	}
	close(e.work)
	e.wait.Wait()
}
