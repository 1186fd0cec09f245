// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
)

// TestRegions checks that runs keep to their quarter of the tokens.
func TestRegions(t *testing.T) {
	out := make([]uint32, 5000)
	for _, head := range []uint32{0, 1, 12345, regionSize - 1, ownRegion, promptStream(77), outputStream(maxRequests - 1)} {
		fillRun(out, head)
		if out[0] != head {
			t.Fatalf("run %#x begins with %#x", head, out[0])
		}
		low := regionSize
		if head >= ownRegion {
			low = ownRegion + regionSize
		}
		different := map[uint32]bool{}
		for i, token := range out[1:] {
			if token-low >= regionSize {
				t.Fatalf("run %#x has %#x at %d", head, token, i+1)
			}
			different[token] = true
		}
		if len(different) < 4990 {
			t.Errorf("run %#x repeats itself: %d different tokens", head, len(different))
		}
	}
	if last := outputStream(maxRequests - 1); last != 3*regionSize-1 {
		t.Errorf("own streams end at %#x", last)
	}
}

// TestGoldenTokens pins the expansion: results of replays hang on it.
func TestGoldenTokens(t *testing.T) {
	w := read(t, Options{BlockSize: 4}, `{"timestamp": 0, "input_length": 6, "output_length": 2, "hash_ids": [70, 9]}`)
	got := append(w.prompt(0), w.output(0)...)
	want := []uint32{0x0, 0x6e1d9928, 0x45db9345, 0x5d371d33, 0x1, 0x68c29957, 0x80000001, 0xf9217340}
	if len(got) != len(want) || common(got, want) != len(want) {
		t.Errorf("got %#x", got)
	}
}

func TestNumberingRunsOut(t *testing.T) {
	n := newNumbering(3)
	if heads, err := n.number([]uint64{1 << 63, 5, 1 << 63, 0}); err != nil || heads[0] != 0 || heads[1] != 1 || heads[2] != 0 || heads[3] != 2 {
		t.Fatalf("%v, %v", heads, err)
	}
	if _, err := n.number([]uint64{5, 6}); err == nil || !strings.Contains(err.want, "at most 3 different ids") {
		t.Errorf("%v", err)
	}
	n.newScope()
	if _, err := n.number([]uint64{5}); err == nil {
		t.Error("a new scope brings new heads")
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	w := read(t, Options{}, twoSessions)
	random, err := RandomTree(DefaultRandomTree())
	if err != nil {
		t.Fatal(err)
	}
	agents, err := Agents(DefaultAgents())
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]uint32, 0, 1<<20)
	for _, w := range []*Workload{w, random, agents} {
		allocs := testing.AllocsPerRun(10, func() {
			for i := range min(len(w.Requests), 50) {
				dst = w.Requests[i].AppendPrompt(dst[:0])
				dst = w.Requests[i].AppendOutput(dst)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", w.Format, allocs)
		}
	}
}

// TestAppendKeepsWhatIsThere checks that the tokens are appended, and that a
// copy of a request and a second call give the same.
func TestAppendKeepsWhatIsThere(t *testing.T) {
	w := read(t, Options{}, twoSessions)
	dst := []uint32{1, 2, 3}
	dst = w.Requests[4].AppendPrompt(dst)
	again := w.Requests[4]
	again.Index = 99
	if common(dst, []uint32{1, 2, 3}) != 3 || common(dst[3:], again.AppendPrompt(nil)) != again.InputLen || len(dst) != 3+again.InputLen {
		t.Error("not appended, or not the same")
	}
	// A longer prompt than the source has goes on with the request's own tokens.
	again.InputLen += 100
	if longer := again.AppendPrompt(nil); len(longer) != again.InputLen || common(longer, dst[3:]) != again.InputLen-100 {
		t.Error("a longer prompt does not begin with the shorter one")
	}
}
