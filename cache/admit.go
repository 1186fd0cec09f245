// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Match finds how much of the prompt can be reused: at most all but one token,
// since at least one must be computed. It may be repeated while the request
// waits. Locking is what Admit is for; whatever happens in between, Admit
// matches again if it has to.
func (c *Cache) Match(r *Request) (tree.MatchResult, error) {
	const op = "Match"
	if err := c.guard(op, r, Waiting, "match before Admit"); err != nil {
		return tree.MatchResult{}, err
	}
	err := c.match(op, r)
	return r.match, err
}

func (c *Cache) match(op string, r *Request) error {
	c.stats.Matches++
	if c.opts.Disabled {
		r.match, r.matched, r.epoch = c.tree.EmptyMatch(), true, c.epoch
		return nil
	}
	m, err := c.tree.Match(tree.Key{Tokens: r.tokens[:r.prompt-1], Namespace: r.namespace})
	if err != nil {
		return c.fail(op, err)
	}
	if err := c.apply(m.Actions); err != nil {
		return c.fail(op, err)
	}
	m.Actions = nil
	if c.opts.Broken.WindowCheck {
		if err := c.takeAll(&m, r); err != nil {
			return c.fail(op, err)
		}
	}
	r.match, r.matched, r.epoch = m, true, c.epoch
	return nil
}

// takeAll makes a match of all that Full has on the device (see Broken).
func (c *Cache) takeAll(m *tree.MatchResult, r *Request) error {
	p, err := c.tree.MatchFullDevicePrefix(tree.Key{Tokens: r.tokens[:r.prompt-1], Namespace: r.namespace})
	if err != nil || p.Matched != p.Pinned || p.Matched <= m.DeviceLen {
		return err
	}
	if m.DeviceSlots, err = c.tree.CollectFullDeviceSlots(p.Node, c.tree.Root()); err != nil {
		return err
	}
	m.DeviceLen, m.LastDeviceNode, m.BestNode = p.Matched, p.Node, p.Node
	m.HostHitLen, m.SWAHostHitLen, m.MambaHostHitLen = 0, 0, 0
	m.SWABranchingLen, m.MambaBranchingLen = 0, 0
	return nil
}

// Admit starts a request: it loads back what the match found on the host, locks
// what is reused and, with Mamba, takes the states that the request runs on. The
// match is repeated if it is missing or if something has changed since. On a
// *pool.ExhaustedError nothing is left over and the request waits on; what was
// loaded back stays cached. A prefetch that has to be waited for is a
// *FetchingError. With HostOptions.BufferOnly what was fetched is put on the
// device here; if the prefix that it goes on from has gone, it is dropped and
// that is a *BaseGoneError.
func (c *Cache) Admit(r *Request) error { return c.AdmitWithin(r, NoQuota) }

// AdmitWithin is Admit with a quota for the load back: the most Full tokens that
// it may take of the device beyond those that its own lock keeps from eviction.
// What was fetched to a staging area and exceeds it is a shortage. 0 loads nothing
// that needs room, NoQuota has no limit; a quota below that is an *ArgumentError.
func (c *Cache) AdmitWithin(r *Request, quota int) error {
	const op = "Admit"
	if err := c.guard(op, r, Waiting, "a request is admitted once"); err != nil {
		return err
	}
	if quota < NoQuota {
		return &ArgumentError{Op: op, Field: "quota", Problem: fmt.Sprintf("%d tokens: 0 or more, or NoQuota (%d)", quota, NoQuota)}
	}
	if ready, err := c.endPrefetch(r); err != nil {
		return c.fail(op, err)
	} else if !ready {
		return &FetchingError{Request: r.id}
	}
	if !r.matched || r.epoch != c.epoch {
		if err := c.match(op, r); err != nil {
			return err
		}
	}
	if r.hold != nil {
		if err := c.useHold(op, r, quota); err != nil {
			return err
		}
	}
	if err := c.fetch(op, r, quota); err != nil {
		return err
	}
	if err := c.lock(r, r.match.LastDeviceNode, 0); err != nil {
		return c.fail(op, err)
	}
	if c.cramped(r) {
		// The lock's own window would leave no room to go on, now or later.
		// Computing the prompt from its beginning does fit.
		if err := c.unlock(r); err != nil {
			return c.fail(op, err)
		}
		forget(&r.match, c.tree.EmptyMatch())
		if err := c.lock(r, r.match.LastDeviceNode, 0); err != nil {
			return c.fail(op, err)
		}
		c.stats.ReuseGivenUp++
	}
	if c.mamba {
		if err := c.takeStates(r); err != nil {
			undo := c.unlock(r)
			if s := r.checkpoint.state; s != 0 { // of a load back
				r.checkpoint.state = 0
				undo = errors.Join(undo, c.states.FreeOne(s))
			}
			if undo != nil {
				return c.fail(op, undo)
			}
			if errors.Is(err, errPrefixGone) {
				return c.AdmitWithin(r, quota)
			}
			if !momentary(err) {
				return c.fail(op, err)
			}
			return err
		}
	}
	r.state = Running
	c.running++
	r.prefix, r.protected = r.match.DeviceSlots.Clone(), r.match.DeviceLen
	r.committed = r.protected
	if c.host != nil {
		r.waits = c.host.lastSeq
		o := r.Origin()
		c.stats.ReusedFromHost += int64(o.Host)
		c.stats.ReusedFromStorage += int64(o.Storage)
	}
	if !c.opts.NoBranching {
		r.swaBranch, r.mambaBranch = r.match.SWABranchingLen, r.match.MambaBranchingLen
		c.stats.seen(r.swaBranch, r.mambaBranch)
	}
	c.stats.ReusedTokens += int64(r.protected)
	return nil
}

// fetch loads back what the match of a waiting request found on the host. The
// match is then repeated, as it is when what was evicted for a load back that
// was given up has made it wrong.
func (c *Cache) fetch(op string, r *Request, quota int) error {
	m := &r.match
	if c.host == nil || m.HostHitLen == 0 && m.SWAHostHitLen == 0 && m.MambaHostHitLen == 0 {
		return nil
	}
	before := m.DeviceLen
	done, err := c.loadBack(r, quota)
	if err != nil {
		return c.fail(op, err)
	}
	if r.epoch == c.epoch {
		return nil
	}
	if err := c.match(op, r); err != nil {
		return err
	}
	if done {
		if r.hostFrom == none || before < r.hostFrom {
			r.hostFrom = before
		}
		if e := &m.Explanation; e.Host == 0 {
			o := r.Origin()
			e.Host = o.Host + o.Storage
			e.Device = e.Matched - e.Host
		}
	}
	return nil
}

// forget turns a match into a miss (rule M-26). What limited it stays told.
func forget(m *tree.MatchResult, miss tree.MatchResult) {
	why, branch := m.Explanation, m.MambaBranchingLen
	*m = miss
	m.Explanation, m.MambaBranchingLen = why, branch
}

// lock locks a node for a request.
func (c *Cache) lock(r *Request, node tree.NodeID, skip tree.ComponentSet) error {
	r.node, r.swaReleased, r.decoded = node, false, 0
	if c.opts.Disabled {
		return nil
	}
	receipt, err := c.tree.Lock(node, skip)
	if err != nil {
		return err
	}
	r.receipt, r.locked = receipt, true
	return nil
}

// unlock gives a request's lock back, without the part that was given back early.
func (c *Cache) unlock(r *Request) error {
	if !r.locked {
		return nil
	}
	r.locked = false
	return c.tree.Unlock(r.node, r.receipt, r.swaReleased)
}

// cramped reports whether a request that reuses what it matched could come to a
// stop even when it is alone. Locks take whole nodes, so a window's lock may
// hold far more than a window where a long node was cut.
func (c *Cache) cramped(r *Request) bool {
	if !c.swa || c.opts.Disabled || r.match.DeviceLen == 0 {
		return false
	}
	node, size := r.match.LastDeviceNode, c.dual.SWA().Size()
	// What the request needs beside its lock: at most what any request does,
	// and no more than the rest of its prompt and a window to decode in.
	rest := pool.PagesFor(r.prompt, c.page)*c.page - r.match.DeviceLen
	beside := min(c.windowNeed()-c.wholeWindow(), rest+c.wholeWindow()+2*c.page)
	if c.tree.ProtectedSize(tree.SWA)+beside <= size {
		return false
	}
	held, covered := 0, 0
	for covered < c.window {
		n, err := c.tree.Inspect(node)
		if err != nil || n.Parent == tree.NoNode {
			break
		}
		held += n.Components[tree.SWA].Device.Len()
		covered += n.Units
		node = n.Parent
	}
	return held+beside > size
}

// windowNeed returns how many SWA slots a request that is alone needs at most
// to get on page by page: what its lock holds (a window less a unit in small
// nodes and a node of a whole window), its own window, and two pages for what
// rounding keeps and what comes next. Bigrams keep one page more.
func (c *Cache) windowNeed() int {
	if c.opts.Disabled {
		return c.wholeWindow() + c.page
	}
	return (c.window-1)/c.page*c.page + 2*c.wholeWindow() + (2+c.extra)*c.page
}

// wholeWindow returns the window rounded up to whole pages.
func (c *Cache) wholeWindow() int { return pool.PagesFor(c.window, c.page) * c.page }
