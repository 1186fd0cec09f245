// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// Options configures a Queue. Store is required.
type Options struct {
	// Store is used by several goroutines at once. It stays the caller's.
	Store storage.Store
	// Workers is the number of goroutines for each kind. Below 1: 2.
	Workers int
	// Batch is the most pages in one call of the store. Below 1: storage.MaxBatch.
	Batch int
	// Manual makes operations run only when Complete says so, or when somebody
	// waits for them, on the caller's goroutine. Replays in virtual time and
	// tests need that.
	Manual bool
	// Started is called with each operation that is started, on the caller's
	// goroutine; nil: not.
	Started func(*Operation)
	// Now is the clock for Operation.Age. nil: time.Now.
	Now Clock
}

// Queue runs operations. Start, Finished, Take, Wait and Close belong to one
// goroutine, the scheduler's.
type Queue struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	lines  [NumKinds][]*Operation // started and not taken, the oldest first
	lastID int64
	closed bool

	work     [NumKinds]chan struct{} // one value for each operation to do
	mu       sync.Mutex
	todo     [NumKinds][]*Operation
	idle     chan struct{} // closed when all goroutines have ended
	panicked atomic.Bool
}

// New returns a queue whose goroutines run until Close.
func New(o Options) *Queue {
	if o.Workers < 1 {
		o.Workers = 2
	}
	if o.Batch < 1 {
		o.Batch = storage.MaxBatch
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	q := &Queue{opts: o, idle: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	if o.Manual {
		close(q.idle)
		return q
	}
	var running sync.WaitGroup
	for k := range q.work {
		q.work[k] = make(chan struct{}, 1)
		for range o.Workers {
			running.Go(func() { q.serve(Kind(k)) })
		}
	}
	go func() {
		running.Wait()
		close(q.idle)
	}()
	return q
}

// Store returns the store.
func (q *Queue) Store() storage.Store { return q.opts.Store }

// Panicked reports whether the store has panicked in one of the operations.
func (q *Queue) Panicked() bool { return q.panicked.Load() }

// Lookup starts a lookup of a prefix. pages gives the hashes of its pages; it is
// called on another goroutine.
func (q *Queue) Lookup(pages func() []tree.Digest, needs []storage.Need) *Operation {
	return q.start(&Operation{kind: Lookup, pages: pages, needs: needs})
}

// Read starts a read of Full pages and then, if all of them came, of aux pages.
// It ends at the first page that is missing.
func (q *Queue) Read(full Batch, aux []Batch) *Operation {
	return q.start(&Operation{kind: Read, full: full, aux: aux})
}

// Write starts a write of aux pages and then of Full ones. Of each batch it ends
// at the first page that could not be written: a later one could not be found
// without it (rule ST-13).
func (q *Queue) Write(full Batch, aux []Batch) *Operation {
	return q.start(&Operation{kind: Write, full: full, aux: aux})
}

func (q *Queue) start(o *Operation) *Operation {
	q.lastID++
	o.id, o.queue, o.done, o.found = q.lastID, q, make(chan struct{}), make([]int, len(o.aux))
	o.began = q.opts.Now()
	o.ctx, o.cancel = context.WithCancel(q.ctx)
	q.lines[o.kind] = append(q.lines[o.kind], o)
	if q.opts.Started != nil {
		q.opts.Started(o)
	}
	if q.closed {
		o.run() // its context has ended
		return o
	}
	if q.opts.Manual {
		return o
	}
	q.mu.Lock()
	q.todo[o.kind] = append(q.todo[o.kind], o)
	q.mu.Unlock()
	q.wake(o.kind)
	return o
}

// wake tells one idle goroutine of the kind that there is work.
func (q *Queue) wake(k Kind) {
	select {
	case q.work[k] <- struct{}{}:
	default: // one is told already, and tells the next
	}
}

func (q *Queue) serve(k Kind) {
	for {
		q.mu.Lock()
		var o *Operation
		if len(q.todo[k]) > 0 {
			o, q.todo[k] = q.todo[k][0], q.todo[k][1:]
			if len(q.todo[k]) > 0 {
				q.wake(k)
			}
		}
		q.mu.Unlock()
		if o != nil {
			o.run()
			continue
		}
		select {
		case <-q.work[k]:
		case <-q.ctx.Done():
			q.mu.Lock()
			left := len(q.todo[k])
			q.mu.Unlock()
			if left == 0 {
				return
			}
		}
	}
}

// line returns the operations of a kind that were started and not taken; an
// unknown kind has none.
func (q *Queue) line(k Kind) []*Operation {
	if k >= NumKinds {
		return nil
	}
	return q.lines[k]
}

// InFlight returns how many operations of a kind were started and not taken; 0
// for an unknown kind.
func (q *Queue) InFlight(k Kind) int { return len(q.line(k)) }

// Finished returns how many of them have ended in a row, the oldest first.
func (q *Queue) Finished(k Kind) int {
	line := q.line(k)
	for i, o := range line {
		if !o.Ended() {
			return i
		}
	}
	return len(line)
}

// Take returns the n oldest operations of a kind, or as many of them as have
// ended in a row, and forgets them. With n below 1 it takes none.
func (q *Queue) Take(k Kind, n int) []*Operation {
	n = min(n, q.Finished(k))
	if n < 1 {
		return nil
	}
	taken := q.lines[k][:n:n]
	q.lines[k] = q.lines[k][n:]
	return taken
}

// Wait waits until all operations of a kind that were started have ended.
func (q *Queue) Wait(ctx context.Context, k Kind) error {
	for _, o := range q.line(k) {
		if q.opts.Manual {
			q.Complete(o.id)
			continue
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Complete makes an operation of a manual queue run now. It reports whether
// there was such a one that had not ended.
func (q *Queue) Complete(id int64) bool {
	if !q.opts.Manual {
		return false
	}
	for _, line := range q.lines {
		for _, o := range line {
			if o.id == id && !o.Ended() {
				o.run()
				return true
			}
		}
	}
	return false
}

// Advance makes a read of a manual queue read its Full pages up to a number of
// them now, without ending it, so that it has the progress of one that takes its
// time. What is read stays read; fewer pages than before change nothing. It
// reports whether there was such a read that had not ended.
func (q *Queue) Advance(id int64, pages int) bool {
	if !q.opts.Manual {
		return false
	}
	for _, o := range q.lines[Read] {
		if o.id == id && !o.Ended() {
			if pages = min(pages, len(o.full.Pages)); pages > o.count && o.ctx.Err() == nil {
				o.part(pages)
			}
			return true
		}
	}
	return false
}

// StuckError says that a store did not return from its calls in time.
type StuckError struct {
	Operations int // that have not ended
	Err        error
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("%d storage operations do not end: wait for the store and try again: %v", e.Operations, e.Err)
}

// Unwrap returns the context's error.
func (e *StuckError) Unwrap() error { return e.Err }

// Close cuts off what has not ended and waits for the goroutines. If the context
// ends before them it is a *StuckError, and Close can be called again. What has
// ended can still be taken.
func (q *Queue) Close(ctx context.Context) error {
	q.closed = true
	q.cancel()
	if q.opts.Manual {
		for k := range q.lines {
			for _, o := range q.lines[k] {
				if !o.Ended() {
					o.run() // its context has ended
				}
			}
		}
	}
	select {
	case <-q.idle:
		return nil
	default:
	}
	select {
	case <-q.idle:
		return nil
	case <-ctx.Done():
		left := 0
		for _, line := range q.lines {
			for _, o := range line {
				if !o.Ended() {
					left++
				}
			}
		}
		return &StuckError{Operations: left, Err: ctx.Err()}
	}
}
