// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/engine/tiny"
	"github.com/treecore/treecore/tree"
)

// rig is an engine with what a scenario needs of it.
type rig struct {
	engine *engine.Engine
	model  func() (engine.Model, error) // a further one of the same weights
}

// setup says what an arm runs on.
type setup struct {
	components tree.ComponentSet
	page       int
	window     int
	chunk      int // of states
	step       int // prompt tokens of a step
	pools      cache.PoolSizes
	host       *cache.HostOptions
	running    int
	buffers    int       // track buffers of a request; 0: one
	broken     []Feature // features that this arm leaves out, whatever the options say
}

const vocabulary = 2048

// newRig makes an engine. Close it.
func newRig(o *Options, s setup) (*rig, error) {
	has := func(f Feature) bool { return o.has(f) && !slices.Contains(s.broken, f) }
	r := &rig{model: func() (engine.Model, error) {
		if o.Tiny {
			return tiny.New(tiny.Options{Components: s.components, Window: s.window, Chunk: s.chunk, Vocabulary: vocabulary})
		}
		return symbolic.New(symbolic.Options{Components: s.components, Window: s.window, Chunk: s.chunk, Vocabulary: vocabulary})
	}}
	m, err := r.model()
	if err != nil {
		return nil, err
	}
	host := s.host
	if !has(HostTier) {
		host = nil
	}
	r.engine, err = engine.New(engine.Options{
		Model: m, ChunkTokens: s.step, MaxRunning: s.running, ShareStates: !has(CopyOnWrite),
		Cache: cache.Options{
			Tree: tree.Options{PageSize: s.page}, Pools: s.pools, TrackBuffers: max(s.buffers, 1), Host: host,
			NoBranching: !has(Branching), KeepOutOfWindow: !has(Freeing),
			Broken: cache.Broken{HybridGuard: !has(HybridGuard), WindowCheck: !has(WindowCheck), ShortWindow: !has(ShortWindow)},
		},
	})
	return r, err
}

// serve runs one request to its end.
func (r *rig) serve(ctx context.Context, p engine.Params) (*engine.Task, error) {
	t, err := r.engine.Submit(p)
	if err != nil {
		return nil, err
	}
	if err := r.engine.Drain(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// cold runs a request on an engine that reuses nothing.
func (r *rig) cold(ctx context.Context, p engine.Params) (*engine.Task, error) {
	m, err := r.model()
	if err != nil {
		return nil, err
	}
	// Whole pages of one, for the prompt and what follows.
	n := len(p.Tokens) + max(p.MaxTokens, engine.DefaultMaxTokens) + 1
	e, err := engine.New(engine.Options{
		Model: m, ChunkTokens: n,
		Cache: cache.Options{Pools: cache.PoolSizes{Full: n, SWA: n, Mamba: 1}, Disabled: true},
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	p.OnToken, p.OnEnd = nil, nil
	t, err := e.Submit(p)
	if err != nil {
		return nil, err
	}
	return t, errors.Join(e.Drain(ctx), t.Err())
}

// differs says how a warm answer differs from the cold one; "": it does not.
func differs(warm, cold *engine.Task) string {
	if err := warm.Err(); err != nil {
		return err.Error()
	}
	if m := warm.Mismatches(); len(m) > 0 {
		return fmt.Sprintf("request %d read %v", warm.ID(), m[0])
	}
	a, b := warm.Output(), cold.Output()
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return fmt.Sprintf("request %d: token %d differs from the cold run's", warm.ID(), i)
		}
		if warm.LogProbs()[i] != cold.LogProbs()[i] {
			return fmt.Sprintf("request %d: the log-probability of token %d differs from the cold run's", warm.ID(), i)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("request %d gives %d tokens, the cold run %d", warm.ID(), len(a), len(b))
	}
	return ""
}

// text makes n tokens of a text of that number. Texts differ in their first
// token.
func text(number, n int) []tree.Token {
	out := make([]tree.Token, n)
	for i := range out {
		out[i] = tree.Token((i*31 + number*97) % vocabulary)
	}
	return out
}

func join(parts ...[]tree.Token) []tree.Token { return slices.Concat(parts...) }
