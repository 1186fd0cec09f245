// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"testing"
	"time"
)

// FuzzParseExtra looks for texts that bring a reader down, for errors that name
// nothing, and for settings that are accepted out of range or differ when they
// are read again.
func FuzzParseExtra(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"prefetch_threshold": 1, "prefetch_timeout_base": 1e-3}`, `{"a": [1, {"b": null}]}`, `{"prefetch_threshold": 1`, `{"":0}`,
		"prefetch_threshold = 1\nprefetch_timeout_base = inf\n", "[a]\nb = 1\n", "a.b = 1979-05-27\n",
		"prefetch_threshold: 0x10\nhicache_storage_pass_prefix_keys: true\n", "a: &x [*x]\n", "? a\n: b\n", "<<: *a\n", "- a\n", "--- |\n a\n", "a: !!binary aGk=\n", "\xff\xfe",
	} {
		for format := range 3 {
			f.Add(format, seed)
		}
	}
	all := []reader{readJSON, readTOML, readYAML}
	f.Fuzz(func(t *testing.T, format int, text string) {
		e, err := parse(all[uint(format)%3], "text", []byte(text))
		if err != nil {
			if len(leaves(t, err)) == 0 || e != (Extra{}) {
				t.Errorf("%+v, %v", e, err)
			}
			return
		}
		longest := time.Duration(maxSeconds) * time.Second
		if e.PrefetchThreshold < 0 || min(e.PrefetchTimeoutBase, e.PrefetchTimeoutPerKiToken) < 0 || max(e.PrefetchTimeoutBase, e.PrefetchTimeoutPerKiToken) > longest {
			t.Errorf("accepted: %+v", e)
		}
		again := fmt.Sprintf(`{"prefetch_threshold": %d, "prefetch_timeout_base": %.9f, "prefetch_timeout_per_ki_token": %.9f, "hicache_storage_pass_prefix_keys": %v}`,
			e.PrefetchThreshold, e.PrefetchTimeoutBase.Seconds(), e.PrefetchTimeoutPerKiToken.Seconds(), e.PassPrefixKeys)
		if back, err := ParseExtra(again); err != nil || !near(back, e) {
			t.Errorf("%+v reads back as %+v, %v", e, back, err)
		}
	})
}

// near allows for what a float64 cannot hold of a long time.
func near(a, b Extra) bool {
	close := func(x, y time.Duration) bool { return (x - y).Abs() <= max(1, y>>50) }
	return a.PrefetchThreshold == b.PrefetchThreshold && a.PassPrefixKeys == b.PassPrefixKeys &&
		close(a.PrefetchTimeoutBase, b.PrefetchTimeoutBase) && close(a.PrefetchTimeoutPerKiToken, b.PrefetchTimeoutPerKiToken)
}
