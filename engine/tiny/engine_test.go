// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/tiny"
	"github.com/treecore/treecore/tree"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An engine answers from a warm cache what it answers without reuse: the same
// tokens with the same probabilities, to the last bit.
func TestWarmEqualsCold(t *testing.T) {
	for _, layers := range []string{"full,full", "full,swa,full", "mamba,full", "swa,full,mamba,full"} {
		t.Run(layers, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { warm(t, layers) })
		})
	}
}

func warm(t *rapid.T, layers string) {
	page := rapid.SampledFrom([]int{1, 4}).Draw(t, "page")
	network := tiny.Options{
		Layers: layers, Window: rapid.IntRange(1, 3*page+2).Draw(t, "window"), Chunk: rapid.IntRange(1, 4).Draw(t, "grid"),
		Hidden: 8, Heads: 2, HeadDim: 4, Vocabulary: 8,
	}
	model := must(tiny.New(network))
	mamba := model.Spec().Components.Has(tree.Mamba)
	o := engine.Options{
		Model:       model,
		ChunkTokens: rapid.IntRange(1, 12).Draw(t, "chunk"),
		MaxRunning:  rapid.IntRange(1, 4).Draw(t, "running"),
		Cache: cache.Options{
			Tree: tree.Options{PageSize: page, Eagle: !mamba && rapid.Bool().Draw(t, "eagle")},
			Pools: cache.PoolSizes{
				Full:  page * rapid.IntRange(20, 60).Draw(t, "full"),
				SWA:   page * rapid.IntRange(16, 40).Draw(t, "swa"),
				Mamba: rapid.IntRange(3, 10).Draw(t, "states"),
			},
		},
	}
	if !mamba {
		o.Drafts = rapid.IntRange(0, 2).Draw(t, "drafts")
	}
	if rapid.Bool().Draw(t, "host") {
		o.Cache.Host = &cache.HostOptions{
			Pools:             cache.PoolSizes{Full: page * 60, SWA: page * 40, Mamba: 8},
			Policy:            cache.WritePolicy(rapid.IntRange(0, 2).Draw(t, "policy")),
			LoadBackThreshold: 1, Manual: true,
		}
	}
	e := must(engine.New(o))
	defer e.Close()
	var tasks []*engine.Task
	var params []engine.Params
	for range rapid.IntRange(1, 5).Draw(t, "requests") {
		var prompt []tree.Token
		for range rapid.IntRange(1, 2).Draw(t, "blocks") {
			first := rapid.IntRange(0, 1).Draw(t, "block")
			for i := range rapid.IntRange(1, 12).Draw(t, "length") {
				prompt = append(prompt, tree.Token((first+i*i)%8))
			}
		}
		p := engine.Params{Tokens: prompt, MaxTokens: rapid.IntRange(1, 8).Draw(t, "output"), Temperature: 1, Seed: uint64(len(tasks))}
		task, err := e.Submit(p)
		if err != nil {
			continue // larger than the pools
		}
		tasks, params = append(tasks, task), append(params, p)
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			if _, err := e.Step(context.Background()); err != nil {
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
		want := alone(t, network, params[i])
		equal := slices.EqualFunc(task.LogProbs(), want.LogProbs(), func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
		if !equal || !slices.Equal(task.Output(), want.Output()) {
			t.Fatalf("request %d after %d cached tokens: %v %v, cold %v %v", task.ID(), task.CachedTokens(), task.Output(), task.LogProbs(), want.Output(), want.LogProbs())
		}
	}
}

// alone runs one request on an engine without reuse, in one piece.
func alone(t *rapid.T, o tiny.Options, p engine.Params) *engine.Task {
	e := must(engine.New(engine.Options{
		Model: must(tiny.New(o)),
		Cache: cache.Options{Pools: cache.PoolSizes{Full: 64, SWA: 64, Mamba: 1}, Disabled: true},
	}))
	defer e.Close()
	task := must(e.Submit(p))
	if err := e.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	return task
}

// The second of two equal prompts is answered from the cache, and the same.
func Example() {
	model := must(tiny.New(tiny.Options{Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba)}))
	e := must(engine.New(engine.Options{
		Model: model,
		Cache: cache.Options{Pools: cache.PoolSizes{Full: 256, SWA: 256, Mamba: 8}, Tree: tree.Options{PageSize: 16}},
	}))
	defer e.Close()
	prompt := make([]tree.Token, 50)
	for i := range prompt {
		prompt[i] = tree.Token(7 * i)
	}
	for range 2 {
		task := must(e.Submit(engine.Params{Tokens: prompt, MaxTokens: 4}))
		if err := e.Drain(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(task.CachedTokens(), "tokens cached, the answer is", task.Output())
	}
	// Output:
	// 0 tokens cached, the answer is [150 109 435 211]
	// 48 tokens cached, the answer is [150 109 435 211]
}
