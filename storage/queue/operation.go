// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// Kind says what an operation does.
type Kind uint8

// The kinds. Each has goroutines and a line of its own, so that writes that pile
// up delay no read.
const (
	Lookup Kind = iota
	Read
	Write

	NumKinds = 3
)

var kindNames = [NumKinds]string{"lookup", "read", "write"}

// String returns the kind's lower-case name.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Batch is pages of one pool: what they are called, and the memory of each.
type Batch struct {
	Pool  string
	Pages []tree.Digest
	Bytes [][]byte // one a page; the operation's until it has ended
}

// PanicError says that a store panicked. The operation has failed.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("the store panicked, detach it and report this: %v", e.Value)
}

// Operation is one that was started. Its methods may be called from any
// goroutine.
type Operation struct {
	id    int64
	kind  Kind
	pages func() []tree.Digest // Lookup
	needs []storage.Need       // Lookup
	full  Batch                // Read, Write
	aux   []Batch              // Read, Write

	queue  *Queue
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	done   chan struct{} // closed at the end

	mu      sync.Mutex
	stopped bool
	count   int   // leading Full pages that are done
	found   []int // leading pages of each aux batch that are done
	hashes  []tree.Digest
	answer  storage.Found
	err     error
}

// ID returns the operation's number, counting from 1 in the order of starting.
func (o *Operation) ID() int64 { return o.id }

// Kind returns what the operation does.
func (o *Operation) Kind() Kind { return o.kind }

// Size returns the pages of a read or a write: of Full, and of each aux batch.
func (o *Operation) Size() (full int, aux []Batch) { return len(o.full.Pages), o.aux }

// Ended reports whether nothing of the operation goes on any more.
func (o *Operation) Ended() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// Stop makes an operation end early: no page that is done later counts. It
// returns the number of leading Full pages that are done. The memory stays the
// operation's until it has ended.
func (o *Operation) Stop() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	o.cancel()
	return o.count
}

// Progress returns the number of leading Full pages that are done and, once
// the operation has ended, the leading pages of each aux batch.
func (o *Operation) Progress() (full int, aux []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.Ended() {
		return o.count, make([]int, len(o.aux))
	}
	return o.count, append([]int(nil), o.found...)
}

// Complete reports whether the operation has ended and every page is done.
func (o *Operation) Complete() bool {
	full, aux := o.Progress()
	if !o.Ended() || full < len(o.full.Pages) {
		return false
	}
	for i, n := range aux {
		if n < len(o.aux[i].Pages) {
			return false
		}
	}
	return true
}

// Found returns the answer of a lookup that has ended: the hashes of the key's
// pages, and how many of them can be used.
func (o *Operation) Found() ([]tree.Digest, storage.Found) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hashes, o.answer
}

// Err returns why an operation that has ended failed; nil if it did not. A page
// that is missing is no failure.
func (o *Operation) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Age returns how long ago the operation was started.
func (o *Operation) Age() time.Duration { return o.queue.opts.Now().Sub(o.began) }

// run does the work. It belongs to one goroutine.
func (o *Operation) run() {
	defer close(o.done)
	defer o.catch()
	defer o.cancel()
	if err := o.ctx.Err(); err != nil {
		o.fail(err)
		return
	}
	switch o.kind {
	case Lookup:
		o.lookup()
	case Read:
		// Aux pages are of use only on top of the whole of Full (rule PF-16).
		if o.each(o.full, o.count, o.queue.opts.Store.Get, o.advance) {
			for i, b := range o.aux {
				o.each(b, 0, o.queue.opts.Store.Get, func(n int) bool { return o.advanceAux(i, n) })
			}
		}
	case Write:
		for i, b := range o.aux {
			o.each(b, 0, o.queue.opts.Store.Put, func(n int) bool { return o.advanceAux(i, n) })
		}
		o.each(o.full, 0, o.queue.opts.Store.Put, o.advance)
	}
}

// part reads Full pages up to a number of them. The operation goes on.
func (o *Operation) part(pages int) {
	defer o.catch()
	b := o.full
	b.Pages, b.Bytes = b.Pages[:pages], b.Bytes[:pages]
	o.each(b, o.count, o.queue.opts.Store.Get, o.advance)
}

// catch is deferred around calls of the store.
func (o *Operation) catch() {
	if v := recover(); v != nil {
		o.fail(&PanicError{v})
		o.queue.panicked.Store(true)
	}
}

func (o *Operation) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *Operation) lookup() {
	hashes := o.pages()
	found, err := storage.Lookup(o.ctx, o.queue.opts.Store, hashes, o.needs)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hashes, o.answer, o.err = hashes, found, err
}

// each moves a batch from a page on, in calls of at most Options.Batch pages, up
// to the first page that fails, and reports whether all were done.
func (o *Operation) each(b Batch, from int, call func(context.Context, []storage.Key, [][]byte) ([]bool, error), done func(n int) bool) bool {
	keys := storage.Keys(b.Pages, b.Pool)
	for at := from; at < len(keys); {
		n := min(len(keys)-at, o.queue.opts.Batch)
		answers, err := call(o.ctx, keys[at:at+n], b.Bytes[at:at+n])
		if err != nil {
			o.fail(err)
		}
		ok := storage.Leading(answers)
		if !done(ok) || ok < n {
			return false
		}
		at += n
	}
	return true
}

func (o *Operation) advance(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.count += n
	return true
}

func (o *Operation) advanceAux(i, n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.found[i] += n
	return true
}
