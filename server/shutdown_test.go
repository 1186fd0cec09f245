// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/treecore/treecore/engine"
)

// served runs a server on a listener of its own.
type served struct {
	url    string
	stop   context.CancelFunc
	result chan error
	client *http.Client
}

func serveOn(t *testing.T, s *Server) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &served{url: "http://" + l.Addr().String(), stop: stop, result: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	go func() { x.result <- s.Serve(ctx, l) }()
	t.Cleanup(func() { x.client.CloseIdleConnections() })
	return x
}

func (x *served) stream(t *testing.T, tokens string) *http.Response {
	t.Helper()
	a, err := x.client.Post(x.url+"/generate", "", strings.NewReader(`{"text": "on and on", "stream": true, "sampling_params": {"ignore_eos": true, "max_new_tokens": `+tokens+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What runs when the server is told to end gets its whole answer.
func TestShutdownDrains(t *testing.T) {
	s := newServer(t, setup{slow: 200_000})
	x := serveOn(t, s)
	a := x.stream(t, "500")
	defer a.Body.Close()
	x.stop()
	for !s.draining.Load() {
	}
	// Who is still connected is told to go elsewhere.
	w := &recorder{header: http.Header{}}
	s.Handler().ServeHTTP(w, must(http.NewRequest("POST", "/v1/completions", strings.NewReader(`{"prompt": "x"}`))))
	if w.status != http.StatusServiceUnavailable || w.header.Get("Retry-After") == "" || !strings.Contains(w.body.String(), "shutting_down") {
		t.Errorf("%d %v %s", w.status, w.header, w.body.String())
	}
	w = &recorder{header: http.Header{}}
	s.Handler().ServeHTTP(w, must(http.NewRequest("GET", "/health", nil)))
	if w.status != http.StatusServiceUnavailable {
		t.Errorf("health is %d", w.status)
	}
	pieces := lines(t, a.Body)
	if last := pieces[len(pieces)-1]; !strings.Contains(last, `"completion_tokens":500`) {
		t.Errorf("the stream ends in %s", last)
	}
	if err := <-x.result; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := x.client.Get(x.url + "/health"); err == nil {
		t.Error("the server still listens")
	}
	if err := s.loop.do(context.Background(), func(*engine.Engine) {}); !errors.Is(err, errEnded) {
		t.Errorf("a command after the end: %v", err)
	}
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// What takes too long is cut off, with an answer that says so.
func TestShutdownCutsOff(t *testing.T) {
	s := newServer(t, setup{slow: 1_000_000, o: Options{DrainTimeout: time.Millisecond}})
	x := serveOn(t, s)
	a := x.stream(t, "4000")
	defer a.Body.Close()
	x.stop()
	pieces := lines(t, a.Body)
	if last := pieces[len(pieces)-1]; !strings.Contains(last, "shutting down") {
		t.Errorf("the stream ends in %s", last)
	}
	var cut *CutOffError
	if err := <-x.result; !errors.As(err, &cut) || cut.Calls != 1 {
		t.Errorf("serve: %v", err)
	}
}

// A server that cannot go on ends, so that whoever watches it starts another one,
// which can have the same store.
func TestFailureEndsServe(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s := newServer(t, setup{slow: 100_000})
		if err := s.AttachStorage(t.Context(), Attach{URL: "file:" + dir}); err != nil {
			t.Fatal(err)
		}
		x := serveOn(t, s)
		a := x.stream(t, "1000")
		defer a.Body.Close()
		if err := s.loop.do(t.Context(), func(e *engine.Engine) { e.Cache().Tree().Reset() }); err != nil { // behind the cache's back
			t.Fatal(err)
		}
		if err := <-x.result; err == nil || !strings.Contains(err.Error(), "start the server again") {
			t.Errorf("serve: %v", err)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	s := newServer(t, setup{})
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
