// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

var fullAndSWA = tree.SetOf(tree.Full) | tree.SetOf(tree.SWA)

// sizes are those of a deployment, or what is left of them for the tiny network.
type sizes struct{ prefix, question, chunk, window, page int }

func sizesOf(o *Options) sizes {
	s := sizes{prefix: 24576, question: 16384, chunk: 16384, window: 128, page: 16}
	if o.Tiny { // 1/256 of it
		s = sizes{prefix: 96, question: 64, chunk: 64, window: 4, page: 1}
	}
	return s
}

// branching serves four prompts with a prefix in common that ends inside a chunk.
// Its window was freed with the first one; the second finds that it is missing and
// publishes it.
func branching(ctx context.Context, o *Options) ([]Arm, error) {
	z := sizesOf(o)
	arms := []struct {
		name   string
		broken []Feature
		want   []int
	}{
		{"branching on", nil, []int{0, z.chunk, z.prefix, z.prefix}},
		{"branching off", []Feature{Branching}, []int{0, z.chunk, z.chunk, z.chunk}},
		{"out-of-window freeing off", []Feature{Freeing}, []int{0, z.prefix, z.prefix, z.prefix}},
	}
	var out []Arm
	for _, a := range arms {
		if len(a.broken) > 0 && !o.has(a.broken[0]) {
			continue // that is what the first arm shows then
		}
		n := 4 * (z.prefix + z.question + 4*z.page)
		r, err := newRig(o, setup{
			components: fullAndSWA, page: z.page, window: z.window, step: z.chunk, broken: a.broken,
			pools: cache.PoolSizes{Full: n, SWA: n},
		})
		if err != nil {
			return nil, err
		}
		arm := Arm{Name: a.name, Expected: a.want, OK: true}
		for i := range 4 {
			p := engine.Params{Tokens: join(text(0, z.prefix), text(1+i, z.question)), MaxTokens: 2}
			t, err := r.serve(ctx, p)
			if err != nil {
				r.engine.Close()
				return nil, err
			}
			arm.CachedTokens = append(arm.CachedTokens, t.CachedTokens())
			cold, err := r.cold(ctx, p)
			if err != nil {
				r.engine.Close()
				return nil, err
			}
			arm.judge(differs(t, cold))
			o.progress(len(out)*4+i+1, 4*len(arms))
		}
		r.engine.Close()
		if !slices.Equal(arm.CachedTokens, a.want) {
			arm.judge(fmt.Sprintf("%v tokens were cached, expected are %v", arm.CachedTokens, a.want))
		}
		out = append(out, arm)
	}
	return out, nil
}

// judge notes a problem; "" is none.
func (a *Arm) judge(problem string) {
	if problem != "" && a.OK {
		a.OK, a.Problem = false, problem
	}
}

func (o *Options) progress(done, of int) {
	if o.Progress != nil {
		o.Progress(min(done, of), of)
	}
}

// sharedPrefix serves groups of prompts with a system prompt in common twice, in a
// shuffled order, and measures the second pass. Device memory holds three tenths of
// the distinct tokens, and windows of a tenth of that. A deployment of a model with
// such a pool has measured 36.6 % without branch points and 46.5 to 47.1 % with
// them.
func sharedPrefix(ctx context.Context, o *Options) ([]Arm, error) {
	z := sizesOf(o)
	const groups, prompts = 8, 8
	output, share := 128, 30 // of a hundred
	if o.Tiny {
		output, share = 4, 40 // what is generated weighs more at that size
	}
	full := groups * (z.prefix + prompts*z.question) * share / 100 / z.page * z.page
	swa := max(full/10, z.chunk+6*z.window+4*z.page) / z.page * z.page
	measure := func(arm *Arm, broken []Feature) error {
		r, err := newRig(o, setup{
			components: fullAndSWA, page: z.page, window: z.window, step: z.chunk, broken: broken,
			pools: cache.PoolSizes{Full: full, SWA: swa}, running: 1,
		})
		if err != nil {
			return err
		}
		defer r.engine.Close()
		draw := rand.New(rand.NewPCG(1, o.Seed))
		cached, input := 0, 0
		for pass := range 2 {
			var tasks []*engine.Task
			for _, i := range draw.Perm(groups * prompts) {
				t, err := r.engine.Submit(engine.Params{
					Tokens: join(text(i%groups, z.prefix), text(groups+i, z.question)), MaxTokens: output,
				})
				if err != nil {
					return err
				}
				tasks = append(tasks, t)
			}
			if err := r.engine.Drain(ctx); err != nil {
				return err
			}
			for _, t := range tasks {
				if err := t.Err(); err != nil {
					arm.judge(err.Error())
				}
				if m := t.Mismatches(); len(m) > 0 {
					arm.judge(fmt.Sprintf("request %d read %v", t.ID(), m[0]))
				}
				if pass == 1 {
					cached, input = cached+t.CachedTokens(), input+t.PromptLen()
				}
			}
		}
		rate := float64(cached) / float64(input)
		arm.TokenHitRate = &rate
		arm.Measured = map[string]any{"full_slots": full, "swa_slots": swa, "requests": groups * prompts}
		return nil
	}
	on := Arm{Name: "branching on", Expected: "40 to 55 % (a deployment: 46.5 to 47.1 %), and 5 points more than off", OK: true}
	off := Arm{Name: "branching off", Expected: "30 to 42 % (a deployment: 36.6 %)", OK: true}
	if err := measure(&on, nil); err != nil {
		return nil, err
	}
	o.progress(1, 2)
	if err := measure(&off, []Feature{Branching}); err != nil {
		return nil, err
	}
	o.progress(2, 2)
	between := func(a *Arm, low, high float64) {
		if v := *a.TokenHitRate; v < low || v > high {
			a.judge(fmt.Sprintf("%.1f %% of the tokens are reused", 100*v))
		}
	}
	if o.Tiny { // the deployment's numbers are those of the full size
		on.Expected, off.Expected = "5 points more than off", "less than on"
	} else {
		between(&on, 0.40, 0.55)
		between(&off, 0.30, 0.42)
	}
	if gain := *on.TokenHitRate - *off.TokenHitRate; gain < 0.05 {
		on.judge(fmt.Sprintf("%.1f points more than without", 100*gain))
	}
	return []Arm{on, off}, nil
}
