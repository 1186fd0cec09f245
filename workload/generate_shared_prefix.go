// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// SharedPrefixParams describe the workload shared-prefix: groups of prompts that
// begin with the same system prompt and go on with questions of their own.
type SharedPrefixParams struct {
	Groups          int // groups, each with a system prompt of its own
	PromptsPerGroup int
	SystemTokens    int // length of a group's system prompt; 0: none
	QuestionTokens  int // length of a question; 0: none
	OutputTokens    int // length of an answer
	// Passes is how often all prompts are asked. A pass asks the same prompts in
	// the same order as the one before and starts when that has finished.
	Passes int
	// Shuffle mixes the order of the prompts; otherwise group follows group.
	Shuffle bool
	// Rate is the number of arrivals a second within a pass, at random moments
	// (Poisson); 0: all at once.
	Rate float64
	Seed uint64
}

// DefaultSharedPrefix gives 8 groups of 8 prompts, system prompts of 24,576 and
// questions of 16,384 tokens, answers of 128, in two passes.
func DefaultSharedPrefix() SharedPrefixParams {
	return SharedPrefixParams{
		Groups: 8, PromptsPerGroup: 8, SystemTokens: 24576, QuestionTokens: 16384, OutputTokens: 128, Passes: 2,
		Seed: 42,
	}
}

func (p *SharedPrefixParams) settings() []setting {
	return []setting{
		{"groups", &p.Groups}, {"prompts-per-group", &p.PromptsPerGroup},
		{"system-tokens", &p.SystemTokens}, {"question-tokens", &p.QuestionTokens}, {"output-tokens", &p.OutputTokens},
		{"passes", &p.Passes}, {"shuffle", &p.Shuffle}, {"rate", &p.Rate}, {"seed", &p.Seed},
	}
}

func (p *SharedPrefixParams) validate() error {
	var bad problems
	bad.check("groups", p.Groups, 1, maxGenerated)
	bad.check("prompts-per-group", p.PromptsPerGroup, 1, maxGenerated)
	bad.check("passes", p.Passes, 1, maxGenerated)
	bad.check("system-tokens", p.SystemTokens, 0, MaxLength/2)
	bad.check("question-tokens", p.QuestionTokens, 0, MaxLength/2)
	bad.check("output-tokens", p.OutputTokens, 0, MaxLength)
	if p.SystemTokens == 0 && p.QuestionTokens == 0 {
		bad.add("system-tokens and question-tokens are both 0, one must be more")
	}
	if p.Rate != 0 && !(p.Rate >= 1e-3 && p.Rate <= 1e9) {
		bad.add("rate is %v, must be 0 or from 0.001 to 1e9 a second", p.Rate)
	}
	if len(bad) == 0 {
		// Each factor is at most 2^24: two of them fit.
		if n := p.Groups * p.PromptsPerGroup; n > maxGenerated || n*p.Passes > maxGenerated {
			bad.add("groups times prompts-per-group times passes must be at most %d requests", maxGenerated)
		}
	}
	return bad.err("workload shared-prefix")
}

// SharedPrefix makes the workload shared-prefix. Equal parameters give equal
// workloads. A question belongs to its group and place: it comes again in the
// next pass and nowhere else. Requests are named pass/group/prompt, from 1.
func SharedPrefix(p SharedPrefixParams) (*Workload, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	w := &Workload{Name: "shared-prefix", Format: "shared-prefix"}
	b := newBuilder(w, 0)
	random := rand.New(rand.NewPCG(p.Seed, 0))

	type prompt struct {
		group, place int
		text         *piece
		at           time.Duration
	}
	var prompts []prompt
	for g := range p.Groups {
		var system *piece
		if p.SystemTokens > 0 {
			system = system.then(b.fresh(), p.SystemTokens)
		}
		for k := range p.PromptsPerGroup {
			text := system
			if p.QuestionTokens > 0 {
				text = text.then(b.fresh(), p.QuestionTokens)
			}
			prompts = append(prompts, prompt{group: g + 1, place: k + 1, text: text})
		}
	}
	if p.Shuffle {
		random.Shuffle(len(prompts), func(i, k int) { prompts[i], prompts[k] = prompts[k], prompts[i] })
	}
	if p.Rate > 0 {
		at := 0.0 // seconds
		for i := range prompts {
			prompts[i].at = time.Duration(at * float64(time.Second))
			at += random.ExpFloat64() / p.Rate
		}
	}
	var before []int // the whole pass before
	for pass := range p.Passes {
		var this []int
		for _, q := range prompts {
			r := Request{
				ID:       fmt.Sprintf("%d/%d/%d", pass+1, q.group, q.place),
				Arrival:  q.at,
				InputLen: q.text.size(), OutputLen: p.OutputTokens,
				prompt: q.text,
			}
			if pass > 0 {
				r.After, r.Think = before, q.at
			}
			this = append(this, b.add(r))
		}
		before = this
	}
	return w, nil
}
