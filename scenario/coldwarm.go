// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/tree"
)

// mix is one way to put a cache together.
type mix struct {
	components tree.ComponentSet
	page       int
	host       bool
	policy     cache.WritePolicy
	buffer     bool // host memory is a staging area only
	storage    bool
}

func (m mix) String() string {
	s := fmt.Sprintf("%v, page %d", m.components, m.page)
	switch {
	case m.buffer:
		s += ", host as a buffer"
	case m.host:
		s += ", " + m.policy.String()
	}
	if m.storage {
		s += ", storage"
	}
	return s
}

// mixes lists all component sets and page sizes with every arrangement of tiers.
func mixes() []mix {
	var out []mix
	for _, set := range []tree.ComponentSet{tree.SetOf(tree.Full), fullAndSWA, tree.SetOf(tree.Full) | tree.SetOf(tree.Mamba), allComponents} {
		for _, page := range []int{1, 16, 64} {
			m := mix{components: set, page: page}
			out = append(out, m)
			m.host = true
			for _, m.storage = range []bool{false, true} {
				for _, m.policy = range []cache.WritePolicy{cache.WriteThrough, cache.WriteThroughSelective, cache.WriteBack} {
					out = append(out, m)
				}
			}
			if !set.Has(tree.Mamba) { // which a staging area has no room for
				m.policy, m.buffer = cache.WriteThrough, true
				out = append(out, m)
			}
		}
	}
	return out
}

// coldWarm runs random traffic over every mix, with a device tier so small that
// everything is evicted all the time, and compares each answer with that of an
// empty cache.
func coldWarm(ctx context.Context, o *Options) ([]Arm, error) {
	all := mixes()
	var out []Arm
	done := 0
	for i, m := range all {
		n := o.Requests*(i+1)/len(all) - o.Requests*i/len(all)
		if n == 0 {
			continue
		}
		arm, err := o.traffic(ctx, m, n, rand.New(rand.NewPCG(o.Seed, uint64(i))))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", m, err)
		}
		out = append(out, *arm)
		done += n
		o.progress(done, o.Requests)
	}
	return out, nil
}

// traffic serves n requests over one mix.
func (o *Options) traffic(ctx context.Context, m mix, n int, draw *rand.Rand) (*Arm, error) {
	window := m.page + 1 + draw.IntN(m.page+2)
	const running = 4
	buffers := 1 + draw.IntN(2)
	s := setup{
		// States lie on a grid that is coarser than the pages, or as fine.
		components: m.components, page: m.page, window: window, chunk: m.page << draw.IntN(3), step: 3*m.page + draw.IntN(3*m.page),
		running: running, buffers: buffers,
		pools: cache.PoolSizes{Full: 16 * m.page, SWA: 16 * m.page, Mamba: running*(1+buffers) + 1},
	}
	if m.host {
		s.host = &cache.HostOptions{
			Pools: cache.PoolSizes{Full: 20 * m.page, SWA: 16 * m.page, Mamba: 6}, Policy: m.policy, LoadBackThreshold: 1,
			BufferOnly: m.buffer, Context: ctx,
		}
	}
	r, err := newRig(o, s)
	if err != nil {
		return nil, err
	}
	defer r.engine.Close()
	if m.storage && o.has(HostTier) {
		dir, err := os.MkdirTemp("", "treecore-scenario-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		f := storage.Fingerprint{Model: "scenario", Revision: "1", DType: "f32", PageSize: m.page, Components: m.components, Ranks: 1}
		if m.components.Has(tree.SWA) {
			f.Window = window
		}
		store, err := file.Open(ctx, file.Options{Dir: dir}, f)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		err = r.engine.Cache().AttachStorage(cache.StorageOptions{
			Store: store, StopPolicy: cache.StopPolicy(draw.IntN(2)), PrefetchThreshold: m.page,
		})
		if err != nil {
			return nil, err
		}
		defer r.engine.Cache().Close() // before its store
	}
	arm := &Arm{Name: m.String(), Expected: "no difference", OK: true}
	type pair struct {
		task   *engine.Task
		params engine.Params
	}
	var pairs []pair
	reused, differences := 0, 0
	compare := func() error {
		for _, p := range pairs {
			if err := p.task.Err(); err != nil {
				differences++
				arm.judge(err.Error())
				continue
			}
			cold, err := r.cold(ctx, p.params)
			if err != nil {
				return err
			}
			if d := differs(p.task, cold); d != "" {
				differences++
				arm.judge(d)
			}
			reused += p.task.CachedTokens()
		}
		pairs = pairs[:0]
		return nil
	}
	for i := range n {
		var prompt []tree.Token
		for part := range 1 + draw.IntN(3) {
			length := 2 * m.page
			if part == 0 { // shared beginnings reach over the coarsest grid
				length = 5 * m.page
			}
			t := text(draw.IntN(3), length)
			prompt = append(prompt, t[:1+draw.IntN(len(t))]...)
		}
		p := engine.Params{
			Tokens: prompt, MaxTokens: 1 + draw.IntN(2*m.page+2), Seed: uint64(i), Temperature: float64(draw.IntN(2)),
			Priority: int64(draw.IntN(2)),
		}
		t, err := r.engine.Submit(p)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{t, p})
		for range draw.IntN(6) {
			if _, err := r.engine.Step(ctx); err != nil {
				return nil, err
			}
		}
		if len(pairs) == 16 || i == n-1 {
			if err := r.engine.Drain(ctx); err != nil {
				return nil, err
			}
			if err := compare(); err != nil {
				return nil, err
			}
		}
	}
	st := r.engine.Cache().Stats()
	arm.Measured = map[string]any{
		"requests": n, "differences": differences, "reused_tokens": reused, "evicted_tokens": st.Evicted[tree.Full],
		"from_host": st.ReusedFromHost, "from_storage": st.ReusedFromStorage, "retractions": r.engine.Stats().Retractions,
	}
	return arm, nil
}
