// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"log/slog"
	"sync"
)

// Recorder keeps a backend's books: its counters, and what is worth a line in
// the log. A damaged page is logged once for each key. A failing backend is
// logged when it begins to fail, each time with another kind, and when it works
// again: not once a call. Safe for concurrent use.
type Recorder struct {
	backend string
	log     *slog.Logger

	mu      sync.Mutex
	stats   Stats
	logged  map[Key]struct{} // damaged pages that were logged, at most maxLogged
	failing bool
	last    Kind
}

// maxLogged bounds the memory of which pages were logged; a store with more
// damaged ones only counts the others.
const maxLogged = 4096

// NewRecorder returns the books of a backend with that name. It logs to
// slog.Default.
func NewRecorder(backend string) *Recorder {
	return &Recorder{backend: backend, log: slog.Default(), logged: map[Key]struct{}{}, stats: Stats{Pages: -1, Bytes: -1}}
}

// Hits counts pages that were read, and their bytes.
func (r *Recorder) Hits(pages, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Hits += uint64(pages)
	r.stats.BytesRead += uint64(bytes)
}

// Misses counts pages that were asked for and not read.
func (r *Recorder) Misses(pages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Misses += uint64(pages)
}

// Puts counts the outcome of a write: pages written, with their bytes, pages
// that were there, and pages that failed.
func (r *Recorder) Puts(written, bytes, present, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Written += uint64(written)
	r.stats.BytesWritten += uint64(bytes)
	r.stats.Present += uint64(present)
	r.stats.Failed += uint64(failed)
}

// Evicted counts pages that the size cap removed.
func (r *Recorder) Evicted(pages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Evicted += uint64(pages)
}

// Damaged counts a stored page that cannot be used, and logs it unless it was
// logged before. The caller counts the miss.
func (r *Recorder) Damaged(key Key, kind Kind, where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Errors[kind]++
	if _, ok := r.logged[key]; ok || len(r.logged) >= maxLogged {
		return
	}
	r.logged[key] = struct{}{}
	r.log.Warn("storage: a stored page cannot be used and counts as a miss",
		"backend", r.backend, "kind", kind.String(), "key", key.String(), "where", where)
}

// Fail counts a failed call and returns its error. The kind is that of KindOf
// unless the caller knows better and gives an *Error itself.
func (r *Recorder) Fail(op, where string, err error) *Error {
	out, ok := err.(*Error)
	if !ok {
		out = &Error{Kind: KindOf(err), Err: err}
	}
	out.Backend, out.Op = r.backend, op
	if out.Where == "" {
		out.Where = where
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Errors[out.Kind]++
	if out.Kind == Cancelled || out.Kind == Closed {
		return out // the caller's doing, and no news about the backend
	}
	r.stats.SinceLastGood++
	if !r.failing || r.last != out.Kind {
		r.log.Warn("storage: calls fail and count as misses or failed writes", "backend", r.backend, "op", op, "kind", out.Kind.String(), "error", out.Error())
	}
	r.failing, r.last = true, out.Kind
	return out
}

// Good says that a call to the backend worked.
func (r *Recorder) Good() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		r.log.Info("storage: calls work again", "backend", r.backend, "failed", r.stats.SinceLastGood)
	}
	r.failing, r.stats.SinceLastGood = false, 0
}

// Stats returns a copy of the counters; Pages and Bytes are -1 until the backend
// fills them in.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Cut counts and logs the torn end of a file that a killed process left.
func (r *Recorder) Cut(where string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Errors[Torn]++
	r.log.Warn("storage: the torn end of a file was cut off", "backend", r.backend, "where", where, "bytes", bytes)
}
