// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/treecore/treecore/internal/bench"
)

// BenchmarkWorkload runs the published workload where its input is at hand.
func BenchmarkWorkload(b *testing.B) {
	w := load(b)
	for _, c := range w.Cases() {
		b.Run(c.Name, c.Run)
	}
}

// TestWorkloadHasThePublishedShape holds the input against its description.
func TestWorkloadHasThePublishedShape(t *testing.T) {
	w := load(t)
	tokens, longest := 0, 0
	for _, s := range w.Sequences {
		tokens += len(s)
		longest = max(longest, len(s))
	}
	if len(w.Sequences) != 5001 || len(w.Queries) != 5001 || tokens != 5505232 || longest != 2637 {
		t.Fatalf("%d sequences, %d queries, %d tokens, longest %d", len(w.Sequences), len(w.Queries), tokens, longest)
	}
}

func load(t testing.TB) *bench.Workload {
	t.Helper()
	shared := os.Getenv("TREECORE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	w, err := bench.LoadWorkload(filepath.Join(shared, "bench"))
	if os.IsNotExist(err) {
		t.Skipf("the published workload is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}
