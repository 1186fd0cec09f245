// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/engine/tiny"
	"github.com/treecore/treecore/tree"
)

func newEngine(t *testing.T, change func(*engine.Options)) *engine.Engine {
	t.Helper()
	o := engine.Options{
		Model: must(symbolic.New(symbolic.Options{})),
		Cache: cache.Options{Tree: tree.Options{PageSize: 1}, Pools: cache.PoolSizes{Full: 1000}},
	}
	if change != nil {
		change(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func drain(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// ended submits prompts together and returns the order in which they end.
func ended(t *testing.T, e *engine.Engine, params ...engine.Params) []int {
	t.Helper()
	var order []int
	for i, p := range params {
		p.MaxTokens = 1
		p.OnEnd = func(*engine.Task) { order = append(order, i) }
		if _, err := e.Submit(p); err != nil {
			t.Fatal(err)
		}
	}
	drain(t, e)
	return order
}

func TestOrders(t *testing.T) {
	prompts := []engine.Params{
		{Tokens: span(500, 510)},                       // nothing of it is cached
		{Tokens: append(span(1, 10), 77)},              // 10 tokens
		{Tokens: append(span(1, 30), 77)},              // 30 tokens
		{Tokens: append(span(101, 110), 77)},           // 10 tokens of another branch
		{Tokens: append(span(1, 20), 78)},              // 20 tokens
		{Tokens: append(span(1, 20), 79), Priority: 1}, // goes first everywhere
	}
	for order, want := range map[engine.Order][]int{
		engine.FirstCome:     {5, 0, 1, 2, 3, 4},
		engine.LongestPrefix: {5, 2, 4, 1, 3, 0},
		engine.DepthFirst:    {5, 2, 4, 1, 3, 0}, // the branch that most wait for, from its end
	} {
		e := newEngine(t, func(o *engine.Options) { o.Order, o.MaxRunning = order, 1 })
		ended(t, e, engine.Params{Tokens: append(span(1, 40), 5)}, engine.Params{Tokens: append(span(101, 140), 5)})
		if got := ended(t, e, prompts...); !slices.Equal(got, want) {
			t.Errorf("%v: ended in the order %v, want %v", order, got, want)
		}
	}
	for _, name := range []string{"first-come", "longest-prefix", "depth-first"} {
		if o, err := engine.ParseOrder(name); err != nil || o.String() != name {
			t.Errorf("%s: %v, %v", name, o, err)
		}
	}
	var bad *tree.ConfigError
	if _, err := engine.ParseOrder("random"); !errors.As(err, &bad) {
		t.Error(err)
	}
}

func TestBadOptionsAndRequests(t *testing.T) {
	model := must(symbolic.New(symbolic.Options{Components: set(false, true)}))
	pools := cache.Options{Pools: cache.PoolSizes{Full: 100, Mamba: 10}}
	for field, o := range map[string]engine.Options{
		"Model":       {Cache: pools},
		"ChunkTokens": {Model: model, Cache: pools, ChunkTokens: -1},
		"MaxRunning":  {Model: model, Cache: pools, MaxRunning: -1},
		"Order":       {Model: model, Cache: pools, Order: 9},
		"Drafts":      {Model: model, Cache: pools, Drafts: 2},
		"Pools.Full":  {Model: model},
		"Host":        {Model: model, Cache: pools, SaveRetracted: true},
	} {
		var bad *tree.ConfigError
		if _, err := engine.New(o); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	e := newEngine(t, func(o *engine.Options) { o.Model = must(tiny.New(tiny.Options{Vocabulary: 16})) })
	var argument *cache.ArgumentError
	var large *cache.TooLargeError
	for _, p := range []engine.Params{{}, {Tokens: span(1, 3), MaxTokens: -1}, {Tokens: span(1, 3), Temperature: -1}, {Tokens: span(14, 16)}} {
		if _, err := e.Submit(p); !errors.As(err, &argument) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := e.Submit(engine.Params{Tokens: make([]tree.Token, 2000)}); !errors.As(err, &large) {
		t.Error(err)
	}
	if ok := ended(t, e, engine.Params{Tokens: span(1, 3)}); len(ok) != 1 {
		t.Error("the engine does not serve on")
	}
}

// An abort at any step gives everything back, also from within a callback.
func TestAbort(t *testing.T) {
	for steps := range 12 {
		e := newEngine(t, func(o *engine.Options) { o.ChunkTokens = 8 })
		task := must(e.Submit(engine.Params{Tokens: span(1, 40), MaxTokens: 20}))
		other := must(e.Submit(engine.Params{Tokens: span(1, 20), MaxTokens: 5}))
		for range steps {
			if _, err := e.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := e.Abort(task); err != nil {
				t.Fatal(err)
			}
		}
		drain(t, e)
		if task.Finished() != engine.FinishAborted || other.Finished() != engine.FinishLength || len(other.Output()) != 5 {
			t.Fatalf("after %d steps: %v and %v", steps, task.Finished(), other.Finished())
		}
		if u := e.Cache().Usage(tree.Full); u.Held+u.Protected != 0 {
			t.Fatalf("after %d steps: %+v", steps, u)
		}
	}
	e := newEngine(t, nil)
	task := must(e.Submit(engine.Params{Tokens: span(1, 10), MaxTokens: 20, OnToken: func(task *engine.Task, _ tree.Token) {
		if len(task.Output()) == 3 {
			if err := e.Abort(task); err != nil {
				t.Error(err)
			}
		}
	}}))
	drain(t, e)
	if task.Finished() != engine.FinishAborted || len(task.Output()) != 3 {
		t.Errorf("%v after %d tokens", task.Finished(), len(task.Output()))
	}
}

// Output ends at a stop token, which is its last, and at the number of tokens.
func TestStop(t *testing.T) {
	e := newEngine(t, nil)
	free := must(e.Submit(engine.Params{Tokens: span(1, 10), MaxTokens: 30}))
	drain(t, e)
	if free.Finished() != engine.FinishLength || len(free.Output()) != 30 || len(free.LogProbs()) != 30 {
		t.Fatalf("%v with %d tokens", free.Finished(), len(free.Output()))
	}
	stop := free.Output()[7]
	stopped := must(e.Submit(engine.Params{Tokens: span(1, 10), MaxTokens: 30, Stop: []tree.Token{stop}}))
	drain(t, e)
	at := slices.Index(free.Output(), stop)
	if stopped.Finished() != engine.FinishStopped || !slices.Equal(stopped.Output(), free.Output()[:at+1]) {
		t.Errorf("%v: %v", stopped.Finished(), stopped.Output())
	}
	for _, log := range stopped.LogProbs() {
		if log > 0 {
			t.Errorf("log-probability %v", log)
		}
	}
}

// A request that finds no room even when it is alone ends, and others go on.
func TestNoRoom(t *testing.T) {
	e := newEngine(t, func(o *engine.Options) { o.Cache.Pools.Full = 20 })
	long := must(e.Submit(engine.Params{Tokens: span(1, 15), MaxTokens: 100}))
	short := must(e.Submit(engine.Params{Tokens: span(101, 105), MaxTokens: 4}))
	drain(t, e)
	if long.Finished() != engine.FinishFailed || long.Err() == nil || short.Finished() != engine.FinishLength {
		t.Errorf("%v (%v) and %v", long.Finished(), long.Err(), short.Finished())
	}
}
