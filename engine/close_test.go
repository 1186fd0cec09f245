// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/treecore/treecore/engine"
)

// Close ends each request once, also where the end of one aborts or submits
// others; nobody is let in any more.
func TestCloseEndsAll(t *testing.T) {
	e := newEngine(t, func(o *engine.Options) { o.ChunkTokens, o.MaxRunning = 8, 2 })
	var tasks []*engine.Task
	var ended []int64
	for i := range 6 {
		tasks = append(tasks, must(e.Submit(engine.Params{Tokens: span(100*i+1, 100*i+20), OnEnd: func(task *engine.Task) {
			ended = append(ended, task.ID())
			if err := e.Abort(tasks[(i+1)%len(tasks)]); err != nil && i == 0 {
				t.Error(err)
			}
			if _, err := e.Submit(engine.Params{Tokens: span(1, 5)}); err == nil {
				t.Error("a request is let in while the engine closes")
			}
		}})))
	}
	for range 3 {
		must(e.Step(context.Background()))
	}
	e.Close()
	slices.Sort(ended)
	if !slices.Equal(ended, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("ended: %v", ended)
	}
	if _, err := e.Step(context.Background()); err == nil {
		t.Error("a closed engine makes a step")
	}
	if _, err := e.Submit(engine.Params{Tokens: span(1, 5)}); err == nil {
		t.Error("a closed engine takes a request")
	}
}
