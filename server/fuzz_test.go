// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever is sent, the answer is one JSON document or a stream of them, no fault
// of the server's, and nothing is left behind.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"text": "x", "sampling_params": {"max_new_tokens": 2, "stop": ["a", "b"], "n": 2}}`,
		`{"input_ids": [[1, 2, 3], [4]], "stream": true, "return_logprob": true, "rid": ["a", "b"]}`,
		`{"prompt": ["a", "b"], "n": 2, "max_tokens": 3, "logprobs": 0, "stop": "x", "stop_token_ids": [1, 2]}`,
		`{"prompt": [1, 2, 3], "stream": true, "stream_options": {"include_usage": true}, "extra_key": "", "cache_salt": "s"}`,
		`{"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "logprobs": true, "max_completion_tokens": 4}`,
		`{"url": "tape:x", "extra": {"prefetch_threshold": 1}}`,
		`{"force": true}`, `[]`, `null`, `{"text": null, "input_ids": [ [1], "x" ]}`, "{\"text\": \"\xff\"}", `{"prompt": [ ]}`,
	} {
		f.Add(body)
	}
	r := newRig(f, setup{tokens: 256, o: Options{MaxParallel: 4, MaxBody: 4096}})
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "file:") || strings.Contains(body, "redis") || strings.Contains(body, "s3:") {
			t.Skip() // stores outside of the test
		}
		for _, path := range []string{"/generate", "/v1/completions", "/v1/chat/completions", "/storage/attach", "/storage/detach"} {
			w := httptest.NewRecorder()
			r.s.Handler().ServeHTTP(w, must(http.NewRequest("POST", path, strings.NewReader(body))))
			text := w.Body.String()
			if w.Code >= 500 || w.Code < 200 {
				t.Fatalf("%s: %d %s", path, w.Code, text)
			}
			if w.Header().Get("Content-Type") != "text/event-stream" {
				if !json.Valid([]byte(text)) {
					t.Fatalf("%s: %s", path, text)
				}
				if w.Code >= 400 && !strings.Contains(text, `"error":{"message":"`) {
					t.Fatalf("%s: %d %s", path, w.Code, text)
				}
				continue
			}
			for _, line := range lines(t, strings.NewReader(text)) {
				if !json.Valid([]byte(line)) {
					t.Fatalf("%s: %s", path, line)
				}
			}
		}
		r.TB = t
		r.idle()
		r.TB = f
	})
}
