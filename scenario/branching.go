// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
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

// sharedPrefix serves groups of prompts twice and measures the second pass.
func sharedPrefix(ctx context.Context, o *Options) ([]Arm, error) {
	z := sizesOf(o)
	groups, prompts, output := 8, 8, 128
	if o.Tiny {
		groups, prompts, output = 4, 4, 4
	}
	// Room for three quarters of what the prompts are, and a tenth of that for
	// windows.
	distinct := groups * (z.prefix + prompts*z.question)
	full := distinct * 3 / 4 / z.page * z.page
	swa := max(full/10, z.chunk+6*z.window+4*z.page) / z.page * z.page
	var rates [2]float64
	var out []Arm
	for i, broken := range [][]Feature{nil, {Branching}} {
		r, err := newRig(o, setup{
			components: fullAndSWA, page: z.page, window: z.window, step: z.chunk, broken: broken,
			pools: cache.PoolSizes{Full: full, SWA: swa}, running: 4,
		})
		if err != nil {
			return nil, err
		}
		cached, input := 0, 0
		arm := Arm{Name: "branching on", OK: true}
		if i == 1 {
			arm.Name = "branching off"
		}
		for pass := range 2 {
			var tasks []*engine.Task
			for q := range prompts {
				for g := range groups {
					t, err := r.engine.Submit(engine.Params{
						Tokens: join(text(g, z.prefix), text(groups+g*prompts+q, z.question)), MaxTokens: output,
					})
					if err != nil {
						r.engine.Close()
						return nil, err
					}
					tasks = append(tasks, t)
				}
			}
			if err := r.engine.Drain(ctx); err != nil {
				r.engine.Close()
				return nil, err
			}
			for _, t := range tasks {
				if t.Err() != nil {
					arm.judge(t.Err().Error())
				}
				if m := t.Mismatches(); len(m) > 0 {
					arm.judge(fmt.Sprintf("request %d read %v", t.ID(), m[0]))
				}
				if pass == 1 {
					cached, input = cached+t.CachedTokens(), input+t.PromptLen()
				}
			}
			o.progress(2*i+pass+1, 4)
		}
		r.engine.Close()
		rates[i] = float64(cached) / float64(input)
		arm.TokenHitRate = &rates[i]
		arm.Measured = map[string]any{"full_slots": full, "swa_slots": swa, "requests": groups * prompts}
		out = append(out, arm)
	}
	out[0].Expected = "more than with branching off"
	out[1].Expected = fmt.Sprintf("at most %.1f %%: the chunk below the branch point", 100*float64(z.chunk)/float64(z.prefix+z.question))
	if o.has(Branching) {
		if rates[0] <= rates[1] {
			out[0].judge(fmt.Sprintf("%.1f %% of the tokens are reused, %.1f %% without", 100*rates[0], 100*rates[1]))
		}
	}
	return out, nil
}
