// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/treecore/treecore/engine"
)

const endless = `"sampling_params": {"max_new_tokens": 3000, "ignore_eos": true}`

// A client that goes away frees what it held, whether it reads a stream, waits for
// a whole answer, or stands in line. (The rig checks that nothing is left.)
func TestDisconnectFrees(t *testing.T) {
	for _, c := range []struct{ name, path, body string }{
		{"stream", "/generate", `{"text": "` + strings.Repeat("disconnect ", 20) + `", "stream": true, ` + endless + `}`},
		{"whole", "/generate", `{"text": "` + strings.Repeat("disconnect ", 20) + `", ` + endless + `}`},
		{"list", "/generate", `{"text": ["one", "two", "three", "four"], ` + endless + `}`},
		{"completion", "/v1/completions", `{"prompt": "gone", "max_tokens": 3000, "ignore_eos": true, "stream": true}`},
		{"chat", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "gone"}], "max_tokens": 3000, "ignore_eos": true, "stream": true}`},
	} {
		for _, line := range []bool{false, true} {
			name := c.name
			if line {
				name += " in line"
			}
			t.Run(name, func(t *testing.T) {
				r := newRig(t, setup{running: 1, slow: 200_000})
				before := 0
				if line { // somebody else runs
					other, err := r.client.Post(r.web.URL+"/generate", "", strings.NewReader(`{"text": "runs", "stream": true, `+endless+`}`))
					if err != nil {
						t.Fatal(err)
					}
					defer other.Body.Close()
					before = 1
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				over := make(chan struct{})
				go func() {
					defer close(over)
					q, err := http.NewRequestWithContext(ctx, "POST", r.web.URL+c.path, strings.NewReader(c.body))
					if err != nil {
						t.Error(err)
						return
					}
					a, err := r.client.Do(q)
					if err == nil {
						_, err = bufio.NewReader(a.Body).WriteTo(&strings.Builder{})
						a.Body.Close()
					}
					if err == nil {
						t.Error("the answer came before the client went")
					}
				}()
				for n := 0; n <= before; {
					waiting, running := r.queued()
					n = waiting + running
				}
				leave()
				<-over
				for n := before + 1; n > before; {
					waiting, running := r.queued()
					n = waiting + running
				}
				aborted := int64(0)
				r.on(func(e *engine.Engine) { aborted = e.Stats().Aborted })
				if aborted < 1 {
					t.Error("nothing was aborted")
				}
			})
		}
	}
}

// A client that takes nothing of its answer is given up, and nobody waits for it.
func TestSlowClientIsGivenUp(t *testing.T) {
	r := newRig(t, setup{tokens: 8192, slow: 100_000, o: Options{SlowClient: 100 * time.Millisecond}})
	// The pieces have all of the text so far: far more than a connection holds.
	a, err := r.client.Post(r.web.URL+"/generate", "", strings.NewReader(`{"text": "slow", "stream": true, "sampling_params": {"max_new_tokens": 6000, "ignore_eos": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	r.idle() // the call has ended, although its client has read nothing
	if b, err := io.ReadAll(a.Body); err == nil || bytes.HasSuffix(b, []byte("[DONE]\n\n")) {
		t.Errorf("a whole answer of %d bytes", len(b))
	}
}
