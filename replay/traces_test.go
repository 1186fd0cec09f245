// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

const (
	conversation = "mooncake_conversation_trace.jsonl.gz"
	synthetic    = "mooncake_synthetic_trace.jsonl.gz"
	sessions     = "agentic_coding_sessions.jsonl.gz"
)

// long says whether the tests that take more than some seconds are wanted.
func long() bool { return os.Getenv("TREECORE_LONG") != "" && !testing.Short() }

func needLong(t *testing.T) {
	if !long() {
		t.Skip("a long test: set TREECORE_LONG=1")
	}
}

// counter is the independent count: what a cache without limits finds, from the
// ids of the file alone. It knows an id by itself, since ids stand for
// everything before them.
type counter struct {
	size          int
	whole         map[int64]bool // ids seen as whole blocks
	longest       map[int64]int  // ids seen, with the most tokens
	pages, cached int64          // whole blocks, and tokens in those that were found
	input, tokens int64          // tokens, and those that were found one by one
}

func newCounter(size int) *counter {
	return &counter{size: size, whole: map[int64]bool{}, longest: map[int64]int{}}
}

func (c *counter) count(length int, ids []int64) {
	c.input += int64(length)
	hit, hitTokens := true, true
	for k, id := range ids {
		n := min(c.size, length-k*c.size)
		if n == c.size {
			c.pages++
			if hit = hit && c.whole[id]; hit && (k+1)*c.size < length { // one token is always computed
				c.cached += int64(n)
			}
			c.whole[id] = true
		}
		if hitTokens = hitTokens && c.longest[id] > 0; hitTokens {
			c.tokens += int64(min(n, c.longest[id]))
		}
		c.longest[id] = max(c.longest[id], n)
	}
}

// eachLine calls f with the lines of a gzip-compressed file.
func eachLine(t *testing.T, path string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<28)
	for s.Scan() {
		f(s.Bytes())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

func countMooncake(t *testing.T, path string) *counter {
	c := newCounter(512)
	eachLine(t, path, func(line []byte) {
		var r struct {
			Length int     `json:"input_length"`
			IDs    []int64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		c.count(r.Length, r.IDs)
	})
	return c
}

func countSessions(t *testing.T, path string) *counter {
	type request struct {
		In       int       `json:"in"`
		IDs      []int64   `json:"hash_ids"`
		Requests []request `json:"requests"`
	}
	all := newCounter(64)
	eachLine(t, path, func(line []byte) {
		var session request
		if err := json.Unmarshal(line, &session); err != nil {
			t.Fatal(err)
		}
		c := newCounter(64) // ids mean something within a session only
		var walk func(list []request)
		walk = func(list []request) {
			for _, r := range list {
				if r.Requests != nil {
					walk(r.Requests)
					continue
				}
				c.count(r.In, r.IDs)
			}
		}
		walk(session.Requests)
		all.pages, all.cached, all.input, all.tokens = all.pages+c.pages, all.cached+c.cached, all.input+c.input, all.tokens+c.tokens
	})
	return all
}

func openTrace(t *testing.T, path string) *workload.Workload {
	t.Helper()
	w, err := workload.Open(path, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// With memory for everything, one request at a time and the block size as page,
// the replay finds exactly what the ids say.
func TestExactOnTraces(t *testing.T) {
	for _, c := range []struct {
		file   string
		page   int
		count  func(*testing.T, string) *counter
		cached int64
		pages  int64
		hits   int64
		rate   string // of tokens, of an infinite cache
	}{
		{conversation, 512, countMooncake, 54_063_104, 276_491, 105_592, "37.36"},
		{synthetic, 512, countMooncake, 39_802_880, 117_888, 77_740, "65.12"},
		{sessions, 64, countSessions, 411_227_904, 6_688_459, 6_425_436, "96.04"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if testing.Short() && c.file != synthetic {
				t.Skip("a whole trace: left out by -short")
			}
			path := sharedFile(t, c.file)
			count := c.count(t, path)
			if count.cached != c.cached || count.pages != c.pages {
				t.Fatalf("the count from the ids gives %d tokens and %d pages, want %d and %d", count.cached, count.pages, c.cached, c.pages)
			}
			r, _ := mustRun(t, openTrace(t, path), Options{
				Profile: profile(t, "llama-3.1-8b"), PageSize: c.page, Concurrency: 1, Order: OrderListed,
			})
			if r.CachedTokens != c.cached || r.Blocks != c.pages || r.BlockHits != c.hits {
				t.Errorf("%d cached tokens, %d of %d pages; want %d, %d of %d", r.CachedTokens, r.BlockHits, r.Blocks, c.cached, c.hits, c.pages)
			}
			if r.InputTokens != count.input || r.SeenBefore != 0 || r.Evictions["full"] != 0 {
				t.Errorf("input %d, want %d; seen before %d; evicted %v", r.InputTokens, count.input, r.SeenBefore, r.Evictions)
			}
			checkCeiling(t, r, count, c.rate)
		})
	}
}

// checkCeiling holds a report against the independent count.
func checkCeiling(t *testing.T, r *Report, count *counter, rate string) {
	t.Helper()
	ceiling := float64(count.tokens) / float64(count.input)
	if got := fmt.Sprintf("%.2f", 100*ceiling); got != rate {
		t.Errorf("the ids give a ceiling of %s %%, want %s", got, rate)
	}
	if r.Infinite.TokenHitRate != ceiling {
		t.Errorf("infinite cache %v, the ids give %v", r.Infinite.TokenHitRate, ceiling)
	}
	if r.TokenHitRate > ceiling {
		t.Errorf("hit rate %v is above the ceiling %v", r.TokenHitRate, ceiling)
	}
}

// No setting reports more than the ceiling.
func TestCeilingOnTraces(t *testing.T) {
	type setting struct {
		name  string
		model string
		o     Options
	}
	const gib = 1 << 30
	settings := []setting{
		{"full, page 16, small", "llama-3.1-70b", Options{DeviceBytes: 200 * gib}},
		{"full, page 1, one at a time", "llama-3.1-8b", Options{PageSize: 1, Concurrency: 1}},
		{"full, page 64, 64 at once, lfu", "llama-3.1-8b", Options{DeviceBytes: 60 * gib, PageSize: 64, Concurrency: 64, Policy: tree.PolicyOptions{Name: "lfu"}}},
		{"swa, page 16", "gpt-oss-120b", Options{DeviceBytes: 200 * gib}},
		{"swa, page 64, windows kept, fast", "gpt-oss-20b", Options{DeviceBytes: 400 * gib, PageSize: 64, SWARatio: 1, KeepOutOfWindow: true, PrefillRate: 1e9}},
		{"swa, no branching, small chunks", "gpt-oss-20b", Options{DeviceBytes: 40 * gib, NoBranching: true, Chunk: 2048, Reserve: -1}},
		{"states, page 64", "qwen3-next-80b-a3b", Options{DeviceBytes: 200 * gib}},
		{"all three, page 16, unlimited", "hybrid-3way", Options{PageSize: 16, Concurrency: 8}},
	}
	for _, c := range []struct {
		file  string
		count func(*testing.T, string) *counter
		rate  string
	}{
		{synthetic, countMooncake, "65.12"}, {conversation, countMooncake, "37.36"}, {sessions, countSessions, "96.04"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if c.file != synthetic {
				needLong(t)
			}
			path := sharedFile(t, c.file)
			count, w := c.count(t, path), openTrace(t, path)
			bound, err := NewBound(w, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range settings {
				t.Run(s.name, func(t *testing.T) {
					if testing.Short() && i > 0 {
						t.Skip("left out by -short")
					}
					if i%2 == 1 {
						needLong(t)
					}
					s.o.Profile, s.o.Bound = profile(t, s.model), bound
					r, _ := mustRun(t, w, s.o)
					checkCeiling(t, r, count, c.rate)
					t.Logf("hit rate %.4f of %.4f, %d retractions, %d refused, in %.1f s", r.TokenHitRate, r.Infinite.TokenHitRate, r.Retractions, r.RequestsRefused, r.WallSeconds)
				})
			}
		})
	}
}

// The whole conversation trace at every page and kind of model ends, with
// nothing refused.
func TestConversationEverywhere(t *testing.T) {
	needLong(t)
	w := openTrace(t, sharedFile(t, conversation))
	bound, err := NewBound(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"llama-3.1-70b", "gpt-oss-120b", "qwen3-next-80b-a3b"} {
		for _, page := range []int{16, 64, 512} {
			t.Run(fmt.Sprintf("%s page %d", name, page), func(t *testing.T) {
				r, _ := mustRun(t, w, Options{Profile: profile(t, name), DeviceBytes: 200 << 30, PageSize: page, Bound: bound})
				if r.RequestsDone != len(w.Requests) {
					t.Errorf("%d of %d requests done", r.RequestsDone, len(w.Requests))
				}
				t.Logf("hit rate %.4f, in %.1f s", r.TokenHitRate, r.WallSeconds)
			})
		}
	}
}
