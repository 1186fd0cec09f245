// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/treecore/treecore/tree"

// plan is what a request's insert looks like.
type plan struct {
	tokens int // raw tokens of its key
	units  int // units of its key
	whole  int // units of its key in whole pages: where it ends
	branch int // SWA branch point that it publishes, 0: none
	buffer int // track buffer whose state goes along; none: no Mamba
}

// plan asks each component how long the insert of the first n tokens shall be,
// and takes the shortest answer (rules RQ-8, BP-3, MC-5).
func (c *Cache) plan(r *Request, n int) plan {
	p := plan{tokens: n, buffer: none}
	// With Mamba, SWA has no opinion: a state cannot be cut to an earlier
	// prefix, so an insert that SWA cut short would carry a state that is
	// ahead of its key.
	if b := r.swaBranch; c.swa && (!c.mamba || c.opts.Broken.HybridGuard) && b > r.protected && b+c.extra <= n {
		p.tokens, p.branch = b+c.extra, b
	}
	if c.mamba {
		length := 0
		length, p.buffer = r.checkpoint.upTo(n)
		p.tokens = min(p.tokens, length)
	}
	p.units = max(p.tokens-c.extra, 0)
	p.whole = p.units - p.units%c.page
	return p
}

// upTo returns the longest checkpoint of n tokens or less and its buffer; 0 if
// there is none.
func (k *checkpoint) upTo(n int) (length, buffer int) {
	if k.length == none {
		return 0, none
	}
	if k.length <= n {
		return k.length, k.last
	}
	if other := 1 - k.last; k.lengths[other] != none && k.lengths[other] <= n {
		return k.lengths[other], other
	}
	return 0, none
}

// params builds the insert of a plan. The slots are valid until the next call.
func (c *Cache) params(r *Request, p plan, state tree.Slots, chunked bool) tree.InsertParams {
	c.joined = append(c.joined[:0], r.prefix...)
	c.joined = r.own.appendTo(c.joined, 0, max(p.whole-r.protected, 0))
	return tree.InsertParams{
		Key:             tree.Key{Tokens: r.tokens[:p.tokens], Namespace: r.namespace},
		Slots:           c.joined,
		MambaState:      state,
		PrevPrefixLen:   r.protected,
		SWAEvictedLen:   r.frontier,
		SWABranchingLen: p.branch,
		Chunked:         chunked,
		Priority:        r.priority,
		SessionID:       r.session,
	}
}

// CacheUnfinished puts what a running request has computed into the tree, in
// whole pages, so that others can reuse it at once, and lets the request go on
// from there: copies of what the tree had already are freed and the row points
// at the tree's slots.
//
// With Mamba only a prefix with a checkpoint can be cached. If no state slot is
// free, and none can be evicted, nothing is cached this time: the request keeps
// what it has, Stats.StatesNotKept counts it, and the next call tries again.
func (c *Cache) CacheUnfinished(r *Request) error {
	const op = "CacheUnfinished"
	if err := c.guard(op, r, Running, "admit it before, and do not use it after its end"); err != nil {
		return err
	}
	if c.opts.Disabled {
		if err := c.slide(r, r.committed, r.committed); err != nil {
			return c.fail(op, err)
		}
		return nil
	}
	p := c.plan(r, r.committed)
	if p.whole == 0 || p.whole < r.protected {
		return nil // with bigrams, nothing new makes the key shorter than the prefix
	}
	if err := c.slide(r, p.tokens, p.units-1); err != nil {
		return c.fail(op, err)
	}
	given, err := c.donate(r, p.buffer)
	if err != nil {
		if momentary(err) {
			c.stats.StatesNotKept++
			return nil
		}
		return c.fail(op, err)
	}
	// A request counts as a hit where its prompt is complete, and at its end;
	// what it caches in between is a part of it.
	chunked := r.committed < r.prompt || r.promptCached
	result, late, err := c.insert(c.params(r, p, given.value(), chunked))
	if err != nil {
		return c.fail(op, err)
	}
	r.promptCached = r.promptCached || !chunked
	if err := c.settle(given, result); err != nil {
		return c.fail(op, err)
	}
	if err := c.adopt(r, p, result); err != nil {
		return c.fail(op, err)
	}
	r.untrack()
	if c.published(r, p, result) {
		// The window below the branch point is the tree's now; what lies
		// between it and the window of the request need not stay.
		if err := c.slide(r, r.committed, r.committed-c.extra-1); err != nil {
			return c.fail(op, err)
		}
	}
	return late
}

// adopt lets a request go on from what it has inserted: the row's beginning
// becomes the tree's, and the lock moves there (rules RQ-13 to RQ-16).
func (c *Cache) adopt(r *Request, p plan, result *tree.InsertResult) error {
	m, err := c.tree.Match(tree.Key{Tokens: r.tokens[:p.tokens], Namespace: r.namespace})
	if err != nil {
		return err
	}
	if err := c.apply(m.Actions); err != nil {
		return err
	}
	node, prefix := m.LastDeviceNode, m.DeviceSlots
	if m.DeviceLen != p.whole {
		// After an early release the window below the lock may be gone, so
		// that nobody can resume here (yet). The request is past it, and the
		// slots are the tree's all the same.
		c.stats.ShortRematches++
		node = result.LastDeviceNode
		if prefix, err = c.tree.CollectFullDeviceSlots(node, c.tree.Root()); err != nil {
			return err
		}
	}
	r.prefix = prefix
	r.own.dropFront(p.whole - r.protected)
	r.protected = p.whole
	r.frontier = max(r.frontier, r.protected)
	if c.host != nil {
		r.waits = c.host.lastSeq // the tree's slots may be on their way from the host
	}
	if err := c.unlock(r); err != nil {
		return err
	}
	// The state at the new node has been copied for this request already: the
	// tree may evict it.
	var skip tree.ComponentSet
	if c.mamba {
		skip = tree.SetOf(tree.Mamba)
	}
	return c.lock(r, node, skip)
}

// published forgets the branch points that an insert has published, and reports
// whether that was so for SWA (rule BP-6).
func (c *Cache) published(r *Request, p plan, result *tree.InsertResult) bool {
	if r.mambaBranch > 0 && p.whole == r.mambaBranch {
		r.mambaBranch = 0
		c.stats.BranchesInserted[tree.Mamba]++
	}
	if !result.SWABranchInserted {
		return false
	}
	r.swaBranch = 0
	c.stats.BranchesInserted[tree.SWA]++
	return true
}
