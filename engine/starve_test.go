// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
)

// A request that was saved on the host runs on, though others come without end.
func TestSavedRequestIsNotStarved(t *testing.T) {
	e := newEngine(t, func(o *engine.Options) {
		o.SaveRetracted = true
		o.Cache.Pools.Full = 100
		o.Cache.Host = &cache.HostOptions{Pools: cache.PoolSizes{Full: 400}}
	})
	ctx := context.Background()
	first := must(e.Submit(engine.Params{Tokens: span(1, 10), MaxTokens: 40}))
	// Its end lets others in again while there is no room yet for the saved one.
	must(e.Submit(engine.Params{Tokens: span(201, 205), MaxTokens: 8}))
	saved := must(e.Submit(engine.Params{Tokens: span(101, 170), MaxTokens: 20}))
	for e.Stats().Retractions == 0 {
		must(e.Step(ctx))
	}
	if saved.Retracted() != 1 || e.Cache().Stats().Retractions != 1 {
		t.Fatalf("%d retractions, %d saved", saved.Retracted(), e.Cache().Stats().Retractions)
	}
	for step := 0; saved.Finished() == engine.Unfinished; step++ {
		if step > 1000 {
			t.Fatalf("after %d steps the saved request has %d tokens", step, len(saved.Output()))
		}
		if step%3 == 0 { // each takes 22 slots in the end
			from := 1000 + 100*step
			must(e.Submit(engine.Params{Tokens: span(from, from+9), MaxTokens: 12}))
		}
		must(e.Step(ctx))
	}
	if first.Finished() != engine.FinishLength || saved.Finished() != engine.FinishLength {
		t.Errorf("%v and %v", first.Finished(), saved.Finished())
	}
	drain(t, e)
}
