// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"

	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// Bound is what a cache without limits would find of each prompt: the ceiling
// for any cache. It depends on the workload alone, so one serves many runs.
type Bound struct {
	hits []int // tokens found of each request's prompt
}

// NewBound asks the requests one after the other in the order in which they
// arrive (those of one moment as listed), each with its prompt and output kept in full, and token by token: neither pages, nor windows
// or checkpoints, nor the rule that a token must be computed take anything away.
// stop, if it is not nil, ends the work early when it is closed; the result is
// then nil.
func NewBound(w *workload.Workload, stop <-chan struct{}) (*Bound, error) {
	core, err := tree.New(tree.Options{})
	if err != nil {
		return nil, err
	}
	b := &Bound{hits: make([]int, len(w.Requests))}
	var tokens []tree.Token
	order := make([]int, len(w.Requests))
	for i := range order {
		order[i] = i
	}
	closed := slices.ContainsFunc(w.Requests, func(r workload.Request) bool { return len(r.After) > 0 })
	if !closed { // requests that wait for others stand behind them already
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(w.Requests[a].Arrival, w.Requests[b].Arrival)
		})
	}
	for _, i := range order {
		select {
		case <-stop:
			return nil, nil
		default:
		}
		r := &w.Requests[i]
		tokens = r.AppendOutput(r.AppendPrompt(tokens[:0]))
		key := tree.Key{Tokens: tokens[:r.InputLen], Namespace: namespaceOf(r)}
		found, err := core.MatchFullDevicePrefix(key)
		if err != nil {
			return nil, err
		}
		b.hits[i] = found.Matched
		if found.Matched == len(tokens) {
			continue
		}
		key.Tokens = tokens
		// The tree does not look at slots, so all requests may name the same.
		step, err := core.BeginInsert(tree.InsertParams{Key: key, Slots: tree.Numbered(1, len(tokens)), PrevPrefixLen: found.Matched})
		for err == nil && step.Result == nil {
			step, err = core.ResumeInsert()
		}
		if err != nil {
			return nil, err
		}
		core.EndInsert()
	}
	return b, nil
}

// rates gives the hits as shares of the prompts' tokens and of their whole pages.
func (b *Bound) rates(w *workload.Workload, pageSize int) (tokens, pages float64) {
	var all, hit, allPages, hitPages int64
	for i := range w.Requests {
		all += int64(w.Requests[i].InputLen)
		hit += int64(b.hits[i])
		allPages += int64(w.Requests[i].InputLen / pageSize)
		hitPages += int64(b.hits[i] / pageSize)
	}
	return share(hit, all), share(hitPages, allPages)
}

func namespaceOf(r *workload.Request) tree.Namespace {
	return tree.Namespace{ExtraKey: r.ExtraKey, HasExtraKey: r.HasExtraKey, Salt: r.Salt}
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
