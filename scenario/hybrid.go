// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/tree"
)

var allComponents = fullAndSWA | tree.SetOf(tree.Mamba)

// hybridCheckpoint lets a request branch off between two states. The state that
// it computes is ahead of the branch point, and must not be attached there.
func hybridCheckpoint(ctx context.Context, o *Options) ([]Arm, error) {
	r, err := newRig(o, setup{
		components: allComponents, page: 1, window: 16, chunk: 64, step: 128,
		pools: cache.PoolSizes{Full: 2048, SWA: 2048, Mamba: 16},
	})
	if err != nil {
		return nil, err
	}
	defer r.engine.Close()
	first := text(1, 200)
	steps := []struct {
		name   string
		prompt []tree.Token
		want   int
	}{
		{"a prompt of 64, which leaves a state there", first[:65], 0},
		{"the same and more, which leaves one at 128", first[:129], 64},
		{"one that branches off at 96 and is computed to 192", join(first[:96], text(2, 97)), 64},
		{"one that has the 96 tokens in common with it", join(first[:96], text(3, 60)), 64},
	}
	arm := Arm{Name: "resuming after a branch", OK: true}
	var want []int
	for i, s := range steps {
		want = append(want, s.want)
		p := engine.Params{Tokens: s.prompt, MaxTokens: 4}
		t, err := r.serve(ctx, p)
		if err != nil {
			return nil, err
		}
		cold, err := r.cold(ctx, p)
		if err != nil {
			return nil, err
		}
		arm.CachedTokens = append(arm.CachedTokens, t.CachedTokens())
		if d := differs(t, cold); d != "" {
			arm.judge(fmt.Sprintf("%s: resumed at %d, expected is %d: %s", s.name, t.CachedTokens(), s.want, d))
		}
		o.progress(i+1, len(steps))
	}
	arm.Expected = want
	if !slices.Equal(arm.CachedTokens, want) {
		arm.judge(fmt.Sprintf("%v tokens were cached, expected are %v", arm.CachedTokens, want))
	}
	return []Arm{arm}, nil
}

// shortenedPrefetch reads prefixes from storage whose window is shorter than the
// model's: at the root that is the whole sequence, below another node it is a
// window with a hole.
func shortenedPrefetch(ctx context.Context, o *Options) ([]Arm, error) {
	if !o.has(HostTier) {
		return nil, &NeedsError{"shortened-prefetch", HostTier}
	}
	dir, err := os.MkdirTemp("", "treecore-scenario-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	const page, window = 4, 8
	prompt := text(1, 40)
	f := storage.Fingerprint{Model: "scenario", Revision: "1", DType: "f32", PageSize: page, Components: fullAndSWA, Window: window, Ranks: 1}
	f.Layout = fmt.Sprint("tiny=", o.Tiny)
	store, err := file.Open(ctx, file.Options{Dir: dir}, f)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	withStore := func() (*rig, error) {
		r, err := newRig(o, setup{
			components: fullAndSWA, page: page, window: window, step: 64,
			pools: cache.PoolSizes{Full: 256, SWA: 256},
			host:  &cache.HostOptions{Pools: cache.PoolSizes{Full: 256, SWA: 256}, LoadBackThreshold: 1},
		})
		if err != nil {
			return nil, err
		}
		err = r.engine.Cache().AttachStorage(cache.StorageOptions{Store: store, StopPolicy: cache.WaitComplete, PrefetchThreshold: page})
		if err != nil {
			r.engine.Close()
			return nil, err
		}
		return r, nil
	}
	// serve runs a prompt and lets everything reach the store.
	serve := func(r *rig, p []tree.Token) (*engine.Task, error) {
		t, err := r.serve(ctx, engine.Params{Tokens: p, MaxTokens: 1})
		if err != nil {
			return nil, err
		}
		return t, r.engine.Cache().Sync(ctx)
	}
	arms := []struct {
		name   string
		stored int // tokens that the store has
		cached int // tokens that are in the tree before
		want   int // tokens reused
		from   int // those of them from storage
		swa    int // SWA slots on the host afterwards that were not there before
	}{
		{"one page at the root: accepted", 4, 0, 4, 4, 4},
		{"one page below a node: rejected, its host slots come back", 12, 8, 8, 0, 0},
		{"a whole window below a node: accepted", 24, 8, 24, 16, 8},
	}
	var out []Arm
	for i, a := range arms {
		if err := store.Clear(ctx); err != nil {
			return nil, err
		}
		arm := Arm{Name: a.name, OK: true, Expected: map[string]int{"cached_tokens": a.want, "from_storage": a.from, "swa_host_slots": a.swa}}
		err := func() error {
			writer, err := withStore()
			if err != nil {
				return err
			}
			defer writer.engine.Close()
			if _, err := serve(writer, prompt[:a.stored]); err != nil {
				return err
			}
			p := engine.Params{Tokens: prompt[:a.stored+1], MaxTokens: 1}
			slots, err := keptSlots(ctx, withStore, serve, prompt[:a.cached], p.Tokens)
			if err != nil {
				return err
			}
			reader, err := withStore()
			if err != nil {
				return err
			}
			defer reader.engine.Close()
			if a.cached > 0 {
				if _, err := serve(reader, prompt[:a.cached]); err != nil {
					return err
				}
			}
			t, err := serve(reader, p.Tokens)
			if err != nil {
				return err
			}
			arm.CachedTokens = []int{t.CachedTokens()}
			arm.Measured = map[string]any{"from_storage": t.Origin().Storage, "swa_host_slots": slots}
			if t.CachedTokens() != a.want || t.Origin().Storage != a.from || slots != a.swa {
				arm.judge(fmt.Sprintf("cached %d, from storage %d, SWA slots kept on the host %d", t.CachedTokens(), t.Origin().Storage, slots))
			}
			cold, err := reader.cold(ctx, p)
			if err != nil {
				return err
			}
			arm.judge(differs(t, cold))
			return nil
		}()
		if err != nil {
			return nil, err
		}
		out = append(out, arm)
		o.progress(i+1, len(arms))
	}
	return out, nil
}

// keptSlots returns how many SWA slots on the host a prefetch takes for good,
// before the request that it is for computes anything.
func keptSlots(ctx context.Context, open func() (*rig, error), serve func(*rig, []tree.Token) (*engine.Task, error), before, prompt []tree.Token) (int, error) {
	r, err := open()
	if err != nil {
		return 0, err
	}
	defer r.engine.Close()
	if len(before) > 0 {
		if _, err := serve(r, before); err != nil {
			return 0, err
		}
	}
	c := r.engine.Cache()
	free := c.HostUsage(tree.SWA).Free
	request, err := c.NewRequest(cache.RequestParams{Tokens: prompt})
	if err != nil {
		return 0, err
	}
	if err := c.Prefetch(request); err != nil {
		return 0, err
	}
	for ready := false; !ready; {
		if err := c.Sync(ctx); err != nil {
			return 0, err
		}
		if ready, err = c.Ready(request); err != nil {
			return 0, err
		}
	}
	if err := c.Abort(request); err != nil {
		return 0, err
	}
	return free - c.HostUsage(tree.SWA).Free, c.Tick()
}
