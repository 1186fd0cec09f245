// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// A host tier below a device that is too small: more hits, which add up by tier,
// in the document and in the tables.
func TestReplayHost(t *testing.T) {
	args := []string{"replay", "--workload", "agents", "--sessions", "4", "--turns", "3", "--device-bytes", "2GiB"}
	without := document(t, mustRun(t, append(args, "--json")...))
	if without["host"] != nil {
		t.Errorf("a host without --host-bytes: %v", without["host"])
	}
	for _, policy := range []string{"write-through", "write-through-selective", "write-back"} {
		host := append(args, "--host-bytes", "16GiB", "--write-policy", policy)
		doc := document(t, mustRun(t, append(host, "--json")...))
		tiers := doc["hits_by_tier"].(map[string]any)
		if tiers["host"].(float64) <= 0 || tiers["host"].(float64)+tiers["device"].(float64) != doc["cached_tokens"] {
			t.Errorf("%s: tiers %v of %v", policy, tiers, doc["cached_tokens"])
		}
		if doc["token_hit_rate"].(float64) <= without["token_hit_rate"].(float64) {
			t.Errorf("%s: hit rate %v, without a host %v", policy, doc["token_hit_rate"], without["token_hit_rate"])
		}
		if h := doc["host"].(map[string]any); h["write_policy"] != policy || h["bytes"] != float64(16<<30) {
			t.Errorf("%s: %v", policy, h)
		}
		text := mustRun(t, host...)
		for _, want := range []string{"host    16GiB: ", policy, "on the device / from the host", "│ loaded back │"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the tables lack %q", policy, want)
			}
		}
	}
}

func TestReplayHostErrors(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--host-bytes: ", []string{"--host-bytes", "lots"}},
		{"--write-policy applies to a host tier", []string{"--write-policy", "write-back"}},
		{"--host-bandwidth is \"fast\"", []string{"--host-bytes", "1GiB", "--host-bandwidth", "fast"}},
		{"--host-latency is -1s", []string{"--host-bytes", "1GiB", "--host-latency", "-1s"}},
		{"write policy \"eager\"", []string{"--host-bytes", "1GiB", "--write-policy", "eager"}},
		{"a page on the host takes 16", []string{"--host-bytes", "1KiB"}},
	} {
		code, out, errs := command(t, append([]string{"replay"}, c.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: code %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
}
