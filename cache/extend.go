// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Extend allocates slots for the next n positions of a request. Before it asks
// for them it frees what left the request's window; then it evicts exactly what
// is missing. If that is not enough, it is a *pool.ExhaustedError and nothing
// was evicted or allocated; MaxExtend tells how many positions could be had. A
// number that can never be had at once is a *TooLargeError.
func (c *Cache) Extend(r *Request, n int) error {
	const op = "Extend"
	if err := c.guard(op, r, Running, "admit it before, and do not use it after its end"); err != nil {
		return err
	}
	if n < 0 {
		return &ArgumentError{Op: op, Field: "n", Problem: fmt.Sprintf("%d positions: 0 or more", n)}
	}
	if err := c.tooLarge(op, r, n); err != nil {
		return err
	}
	if err := c.slide(r, r.committed, r.committed); err != nil {
		return c.fail(op, err)
	}
	return c.grow(op, r, n)
}

// tooLarge reports that r with n more positions can never fit.
func (c *Cache) tooLarge(op string, r *Request, n int) error {
	if n > c.full.Size() { // before sums that could overflow
		return &TooLargeError{Op: op, Component: tree.Full, Needed: n, Size: c.full.Size()}
	}
	whole := pool.PagesFor(r.Allocated()+n, c.page) * c.page
	if whole > c.full.Size() {
		return &TooLargeError{Op: op, Component: tree.Full, Needed: whole, Size: c.full.Size()}
	}
	if fresh := whole - c.whole(r); c.swa && fresh > c.dual.SWA().Size() {
		return &TooLargeError{Op: op, Component: tree.SWA, Needed: fresh, Size: c.dual.SWA().Size()}
	}
	return nil
}

// whole returns the number of slots of the pages that r's row touches.
func (c *Cache) whole(r *Request) int { return pool.PagesFor(r.Allocated(), c.page) * c.page }

// grow allocates n more positions, after making room for their pages.
func (c *Cache) grow(op string, r *Request, n int) error {
	at := r.Allocated()
	fresh := pool.PagesFor(at+n, c.page)*c.page - c.whole(r)
	if err := c.roomFor(r, fresh); err != nil {
		return err
	}
	runs, err := c.allocExtend(r.own.runs, pool.Extension{Prefix: at, Seq: at + n, Last: r.lastSlot()})
	if err != nil {
		return c.fail(op, err)
	}
	r.own.runs, r.own.length = runs, r.own.length+n
	return nil
}

// roomFor makes room for fresh more KV slots of r.
func (c *Cache) roomFor(r *Request, fresh int) error {
	want := tree.Units{tree.Full: fresh}
	if c.swa {
		want[tree.SWA] = fresh
	}
	err := c.makeRoom(want)
	if err == nil || !momentary(err) || !c.mayDropCheckpoint(r) {
		return err
	}
	// Nobody else could free anything: the window that is kept for a state
	// which waits to be cached is worth less than going on.
	r.untrack()
	c.stats.StatesNotKept++
	if err := c.slide(r, r.committed, r.committed); err != nil {
		return c.fail("slide", err)
	}
	return c.makeRoom(want)
}

// mayDropCheckpoint reports whether r is alone and keeps slots only for a
// checkpoint that waits to be cached.
func (c *Cache) mayDropCheckpoint(r *Request) bool {
	return c.swa && c.running == 1 && r.checkpoint.length != none && !c.opts.KeepOutOfWindow
}

// MaxExtend returns for how many positions, want at most, Extend could allocate
// slots now, evicting what may go; what copies in flight, or what is fetched for
// waiting requests, keep locked counts as used, although Extend would get it. It changes nothing. For a request that is
// not running it is 0.
func (c *Cache) MaxExtend(r *Request, want int) int {
	if r == nil || r.cache != c || r.state != Running || c.broken != nil || want <= 0 {
		return 0
	}
	room := min(c.Available(tree.Full), c.full.Size()-c.whole(r))
	if c.swa {
		room = min(room, c.swaRoom(r))
	}
	return min(want, c.whole(r)-r.Allocated()+room/c.page*c.page)
}

// swaRoom returns how many SWA slots r could get now.
func (c *Cache) swaRoom(r *Request) int {
	room := c.Available(tree.SWA)
	if c.opts.KeepOutOfWindow {
		return room
	}
	from, to := c.windowRange(r, r.committed, r.committed)
	if with := room + max(to-from, 0); with >= c.page || !c.mayDropCheckpoint(r) {
		return with
	}
	kept := r.checkpoint.length
	r.checkpoint.length = none
	from, to = c.windowRange(r, r.committed, r.committed)
	r.checkpoint.length = kept
	return room + max(to-from, 0)
}

// Commit says that the next n allocated positions of the prompt are computed.
// With Mamba it takes the state that PlanTrack named as saved.
func (c *Cache) Commit(r *Request, n int) error {
	const op = "Commit"
	if err := c.guard(op, r, Running, "admit it before, and do not use it after its end"); err != nil {
		return err
	}
	most := min(r.Allocated(), len(r.tokens)) - r.committed
	if n < 0 || n > most {
		return &ArgumentError{Op: op, Field: "n", Problem: fmt.Sprintf("%d positions: %d are allocated and have tokens", n, most)}
	}
	if err := c.stillLoading(op, r); err != nil && n > 0 {
		return err
	}
	if c.mamba && !c.opts.Disabled {
		if length := c.trackPoint(r, r.committed, r.committed+n); length > 0 {
			c.track(r, length)
		}
	}
	r.committed += n
	c.stats.ComputedTokens += int64(n)
	return nil
}

// Decode appends generated tokens, each with a slot, as computed. It is what a
// step a token does, in bulk: allocate, commit, save checkpoints, free what
// leaves the window, give the window's lock back once it is not read any more.
// It returns how many tokens it appended: all, or as many as there was room for
// together with a *pool.ExhaustedError, or a *TooLargeError if the request
// cannot grow further at all.
func (c *Cache) Decode(r *Request, tokens []tree.Token) (int, error) {
	const op = "Decode"
	if err := c.guard(op, r, Running, "admit it before, and do not use it after its end"); err != nil {
		return 0, err
	}
	if err := c.stillLoading(op, r); err != nil {
		return 0, err
	}
	if r.committed < len(r.tokens) {
		return 0, &OrderError{Op: op, Request: r.id, State: r.state,
			Problem: fmt.Sprintf("%d of its %d tokens are not computed: extend and commit them first", len(r.tokens)-r.committed, len(r.tokens))}
	}
	for done := 0; done < len(tokens); {
		n, err := c.decodeStep(op, r, len(tokens)-done)
		if err != nil {
			return done, err
		}
		r.tokens = append(r.tokens, tokens[done:done+n]...)
		if err := c.decodeDone(r, n); err != nil {
			return done + n, c.fail(op, err)
		}
		done += n
	}
	return len(tokens), nil
}

// decodeStep allocates slots for up to most positions and returns for how many:
// what is free without eviction, else one page.
func (c *Cache) decodeStep(op string, r *Request, most int) (int, error) {
	if c.mamba && !c.opts.Disabled {
		// A step ends where a checkpoint is due.
		g := c.decodeGrid()
		most = min(most, g-r.committed%g)
	}
	ready := r.Allocated() - r.committed
	if ready >= most {
		return most, nil
	}
	can := c.whole(r) - r.committed + c.freeKVSlots()
	if can == 0 {
		if err := c.tooLarge(op, r, 1); err != nil {
			return 0, err
		}
		if err := c.slide(r, r.committed, r.committed); err != nil {
			return 0, c.fail(op, err)
		}
		can = max(c.freeKVSlots(), c.page)
	}
	n := min(most, can)
	return n, c.grow(op, r, n-ready)
}

// freeKVSlots returns how many tokens have slots free on all sides.
func (c *Cache) freeKVSlots() int {
	if c.swa {
		return c.dual.Available()
	}
	return c.full.Available()
}

// decodeDone commits n decoded positions.
func (c *Cache) decodeDone(r *Request, n int) error {
	r.committed += n
	r.decoded += n
	c.stats.DecodedTokens += int64(n)
	if c.mamba && !c.opts.Disabled && r.committed%c.decodeGrid() == 0 {
		c.track(r, r.committed)
	}
	if err := c.slide(r, r.committed, r.committed-1); err != nil {
		return err
	}
	return c.releaseWindow(r)
}
