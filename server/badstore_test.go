// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

// register makes a scheme that opens a store in memory under a wrapper.
func register(scheme string, wrap func(storage.Store) storage.Store) {
	storage.Register(scheme, func(_ context.Context, _ *url.URL, f storage.Fingerprint) (storage.Store, error) {
		return wrap(storagetest.NewMemory(f)), nil
	})
}

// stuck is a store that does not return from a lookup, whatever the context says.
type stuck struct {
	storage.Store
	entered chan struct{} // gets a value for each lookup
	release chan struct{}
}

func (s *stuck) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	s.entered <- struct{}{}
	<-s.release
	return s.Store.Exists(ctx, keys)
}

// While a store hangs, requests that do not need it are served, also while it is
// being detached; the one that waits for it goes on after the detach.
func TestStuckStore(t *testing.T) {
	x := &stuck{entered: make(chan struct{}, 16), release: make(chan struct{})}
	register("stuck", func(s storage.Store) storage.Store { x.Store = s; return x })
	r := newRig(t, setup{})
	r.s.patience = time.Millisecond // with what is in flight and does not end
	want := ask(r, numbers(1, 100), "").OutputIDs
	post[map[string]string](r, "/flush_cache", "")
	post[storageReport](r, "/storage/attach", `{"url": "stuck://x", "prefetch_policy": "wait_complete", "extra": {"prefetch_threshold": 50}}`)
	waits := make(chan generated, 1)
	go func() { waits <- ask(r, numbers(1, 100), "") }()
	<-x.entered
	ask(r, numbers(1000, 1030), "") // too short for a prefetch
	if status, _, text := r.call("POST", "/storage/detach", ""); status != 409 || !strings.Contains(text, "detach with force") {
		t.Errorf("%d %s", status, text)
	}
	r.s.patience = busyTimeout
	detached := make(chan storageReport, 1)
	go func() { detached <- post[storageReport](r, "/storage/detach", `{"force": true}`) }()
	for i := range 5 {
		ask(r, numbers(1000*i, 1000*i+30), "")
	}
	close(x.release)
	if report := <-detached; report.Attached {
		t.Errorf("%+v", report)
	}
	if got := <-waits; !slices.Equal(got.OutputIDs, want) || got.Meta.Cached.Storage != 0 {
		t.Errorf("%+v, want %v", got, want)
	}
}

// panics is a store with a bug.
type panics struct{ storage.Store }

func (panics) Exists(context.Context, []storage.Key) ([]bool, error) { panic("a bug of the store") }

// A store that panics is switched off: requests go on, the server says so, and
// another store can be attached.
func TestStoreThatPanics(t *testing.T) {
	register("panics", func(s storage.Store) storage.Store { return panics{s} })
	r := newRig(t, setup{})
	post[storageReport](r, "/storage/attach", `{"url": "panics://x", "prefetch_policy": "wait_complete", "extra": {"prefetch_threshold": 1}}`)
	want := ask(r, numbers(1, 100), "").OutputIDs
	for !get[storageReport](r, "/storage").SwitchedOff {
	}
	if got := ask(r, numbers(1, 100), "").OutputIDs; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	dir := t.TempDir()
	if report := post[storageReport](r, "/storage/attach", attachBody(dir, "")); !report.Attached || report.SwitchedOff {
		t.Errorf("%+v", report)
	}
	if report := post[storageReport](r, "/storage/detach", ""); report.Attached || report.SwitchedOff {
		t.Errorf("%+v", report)
	}
}
