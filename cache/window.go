// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math"

	"github.com/treecore/treecore/tree"
)

// noRetain is the retain floor of a request that needs nothing below its window.
const noRetain = math.MaxInt

// nextFrontier applies rule OW-1: given what the tree owns (protected), the
// frontier so far, a lower bound for it, and the length that is about to be
// read less one (pre), it returns the range [from, to) of positions whose SWA
// slots have left the window. to is the new frontier. retain is a position from
// which on everything stays, noRetain if there is none. treeless is the rule of
// a cache without a tree, where no leaf must keep a window. protected must be a
// multiple of the page.
func nextFrontier(page, window, protected, frontier, floor, pre, retain int, treeless bool) (from, to int, err error) {
	if protected%page != 0 {
		return 0, 0, &ArgumentError{Op: "nextFrontier", Field: "protected", Problem: fmt.Sprintf("%d is no multiple of the page %d", protected, page)}
	}
	from = max(frontier, protected, (floor+page-1)/page*page)
	limit := pre - window
	if !treeless {
		limit = min(pre-max(window, page), retain)
	}
	to = max(from, limit)
	return from, to - to%page, nil
}

// windowRange returns the range of positions that leaves the window of r when it has
// n positions and is about to read up to pre, and the frontier after that.
func (c *Cache) windowRange(r *Request, n, pre int) (from, to int) {
	// The next insert ends at a whole page and must leave a window there. The
	// same holds for a state that waits for its insert (rule OW-3).
	units := max(n-c.extra, 0)
	retain := units - units%c.page - c.window
	if r.checkpoint.length != none {
		retain = min(retain, r.checkpoint.length-c.window)
	}
	from, to, err := nextFrontier(c.page, c.window, r.protected, r.frontier, 0, pre, retain, c.opts.Disabled)
	if err != nil {
		return r.frontier, r.frontier // protected is always whole pages
	}
	return from, to
}

// slide frees the SWA slots of r that left its window; see windowRange.
func (c *Cache) slide(r *Request, n, pre int) error {
	if !c.swa || c.opts.KeepOutOfWindow {
		return nil
	}
	from, to := c.windowRange(r, n, pre)
	r.frontier = max(from, to)
	if from >= to {
		return nil
	}
	c.joined = r.own.appendTo(c.joined[:0], from-r.protected, to-r.protected)
	c.stats.OutOfWindowFreed += int64(to - from)
	return c.dual.FreeSWA(c.joined)
}

// releaseWindow gives back the SWA part of the lock once the window lies
// entirely in positions of the request's own (rule OW-5).
func (c *Cache) releaseWindow(r *Request) error {
	if !c.swa || r.swaReleased || !r.locked || r.decoded < c.window {
		return nil
	}
	e, err := c.tree.ReleaseSWALock(r.node, r.receipt)
	if err != nil {
		return err
	}
	r.swaReleased = true
	c.stats.EarlyReleases++
	if e.Freed != (tree.Units{}) {
		c.epoch++
		c.stats.Evicted.Add(e.Freed)
	}
	return c.release(&e)
}
