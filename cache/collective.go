// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Collective lets the ranks of one model agree. Each rank has a cache of its
// own; all are driven by the same calls in the same order. What depends on I/O,
// how many copies have ended or how many pages a store found, differs between
// them, and is used only after all have agreed on the smallest value (section
// 17.2 of the behaviour specification).
type Collective interface {
	// Min replaces each value by the smallest that any rank gave in its place. It
	// returns when every rank has called it, with equally many values. After an
	// error the cache serves no more.
	Min(ctx context.Context, values []int64) error
}

// NewCollectives returns a Collective for each of n ranks of this process: one
// goroutine a rank. They keep no goroutines of their own. Below 1 it is nil.
func NewCollectives(n int) []Collective {
	if n < 1 {
		return nil
	}
	g := &rankGroup{size: n}
	g.round = newRound()
	out := make([]Collective, n)
	for i := range out {
		out[i] = member{group: g, rank: i}
	}
	return out
}

// rankGroup is what the ranks of one process share.
type rankGroup struct {
	mu    sync.Mutex
	size  int
	round *round
}

// round is one call of all ranks.
type round struct {
	values []int64
	joined []int // ranks that are there
	err    error
	done   chan struct{}
}

func newRound() *round { return &round{done: make(chan struct{})} }

type member struct {
	group *rankGroup
	rank  int
}

// Min implements Collective.
func (m member) Min(ctx context.Context, values []int64) error {
	g := m.group
	g.mu.Lock()
	r := g.round
	if r.err != nil { // a rank left: nobody can agree any more
		defer g.mu.Unlock()
		return r.err
	}
	if len(r.joined) == 0 {
		r.values = append([]int64(nil), values...)
	} else if len(r.values) != len(values) {
		r.err = fmt.Errorf("rank %d asks for %d values, rank %d for %d: the ranks have diverged", m.rank, len(values), r.joined[0], len(r.values))
	} else {
		for i, v := range values {
			r.values[i] = min(r.values[i], v)
		}
	}
	r.joined = append(r.joined, m.rank)
	if r.err != nil || len(r.joined) == g.size {
		if r.err == nil {
			g.round = newRound()
		}
		close(r.done)
	}
	g.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		select {
		case <-r.done: // after all
		default:
			r.err = fmt.Errorf("rank %d stopped waiting for the others: %w", m.rank, ctx.Err())
			close(r.done)
			return r.err
		}
	}
	if r.err != nil {
		return r.err
	}
	copy(values, r.values)
	return nil
}

// DivergenceError says that the ranks of a model have not evicted the same: they
// must not go on, since one's slots are not the other's.
type DivergenceError struct{ Least, Most uint64 }

func (e *DivergenceError) Error() string {
	return fmt.Sprintf("the ranks have diverged: the digests of what they reclaimed are %d to %d: restart all ranks and report this", e.Least, e.Most)
}

// agree replaces values by the smallest of all ranks.
func (c *Cache) agree(values []int64) error {
	if c.opts.Collective == nil {
		return nil
	}
	return c.opts.Collective.Min(c.context(), values)
}

// agreeAll reports for each place whether it is true on all ranks.
func (c *Cache) agreeAll(local []bool) error {
	if c.opts.Collective == nil || len(local) == 0 {
		return nil
	}
	values := make([]int64, len(local))
	for i, ok := range local {
		if ok {
			values[i] = 1
		}
	}
	if err := c.agree(values); err != nil {
		return err
	}
	for i, v := range values {
		local[i] = v == 1
	}
	return nil
}

// together returns what went wrong here or, if it did so on another rank only,
// that it did.
func (c *Cache) together(here error) error {
	ok := []bool{here == nil}
	if err := c.agreeAll(ok); err != nil {
		return err
	}
	if here == nil && !ok[0] {
		return errors.New("it failed on another rank")
	}
	return here
}

// context ends what waits inside of calls.
func (c *Cache) context() context.Context {
	if c.host != nil {
		return c.host.ctx
	}
	return context.Background()
}
