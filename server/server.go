// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// Server answers HTTP calls with an engine; see the package's documentation.
type Server struct {
	opts    Options
	loop    *loop
	metrics *metrics
	storage attachment
	handler http.Handler
	started time.Time

	context   int // tokens that the device holds: a prompt and its output
	maxPrompt int
	patience  time.Duration // busyTimeout, but in tests

	active   atomic.Int64  // generating calls
	draining atomic.Bool   // no new ones are taken
	cut      chan struct{} // closed when those that run are cut off
	cutOnce  sync.Once
	ending   sync.Once
	endError error
}

// New returns a server over an engine, which is the server's from now on: Close
// ends both. Options that are wrong are one or more *tree.ConfigError, joined; the
// engine stays the caller's then.
func New(o Options) (*Server, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, cut: make(chan struct{}), started: time.Now(), patience: busyTimeout}
	s.context = o.Engine.Cache().Usage(tree.Full).Size
	s.maxPrompt = s.context - 1 // and a token of output
	if o.MaxPrompt > 0 {
		s.maxPrompt = min(s.maxPrompt, o.MaxPrompt)
	}
	s.metrics = newMetrics(s)
	s.handler = s.routes()
	s.loop = newLoop(o.Engine)
	return s, nil
}

func (s *Server) now() time.Time { return time.Now() }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	open := map[string]bool{"/health": true, "/metrics": true}
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("POST /generate", s.generating("generate", s.generate))
	mux.HandleFunc("POST /v1/completions", s.generating("completions", s.completions))
	mux.HandleFunc("POST /v1/chat/completions", s.generating("chat_completions", s.chatCompletions))
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{id...}", s.modelByName)
	mux.HandleFunc("GET /server_info", s.serverInfo)
	mux.HandleFunc("POST /flush_cache", s.flush)
	mux.HandleFunc("GET /tree", s.tree)
	mux.HandleFunc("GET /storage", s.getStorage)
	mux.HandleFunc("POST /storage/attach", s.postAttach)
	mux.HandleFunc("POST /storage/detach", s.postDetach)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := &apiError{status: http.StatusNotFound, kind: invalidRequest, code: "unknown_url", message: fmt.Sprintf("there is no %s %s here: the calls are %s", r.Method, short([]byte(r.URL.Path)), calls)}
		writeError(w, r, e)
	})
	guarded := s.withKey(open, mux)
	// A page of another site must not reach a server on this machine through the
	// reader's browser.
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, r, &apiError{status: http.StatusForbidden, kind: invalidRequest, message: "a page of another origin may not call this server"})
	}))
	return s.withDeadlines(cross.Handler(guarded))
}

// withDeadlines gives up clients that do not take what they are answered. Streams
// set the deadline anew with each event.
func (s *Server) withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // that of the call before
		next.ServeHTTP(&timedWriter{w, s.opts.SlowClient}, r)
	})
}

// timedWriter sets a deadline when an answer begins.
type timedWriter struct {
	http.ResponseWriter
	each time.Duration
}

func (w *timedWriter) WriteHeader(status int) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.each)) // a recorder in tests has none
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const calls = "POST /generate, /v1/completions, /v1/chat/completions, /flush_cache, /storage/attach, /storage/detach; " +
	"GET /health, /metrics, /v1/models, /server_info, /tree, /storage"

// withKey asks for the API key, if there is one.
func (s *Server) withKey(open map[string]bool, next http.Handler) http.Handler {
	if s.opts.APIKey == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.opts.APIKey)) // so that comparing takes as long for every length
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(key)))
		right := subtle.ConstantTimeCompare(got[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
		if !right && !open[r.URL.Path] {
			writeError(w, r, &apiError{
				status: http.StatusUnauthorized, kind: invalidRequest, code: "invalid_api_key",
				message: `the API key is missing or wrong: send it as "Authorization: Bearer KEY"`,
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// generating counts the calls that make output, and refuses them when the server
// ends.
func (s *Server) generating(name string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.active.Add(1)
		defer s.active.Add(-1)
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() { s.metrics.call(name, seen.status) }()
		if s.draining.Load() {
			writeError(seen, r, draining())
			return
		}
		h(seen, r)
	}
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Handler returns the handler of all calls, for a server or a mux of one's own.
func (s *Server) Handler() http.Handler { return s.handler }

// CutOffError says that a server has ended before some calls had.
type CutOffError struct {
	Calls int64
	After time.Duration
}

func (e *CutOffError) Error() string {
	return fmt.Sprintf("%d calls were cut off, since they had not ended %v after the server was told to end: raise --drain-timeout", e.Calls, e.After)
}

// Serve answers calls on a listener until the context ends or the engine fails.
// Then it takes no more, waits Options.DrainTimeout for those that run, cuts off
// the others, which gives a *CutOffError, and closes the server and the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: s.opts.SlowClient, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: logger(s.opts.Log),
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var failed error
	select {
	case err := <-ended:
		return errors.Join(err, s.Close())
	case <-s.loop.done:
		failed = s.loop.err()
	case <-ctx.Done():
	}
	s.draining.Store(true)
	err := s.drain(h)
	<-ended
	return errors.Join(failed, err, s.Close())
}

// drain waits for the calls that run, and cuts off those that take too long.
func (s *Server) drain(h *http.Server) error {
	wait, cancel := context.WithTimeout(context.Background(), s.opts.DrainTimeout)
	defer cancel()
	if h.Shutdown(wait) == nil {
		return nil
	}
	var late error
	if n := s.active.Load(); n > 0 {
		late = &CutOffError{Calls: n, After: s.opts.DrainTimeout}
	}
	s.cutOff()
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.Shutdown(last) != nil {
		_ = h.Close() // connections that do not even take an error
	}
	return late
}

func (s *Server) cutOff() { s.cutOnce.Do(func() { close(s.cut) }) }

// closeTimeout is how long Close waits for a store that does not answer.
const closeTimeout = 5 * time.Second

// Close ends what runs, detaches the store, and ends the engine. A store that does
// not return from its calls is an error, and keeps its goroutines. A second call
// returns what the first one did.
func (s *Server) Close() error {
	s.ending.Do(func() {
		s.draining.Store(true)
		s.cutOff()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err := s.detach(ctx, true)
		close(s.loop.quit)
		select {
		case <-s.loop.done:
		case <-ctx.Done():
			err = errors.Join(err, errors.New("the store does not return from its calls: look why it is slow"))
		}
		s.endError = err
	})
	return s.endError
}

// health says whether the server can be sent requests.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	status, say := http.StatusOK, map[string]string{"status": "ok"}
	if err := s.loop.err(); err != nil {
		status, say = http.StatusServiceUnavailable, map[string]string{"status": "failed", "error": err.Error()}
	} else if s.draining.Load() {
		status, say = http.StatusServiceUnavailable, map[string]string{"status": "shutting down"}
	}
	writeJSON(w, status, say)
}

// flush drops all that is cached. Requests that run begin anew.
func (s *Server) flush(w http.ResponseWriter, r *http.Request) {
	var failed error
	err := s.loop.do(r.Context(), func(e *engine.Engine) { failed = e.Cache().Reset() })
	switch {
	case err != nil:
		writeError(w, r, s.unavailable(err))
	case failed != nil:
		writeError(w, r, internal(failed))
	default:
		writeJSON(w, http.StatusOK, map[string]string{"message": "the cache is empty; what the store keeps stays there"})
	}
}
