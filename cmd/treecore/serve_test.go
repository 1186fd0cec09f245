// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// watched is an output whose first line is waited for.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first chan string
	once  sync.Once
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if line, _, ok := strings.Cut(w.text.String(), "\n"); ok {
		w.once.Do(func() { w.first <- line })
	}
	return len(b), nil
}

// serving runs treecore serve on a free port. stop ends it and returns its exit
// code and what it said.
func serving(t *testing.T, args ...string) (url string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := &watched{first: make(chan string, 1)}
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), out, &errs) }()
	select {
	case line := <-out.first:
		at := regexp.MustCompile(`^serving (http://127\.0\.0\.1:\d+): model .+, engine .+, device \d+ full`).FindStringSubmatch(line)
		if at == nil {
			t.Fatalf("it says %q", line)
		}
		url = at[1]
	case c := <-code:
		t.Fatalf("exit code %d: %s", c, errs.String())
	}
	return url, func() (int, string) {
		cancel()
		c := <-code
		http.DefaultClient.CloseIdleConnections()
		return c, errs.String()
	}
}

// sent posts a JSON document, or gets one where there is none to post.
func sent(t *testing.T, url, body string) map[string]any {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	var x map[string]any
	if err != nil || json.Unmarshal(b, &x) != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, a.StatusCode, b, err)
	}
	return x
}

// Without a flag, and with each engine, kind of model and size, it serves: the
// second answer is the first one, from the cache.
func TestServe(t *testing.T) {
	text := `{"text": "` + strings.Repeat("The same prompt. ", 20) + `", "sampling_params": {"max_new_tokens": 4}}`
	for _, args := range [][]string{
		{},
		{"--engine", "tiny"},
		{"--engine", "tiny", "--model", "qwen3-next-80b-a3b", "--device-tokens", "4096", "--host-tokens", "8192", "--order", "depth-first"},
		{"--model", "llama-3.1-8b", "--device-bytes", "1GiB", "--host-bytes", "2GiB", "--write-policy", "write-back", "--order", "longest-prefix"},
		{"--model", "gemma-3-27b", "--device-tokens", "1000", "--host-tokens", "0", "--policy", "slru:protected_threshold=3"},
		{"--model", "gpt-oss-120b", "--device-bytes", "1GiB", "--host-bytes", "0", "--page-size", "1", "--max-running", "1"},
		{"--storage", "file:" + t.TempDir(), "--prefetch-policy", "wait-complete", "--storage-extra", `{"prefetch_threshold": 1}`},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			url, stop := serving(t, args...)
			cold, warm := sent(t, url+"/generate", text), sent(t, url+"/generate", text)
			info := sent(t, url+"/server_info", "")
			a, b := cold["meta_info"].(map[string]any), warm["meta_info"].(map[string]any)
			if cold["text"] != warm["text"] || a["cached_tokens"] != 0.0 || b["cached_tokens"].(float64) < 300 || info["mismatched_values"] != 0.0 {
				t.Errorf("cold %v\nwarm %v\n%v", cold, warm, info)
			}
			if code, errs := stop(); code != exitDone || errs != "" {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
}

// What does not fit the small network's vocabulary is refused, and hurts nobody.
func TestServeTinyVocabulary(t *testing.T) {
	url, stop := serving(t, "--engine", "tiny")
	a, err := http.Post(url+"/generate", "", strings.NewReader(`{"input_ids": [1, 257]}`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(a.Body)
	a.Body.Close()
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), "position 1 holds 257: the model's ids are 0 to 256") {
		t.Errorf("%d %s", a.StatusCode, b)
	}
	sent(t, url+"/generate", `{"input_ids": [1, 256], "sampling_params": {"max_new_tokens": 1}}`)
	if code, errs := stop(); code != exitDone || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestServeKeyOfTheEnvironment(t *testing.T) {
	t.Setenv(keyVariable, "secret")
	url, stop := serving(t)
	a, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", a.StatusCode)
	}
	stop()
}

func TestServeBadFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"extra", `unexpected argument "extra"`, exitUsage},
		{"--nope", "unknown flag", exitUsage},
		{"--addr nowhere", "--addr is", exitUsage},
		{"--addr 127.0.0.1:99999", "--addr is", exitUsage},
		{"--addr " + taken.Addr().String(), "name another address", exitFailed},
		{"--model gpt-9", "--model: model \"gpt-9\" is not known", exitUsage},
		{"--engine large", "--engine: is \"large\": must be symbolic or tiny", exitUsage},
		{"--page-size 0", "--page-size is 0", exitUsage},
		{"--page-size 2048", "--page-size is 2048: must be 1 to 1024", exitUsage},
		{"--device-tokens -5", "--device-tokens is -5", exitUsage},
		{"--device-tokens 10 --device-bytes 1GiB", "--device-tokens and --device-bytes", exitUsage},
		{"--host-tokens 10 --host-bytes 1GiB", "--host-tokens and --host-bytes", exitUsage},
		{"--host-tokens -1", "--host-tokens is -1", exitUsage},
		{"--device-bytes much", "--device-bytes: size \"much\"", exitUsage},
		{"--device-bytes 1KiB", "--device-bytes: model hybrid-3way", exitUsage},
		{"--device-bytes unlimited", "give less", exitUsage},
		{"--host-bytes 1KiB", "--host-bytes: model hybrid-3way", exitUsage},
		{"--write-policy never", "--write-policy", exitUsage},
		{"--host-tokens 0 --write-policy write-back", "--write-policy needs a host tier", exitUsage},
		{"--host-tokens 0 --storage file:x", "--storage needs a host tier", exitUsage},
		{"--storage tape:x", "--storage: storage: scheme is", exitUsage},
		{"--storage file:" + t.TempDir() + " --prefetch-policy soon", "prefetch policy \"soon\"", exitUsage},
		{"--prefetch-policy timeout", "--prefetch-policy without a store", exitUsage},
		{"--storage redis://127.0.0.1:1/0", "--storage: storage redis", exitFailed},
		{"--policy none", "--policy", exitUsage},
		{"--order best", "--order", exitUsage},
		{"--chunk-tokens 0", "--chunk-tokens is 0", exitUsage},
		{"--max-running -1", "--max-running is -1", exitUsage},
		{"--max-body 0", "--max-body is \"0\"", exitUsage},
		{"--max-body 1TiB", "--max-body is", exitUsage},
		{"--max-queue 0", "--max-queue is 0", exitUsage},
		{"--drain-timeout 0s", "--drain-timeout is 0s", exitUsage},
		{"--slow-client -1s", "--slow-client is -1s", exitUsage},
		{"--api-key=", "--api-key is empty", exitUsage},
		{"--model " + filepath.Join(t.TempDir(), "none.yaml"), "no such profile file", exitUsage},
	} {
		args := append([]string{"serve"}, strings.Fields(c.args)...)
		if !strings.Contains(c.args, "--addr") {
			args = append(args, "--addr", "127.0.0.1:0")
		}
		code, out, errs := command(t, args...)
		if code != c.code || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q, %q", c.args, code, out, errs)
		}
	}
}
