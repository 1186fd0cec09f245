// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tracePath gives the path of a published trace, or skips the test.
func tracePath(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared")
	if shared := os.Getenv("TREECORE_SHARED"); shared != "" {
		dir = shared
	}
	path := filepath.Join(dir, "traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("trace %s is not here", name)
	}
	return path
}

const (
	conversation = "mooncake_conversation_trace.jsonl.gz"
	synthetic    = "mooncake_synthetic_trace.jsonl.gz"
	coding       = "agentic_coding_sessions.jsonl.gz"
	azureCode    = "AzureLLMInferenceTrace_code.csv.gz"
	azureConv    = "AzureLLMInferenceTrace_conv.csv.gz"
)

// TestPublishedTraces checks the figures that are published with the traces.
func TestPublishedTraces(t *testing.T) {
	cases := []struct {
		file, format string
		block        int
		want         Stats
		span         string // Span rounded as published
		hitRate      string // of tokens
		in, out      [3]int // median, 90th percentile, largest
	}{
		{
			file: conversation, format: "mooncake", block: 512, span: "3537.0", hitRate: "37.36",
			want: Stats{
				Requests: 12031, InputTokens: 144793823, OutputTokens: 4122048,
				Blocks: 288500, UniqueBlocks: 182790, BlockHits: 105710,
			},
			in: [3]int{6909, 27367, 126195}, out: [3]int{350, 597, 2000},
		},
		{
			file: synthetic, format: "mooncake", block: 512, span: "1022.0", hitRate: "65.12",
			want: Stats{
				Requests: 3993, InputTokens: 61194628, OutputTokens: 595432,
				Blocks: 121877, UniqueBlocks: 43924, BlockHits: 77953,
			},
			in: [3]int{11587, 38615, 191378}, out: [3]int{69, 389, 893},
		},
		{
			file: coding, format: "sessions", block: 64, hitRate: "96.04",
			want: Stats{
				Requests: 3924, Sessions: 54, InputTokens: 428183563, OutputTokens: 1957821,
				Blocks: 6688459, UniqueBlocks: 263023, BlockHits: 6425436, TokenHits: 411227904,
			},
			in: [3]int{99188, 181549, 894371}, out: [3]int{245, 987, 16681},
		},
		{
			file: azureCode, format: "azure", span: "3435.9", hitRate: "0.00",
			want: Stats{Requests: 8819, InputTokens: 18059974, OutputTokens: 245896},
			in:   [3]int{1469, 5194, 7437}, out: [3]int{13, 55, 1899},
		},
		{
			file: azureConv, format: "azure", span: "3501.7", hitRate: "0.00",
			want: Stats{Requests: 19366, InputTokens: 22361870, OutputTokens: 4088665},
			in:   [3]int{1020, 2735, 14050}, out: [3]int{129, 424, 1000},
		},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			start := time.Now()
			w, err := Open(tracePath(t, c.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("read in %v", time.Since(start))
			if w.Format != c.format || w.BlockSize != c.block || w.Truncated != 0 {
				t.Errorf("format %s, block %d, truncated %d", w.Format, w.BlockSize, w.Truncated)
			}
			checkWorkload(t, w)
			got := w.Stats()
			if rate := fmt.Sprintf("%.2f", 100*float64(got.TokenHits)/float64(got.InputTokens)); rate != c.hitRate {
				t.Errorf("%s %% of tokens hit, want %s", rate, c.hitRate)
			}
			if span := fmt.Sprintf("%.1f", got.Span.Seconds()); c.span != "" && span != c.span {
				t.Errorf("span %s s, want %s", span, c.span)
			}
			got.Span = 0
			if c.want.TokenHits == 0 {
				got.TokenHits = 0
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("figures differ (-want +got):\n%s", diff)
			}
			lengths := func(of func(r *Request) int) (all []int) {
				for i := range w.Requests {
					all = append(all, of(&w.Requests[i]))
				}
				slices.Sort(all)
				return all
			}
			quantiles := func(all []int) [3]int {
				n := len(all)
				return [3]int{all[n/2], all[n*9/10], all[n-1]}
			}
			if got := quantiles(lengths(func(r *Request) int { return r.InputLen })); got != c.in {
				t.Errorf("prompt lengths %v, want %v", got, c.in)
			}
			if got := quantiles(lengths(func(r *Request) int { return r.OutputLen })); got != c.out {
				t.Errorf("output lengths %v, want %v", got, c.out)
			}
			if c.block > 0 && !testing.Short() && !racing {
				pages, hits, tokens := pageHits(w)
				t.Logf("%d whole pages, %d hit, %d tokens", pages, hits, tokens)
				if want, ok := pageFigures[c.file]; ok && want != [3]int{pages, hits, tokens} {
					t.Errorf("whole pages, of these hit, tokens hit: %v, want %v", [3]int{pages, hits, tokens}, want)
				}
			}
		})
	}
}

// pageFigures are whole pages, pages hit and tokens hit, as published.
var pageFigures = map[string][3]int{
	conversation: {276491, 105592, 54063104},
	synthetic:    {117888, 77740, 39802880},
	coding:       {6688459, 6425436, 411227904},
}

// pageHits expands all prompts and looks every whole page up by a hash of its
// path, as an independent cache without limits would.
func pageHits(w *Workload) (pages, hits, tokens int) {
	seen := map[uint64]bool{}
	var prompt []uint32
	for i := range w.Requests {
		prompt = w.Requests[i].AppendPrompt(prompt[:0])
		path, hit := uint64(14695981039346656037), true
		for p := 0; p+w.BlockSize <= len(prompt); p += w.BlockSize {
			for _, token := range prompt[p : p+w.BlockSize] {
				path = (path ^ uint64(token)) * 1099511628211
				path ^= path >> 29
			}
			pages++
			if hit = hit && seen[path]; hit {
				hits++
			}
			seen[path] = true
		}
	}
	return pages, hits, hits * w.BlockSize
}

// checkWorkload checks what holds for every workload.
func checkWorkload(t testing.TB, w *Workload) {
	t.Helper()
	var prompt, output []uint32
	for i := range w.Requests {
		r := &w.Requests[i]
		if r.Index != i {
			t.Fatalf("request %d has index %d", i, r.Index)
		}
		for _, before := range r.After {
			if before < 0 || before >= i {
				t.Fatalf("request %d waits for %d", i, before)
			}
		}
		if r.Arrival < 0 || r.Think < 0 || r.InputLen < 1 || r.OutputLen < 0 || r.InputLen > MaxLength || r.OutputLen > MaxLength {
			t.Fatalf("request %d: %+v", i, r)
		}
		if len(r.After) == 0 && r.Think != 0 {
			t.Fatalf("request %d thinks %v after nothing", i, r.Think)
		}
		if i >= 20 || r.InputLen > 1<<20 || r.OutputLen > 1<<20 {
			continue
		}
		prompt = r.AppendPrompt(prompt[:0])
		output = r.AppendOutput(output[:0])
		if len(prompt) != r.InputLen || len(output) != r.OutputLen {
			t.Fatalf("request %d: %d and %d tokens, want %d and %d", i, len(prompt), len(output), r.InputLen, r.OutputLen)
		}
	}
}

// TestSubAgentsOfPublishedSessions checks the order of requests around the
// sub-agents of a published session.
func TestSubAgentsOfPublishedSessions(t *testing.T) {
	w, err := Open(tracePath(t, coding), Options{})
	if err != nil {
		t.Fatal(err)
	}
	agents, first := 0, 0
	runs := map[[2]string]bool{}
	for i := range w.Requests {
		r := &w.Requests[i]
		if len(r.After) == 0 {
			first++
		}
		if r.Agent != "" {
			agents++
			runs[[2]string{r.Session, r.Agent}] = true
		}
	}
	if agents != 315 || len(runs) != 28 || first != 54 {
		t.Errorf("%d requests of %d sub-agents, %d open sessions; want 315, 28, 54", agents, len(runs), first)
	}
	// Session trace_0010: a request, a sub-agent of 7 requests from 9.407 to
	// 100.65 s, and the next request at 107 s.
	at := slices.IndexFunc(w.Requests, func(r Request) bool { return r.Session == "trace_0010" })
	own, next := &w.Requests[at+1], &w.Requests[at+8]
	if !slices.Equal(own.After, []int{at}) || own.Agent == "" || own.Think.Round(time.Millisecond) != 597*time.Millisecond {
		t.Errorf("first request of the sub-agent: after %v, think %v", own.After, own.Think)
	}
	if !slices.Equal(next.After, []int{at, at + 7}) || next.Agent != "" || next.Think != 6350*time.Millisecond {
		t.Errorf("request after the sub-agent: after %v, think %v", next.After, next.Think)
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{conversation, synthetic, coding, azureCode, azureConv} {
		b.Run(name, func(b *testing.B) {
			path := tracePath(b, name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(path, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendPrompt(b *testing.B) {
	w, err := Open(tracePath(b, conversation), Options{Limit: 100})
	if err != nil {
		b.Fatal(err)
	}
	var prompt []uint32
	tokens := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range w.Requests {
			prompt = w.Requests[i].AppendPrompt(prompt[:0])
			tokens += len(prompt)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
}
