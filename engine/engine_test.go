// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func set(swa, mamba bool) tree.ComponentSet {
	s := tree.SetOf(tree.Full)
	if swa {
		s |= tree.SetOf(tree.SWA)
	}
	if mamba {
		s |= tree.SetOf(tree.Mamba)
	}
	return s
}

var sets = []tree.ComponentSet{set(false, false), set(true, false), set(false, true), set(true, true)}

func span(from, to int) []tree.Token {
	out := make([]tree.Token, 0, to-from+1)
	for i := from; i <= to; i++ {
		out = append(out, tree.Token(i))
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cold returns what the prompt gives on an engine without reuse.
func cold(t interface{ Fatal(...any) }, o symbolic.Options, p engine.Params) []tree.Token {
	e := must(engine.New(engine.Options{
		Model: must(symbolic.New(o)),
		Cache: cache.Options{Pools: cache.PoolSizes{Full: 4096, SWA: 4096, Mamba: 1}, Disabled: true},
	}))
	defer e.Close()
	p.OnToken, p.OnEnd = nil, nil
	task := must(e.Submit(p))
	if err := e.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if task.Finished() == engine.FinishFailed || len(task.Mismatches()) > 0 {
		t.Fatal(task.Err(), task.Mismatches())
	}
	return task.Output()
}

// A warm engine answers what a cold one answers, over all mixes, with a device
// that is too small for what runs on it.
func TestWarmEqualsCold(t *testing.T) {
	for _, components := range sets {
		for _, page := range []int{1, 4, 16} {
			t.Run(fmt.Sprintf("%v/page %d", components, page), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { warm(t, components, page) })
			})
		}
	}
}

func warm(t *rapid.T, components tree.ComponentSet, page int) {
	mamba := components.Has(tree.Mamba)
	model := symbolic.Options{Components: components, Window: rapid.IntRange(1, 3*page+2).Draw(t, "window"), Chunk: page, Vocabulary: 3}
	o := engine.Options{
		Model:       must(symbolic.New(model)),
		ChunkTokens: rapid.IntRange(1, 6*page).Draw(t, "chunk"),
		MaxRunning:  rapid.IntRange(1, 5).Draw(t, "running"),
		Order:       engine.Order(rapid.IntRange(0, 2).Draw(t, "order")),
		Cache: cache.Options{
			Tree: tree.Options{PageSize: page, Eagle: !mamba && rapid.Bool().Draw(t, "eagle")},
			Pools: cache.PoolSizes{
				Full:  page * rapid.IntRange(12, 40).Draw(t, "full"),
				SWA:   page * rapid.IntRange(14, 30).Draw(t, "swa"),
				Mamba: rapid.IntRange(3, 10).Draw(t, "states"),
			},
			TrackBuffers: rapid.IntRange(1, 2).Draw(t, "buffers"),
		},
	}
	if !mamba {
		o.Drafts = rapid.IntRange(0, 3).Draw(t, "drafts")
	}
	if rapid.Bool().Draw(t, "host") {
		o.Cache.Host = &cache.HostOptions{
			Pools:             cache.PoolSizes{Full: page * 30, SWA: page * 20, Mamba: 8},
			Policy:            cache.WritePolicy(rapid.IntRange(0, 2).Draw(t, "policy")),
			LoadBackThreshold: 1, Manual: true,
		}
		o.SaveRetracted = !mamba && rapid.Bool().Draw(t, "save")
	}
	e := must(engine.New(o))
	defer e.Close()
	var tasks []*engine.Task
	var params []engine.Params
	for range rapid.IntRange(1, 8).Draw(t, "requests") {
		var prompt []tree.Token
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			first := rapid.IntRange(0, 1).Draw(t, "block") * 100
			prompt = append(prompt, span(first, first+rapid.IntRange(0, 2*page).Draw(t, "length"))...)
		}
		p := engine.Params{
			Tokens: prompt, MaxTokens: rapid.IntRange(1, 2*page+3).Draw(t, "output"),
			Temperature: float64(rapid.IntRange(0, 1).Draw(t, "temperature")), Seed: uint64(len(tasks)),
			Priority: int64(rapid.IntRange(0, 1).Draw(t, "priority")),
		}
		task, err := e.Submit(p)
		if err != nil {
			continue // larger than the pools
		}
		tasks, params = append(tasks, task), append(params, p)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			if _, err := e.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := e.Cache().CheckConservation(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, task := range tasks {
		if task.Finished() == engine.FinishFailed {
			continue // no room even alone
		}
		if want := cold(t, model, params[i]); !slices.Equal(task.Output(), want) || len(task.Mismatches()) > 0 {
			t.Fatalf("request %d: %v, cold %v; %v", task.ID(), task.Output(), want, task.Mismatches())
		}
	}
	if err := e.Cache().Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := e.Cache().CheckConservation(); err != nil {
		t.Fatal(err)
	}
	for id := range tree.Component(tree.NumComponents) {
		if u := e.Cache().Usage(id); u.Held+u.Protected != 0 {
			t.Fatalf("%v: %+v after the end", id, u)
		}
	}
}
