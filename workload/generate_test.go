// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fingerprint hashes everything a replay sees of a workload.
func fingerprint(w *Workload) uint64 {
	h := uint64(14695981039346656037)
	add := func(x uint64) { h = (h ^ x) * 1099511628211; h ^= h >> 29 }
	var tokens []uint32
	for i := range w.Requests {
		r := &w.Requests[i]
		tokens = r.AppendOutput(r.AppendPrompt(tokens[:0]))
		for _, token := range tokens {
			add(uint64(token))
		}
		for _, before := range r.After {
			add(uint64(before))
		}
		for _, c := range r.ID + "/" + r.Session + "/" + r.Agent {
			add(uint64(c))
		}
		add(uint64(r.InputLen))
		add(uint64(r.Arrival))
		add(uint64(r.Think))
	}
	return h
}

func TestGeneratorsAreDeterministic(t *testing.T) {
	for _, name := range Generators() {
		a, err := Generate(name)
		if err != nil {
			t.Fatal(err)
		}
		checkWorkload(t, a)
		again, _ := Generate(name, Settings(name)...)
		other, _ := Generate(name, "seed=43")
		if a.Name != name || a.Format != name || fingerprint(a) != fingerprint(again) {
			t.Errorf("%s: the same settings give another workload", name)
		}
		if name != "shared-prefix" && fingerprint(a) == fingerprint(other) {
			t.Errorf("%s: another seed gives the same workload", name)
		}
		t.Logf("%s: %+v", name, a.Stats())
	}
}

func TestSharedPrefix(t *testing.T) {
	p := DefaultSharedPrefix()
	w, err := SharedPrefix(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Requests) != 128 {
		t.Fatalf("%d requests", len(w.Requests))
	}
	for _, c := range []struct {
		name       string
		a, b, want int
	}{
		{"two questions of a group", 0, 1, 24576},
		{"two groups", 0, 8, 0},
		{"the same prompt in the next pass", 3, 67, 40960},
		{"another prompt in the next pass", 3, 68, 24576},
	} {
		if got := common(w.prompt(c.a), w.prompt(c.b)); got != c.want {
			t.Errorf("%s: %d tokens shared, want %d", c.name, got, c.want)
		}
	}
	if r := w.Requests[67]; r.ID != "2/1/4" || len(r.After) != 64 || r.After[0] != 0 || r.After[63] != 63 || r.OutputLen != 128 {
		t.Errorf("%+v", r)
	}
	p.Shuffle, p.Rate = true, 10
	mixed, err := SharedPrefix(p)
	if err != nil {
		t.Fatal(err)
	}
	checkWorkload(t, mixed)
	if mixed.Requests[0].ID == "1/1/1" && mixed.Requests[1].ID == "1/1/2" && mixed.Requests[2].ID == "1/1/3" {
		t.Error("not shuffled")
	}
	last := mixed.Requests[63].Arrival
	if last < 3*time.Second || last > 13*time.Second {
		t.Errorf("64 arrivals at 10 a second take %v", last)
	}
	if r := mixed.Requests[127]; r.Think != last || r.ID[1:] != mixed.Requests[63].ID[1:] {
		t.Errorf("second pass: %+v", r)
	}
}

func TestAgents(t *testing.T) {
	p := DefaultAgents()
	p.CutChance, p.SubAgentChance = 0.3, 0.3
	w, err := Agents(p)
	if err != nil {
		t.Fatal(err)
	}
	checkWorkload(t, w)
	grown, cut, idle, joins := 0, 0, 0, 0
	agents := map[string]bool{}
	latest := map[string]int{}
	for i := range w.Requests {
		r := &w.Requests[i]
		prompt := r.AppendPrompt(nil)
		if common(prompt, w.prompt(0)) < p.SystemTokens {
			t.Fatalf("request %d does not begin with the system prompt", i)
		}
		if r.Think >= p.IdleTime.Min {
			idle++
		}
		if len(r.After) > 1 {
			joins++
		}
		who := r.Session + "/" + r.Agent
		if r.Agent != "" {
			agents[who] = true
		}
		before, known := latest[who]
		latest[who] = i
		if !known {
			continue
		}
		if !slices.Contains(r.After, before) {
			t.Fatalf("request %d does not wait for %d", i, before)
		}
		// The prompt before and its answer, then something new; or a cut.
		context := append(w.prompt(before), w.output(before)...)
		switch n := common(prompt, context); {
		case n == len(context) && len(prompt) > n:
			grown++
		case n >= p.SystemTokens && n < len(context):
			cut++
		default:
			t.Fatalf("request %d shares %d of %d tokens with the request before", i, n, len(context))
		}
	}
	if grown < 500 || cut < 10 || idle < 3 || joins < 50 || len(agents) != joins {
		t.Errorf("%d grown, %d cut, %d idle, %d waits for %d sub-agents", grown, cut, idle, joins, len(agents))
	}
}

func TestRandomTree(t *testing.T) {
	w, err := RandomTree(DefaultRandomTree())
	if err != nil {
		t.Fatal(err)
	}
	stats := w.Stats()
	mean := stats.InputTokens / int64(stats.Requests)
	if len(w.Requests) != 5001 || mean < 700 || mean > 1600 {
		t.Errorf("%d sequences of %d tokens on average", len(w.Requests), mean)
	}
	// All begin with the root, and each other sequence is one of them and a run
	// of one token behind.
	root := slices.MinFunc(w.Requests, func(a, b Request) int { return a.InputLen - b.InputLen })
	begin := root.AppendPrompt(nil)
	all := map[uint64]bool{}
	for i := range w.Requests {
		all[prefixes(w.prompt(i))[w.Requests[i].InputLen]] = true
	}
	for i := range w.Requests {
		prompt := w.prompt(i)
		if slices.Max(prompt) >= 32000 || common(begin, prompt) != 64 {
			t.Fatalf("sequence %d does not begin with the root, or has foreign tokens", i)
		}
		known, end := prefixes(prompt), len(prompt)
		for end > 64 && !all[known[end-1]] && prompt[end-1] == prompt[len(prompt)-1] {
			end--
		}
		if end > 64 && !all[known[end-1]] {
			t.Fatalf("sequence %d does not extend another one", i)
		}
	}
}

// prefixes gives a hash of each beginning of the tokens, by length.
func prefixes(tokens []uint32) []uint64 {
	h := uint64(14695981039346656037)
	all := []uint64{h}
	for _, token := range tokens {
		h = (h ^ uint64(token)) * 1099511628211
		h ^= h >> 29
		all = append(all, h)
	}
	return all
}

func TestGenerateReportsWrongSettings(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		parts    []string
	}{
		{"forest", nil, []string{"workload forest is not known; known are agents, random-tree, shared-prefix"}},
		{"agents", []string{"turns=x", "sessions", "colour=3"}, []string{"turns is x, must be a whole number, or a range", "sessions is not of the form name=value", "colour is not known", "tool-time"}},
		{"agents", []string{"turns=0..3", "idle-chance=NaN", "think-time=5s..2s", "tool-tokens=0"}, []string{"turns is 0..3", "idle-chance is NaN", "think-time is 5s..2s", "tool-tokens is 0"}},
		{"shared-prefix", []string{"groups=0", "rate=-1", "question-tokens=0", "system-tokens=0"}, []string{"groups is 0, must be from 1", "rate is -1", "both 0"}},
		{"shared-prefix", []string{"groups=16777216", "prompts-per-group=16777216", "passes=16777216"}, []string{"at most 16777216 requests"}},
		{"random-tree", []string{"vocabulary=0", "run=3..2"}, []string{"vocabulary is 0", "run is 3..2"}},
		{"random-tree", []string{"seed=-1"}, []string{"seed is -1"}},
	} {
		_, err := Generate(c.name, c.settings...)
		for _, part := range c.parts {
			if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %v: %q is not in %v", c.name, c.settings, part, err)
			}
		}
	}
	if Settings("forest") != nil {
		t.Error("settings of an unknown workload")
	}
	// Too large to be checked in advance: a prompt that grows beyond the limit.
	_, err := Generate("agents", "sessions=1", "turns=300", "tool-calls=0", "tool-tokens=1", "user-tokens=1048576", "cut-chance=0")
	if err == nil || !strings.Contains(err.Error(), "a prompt of more than") {
		t.Errorf("%v", err)
	}
}

// TestGeneratedWorkloads checks what holds for all, over random settings.
func TestGeneratedWorkloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(low, high int, name string) int { return rapid.IntRange(low, high).Draw(t, name) }
		span := func(low, high int, name string) Range {
			a := number(low, high, name+" min")
			return Range{a, number(a, high, name+" max")}
		}
		seed := rapid.Uint64().Draw(t, "seed")
		agents := DefaultAgents()
		agents.Sessions, agents.Turns, agents.ToolCalls = number(1, 4, "sessions"), span(1, 5, "turns"), span(0, 4, "calls")
		agents.SystemTokens, agents.UserTokens, agents.ToolTokens = number(0, 50, "system"), span(1, 9, "user"), span(1, 9, "tool")
		agents.OutputTokens, agents.SubAgentCalls, agents.Seed = span(1, 9, "output"), span(1, 3, "sub"), seed
		agents.CutChance, agents.SubAgentChance = rapid.Float64Range(0, 1).Draw(t, "cut"), rapid.Float64Range(0, 1).Draw(t, "agent")
		tree := RandomTreeParams{
			Vocabulary: number(1, 5, "vocabulary"), RootTokens: number(1, 5, "root"), Chain: number(0, 20, "chain"), Burst: number(0, 20, "burst"),
			Children: span(1, 4, "children"), Run: span(1, 5, "run"), OutputTokens: number(0, 3, "output"), Seed: seed,
		}
		shared := SharedPrefixParams{
			Groups: number(1, 4, "groups"), PromptsPerGroup: number(1, 4, "prompts"), Passes: number(1, 3, "passes"),
			SystemTokens: number(0, 9, "system"), QuestionTokens: number(1, 9, "question"), OutputTokens: number(0, 3, "output"),
			Shuffle: rapid.Bool().Draw(t, "shuffle"), Seed: seed,
		}
		for _, make := range []func() (*Workload, error){
			func() (*Workload, error) { return Agents(agents) },
			func() (*Workload, error) { return RandomTree(tree) },
			func() (*Workload, error) { return SharedPrefix(shared) },
		} {
			w, err := make()
			if err != nil {
				t.Fatal(err)
			}
			again, _ := make()
			if fingerprint(w) != fingerprint(again) {
				t.Fatal("not the same again")
			}
			for i := range w.Requests {
				r := &w.Requests[i]
				if r.InputLen < 1 || len(r.AppendPrompt(nil)) != r.InputLen || len(r.AppendOutput(nil)) != r.OutputLen {
					t.Fatalf("request %d: %+v", i, r)
				}
				for _, before := range r.After {
					if before >= i || before < 0 {
						t.Fatalf("request %d waits for %d", i, before)
					}
				}
			}
		}
		w, _ := RandomTree(tree)
		if want := 1 + tree.Chain + tree.Burst; len(w.Requests) != want {
			t.Fatalf("%d sequences, want %d", len(w.Requests), want)
		}
	})
}
