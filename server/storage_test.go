// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/treecore/treecore/engine"
)

func attachBody(dir, more string) string {
	return `{"url": ` + string(must(json.Marshal("file:"+dir))) + more + `}`
}

// What was attached, written, forgotten and fetched again is reused; after the
// detach it is not.
func TestStorageWhileServing(t *testing.T) {
	r := newRig(t, setup{})
	dir := t.TempDir()
	if x := get[storageReport](r, "/storage"); x.Attached {
		t.Errorf("%+v", x)
	}
	x := post[storageReport](r, "/storage/attach", attachBody(dir, `, "prefetch_policy": "wait_complete", "write_policy": "write_through", "extra": {"prefetch_threshold": 4}`))
	if !x.Attached || x.PrefetchPolicy != "wait-complete" || x.WritePolicy != "write-through" || fmt.Sprint(x.Extra["prefetch_threshold"]) != "4" {
		t.Errorf("%+v", x)
	}
	cold := ask(r, numbers(1, 100), "")
	r.idle() // all is written
	post[map[string]string](r, "/flush_cache", "")
	warm := ask(r, numbers(1, 100), "")
	if warm.Meta.Cached.Storage != 96 || fmt.Sprint(warm.OutputIDs) != fmt.Sprint(cold.OutputIDs) {
		t.Errorf("from the store: %+v", warm)
	}
	if _, _, text := r.call("GET", "/metrics", ""); !strings.Contains(text, `treecore_cached_tokens_total{tier="storage"} 96`) || !strings.Contains(text, "treecore_storage_attached 1") || !strings.Contains(text, `treecore_store_answers_total{answer="hit"}`) {
		t.Error("the metrics miss the store")
	}
	// The same store with another policy, and another store beside it.
	if x = post[storageReport](r, "/storage/attach", attachBody(dir, "")); x.PrefetchPolicy != "best-effort" || x.Store["pages"].(float64) == 0 {
		t.Errorf("%+v", x)
	}
	if status, _, text := r.call("POST", "/storage/attach", attachBody(t.TempDir(), "")); status != 409 || !strings.Contains(text, "detach it first") {
		t.Errorf("%d %s", status, text)
	}
	for _, body := range []string{"", `{"force": true}`} {
		if x = post[storageReport](r, "/storage/detach", body); x.Attached || x.URL != "" {
			t.Errorf("%+v", x)
		}
	}
	post[map[string]string](r, "/flush_cache", "")
	if m := ask(r, numbers(1, 100), "").Meta; m.CachedTokens != 0 {
		t.Errorf("without a store: %+v", m)
	}
	// The folder is free again: another one may have it.
	post[storageReport](r, "/storage/attach", attachBody(dir, ""))
	other := newRig(t, setup{})
	if status, _, text := other.call("POST", "/storage/attach", attachBody(dir, "")); status != 409 || !strings.Contains(text, "in use") {
		t.Errorf("%d %s", status, text)
	}
}

// What is copied while nobody asks anything is taken note of: only then it is
// written to the store.
func TestIdleEngineGoesOn(t *testing.T) {
	r := newRig(t, setup{})
	post[storageReport](r, "/storage/attach", attachBody(t.TempDir(), ""))
	ask(r, numbers(1, 100), "")
	store, _ := r.s.storage.get()
	for store.Stats().Written == 0 { // asks the store alone
		runtime.Gosched()
	}
}

func TestBadAttachments(t *testing.T) {
	r := newRig(t, setup{})
	none := newRig(t, setup{noHost: true})
	dir := t.TempDir()
	for _, c := range []struct {
		r          *rig
		body, want string
		status     int
	}{
		{r, `{}`, "url: is missing", 400},
		{r, `{"url": 1}`, "must be a string", 400},
		{r, `{"url": "tape:x"}`, "scheme", 400},
		{r, attachBody(dir, `, "prefetch_policy": "soon"`), "wait-complete", 400},
		{r, attachBody(dir, `, "write_policy": "never"`), "write-back", 400},
		{r, attachBody(dir, `, "extra": {"prefetch_treshold": 1}`), "prefetch_treshold", 400},
		{r, attachBody(dir, `, "extra": "{\"prefetch_threshold\": -1}"`), "prefetch_threshold", 400},
		{r, attachBody(dir, `, "extra": "@/etc/hostname"`), "names a file", 400},
		{r, attachBody(dir, `, "policy": "x"`), "policy: there is no such field", 400},
		{r, attachBody(filepath.Join(dir, "missing\x00"), ""), "", 0},
		{none, attachBody(dir, ""), "a cache with a host tier", 400},
	} {
		status, _, text := c.r.call("POST", "/storage/attach", c.body)
		if status == 200 || c.status != 0 && status != c.status || !strings.Contains(text, c.want) || strings.Contains(text, "\\n") {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
	for _, x := range []*rig{r, none} {
		if get[storageReport](x, "/storage").Attached {
			t.Error("a store is attached")
		}
	}
}

// Attaching and detaching go on while many ask, who all get the same answer.
func TestAttachDetachUnderLoad(t *testing.T) {
	r := newRig(t, setup{tokens: 1024})
	want := ask(r, numbers(1, 100), "").OutputIDs
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			var spaces [7]string // what each namespace has answered
			for k := 0; ctx.Err() == nil; k++ {
				before := &spaces[k%len(spaces)]
				got := fmt.Sprint(ask(r, numbers(1, 100), fmt.Sprintf(`, "extra_key": "%d"`, k%len(spaces))).OutputIDs)
				if *before != "" && *before != got {
					t.Errorf("client %d: %v, before %v", i, got, *before)
				}
				*before = got
				if g := ask(r, numbers(1, 100), ""); fmt.Sprint(g.OutputIDs) != fmt.Sprint(want) {
					t.Errorf("client %d: %v, want %v", i, g.OutputIDs, want)
				}
			}
		})
	}
	dir := t.TempDir()
	for i := range 12 {
		policy := [...]string{"best_effort", "wait_complete", "timeout"}[i%3]
		write := [...]string{"write_through", "write_through_selective", "write_back"}[i/3%3]
		post[storageReport](r, "/storage/attach", attachBody(dir, `, "extra": {"prefetch_threshold": 1}, "prefetch_policy": "`+policy+`", "write_policy": "`+write+`"`))
		get[storageReport](r, "/storage")
		post[storageReport](r, "/storage/detach", `{"force": true}`)
	}
	stop()
	all.Wait()
}

// A server that is closed lets go of its store.
func TestCloseDetaches(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s := newServer(t, setup{})
		if err := s.AttachStorage(t.Context(), Attach{URL: "file:" + dir}); err != nil {
			t.Fatal(err)
		}
		attached := false
		if err := s.loop.do(t.Context(), func(e *engine.Engine) { attached = e.Cache().Storage() != nil }); err != nil || !attached {
			t.Error(err, attached)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"file:/a/b?size=1GiB":                           "file:/a/b?size=1GiB",
		"redis://u:p@h:1/0":                             "redis://u:xxxxx@h:1/0",
		"redis://h:1/0?ttl=24h":                         "redis://h:1/0?ttl=24h",
		"s3://b/p?endpoint=h:1":                         "s3://b/p?endpoint=h%3A1",
		"redis://h/0?sentinel-password=p&mode=sentinel": "redis://h/0?mode=sentinel&sentinel-password=xxxxx",
		"redis://h\x7f/p":                               "hidden",
	} {
		if got := redact(raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}
