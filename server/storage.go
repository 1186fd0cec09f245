// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/attach"
	"github.com/treecore/treecore/tree"
)

// Attach says which store to attach, and how it is used.
type Attach struct {
	URL string // see storage.Open
	// PrefetchPolicy says how long a request waits for what is fetched for it:
	// best-effort, wait-complete or timeout. Empty: best-effort.
	PrefetchPolicy string
	// WritePolicy, if it is not empty, becomes that of the host tier.
	WritePolicy string
	Extra       string // see attach.ParseExtra
}

// attachment is the store that is attached. Its mutex is held while one is
// attached or detached; the engine serves on meanwhile.
type attachment struct {
	changing sync.Mutex

	mu     sync.Mutex
	store  storage.Store // nil: none
	with   Attach
	extra  attach.Extra
	policy string
}

func (a *attachment) get() (storage.Store, attachment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store, attachment{with: a.with, extra: a.extra, policy: a.policy}
}

func (a *attachment) set(store storage.Store, with Attach, extra attach.Extra, policy string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store, a.with, a.extra, a.policy = store, with, extra, policy
}

const (
	// openTimeout is how long a store may take to be opened, busyTimeout how long an
	// attach or a detach waits for what is in flight, and pause how long serving
	// stops at once for that.
	openTimeout = 10 * time.Second
	busyTimeout = 5 * time.Second
	pause       = 50 * time.Millisecond
)

// options reads what is said with an attachment.
func (a Attach) options() (o cache.StorageOptions, x attach.Extra, err error) {
	var problems []error
	if a.PrefetchPolicy != "" {
		o.StopPolicy, err = cache.ParseStopPolicy(a.PrefetchPolicy)
		problems = append(problems, err)
	}
	if a.WritePolicy != "" {
		p, err := cache.ParseWritePolicy(a.WritePolicy)
		problems = append(problems, err)
		o.WritePolicy = &p
	}
	x, err = attach.ParseExtra(a.Extra)
	if err = errors.Join(append(problems, err)...); err != nil {
		return o, x, &storage.ConfigError{Field: "attachment", Value: "not readable: " + strings.ReplaceAll(err.Error(), "\n", "; "), Allowed: "what the message says"}
	}
	o.Timeout, o.PrefetchThreshold = x.Timeout(), max(x.PrefetchThreshold, 1)
	return o, x, nil
}

// AttachStorage attaches a store while the server serves. For the one that is
// attached already only the policies change; another one is a
// *cache.AttachedError. Settings that are wrong are *storage.ConfigError or
// *tree.ConfigError; work that stays in flight is a *cache.BusyError; a store that
// cannot be opened gives the error of storage.Open.
func (s *Server) AttachStorage(ctx context.Context, a Attach) error {
	o, extra, err := a.options()
	if err != nil {
		return err
	}
	s.storage.changing.Lock()
	defer s.storage.changing.Unlock()
	if s.draining.Load() {
		return errEnded
	}
	if err := s.dropDead(ctx); err != nil {
		return err
	}
	store, before := s.storage.get()
	opened := store == nil
	switch {
	case store != nil && before.with.URL != a.URL:
		return &cache.AttachedError{}
	case opened:
		opening, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		if store, err = storage.Open(opening, a.URL, s.opts.Fingerprint); err != nil {
			return err
		}
	}
	o.Store = store
	err = s.whenQuiet(ctx, func(c *cache.Cache) error { return c.AttachStorage(o) })
	if err != nil {
		if opened {
			err = errors.Join(err, store.Close())
		}
		return err
	}
	s.storage.set(store, a, extra, o.StopPolicy.String())
	return nil
}

// dropDead closes a store that the cache has switched off.
func (s *Server) dropDead(ctx context.Context) error {
	store, _ := s.storage.get()
	if store == nil {
		return nil
	}
	off := false
	if err := s.loop.do(ctx, func(e *engine.Engine) { off = e.Cache().Storage() == nil }); err != nil || !off {
		return err
	}
	s.storage.set(nil, Attach{}, attach.Extra{}, "")
	return store.Close()
}

// whenQuiet carries out a change that needs nothing to be in flight. Between its
// tries the engine serves on.
func (s *Server) whenQuiet(ctx context.Context, change func(*cache.Cache) error) error {
	until := time.Now().Add(s.patience)
	for {
		var result error
		err := s.loop.do(ctx, func(e *engine.Engine) {
			if result = change(e.Cache()); !isBusy(result) {
				return
			}
			short, cancel := context.WithTimeout(ctx, pause)
			defer cancel()
			_ = e.Cache().Sync(short) // what is serious is said again by the next call
			result = change(e.Cache())
		})
		if err != nil {
			return err
		}
		if !isBusy(result) || time.Now().After(until) {
			return result
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isBusy(err error) bool {
	var busy *cache.BusyError
	return errors.As(err, &busy)
}

// detach ends the storage tier, if there is one. With force what is in flight is
// cut off.
func (s *Server) detach(ctx context.Context, force bool) error {
	s.storage.changing.Lock()
	defer s.storage.changing.Unlock()
	store, _ := s.storage.get()
	if store == nil {
		return nil
	}
	var err error
	if force {
		err = s.detachNow(ctx)
	} else {
		err = s.whenQuiet(ctx, func(c *cache.Cache) error { return c.DetachStorage(ctx) })
	}
	if err != nil && !s.loop.over() { // an engine that has ended uses no store any more
		return err
	}
	s.storage.set(nil, Attach{}, attach.Extra{}, "")
	return store.Close()
}

// detachNow cuts off what is in flight, and lets the engine serve on while the
// store does not return from a call.
func (s *Server) detachNow(ctx context.Context) error {
	until := time.Now().Add(s.patience)
	for {
		var result error
		err := s.loop.do(ctx, func(e *engine.Engine) {
			short, cancel := context.WithTimeout(context.Background(), pause)
			defer cancel()
			result = e.Cache().DetachStorageNow(short)
		})
		if err != nil {
			return err
		}
		if result == nil || !errors.Is(result, context.DeadlineExceeded) || time.Now().After(until) {
			return result
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return result
		}
	}
}

// storageReport is what /storage says.
type storageReport struct {
	Attached       bool                `json:"attached"`
	URL            string              `json:"url,omitempty"` // without passwords
	PrefetchPolicy string              `json:"prefetch_policy,omitempty"`
	WritePolicy    string              `json:"write_policy,omitempty"` // of the host tier
	Extra          map[string]any      `json:"extra,omitempty"`
	SwitchedOff    bool                `json:"switched_off,omitempty"` // after its store failed
	Store          map[string]any      `json:"store,omitempty"`
	Counters       *cache.StorageStats `json:"counters,omitempty"`
}

func (s *Server) reportStorage(ctx context.Context) (storageReport, error) {
	store, a := s.storage.get()
	r := storageReport{}
	var stats cache.StorageStats
	err := s.loop.do(ctx, func(e *engine.Engine) {
		stats = e.Cache().Stats().Storage
		r.Attached = e.Cache().Storage() != nil
		if host := e.Cache().Options().Host; host != nil {
			r.WritePolicy = host.Policy.String()
		}
	})
	if err != nil || store == nil {
		return r, err
	}
	r.SwitchedOff = !r.Attached
	r.URL, r.PrefetchPolicy, r.Counters = redact(a.with.URL), a.policy, &stats
	r.Extra = map[string]any{
		"prefetch_threshold":            a.extra.PrefetchThreshold,
		"prefetch_timeout_base":         a.extra.PrefetchTimeoutBase.Seconds(),
		"prefetch_timeout_per_ki_token": a.extra.PrefetchTimeoutPerKiToken.Seconds(),
	}
	x := store.Stats()
	r.Store = map[string]any{
		"pages": x.Pages, "bytes": x.Bytes, "cap_bytes": x.CapBytes, "hits": x.Hits, "misses": x.Misses,
		"written": x.Written, "present": x.Present, "failed": x.Failed, "evicted": x.Evicted,
	}
	return r, nil
}

// redact hides the passwords of a URL.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "hidden"
	}
	if u.Opaque != "" || u.RawQuery == "" {
		return u.Redacted()
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(name, "password") || strings.Contains(name, "secret") {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

func (s *Server) getStorage(w http.ResponseWriter, r *http.Request) {
	report, err := s.reportStorage(r.Context())
	if err != nil {
		writeError(w, r, s.unavailable(err))
		return
	}
	writeJSON(w, http.StatusOK, report)
}

func (s *Server) postAttach(w http.ResponseWriter, r *http.Request) {
	f, problem := s.readBody(w, r)
	if problem != nil {
		writeError(w, r, problem)
		return
	}
	var a Attach
	var given bool
	if a.URL, given = f.text("url"); !given || a.URL == "" {
		f.bad("url", "is missing: give file:DIR, redis://HOST:PORT/DB or s3://BUCKET/PREFIX")
	}
	a.PrefetchPolicy, _ = f.text("prefetch_policy")
	a.WritePolicy, _ = f.text("write_policy")
	if f.has("extra") {
		if json.Unmarshal(f.raw["extra"], &a.Extra) != nil {
			a.Extra = string(f.raw["extra"])
		}
		if strings.HasPrefix(a.Extra, "@") {
			f.bad("extra", "names a file: over HTTP give the settings themselves, as an object")
		}
	}
	if problem = f.end(); problem == nil {
		problem = s.storageProblem(s.AttachStorage(r.Context(), a))
	}
	if problem != nil {
		writeError(w, r, problem)
		return
	}
	s.getStorage(w, r)
}

func (s *Server) postDetach(w http.ResponseWriter, r *http.Request) {
	force := false
	if r.ContentLength != 0 {
		f, problem := s.readBody(w, r)
		if problem == nil {
			force = f.boolean("force")
			problem = f.end()
		}
		if problem != nil {
			writeError(w, r, problem)
			return
		}
	}
	if problem := s.storageProblem(s.detach(r.Context(), force)); problem != nil {
		writeError(w, r, problem)
		return
	}
	s.getStorage(w, r)
}

// storageProblem says what an attach or a detach has met; nil for nothing.
func (s *Server) storageProblem(err error) *apiError {
	var config *storage.ConfigError
	var option *tree.ConfigError
	var attached *cache.AttachedError
	var locked *storage.LockedError
	var backend *storage.Error
	e := &apiError{kind: invalidRequest}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &config), errors.As(err, &option):
		e.status = http.StatusBadRequest
	case isBusy(err), errors.As(err, &attached), errors.As(err, &locked):
		e.status = http.StatusConflict
	case errors.As(err, &backend):
		e.status, e.kind = http.StatusBadGateway, serverFault
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{status: http.StatusGatewayTimeout, kind: serverFault, message: err.Error() + ": the store does not answer, try again"}
	case errors.Is(err, errEnded), errors.Is(err, context.Canceled):
		return s.unavailable(err)
	default:
		return internal(err)
	}
	e.message = strings.ReplaceAll(err.Error(), "\n", "; ")
	return e
}
