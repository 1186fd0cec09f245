// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage"
	_ "github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testPage   = 4
	testWindow = 8
	testModel  = "test-model"
)

// setup says what a test's server is made of.
type setup struct {
	tokens, running int           // zero: 4096, 8
	noHost          bool          // there is no host tier
	states          bool          // the model has recurrent states, too
	slow            time.Duration // that each forward pass takes
	fail            error         // of each forward pass
	broken          bool          // the test breaks the engine
	gate            chan struct{} // that each forward pass waits for
	o               Options
}

// slow is a model that takes time, or fails.
type slow struct {
	engine.Model
	each time.Duration
	fail error
	gate chan struct{}
}

func (m *slow) Forward(p *pool.Memories, s *engine.Sequence) (engine.Output, error) {
	if m.fail != nil {
		return engine.Output{}, m.fail
	}
	if m.gate != nil {
		<-m.gate
	}
	time.Sleep(m.each)
	return m.Model.Forward(p, s)
}

type rig struct {
	testing.TB
	s      *Server
	web    *httptest.Server
	client *http.Client
}

// newServer makes a server over a small hybrid model.
func newServer(t testing.TB, x setup) *Server {
	t.Helper()
	components := tree.SetOf(tree.Full, tree.SWA)
	if x.states {
		components |= tree.SetOf(tree.Mamba)
	}
	m, err := symbolic.New(symbolic.Options{Components: components, Window: testWindow, Chunk: 2 * testPage, Vocabulary: 257})
	if err != nil {
		t.Fatal(err)
	}
	x.tokens, x.running = orElse(x.tokens, 4096), orElse(x.running, 8)
	o := engine.Options{
		Model: &slow{m, x.slow, x.fail, x.gate}, ChunkTokens: 64, MaxRunning: x.running,
		Cache: cache.Options{
			Tree:  tree.Options{PageSize: testPage},
			Pools: cache.PoolSizes{Full: x.tokens, SWA: x.tokens/2 + 64, Mamba: 4 * x.running},
		},
	}
	if !x.noHost {
		o.Cache.Host = &cache.HostOptions{Pools: cache.PoolSizes{Full: 4 * x.tokens, SWA: 2 * x.tokens, Mamba: 100}, LoadBackThreshold: 1}
	}
	if x.o.Engine, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	x.o.Model = orElse(x.o.Model, testModel)
	x.o.Fingerprint = storage.Fingerprint{
		Model: testModel, Revision: "1", DType: "stamp", PageSize: testPage, Components: components, Window: testWindow, Ranks: 1,
	}
	s, err := New(x.o)
	if err != nil {
		x.o.Engine.Close()
		t.Fatal(err)
	}
	return s
}

func newRig(t testing.TB, x setup) *rig {
	t.Helper()
	s := newServer(t, x)
	r := &rig{TB: t, s: s, web: httptest.NewServer(s.Handler())}
	r.client = r.web.Client()
	t.Cleanup(func() {
		if !x.broken {
			r.idle()
		}
		r.web.Close()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// on asks the engine something between two steps.
func (r *rig) on(f func(e *engine.Engine)) {
	r.Helper()
	if err := r.s.loop.do(context.Background(), f); err != nil {
		r.Fatal(err)
	}
}

// idle waits for the end of all calls, and checks that nothing of them is left:
// no request, no lock, no slot.
func (r *rig) idle() {
	r.Helper()
	for left := 1; left > 0; {
		r.on(func(e *engine.Engine) {
			waiting, running := e.Queued()
			left = waiting + running + int(r.s.active.Load())
		})
	}
	r.on(func(e *engine.Engine) {
		c := e.Cache()
		if err := c.Sync(context.Background()); err != nil {
			r.Errorf("sync: %v", err)
		}
		if err := c.CheckConservation(); err != nil {
			r.Errorf("%v", err)
		}
		for id := range tree.Component(tree.NumComponents) {
			if u := c.Usage(id); u.Held != 0 || u.Protected != 0 {
				r.Errorf("%v: %+v when nothing runs", id, u)
			}
		}
		for id, n := range e.Stats().Mismatched {
			if n != 0 {
				r.Errorf("%v: %d values that were read were wrong", tree.Component(id), n)
			}
		}
	})
}

// call sends a request and returns the status, the header and the body.
func (r *rig) call(method, path, body string, header ...string) (int, http.Header, string) {
	r.Helper()
	q, err := http.NewRequest(method, r.web.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	a, err := r.client.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		r.Fatal(err)
	}
	return a.StatusCode, a.Header, string(b)
}

// post sends a JSON document and decodes the answer, which must be a good one.
func post[T any](r *rig, path, body string) T {
	r.Helper()
	status, _, text := r.call("POST", path, body)
	return decoded[T](r, status, text)
}

func get[T any](r *rig, path string) T {
	r.Helper()
	status, _, text := r.call("GET", path, "")
	return decoded[T](r, status, text)
}

func decoded[T any](r *rig, status int, text string) (x T) {
	r.Helper()
	if status != http.StatusOK {
		r.Fatalf("status %d: %s", status, text)
	}
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		r.Fatalf("%v: %s", err, text)
	}
	return x
}

// lines returns the data of a stream of events, without the [DONE] that must end
// it.
func lines(t testing.TB, body io.Reader) []string {
	t.Helper()
	var out []string
	scan := bufio.NewScanner(body)
	scan.Buffer(nil, 1<<24)
	for scan.Scan() {
		if data, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
			out = append(out, data)
		} else if scan.Text() != "" {
			t.Fatalf("a line of a stream is %q", scan.Text())
		}
	}
	if len(out) == 0 || out[len(out)-1] != "[DONE]" {
		t.Fatalf("the stream ends in %q", out)
	}
	return out[:len(out)-1]
}

// stream sends a JSON document and returns the events of the answer.
func stream[T any](r *rig, path, body string) (out []T) {
	r.Helper()
	status, header, text := r.call("POST", path, body)
	if status != http.StatusOK || header.Get("Content-Type") != "text/event-stream" {
		r.Fatalf("status %d, %v: %s", status, header, text)
	}
	for _, line := range lines(r, bytes.NewReader([]byte(text))) {
		out = append(out, decoded[T](r, http.StatusOK, line))
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
