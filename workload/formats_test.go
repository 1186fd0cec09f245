// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, o Options, lines ...string) *Workload {
	t.Helper()
	w, err := Read(strings.NewReader(strings.Join(lines, "\n")), "t", o)
	if err != nil {
		t.Fatal(err)
	}
	checkWorkload(t, w)
	return w
}

// common gives the length of the common beginning of two sequences.
func common(a, b []uint32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (w *Workload) prompt(i int) []uint32 { return w.Requests[i].AppendPrompt(nil) }
func (w *Workload) output(i int) []uint32 { return w.Requests[i].AppendOutput(nil) }

// timingOf is what decides when a request starts.
type timingOf struct {
	Arrival time.Duration
	After   []int
	Think   time.Duration
}

func timings(w *Workload) (all []timingOf) {
	for _, r := range w.Requests {
		all = append(all, timingOf{r.Arrival, r.After, r.Think})
	}
	return all
}

func TestMooncakePrefixes(t *testing.T) {
	w := read(t, Options{},
		`{"timestamp": 0, "input_length": 1100, "output_length": 2, "hash_ids": [900, 5, 77]}`,
		`{"timestamp": 0, "input_length": 1200, "output_length": 2, "hash_ids": [900, 5, 77]}`,
		`{"timestamp": 1500, "input_length": 1024, "output_length": 2, "hash_ids": [900, 6]}`,
		`{"timestamp": 1500, "input_length": 512, "output_length": 2, "hash_ids": [5]}`,
	)
	for _, c := range []struct{ a, b, want int }{{0, 1, 1100}, {0, 2, 512}, {1, 2, 512}, {0, 3, 0}} {
		if got := common(w.prompt(c.a), w.prompt(c.b)); got != c.want {
			t.Errorf("prompts %d and %d share %d tokens, want %d", c.a, c.b, got, c.want)
		}
	}
	if common(w.output(0), w.output(1)) != 0 {
		t.Error("outputs are alike")
	}
	// A cached answer never continues a longer prompt.
	with := append(w.prompt(0), w.output(0)...)
	if got := common(with, w.prompt(1)); got != 1100 {
		t.Errorf("prompt with answer shares %d tokens, want 1100", got)
	}
	if got := w.Requests[2].Arrival; got != 1500*time.Millisecond {
		t.Errorf("arrival %v", got)
	}
	want := Stats{
		Requests: 4, Span: 1500 * time.Millisecond, InputTokens: 3836, OutputTokens: 8,
		Blocks: 9, UniqueBlocks: 4, BlockHits: 5, TokenHits: 1100 + 512 + 512,
	}
	if diff := cmp.Diff(want, w.Stats()); diff != "" {
		t.Error(diff)
	}
	want.UniqueBlocks, want.BlockHits, want.TokenHits = 5, 4, 1100+512
	w = read(t, Options{Chained: Unchained},
		`{"timestamp": 0, "input_length": 1100, "output_length": 2, "hash_ids": [900, 5, 77]}`,
		`{"timestamp": 0, "input_length": 1200, "output_length": 2, "hash_ids": [900, 5, 77]}`,
		`{"timestamp": 1500, "input_length": 1024, "output_length": 2, "hash_ids": [900, 6]}`,
		`{"timestamp": 1500, "input_length": 512, "output_length": 2, "hash_ids": [5]}`,
	)
	if diff := cmp.Diff(want, w.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestMooncakeSettings(t *testing.T) {
	lines := []string{
		`{"timestamp": 1, "input_length": 17, "output_length": 2, "hash_ids": [0, 1]}`,
		`{"timestamp": 2.5, "input_length": 17, "output_length": 2, "hash_ids": [0, 2]}`,
		`broken`,
	}
	w := read(t, Options{BlockSize: 16, TimeUnit: time.Second, Limit: 2}, lines...)
	if w.BlockSize != 16 || common(w.prompt(0), w.prompt(1)) != 16 || w.Requests[1].Arrival != 2500*time.Millisecond {
		t.Errorf("%+v", w)
	}
}

func TestMooncakeMultiTurn(t *testing.T) {
	w := read(t, Options{},
		`{"session_id": "a", "timestamp": 10, "input_length": 5, "output_length": 2, "hash_ids": [1]}`,
		`{"session_id": "a", "delay": 300, "input_length": 6, "output_length": 2, "hash_ids": [1]}`,
		`{"session_id": 7, "delay": 40, "input_length": 6, "output_length": 2, "hash_ids": [1]}`,
		`{"session_id": "a", "delay": 50.5, "timestamp": 900, "input_length": 7, "output_length": 2, "hash_ids": [1]}`,
		`{"session_id": 7, "timestamp": 60, "input_length": 7, "output_length": 2, "hash_ids": [1]}`,
		`{"timestamp": 5, "input_length": 7, "output_length": 2, "hash_ids": [1]}`,
	)
	const ms = time.Millisecond
	want := []timingOf{
		{10 * ms, nil, 0},
		{310 * ms, []int{0}, 300 * ms},
		{40 * ms, nil, 0},
		{900 * ms, []int{1}, 50*ms + ms/2},
		{60 * ms, nil, 0}, // a time and no delay: open loop
		{5 * ms, nil, 0},  // no session: the order of times is its own
	}
	if diff := cmp.Diff(want, timings(w)); diff != "" {
		t.Error(diff)
	}
	if w.Requests[2].Session != "7" || w.Requests[3].Session != "a" {
		t.Error("sessions are mixed up")
	}
}

const twoSessions = `{"id":"one","models":["m"],"block_size":64,"hash_id_scope":"local","tool_tokens":1,"system_tokens":1,"requests":[` +
	`{"t":0.0,"type":"n","in":130,"out":9,"hash_ids":[1,2],"api_time":2.5,"think_time":0},` +
	`{"t":30.25,"type":"subagent","agent_id":"x","duration_ms":25000,"requests":[` +
	`{"t":0,"type":"n","in":64,"out":1,"hash_ids":[1],"api_time":3,"think_time":0},` +
	`{"t":9,"type":"s","in":129,"out":1,"hash_ids":[1,50],"api_time":3,"think_time":6}]},` +
	`{"t":31.5,"type":"subagent","agent_id":"y","duration_ms":28500,"requests":[` +
	`{"t":1,"type":"n","in":10,"out":1,"hash_ids":[]}]},` +
	`{"t":33,"type":"n","in":190,"out":9,"hash_ids":[1,2],"think_time":30.5},` +
	`{"t":40,"type":"n","in":192,"out":9,"hash_ids":[1,2,3],"think_time":7,"api_time":1.5},` +
	`{"t":45.5,"type":"s","in":192,"out":9,"hash_ids":[1,2,4],"api_time":9},` +
	`{"t":46,"type":"s","in":192,"out":9,"hash_ids":[1,2,4]},` +
	`{"t":50,"type":"s","in":192,"out":9,"hash_ids":[1,2,4],"api_time":null,"think_time":null}` +
	`],"totals":{}}` + "\n" +
	`{"id":"two","block_size":64,"requests":[{"t":0,"type":"n","in":130,"out":9,"hash_ids":[1,2]}]}`

func TestSessions(t *testing.T) {
	w := read(t, Options{}, twoSessions)
	const s, ms = time.Second, time.Millisecond
	want := []timingOf{
		{0, nil, 0},
		{5250 * ms, []int{0}, 2750 * ms},    // 30.25 - 25 is 2.75 after the answer
		{14250 * ms, []int{1}, 6 * s},       // its own think time
		{4 * s, []int{0}, 1500 * ms},        // beside the other sub-agent
		{33 * s, []int{0, 2, 3}, 1500 * ms}, // from the end of the last sub-agent
		{40 * s, []int{4}, 7 * s},           // think time
		{45500 * ms, []int{5}, 4 * s},       // time since the answer
		{46 * s, []int{6}, 0},               // asked before the answer
		{50 * s, []int{7}, 0},               // nothing known
		{0, nil, 0},
	}
	if diff := cmp.Diff(want, timings(w)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		name       string
		a, b, want int
	}{
		{"a block of the parent in the sub-agent", 0, 1, 64},
		{"tokens behind the last full block", 0, 4, 128},
		{"the same blocks in two sessions", 0, 9, 0},
		{"prompts of whole blocks", 6, 7, 192},
		{"a branch", 5, 6, 128},
	} {
		if got := common(w.prompt(c.a), w.prompt(c.b)); got != c.want {
			t.Errorf("%s: %d tokens shared, want %d", c.name, got, c.want)
		}
	}
	if r := w.Requests[3]; r.Session != "one" || r.Agent != "y" {
		t.Errorf("%+v", r)
	}
	if got := w.Stats(); got.Sessions != 2 || got.Blocks != 21 || got.UniqueBlocks != 7 || got.BlockHits != 14 {
		t.Errorf("%+v", got)
	}
	// A limit keeps the order of what stands before it.
	limited := read(t, Options{Limit: 4}, twoSessions)
	if diff := cmp.Diff(want[:4], timings(limited)); diff != "" {
		t.Error(diff)
	}
}

func TestSessionsShapes(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name, requests string
		want           []timingOf
	}{
		{
			"a sub-agent comes first",
			`{"t":5,"type":"subagent","duration_ms":4000,"requests":[{"t":0,"type":"n","in":1,"out":1,"hash_ids":[]}]},{"t":7,"type":"n","in":1,"out":1,"hash_ids":[]}`,
			[]timingOf{{1 * s, nil, 0}, {7 * s, []int{0}, 2 * s}},
		},
		{
			"a sub-agent whose t is its start",
			`{"t":1,"type":"n","in":1,"out":1,"hash_ids":[],"api_time":1},{"t":3,"type":"subagent","duration_ms":4000,"requests":[{"t":0,"type":"n","in":1,"out":1,"hash_ids":[]}]},{"t":9,"type":"n","in":1,"out":1,"hash_ids":[]}`,
			[]timingOf{{1 * s, nil, 0}, {3 * s, []int{0}, 1 * s}, {9 * s, []int{0, 1}, 2 * s}},
		},
		{
			"a sub-agent without requests",
			`{"t":1,"type":"n","in":1,"out":1,"hash_ids":[],"api_time":1},{"t":3,"type":"subagent","requests":[]},{"t":9,"type":"n","in":1,"out":1,"hash_ids":[]}`,
			[]timingOf{{1 * s, nil, 0}, {9 * s, []int{0}, 7 * s}},
		},
		{
			"a sub-agent that ends with a sub-agent",
			`{"t":1,"type":"n","in":1,"out":1,"hash_ids":[],"api_time":1},{"t":8,"type":"subagent","requests":[` +
				`{"t":0,"type":"n","in":1,"out":1,"hash_ids":[],"api_time":0},{"t":1,"type":"subagent","requests":[{"t":0,"type":"n","in":1,"out":1,"hash_ids":[]}]}` +
				`]},{"t":9,"type":"n","in":1,"out":1,"hash_ids":[]}`,
			[]timingOf{{1 * s, nil, 0}, {8 * s, []int{0}, 6 * s}, {9 * s, []int{1}, 1 * s}, {9 * s, []int{0, 1, 2}, 1 * s}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := read(t, Options{}, `{"id":"s","requests":[`+c.requests+`]}`)
			if diff := cmp.Diff(c.want, timings(w)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSessionsGlobalScope(t *testing.T) {
	line := `{"id":"s","hash_id_scope":"SCOPE","requests":[{"t":0,"type":"n","in":64,"out":1,"hash_ids":[1]}]}`
	global, local := strings.Replace(line, "SCOPE", "global", 1), strings.Replace(line, "SCOPE", "local", 1)
	w := read(t, Options{}, global, local, global, local)
	for _, c := range []struct{ a, b, want int }{{0, 2, 64}, {0, 1, 0}, {1, 3, 0}, {2, 3, 0}} {
		if got := common(w.prompt(c.a), w.prompt(c.b)); got != c.want {
			t.Errorf("%d and %d share %d tokens, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestBailian(t *testing.T) {
	w := read(t, Options{},
		`{"chat_id":10,"parent_chat_id":-1,"timestamp":0.061,"input_length":32,"output_length":3,"type":"text","turn":1,"hash_ids":[4,5]}`,
		`{"chat_id":11,"parent_chat_id":10,"timestamp":1.5,"input_length":40,"output_length":3,"type":"text","turn":2,"hash_ids":[4,5,6]}`,
		`{"chat_id":12,"parent_chat_id":11,"timestamp":2,"input_length":32,"output_length":3,"type":"file","turn":3,"hash_ids":[9,5]}`,
		`{"chat_id":13,"parent_chat_id":3,"timestamp":2,"input_length":16,"output_length":3,"type":"text","turn":2,"hash_ids":[5]}`,
	)
	if w.Format != "bailian" || w.BlockSize != 16 || w.Chained {
		t.Errorf("%+v", w)
	}
	var sessions []string
	for _, r := range w.Requests {
		sessions = append(sessions, r.ID+" of "+r.Session)
		if len(r.After) != 0 {
			t.Errorf("chat %s waits for %v", r.ID, r.After)
		}
	}
	if diff := cmp.Diff([]string{"10 of 10", "11 of 10", "12 of 10", "13 of 3"}, sessions); diff != "" {
		t.Error(diff)
	}
	if got := w.Requests[0].Arrival; got != 61*time.Millisecond {
		t.Errorf("arrival %v", got)
	}
	// Block 5 is the same run of tokens behind 4, behind 9 and at the start.
	if common(w.prompt(0), w.prompt(1)) != 32 || common(w.prompt(0), w.prompt(2)) != 0 ||
		common(w.prompt(0)[16:], w.prompt(2)[16:]) != 16 || common(w.prompt(0)[16:], w.prompt(3)) != 16 {
		t.Error("blocks are not expanded alike")
	}
	// Only the two blocks with an equal path are hits.
	if got := w.Stats(); got.BlockHits != 2 || got.TokenHits != 32 || got.UniqueBlocks != 6 || got.Blocks != 8 {
		t.Errorf("%+v", got)
	}
}

func TestAzure(t *testing.T) {
	lines := []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens",
		"2023-11-16 18:17:03.9799600,100,10",
		"2023-11-16 18:17:04.0319600,60,8",
		"2023-11-16 18:18:03.9799600,5,0",
	}
	w := read(t, Options{}, lines...)
	if w.Requests[1].Arrival != 52*time.Millisecond || w.Requests[2].Arrival != time.Minute || w.Requests[2].InputLen != 5 {
		t.Errorf("%+v", timings(w))
	}
	if common(w.prompt(0), w.prompt(1)) != 0 || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "no sharing model") {
		t.Errorf("without a sharing model: %v", w.Notes)
	}
	w = read(t, Options{Sharing: Sharing{SystemTokens: 30, Groups: 1, GroupTokens: 20}}, lines...)
	if common(w.prompt(0), w.prompt(1)) != 50 || common(w.prompt(0), w.prompt(2)) != 5 {
		t.Error("prompts do not share system prompt and prefix")
	}
	if want := "system prompt of 30 tokens, 1 group with prefixes of 20 tokens, Zipf exponent 0, seed 0"; !strings.Contains(w.Notes[0], want) {
		t.Errorf("note %q", w.Notes[0])
	}
	w = read(t, Options{Sharing: Sharing{SystemTokens: 30}}, lines...)
	if common(w.prompt(0), w.prompt(1)) != 30 {
		t.Error("prompts do not share the system prompt")
	}
	later := read(t, Options{}, "GeneratedTokens,\"ContextTokens\",TIMESTAMP", "7, 3 ,2024-05-10 00:00:00.009930+00:00")
	if r := later.Requests[0]; r.InputLen != 3 || r.OutputLen != 7 {
		t.Errorf("columns in another order: %+v", r)
	}
	if _, err := Read(strings.NewReader("TIMESTAMP,ContextTokens\n"), "t", Options{}); err == nil || !strings.Contains(err.Error(), `t:1: field "GeneratedTokens"`) {
		t.Errorf("missing column: %v", err)
	}
}

// TestZipf checks that groups come as often as their weights say.
func TestZipf(t *testing.T) {
	lines := []string{"TIMESTAMP,ContextTokens,GeneratedTokens"}
	const n = 6000
	for range n {
		lines = append(lines, "2023-11-16 18:17:03,12,1")
	}
	for _, c := range []struct {
		exponent float64
		first    float64 // share of the most frequent group
	}{{0, 0.25}, {1, 12.0 / 25}, {2, 144.0 / 205}} {
		w := read(t, Options{Sharing: Sharing{Groups: 4, GroupTokens: 4, ZipfExponent: c.exponent, Seed: 5}}, lines...)
		counts, most := map[uint32]int{}, 0
		for i := range w.Requests {
			head := w.prompt(i)[0]
			counts[head]++
			most = max(most, counts[head])
		}
		if got := float64(most) / n; len(counts) != 4 || got < c.first-0.03 || got > c.first+0.03 {
			t.Errorf("exponent %v: the most frequent of %d groups has %v, want %v", c.exponent, len(counts), got, c.first)
		}
		again := read(t, Options{Sharing: Sharing{Groups: 4, GroupTokens: 4, ZipfExponent: c.exponent, Seed: 5}}, lines...)
		for i := range w.Requests {
			if common(w.prompt(i), again.prompt(i)) != 12 {
				t.Fatal("the same seed gives other prompts")
			}
		}
	}
}

func TestBurstGPT(t *testing.T) {
	w := read(t, Options{},
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
		`5,abc,1.5,ChatGPT,472,18,490,"Conversation log, of sorts"`,
		"45.5,abc,1.5,GPT-4,1087,0,1087,API log",
	)
	if r := w.Requests[1]; w.Format != "burstgpt" || r.Arrival != 40500*time.Millisecond || r.InputLen != 1087 || r.OutputLen != 0 || r.Session != "abc" {
		t.Errorf("%+v", r)
	}
}

func TestTokens(t *testing.T) {
	w := read(t, Options{},
		`{"tokens":[0,4294967295,7],"output":[1,2],"timestamp":3,"id":"x","extra_key":"k","cache_salt":"s"}`,
		`{"tokens":[5],"output_length":4,"extra_key":""}`,
		`{"tokens":[5],"session":"a","timestamp":9}`,
		`{"tokens":[5],"session":"a","delay":2,"extra_key":null}`,
		`{"tokens":[5],"session":"a"}`,
	)
	if diff := cmp.Diff([]uint32{0, 4294967295, 7}, w.prompt(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{1, 2}, w.output(0)); diff != "" {
		t.Error(diff)
	}
	r := w.Requests[0]
	if r.ID != "x" || !r.HasExtraKey || r.ExtraKey != "k" || r.Salt != "s" || !w.Requests[1].HasExtraKey || w.Requests[3].HasExtraKey {
		t.Errorf("%+v", w.Requests)
	}
	const ms = time.Millisecond
	want := []timingOf{{3 * ms, nil, 0}, {3 * ms, nil, 0}, {9 * ms, nil, 0}, {11 * ms, []int{2}, 2 * ms}, {11 * ms, []int{3}, 0}}
	if diff := cmp.Diff(want, timings(w)); diff != "" {
		t.Error(diff)
	}
	if len(w.output(1)) != 4 || len(w.output(2)) != 0 {
		t.Error("output lengths")
	}
}
