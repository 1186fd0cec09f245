// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// numbers writes the ids from first to last as a JSON list.
func numbers(first, last int) string {
	var out []int
	for i := first; i <= last; i++ {
		out = append(out, i)
	}
	return string(must(json.Marshal(out)))
}

func ask(r *rig, prompt string, more string) generated {
	r.Helper()
	return post[generated](r, "/generate", `{"input_ids": `+prompt+`, "sampling_params": {"max_new_tokens": 8, "ignore_eos": true}`+more+`}`)
}

// A warm cache answers what a cold one answers, and says what it reused.
func TestReuseIsReported(t *testing.T) {
	r := newRig(t, setup{})
	cold := ask(r, numbers(1, 100), "")
	warm := ask(r, numbers(1, 100), "")
	if !slices.Equal(cold.OutputIDs, warm.OutputIDs) || len(cold.OutputIDs) != 8 {
		t.Errorf("cold %v, warm %v", cold.OutputIDs, warm.OutputIDs)
	}
	if m := cold.Meta; m.CachedTokens != 0 || m.Match.Reason != "never_seen" || m.PromptTokens != 100 || m.CompletionTokens != 8 {
		t.Errorf("cold: %+v", m)
	}
	// 99 tokens may be reused, 96 are whole pages.
	if m := warm.Meta; m.CachedTokens != 96 || m.Cached.Device != 96 || m.Match.Matched != 96 || m.Match.FullOnly != 96 ||
		m.Match.Reason != "page_remainder" || m.Match.LimitedBy != "none" || m.Match.Tiers["device"] != 96 {
		t.Errorf("warm: %+v", m)
	}
	// 64 tokens end a chunk inside of the first prompt, whose window is kept there.
	fork := ask(r, numbers(1, 90)[:len(numbers(1, 90))-1]+",900,901,902,903,904]", "")
	if m := fork.Meta.Match; m.LimitedBy != "swa" || m.Reason != "window_tombstoned" || m.FullOnly != 88 || fork.Meta.CachedTokens != m.Matched {
		t.Errorf("fork: %+v", fork.Meta)
	}
}

// Fields that keep cached state apart do, and an empty extra key is not none.
func TestNamespaces(t *testing.T) {
	r := newRig(t, setup{})
	spaces := []string{"", `, "extra_key": ""`, `, "extra_key": "a"`, `, "cache_salt": "a"`, `, "extra_key": "a", "cache_salt": "a"`}
	for _, space := range spaces {
		if m := ask(r, numbers(1, 40), space).Meta; m.CachedTokens != 0 {
			t.Errorf("first with %q: %+v", space, m)
		}
	}
	for _, space := range spaces {
		if m := ask(r, numbers(1, 40), space).Meta; m.CachedTokens != 36 {
			t.Errorf("again with %q: %+v", space, m)
		}
	}
	body := `{"prompt": ` + numbers(1, 40) + `, "extra_key": "a", "cache_salt": "a"}`
	if d := post[document](r, "/v1/completions", body); d.Usage.Details.Cached != 36 {
		t.Errorf("completion: %+v", d.Usage)
	}
}

func TestStreamsSayWhatAnswersSay(t *testing.T) {
	r := newRig(t, setup{slow: 100_000})
	const more = `"sampling_params": {"max_new_tokens": 60, "ignore_eos": true, "temperature": 1}`
	whole := post[generated](r, "/generate", `{"text": "déjà vu", "return_logprob": true, `+more+`}`)
	pieces := stream[generated](r, "/generate", `{"text": "déjà vu", "return_logprob": true, "stream": true, `+more+`}`)
	for i := 1; i < len(pieces); i++ {
		a, b := pieces[i-1], pieces[i]
		if !strings.HasPrefix(b.Text, a.Text) || !slices.Equal(b.OutputIDs[:len(a.OutputIDs)], a.OutputIDs) || a.Meta.FinishReason != nil {
			t.Fatalf("piece %d: %+v after %+v", i, b, a)
		}
	}
	last := pieces[len(pieces)-1]
	if last.Text != whole.Text || !slices.Equal(last.OutputIDs, whole.OutputIDs) || fmt.Sprint(last.Meta.LogProbs) != fmt.Sprint(whole.Meta.LogProbs) ||
		fmt.Sprint(last.Meta.FinishReason) != fmt.Sprint(whole.Meta.FinishReason) || last.Meta.Latency == 0 {
		t.Errorf("streamed %+v\nat once %+v", last, whole)
	}
	if len(pieces) < 2 {
		t.Error("the stream came in one piece")
	}
}

// A token is sent when it is there, whatever comes after it.
func TestTokensAreSentAtOnce(t *testing.T) {
	for path, body := range map[string]string{"/generate": `"sampling_params": {"max_new_tokens": 3}`, "/v1/completions": `"max_tokens": 3`} {
		gate := make(chan struct{})
		r := newRig(t, setup{gate: gate})
		over := make(chan struct{})
		go func() {
			defer close(over)
			gate <- struct{}{} // the prompt, and no further
		}()
		a, err := r.client.Post(r.web.URL+path, "", strings.NewReader(`{"`+map[bool]string{true: "text", false: "prompt"}[path == "/generate"]+`": "now", "stream": true, `+body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(a.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
			t.Errorf("%s: %q %v", path, line, err)
		}
		<-over
		close(gate)
		a.Body.Close()
	}
}

// Lists of prompts and several outputs are answered in order.
func TestLists(t *testing.T) {
	r := newRig(t, setup{})
	const more = `"sampling_params": {"max_new_tokens": 5, "n": 2, "sampling_seed": 7}`
	list := post[[]generated](r, "/generate", `{"text": ["one", "two"], "rid": ["a", "b"], `+more+`}`)
	var names []string
	for _, g := range list {
		names = append(names, g.Meta.ID)
	}
	if fmt.Sprint(names) != "[a-0 a-1 b-0 b-1]" || slices.Equal(list[0].OutputIDs, list[1].OutputIDs) {
		t.Errorf("%v: %+v", names, list)
	}
	var ends [4]string
	for _, g := range stream[generated](r, "/generate", `{"text": ["one", "two"], "stream": true, `+more+`}`) {
		ends[*g.Index] = g.Text
	}
	for i, g := range list {
		if ends[i] != g.Text {
			t.Errorf("output %d: streamed %q, at once %q", i, ends[i], g.Text)
		}
	}
	d := post[struct {
		Choices []choice
		Usage   usage
	}](r, "/v1/completions", `{"prompt": [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2]], "n": 2, "max_tokens": 3, "ignore_eos": true}`)
	if len(d.Choices) != 4 || d.Choices[3].Index != 3 || d.Usage.Prompt != 11 || d.Usage.Completion != 12 || d.Usage.Total != 23 {
		t.Errorf("%+v", d)
	}
}

// An output ends before a stop text, however it comes, and at stop tokens.
func TestStops(t *testing.T) {
	r := newRig(t, setup{slow: 100_000})
	const base = `{"text": "stop", "sampling_params": {"max_new_tokens": 40, "ignore_eos": true`
	whole := post[generated](r, "/generate", base+`}}`)
	// Some two bytes of the output that are characters.
	at := 0
	for at = 2; at < 38 && (whole.OutputIDs[at] >= 0x80 || whole.OutputIDs[at+1] >= 0x80); at++ {
	}
	stop := string(must(json.Marshal(string([]byte{byte(whole.OutputIDs[at]), byte(whole.OutputIDs[at+1])}))))
	with := base + `, "stop": ["never", ` + stop + `]}`
	got := post[generated](r, "/generate", with+`}`)
	if !slices.Equal(got.OutputIDs, whole.OutputIDs[:at+2]) || !strings.HasPrefix(whole.Text, got.Text) ||
		len([]rune(got.Text)) > at || !strings.Contains(fmt.Sprint(got.Meta.FinishReason), "stop") {
		t.Errorf("%+v of %+v", got, whole)
	}
	pieces := stream[generated](r, "/generate", with+`, "stream": true}`)
	for _, p := range pieces {
		if !strings.HasPrefix(got.Text, p.Text) {
			t.Errorf("a piece has %q, the answer %q", p.Text, got.Text)
		}
	}
	if last := pieces[len(pieces)-1]; last.Text != got.Text {
		t.Errorf("streamed %q, at once %q", last.Text, got.Text)
	}
	token := whole.OutputIDs[5]
	got = post[generated](r, "/generate", base+fmt.Sprintf(`, "stop_token_ids": [%d]}}`, token))
	if n := slices.Index(whole.OutputIDs, token); len(got.OutputIDs) != n+1 || fmt.Sprint(got.Meta.FinishReason) != fmt.Sprintf("map[matched:%d type:stop]", token) {
		t.Errorf("%+v of %+v", got, whole)
	}
}

// A flush while requests run drops what is cached, and they answer the same.
func TestFlush(t *testing.T) {
	r := newRig(t, setup{slow: 100_000})
	want := ask(r, numbers(1, 100), "")
	over := make(chan generated)
	go func() {
		over <- post[generated](r, "/generate", `{"input_ids": `+numbers(1, 100)+`, "sampling_params": {"max_new_tokens": 300, "ignore_eos": true}}`)
	}()
	for running := 0; running == 0; {
		_, running = r.queued()
	}
	post[map[string]string](r, "/flush_cache", "")
	if got := <-over; !slices.Equal(got.OutputIDs[:8], want.OutputIDs) || len(got.OutputIDs) != 300 {
		t.Errorf("%v, want %v", got.OutputIDs, want.OutputIDs)
	}
	post[map[string]string](r, "/flush_cache", "")
	if p := get[treePage](r, "/tree"); p.Total != 1 {
		t.Errorf("after a flush the tree has %d nodes", p.Total)
	}
	if m := ask(r, numbers(1, 100), "").Meta; m.CachedTokens != 0 {
		t.Errorf("after a flush: %+v", m)
	}
}

// The pages of the tree together are the tree.
func TestTreePages(t *testing.T) {
	r := newRig(t, setup{})
	for i := range 6 {
		ask(r, numbers(100*i, 100*i+40), fmt.Sprintf(`, "extra_key": "k%d"`, i))
	}
	r.idle() // nothing is copied any more
	whole := get[treePage](r, "/tree")
	if whole.Total != len(whole.Nodes) || whole.Next != 0 || whole.Total < 7 {
		t.Fatalf("%+v", whole)
	}
	var nodes []treeNode
	for after, pages := tree.NodeID(0), 0; ; pages++ {
		p := get[treePage](r, fmt.Sprintf("/tree?limit=2&after=%d", after))
		nodes = append(nodes, p.Nodes...)
		if p.Next == 0 {
			break
		}
		after = p.Next
	}
	if fmt.Sprint(must(json.Marshal(nodes))) != fmt.Sprint(must(json.Marshal(whole.Nodes))) {
		t.Errorf("pages %+v\nwhole %+v", nodes, whole.Nodes)
	}
	for _, n := range nodes {
		if (n.ID == 1) != (n.Parent == 0) || n.ID != 1 && n.Device["full"] != n.Length {
			t.Errorf("%+v", n)
		}
	}
	for _, bad := range []string{"?limit=0", "?limit=x", "?after=-1", "?limit=100000"} {
		if status, _, text := r.call("GET", "/tree"+bad, ""); status != 400 || !strings.Contains(text, "must be") {
			t.Errorf("%s: %d %s", bad, status, text)
		}
	}
}
