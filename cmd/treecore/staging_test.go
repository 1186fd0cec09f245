// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With a staging area hits come from the device or from storage, equal runs are
// equal, and a second process starts warm.
func TestReplayBufferOnly(t *testing.T) {
	args := append(append([]string{}, threeTiers...), "--write-policy", "buffer-only", "--json")
	var cold []map[string]any
	url := ""
	for range 2 {
		url = "file:" + t.TempDir()
		doc := document(t, mustRun(t, append(args, "--storage", url)...))
		cold = append(cold, doc)
	}
	warm := document(t, mustRun(t, append(args, "--storage", url)...))
	for _, doc := range append(cold, warm) {
		tiers, s := doc["hits_by_tier"].(map[string]any), doc["storage"].(map[string]any)
		if tiers["device"].(float64)+tiers["storage"].(float64) != doc["cached_tokens"] || tiers["host"] != 0.0 || tiers["storage"] == 0.0 {
			t.Errorf("tiers %v of %v", tiers, doc["cached_tokens"])
		}
		staging := s["staging"].(map[string]any)
		if staging["splices"] == 0.0 || staging["holds_dropped"] == nil || s["wrong_stamps"] != 0.0 || s["stamps_checked"] == 0.0 || doc["host"].(map[string]any)["write_policy"] != "buffer-only" {
			t.Errorf("storage %v, host %v", s, doc["host"])
		}
	}
	if warm["token_hit_rate"].(float64) <= cold[0]["token_hit_rate"].(float64) {
		t.Errorf("the second process hits %v of its tokens, the first one %v", warm["token_hit_rate"], cold[0]["token_hit_rate"])
	}
	for _, doc := range cold {
		dropMeasured(t, doc)
		delete(doc["storage"].(map[string]any), "url")
	}
	if d := cmp.Diff(cold[0], cold[1]); d != "" {
		t.Errorf("the second run differs:\n%s", d)
	}
	log := filepath.Join(t.TempDir(), "calls.log")
	text := mustRun(t, append(threeTiers, "--write-policy", "buffer_only", "--storage", url, "--op-log", log)...)
	for _, want := range []string{" full tokens, buffer-only; ", "device / host / storage", "│ staging ", "│ put on the device "} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	if out := mustRun(t, "inspect", "--check", log); !strings.HasPrefix(out, "the tree is sound: ") || strings.Contains(out, "refused") {
		t.Errorf("%s", out)
	}
}

// What a staging area needs is said in one line before anything is done.
func TestBufferOnlyErrors(t *testing.T) {
	host, store := []string{"--host-bytes", "20GiB"}, []string{"--storage", "file:" + t.TempDir()}
	both := append(append([]string{}, host...), store...)
	const policy = "--write-policy buffer-only stages on the host what goes to storage and comes from it: add "
	for _, c := range []struct {
		want string
		args []string
	}{
		{policy + "--host-bytes, as --host-bytes 20GiB, and --storage, as --storage file:DIR", nil},
		{policy + "--storage, as --storage file:DIR", host},
		{policy + "--host-bytes, as --host-bytes 20GiB", store},
		{"write policy buffer-only does not serve model hybrid-3way, which has recurrent states", append(both, "--model", "hybrid-3way")},
		{"option Host.Pools.SWA is 224: allowed is 256 (two windows) or more", append(store, "--host-bytes", "60MiB")},
		{"or buffer-only", append(both, "--write-policy", "eager")},
	} {
		args := append([]string{"replay", "--write-policy", "buffer-only"}, c.args...)
		code, out, errs := command(t, args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, out, errs)
		}
	}
}
