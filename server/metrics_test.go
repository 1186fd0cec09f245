// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	r := newRig(t, setup{})
	ask(r, numbers(1, 100), "")
	ask(r, numbers(1, 100), "")
	r.call("POST", "/v1/completions", `{"prompt": 5}`)
	r.idle()
	status, _, text := r.call("GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		"treecore_up 1",
		`treecore_http_requests_total{call="generate",status="200"} 2`,
		`treecore_http_requests_total{call="completions",status="400"} 1`,
		`treecore_requests_total{finish="length"} 2`,
		"treecore_prompt_tokens_total 200",
		"treecore_output_tokens_total 16",
		`treecore_cached_tokens_total{tier="device"} 96`,
		`treecore_match_limits_total{limited_by="none",reason="page_remainder"} 1`,
		"treecore_time_to_first_token_seconds_count 2",
		"treecore_request_seconds_count 2",
		"treecore_cache_computed_tokens_total 104",
		"treecore_cache_reused_tokens_total 96",
		`treecore_pool_slots{component="full",state="evictable",tier="device"} 104`,
		`treecore_pool_slots{component="full",state="free",tier="device"} 3992`,
		`treecore_pool_slots{component="full",state="protected",tier="device"} 0`,
		`treecore_pool_slots{component="full",state="cached",tier="host"} 104`,
		"treecore_requests_running 0",
		"treecore_storage_attached 0",
		`treecore_mismatched_values_total{component="full"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no line %q", want)
		}
	}
	problems, err := testutil.GatherAndLint(r.s.metrics.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
