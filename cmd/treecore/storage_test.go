// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// threeTiers replays on a device and a host that are too small.
var threeTiers = []string{
	"replay", "--workload", "agents", "--sessions", "4", "--turns", "3", "--device-bytes", "2GiB", "--host-bytes", "3GiB",
}

// A second process on the same storage starts warm.
func TestReplayStorage(t *testing.T) {
	url := "file:" + t.TempDir() + "?size=1GiB"
	for _, policy := range []string{"best-effort", "wait-complete", "timeout"} {
		args := append(threeTiers, "--storage", url, "--prefetch-policy", policy, "--storage-bandwidth", "20GB", "--storage-latency", "100us")
		if policy == "best-effort" {
			args = append(args, "--prefill-rate", "10000") // so that requests stand in line
		}
		cold := document(t, mustRun(t, append(append([]string{}, args...), "--storage", "file:"+t.TempDir(), "--json")...))
		if policy == "best-effort" {
			mustRun(t, append(args, "--prefetch-policy", "timeout", "--json")...)
		}
		warm := document(t, mustRun(t, append(args, "--json")...))
		for _, doc := range []map[string]any{cold, warm} {
			tiers := doc["hits_by_tier"].(map[string]any)
			if tiers["device"].(float64)+tiers["host"].(float64)+tiers["storage"].(float64) != doc["cached_tokens"] {
				t.Errorf("%s: tiers %v of %v", policy, tiers, doc["cached_tokens"])
			}
			missed := 0.0
			for _, n := range doc["misses_by_reason"].(map[string]any) {
				missed += n.(float64)
			}
			if missed+doc["cached_tokens"].(float64) != doc["input_tokens"] {
				t.Errorf("%s: %v missed and %v cached of %v", policy, missed, doc["cached_tokens"], doc["input_tokens"])
			}
			s := doc["storage"].(map[string]any)
			if s["prefetch_policy"] != policy || s["wrong_stamps"] != 0.0 || s["stamps_checked"].(float64) == 0 || s["bytes_per_second"] != 20e9 || s["latency_seconds"] != 1e-4 {
				t.Errorf("%s: %v", policy, s)
			}
		}
		tiers := warm["hits_by_tier"].(map[string]any)
		if tiers["storage"].(float64) <= 0 || warm["token_hit_rate"].(float64) <= cold["token_hit_rate"].(float64) {
			t.Errorf("%s: the second run hits %v of its tokens, the first one %v; tiers %v", policy, warm["token_hit_rate"], cold["token_hit_rate"], tiers)
		}
	}
	text := mustRun(t, append(threeTiers, "--storage", url)...)
	for _, want := range []string{"storage " + url + ": from 256 tokens on, timeout of 1s", "device / host / storage", "│ storage ", "tokens fetched", "│ prefetches "} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
}

// What is recorded over three tiers leads to the same tree.
func TestStorageOpLog(t *testing.T) {
	for i, model := range []string{"llama-3.1-8b", "hybrid-3way"} {
		device := []string{"600MiB", "200MiB"}[i]
		for _, policy := range []string{"write-through", "write-back"} {
			dir := t.TempDir()
			log, url := filepath.Join(dir, "calls.log"), "file:"+filepath.Join(dir, "pages")
			args := []string{"replay", "--workload", "shared-prefix", "--groups", "4", "--prompts-per-group", "3", "--passes", "2", "--system-tokens", "3000",
				"--question-tokens", "500", "--model", model, "--page-size", "64", "--device-bytes", device, "--host-bytes", "800MiB", "--concurrency", "1", "--swa-ratio", "0.4", "--chunk", "1024",
				"--write-policy", policy, "--storage", url}
			mustRun(t, args...)
			doc := document(t, mustRun(t, append(args, "--op-log", log, "--json")...))
			if doc["storage"].(map[string]any)["prefetched_tokens"] == 0.0 {
				t.Errorf("%s, %s: nothing from storage: %v", model, policy, doc["storage"])
			}
			out := mustRun(t, "inspect", "--check", log)
			if !strings.HasPrefix(out, "the tree is sound: ") || strings.Contains(out, "refused") {
				t.Errorf("%s, %s: %s", model, policy, out)
			}
			text, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(text), "insert-host") || !strings.Contains(string(text), "mark-stored") {
				t.Errorf("%s, %s: the log lacks what storage does (%v)", model, policy, err)
			}
		}
	}
}

// Whatever is wrong with a store is said in one line before anything is done.
func TestStorageErrors(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir, "file", "x")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	host := []string{"--host-bytes", "20GiB"}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--storage needs a host tier, through which everything goes: add --host-bytes", []string{"--storage", "file:" + dir}},
		{"--storage needs a host tier", []string{"--storage", "file:" + dir, "--host-bytes", "0"}},
		{"--storage is empty", append(host, "--storage", "")},
		{"--prefetch-policy applies to a storage tier", append(host, "--prefetch-policy", "timeout")},
		{"--storage-latency applies to a storage tier", append(host, "--storage-latency", "1ms")},
		{`prefetch policy "eager": must be best-effort, wait-complete or timeout`, append(host, "--storage", "file:"+dir, "--prefetch-policy", "eager")},
		{"--prefetch-threshold is 0", append(host, "--storage", "file:"+dir, "--prefetch-threshold", "0")},
		{`--storage-bandwidth is "fast"`, append(host, "--storage", "file:"+dir, "--storage-bandwidth", "fast")},
		{"--storage-latency is -1s", append(host, "--storage", "file:"+dir, "--storage-latency", "-1s")},
		{"--storage keeps what a run leaves there", append(host, "--storage", "file:"+dir, "--sweep", "device-bytes=1GiB..2GiB")},
		{`scheme is "ftp": allowed is file, redis, rediss, s3`, append(host, "--storage", "ftp://x")},
		{"size is \"3\"", append(host, "--storage", "file:"+dir+"?size=3")},
		{"storage: folder is ", append(host, "--storage", "file:"+file)},
		{"storage redis: open: unreachable", append(host, "--storage", "redis://me:secret@"+nobody)},
		{"storage s3: open: unreachable", append(host, "--storage", "s3://me:secret@bucket?tls=0&region=x&endpoint="+nobody)},
	} {
		code, out, errs := command(t, append([]string{"replay"}, c.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || strings.Contains(errs, "secret") {
			t.Errorf("%v: code %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("refused runs left %v, %v", list, err)
	}
}

// Equal runs on empty stores give equal reports.
func TestStorageRepeatable(t *testing.T) {
	var documents []map[string]any
	for range 2 {
		doc := document(t, mustRun(t, append(threeTiers, "--storage", "file:"+t.TempDir(), "--json")...))
		dropMeasured(t, doc)
		delete(doc["storage"].(map[string]any), "url")
		documents = append(documents, doc)
	}
	if d := cmp.Diff(documents[0], documents[1]); d != "" {
		t.Errorf("the second run differs:\n%s", d)
	}
}
