// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

func (r *rig) queued() (waiting, running int) {
	r.on(func(e *engine.Engine) { waiting, running = e.Queued() })
	return waiting, running
}

func TestLimits(t *testing.T) {
	r := newRig(t, setup{tokens: 128, o: Options{MaxBody: 2000, MaxPrompt: 50, MaxParallel: 3}})
	for _, c := range []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"a large body", "/generate", `{"text": "` + strings.Repeat("x", 2000) + `"}`, 413, "--max-body"},
		{"a large body for OpenAI", "/v1/completions", `{"prompt": "` + strings.Repeat("x", 2000) + `"}`, 413, "body_too_large"},
		{"a long prompt", "/generate", `{"text": "` + strings.Repeat("x", 51) + `"}`, 400, "text: has 51 tokens, at most 50"},
		{"a long prompt for OpenAI", "/v1/completions", `{"prompt": "` + strings.Repeat("x", 51) + `"}`, 400, "context_length_exceeded"},
		{"a long output", "/generate", `{"text": "x", "sampling_params": {"max_new_tokens": 128}}`, 400, "at most 127"},
		{"many prompts", "/generate", `{"text": ["a", "b", "c", "d"]}`, 400, "at most 3"},
		{"many outputs", "/v1/completions", `{"prompt": ["a", "b"], "n": 2}`, 400, "n: 2 outputs of 2 prompts"},
	} {
		if status, _, text := r.call("POST", c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
	}
	// What fits to the token is served.
	if g := post[generated](r, "/generate", `{"text": "x", "sampling_params": {"max_new_tokens": 127, "ignore_eos": true}}`); len(g.OutputIDs) != 127 {
		t.Errorf("%d tokens", len(g.OutputIDs))
	}
}

func TestQueueIsFull(t *testing.T) {
	r := newRig(t, setup{running: 1, slow: 200_000, o: Options{MaxQueue: 1}})
	const body = `{"text": "a request", "sampling_params": {"max_new_tokens": 2000, "ignore_eos": true}, "stream": true}`
	start := func() *http.Response {
		a, err := r.client.Post(r.web.URL+"/generate", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		return a
	}
	first := start() // an answer begins with the first token, so it runs
	second := make(chan *http.Response)
	go func() { second <- start() }()
	for waiting := 0; waiting == 0; {
		waiting, _ = r.queued()
	}
	status, header, text := r.call("POST", "/generate", body)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(text, "--max-queue") {
		t.Errorf("%d %v %s", status, header, text)
	}
	if status, _, text = r.call("POST", "/v1/completions", `{"prompt": "x"}`); status != 429 || !strings.Contains(text, `"code":"queue_full"`) {
		t.Errorf("%d %s", status, text)
	}
	first.Body.Close() // lets the other one run
	(<-second).Body.Close()
}

func TestAPIKey(t *testing.T) {
	r := newRig(t, setup{o: Options{APIKey: "secret"}})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "secret", 401}, {"/v1/models", "Basic secret", 401},
		{"/v1/models", "Bearer secret", 200}, {"/v1/models", "bearer  secret", 200},
		{"/tree", "", 401}, {"/storage", "", 401}, {"/server_info", "", 401}, {"/nothing", "", 401},
		{"/health", "", 200}, {"/metrics", "", 200},
	} {
		status, header, text := r.call("GET", c.path, "", "Authorization", c.header)
		if status != c.status || strings.Contains(text, "secret") {
			t.Errorf("%s with %q: %d %s", c.path, c.header, status, text)
		}
		if status == 401 && (header.Get("WWW-Authenticate") == "" || !strings.Contains(text, "Bearer KEY") || strings.HasPrefix(c.path, "/v1") != strings.Contains(text, "invalid_api_key")) {
			t.Errorf("%s: %v %s", c.path, header, text)
		}
	}
	if status, _, _ := r.call("POST", "/generate", `{"text": "x"}`); status != 401 {
		t.Errorf("generate without a key: %d", status)
	}
}

func TestOtherOriginsAreRefused(t *testing.T) {
	r := newRig(t, setup{})
	status, _, text := r.call("POST", "/storage/attach", `{"url": "file:/tmp/x"}`, "Content-Type", "text/plain", "Origin", "http://example.com")
	if status != http.StatusForbidden || !strings.Contains(text, "origin") {
		t.Errorf("%d %s", status, text)
	}
}

// What the model cannot compute is an error of that request alone.
func TestModelFails(t *testing.T) {
	r := newRig(t, setup{fail: errors.New("the model is broken")})
	for range 2 {
		if status, _, text := r.call("POST", "/generate", `{"text": "x"}`); status != 500 || !strings.Contains(text, "the model is broken") {
			t.Errorf("%d %s", status, text)
		}
	}
	if status, _, _ := r.call("GET", "/health", ""); status != 200 {
		t.Errorf("health is %d", status)
	}
}

// An engine whose books are wrong serves no more, and says so.
func TestEngineFails(t *testing.T) {
	r := newRig(t, setup{broken: true, slow: 100_000})
	ask(r, numbers(1, 100), "")
	a, err := r.client.Post(r.web.URL+"/generate", "", strings.NewReader(`{"input_ids": `+numbers(1, 100)+`, "stream": true, "sampling_params": {"max_new_tokens": 500, "ignore_eos": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()                                      // it runs, since its answer has begun
	r.on(func(e *engine.Engine) { e.Cache().Tree().Reset() }) // behind the cache's back
	if pieces := lines(t, a.Body); !strings.Contains(pieces[len(pieces)-1], "start the server again") {
		t.Errorf("the stream ends in %s", pieces[len(pieces)-1])
	}
	if status, _, text := r.call("GET", "/health", ""); status != 503 || !strings.Contains(text, "failed") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := r.call("POST", "/v1/completions", `{"prompt": "x"}`); status != 503 || !strings.Contains(text, "engine_failed") {
		t.Errorf("%d %s", status, text)
	}
	if _, _, text := r.call("GET", "/metrics", ""); !strings.Contains(text, "treecore_up 0") {
		t.Error("the metrics do not say so")
	}
}

func TestBadOptions(t *testing.T) {
	_, err := New(Options{MaxBody: -1, MaxQueue: -1})
	for _, field := range []string{"Engine", "Model", "MaxBody", "MaxQueue"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	var config *tree.ConfigError
	if !errors.As(err, &config) {
		t.Errorf("%T", err)
	}
}
