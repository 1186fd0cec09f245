// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// prefetch brings what a waiting request lacks from the store to the host (rule
// CT-2, chapter 10). It begins with a lookup and goes on with a read of what was
// found. Its slots are its own until the read has ended.
type prefetch struct {
	request *Request // nil: the request has no use for it any more
	anchor  tree.NodeID
	receipt tree.Receipt // host lock on the anchor
	key     tree.Key     // beyond the anchor's end, whole pages
	units   int          // of the key
	lookup  *queue.Operation

	hit    int // pages that were found on all ranks
	hashes []tree.Digest
	full   tree.Slots
	aux    []fetchPart
	read   *queue.Operation // nil before the answer of the lookup is served
	ended  bool             // the read's end was taken note of
	// rest are slots that the read may still write to after the request has gone on.
	rest [tree.NumComponents]tree.Slots

	// Where the host is a staging area there is no host lock.
	matched  int  // units before the key, which the device had
	pin      pin  // of what it goes on from
	reserved int  // tokens that count as occupied
	parked   bool // it waits for room to be read
}

// fetchPart is what a prefetch reads of one pool beside Full's own.
type fetchPart struct {
	poolRef
	policy storage.Policy
	slots  tree.Slots // those of the source for a sidecar
}

// need returns what a component's pools must have of a prefix of so many pages
// below an anchor; ok is false if the component takes no part (rule PF-6).
func (c *Cache) need(id tree.Component, pages int, root bool) (n storage.Need, ok bool) {
	switch id {
	case tree.Full:
		return storage.Need{Policy: storage.AllPages}, true
	case tree.SWA:
		window := c.wholeWindow() / c.page
		if pages < window && !root && !c.opts.Broken.ShortWindow {
			return n, false // a window that begins above the anchor is not taken
		}
		return storage.Need{Policy: storage.TrailingPages, Trailing: min(pages, window)}, pages > 0
	default:
		return storage.Need{Policy: storage.TrailingPages, Trailing: 1}, true
	}
}

// needs returns what each pool beside Full's own must have.
func (c *Cache) needs(pages int, root bool) []storage.Need {
	var out []storage.Need
	for id := tree.Full; id < tree.NumComponents; id++ {
		if c.host.pools[id] == nil {
			continue
		}
		n, ok := c.need(id, pages, root)
		if !ok {
			continue
		}
		for _, x := range c.poolsOf(id) {
			if x.sidecar == none && id == tree.Full {
				continue
			}
			n.Pool = x.name
			out = append(out, n)
		}
	}
	return out
}

// Prefetch starts to fetch from the store what the tree lacks of a waiting
// request's prompt. Call it when the request joins the queue; it matches the
// prompt if that was not done. Ticks carry it on, Ready says when there is nothing
// to wait for any more. It is declined, and counted, where the part that is
// missing is too short or too much is being fetched already.
func (c *Cache) Prefetch(r *Request) error {
	const op = "Prefetch"
	if err := c.guard(op, r, Waiting, "prefetch before Admit"); err != nil {
		return err
	}
	if c.storage == nil || c.storage.closing || c.opts.Disabled || r.fetch != nil || r.hold != nil {
		return nil
	}
	if !r.matched || r.epoch != c.epoch {
		if err := c.match(op, r); err != nil {
			return err
		}
	}
	if err := c.startPrefetch(r); err != nil {
		return c.fail(op, err)
	}
	return nil
}

// prefetchKey says from where on a request would be fetched: below the deepest
// node of its match, which ends at depth. The key is that of the whole pages
// after it; without tokens: there are none.
func (c *Cache) prefetchKey(r *Request) (anchor tree.NodeID, depth int, key tree.Key) {
	anchor = r.match.BestNode
	depth = r.match.DeviceLen + r.match.HostHitLen
	tokens := r.tokens[:r.prompt-1]
	units := (max(len(tokens)-c.extra, 0) - depth) / c.page * c.page
	if units <= 0 {
		return anchor, depth, tree.Key{}
	}
	key = tree.Key{Tokens: tokens[depth : depth+units+c.extra], Namespace: r.namespace, Bigram: c.extra == 1}
	return anchor, depth, key
}

func (c *Cache) startPrefetch(r *Request) error {
	st, s := c.storage, &c.stats.Storage
	anchor, depth, key := c.prefetchKey(r)
	if key.Tokens == nil {
		return nil
	}
	root, staging := anchor == c.tree.Root(), c.bufferOnly()
	if !root && !c.writeBack() && !staging {
		// What would be put below a node without a host copy would be dropped at
		// the end (rule PF-27), so it is not fetched.
		backed, err := c.tree.IsBackedUp(anchor)
		if err != nil {
			return err
		}
		if !backed {
			s.DeclinedUnbacked++
			return nil
		}
	}
	units := key.Units()
	s.Attempts++
	switch {
	case units < st.least:
		s.DeclinedTooShort++
		return nil
	case !staging && st.occupancy >= c.host.pools[tree.Full].Size()/2:
		s.DeclinedRateLimited++
		return nil
	}
	last, chained, err := c.tree.LastHash(anchor)
	if err != nil || !root && !chained {
		return err // an anchor without hashes would start the chain in the middle
	}
	p := &prefetch{request: r, anchor: anchor, key: key, units: units, matched: depth}
	if !staging {
		if p.receipt, err = c.tree.LockHost(anchor); err != nil {
			return err
		}
		p.reserved = units
		st.occupancy += units
	}
	page := c.page
	hash := func() []tree.Digest { return tree.HashPages(key, page) }
	if !root {
		hash = func() []tree.Digest { return tree.HashPagesAfter(last, key, page) }
	}
	// The rest of a short window is on the device, which the read ends on.
	p.lookup = st.queue.Lookup(hash, c.needs(units/page, root || staging))
	st.lookups = append(st.lookups, p)
	r.fetch = p
	s.Issued++
	return nil
}

// takeLookups serves the answers of the n oldest lookups, or of as many as have
// ended (rule PF-11).
func (c *Cache) takeLookups(n int) error {
	st := c.storage
	done := st.queue.Take(queue.Lookup, n)
	hits := make([]int64, len(done))
	for i, o := range done {
		_, found := o.Found()
		hits[i] = int64(found.Usable)
	}
	if len(done) > 0 {
		if err := c.agree(hits); err != nil {
			return err
		}
	}
	if c.bufferOnly() {
		if err := c.healAll(done, hits); err != nil {
			return err
		}
	}
	for i, o := range done {
		if len(st.lookups) == 0 || st.lookups[0].lookup != o {
			return fmt.Errorf("lookup %d ended, which is not the oldest", o.ID())
		}
		p := st.lookups[0]
		st.lookups = st.lookups[1:]
		if p.request == nil {
			c.stats.Storage.StaleAnswers++
			continue
		}
		if o.Err() != nil {
			c.stats.Storage.LookupsFailed++
		}
		p.hit = int(hits[i])
		p.hashes, _ = o.Found()
		if err := c.serve(p); err != nil {
			return err
		}
	}
	return nil
}

// serve allocates room for what a lookup has found and starts to read it (rules
// PF-11 to PF-13).
func (c *Cache) serve(p *prefetch) error {
	st, s := c.storage, &c.stats.Storage
	hit := p.hit * c.page
	s.missed(p.request.prompt, p.units, hit)
	p.request.offered, p.request.came = hit, 0
	if hit < st.least {
		if hit > 0 {
			s.RevokedInsufficient++
		} else {
			s.RevokedFullMiss++
		}
		return c.dropPrefetch(p)
	}
	if c.bufferOnly() {
		return c.beginRead(p)
	}
	full, err := c.hostRoom(tree.Full, hit)
	if err != nil {
		return err
	}
	if full == nil {
		hit = min(hit, c.host.pools[tree.Full].Available()/c.page*c.page)
		if hit >= st.least {
			if err := c.injected(tree.Full, true); err == nil {
				if full, err = c.host.pools[tree.Full].Alloc(hit); err != nil {
					return err
				}
			}
		}
		if full == nil {
			s.RevokedNoRoom++
			return c.dropPrefetch(p)
		}
	}
	p.full, p.hit = full, hit/c.page
	p.hashes = p.hashes[:p.hit]
	if ok, err := c.auxRoom(p); err != nil || !ok {
		s.AuxAllocFailedTokens += int64(p.units)
		return errors.Join(err, c.dropPrefetch(p))
	}
	p.read = st.queue.Read(c.batch(c.poolsOf(tree.Full)[0], full, p.hashes), c.auxBatches(p))
	st.reads = append(st.reads, p)
	return nil
}

// auxRoom allocates room for what the other pools read with Full: as many pages
// as the hit has of a window (rule PF-15), one slot for a state.
func (c *Cache) auxRoom(p *prefetch) (ok bool, err error) {
	root := p.anchor == c.tree.Root() || c.bufferOnly()
	for id := tree.Full; id < tree.NumComponents; id++ {
		if c.host.pools[id] == nil {
			continue
		}
		// Whether a component takes part was said when the lookup began.
		if _, ok := c.need(id, p.units/c.page, root); !ok {
			continue
		}
		need, ok := c.need(id, p.hit, root)
		if !ok {
			continue
		}
		slots := p.full
		switch id {
		case tree.SWA:
			slots, err = c.hostRoom(id, need.Trailing*c.page)
		case tree.Mamba:
			slots, err = c.hostRoom(id, 1)
		}
		if err != nil || slots == nil {
			return false, err
		}
		for _, x := range c.poolsOf(id) {
			if id != tree.Full || x.sidecar != none {
				p.aux = append(p.aux, fetchPart{poolRef: x, policy: need.Policy, slots: slots})
			}
		}
	}
	return true, nil
}

func (c *Cache) auxBatches(p *prefetch) []queue.Batch {
	out := make([]queue.Batch, len(p.aux))
	for i, a := range p.aux {
		pages := 1
		if a.component != tree.Mamba {
			pages = a.slots.Len() / c.page
		}
		out[i] = c.batch(a.poolRef, a.slots, p.hashes[len(p.hashes)-pages:])
	}
	return out
}

// dropPrefetch ends a prefetch that brings nothing. Its slots come back when
// nothing writes to them any more (rules PF-14, PF-33).
func (c *Cache) dropPrefetch(p *prefetch) error {
	c.letGo(p, 0)
	return c.leavePrefetch(p)
}

// letGo gives up the Full slots from a position on, and all others.
func (c *Cache) letGo(p *prefetch, from int) {
	p.rest[tree.Full] = p.rest[tree.Full].Append(p.full.Slice(from, p.full.Len()))
	for _, a := range p.aux {
		if a.sidecar == none {
			p.rest[a.component] = p.rest[a.component].Append(a.slots)
		}
	}
	p.full, p.aux = nil, nil
	c.settleRest(p)
}

// settleRest releases what a prefetch gave up, once its read has ended.
func (c *Cache) settleRest(p *prefetch) {
	if p.read != nil && !p.ended {
		p.read.Stop()
		return
	}
	for id, s := range p.rest {
		c.host.release(tree.Component(id), s)
	}
	p.rest = [tree.NumComponents]tree.Slots{}
}

// leavePrefetch takes a prefetch off its request and gives back its lock and its
// reservation.
func (c *Cache) leavePrefetch(p *prefetch) error {
	p.lookup.Stop()
	p.request.fetch, p.request = nil, nil
	c.storage.occupancy -= p.reserved
	if c.bufferOnly() {
		c.unpark(p)
		return c.unpin(&p.pin)
	}
	return c.tree.UnlockHost(p.anchor, p.receipt)
}

// takeReads takes note of the ends of the n oldest reads, or of as many as have
// ended.
func (c *Cache) takeReads(n int) error {
	st := c.storage
	for _, o := range st.queue.Take(queue.Read, n) {
		if len(st.reads) == 0 || st.reads[0].read != o {
			return fmt.Errorf("read %d ended, which is not the oldest", o.ID())
		}
		p := st.reads[0]
		st.reads = st.reads[1:]
		p.ended = true
		if o.Err() != nil && p.request != nil {
			c.stats.Storage.ReadsFailed++
		}
		if p.request == nil {
			c.settleRest(p)
		}
	}
	return nil
}

// StorageHit asks the store how many tokens of a waiting request's prompt it has
// beyond what the tree holds, for routing. It waits for the store. Where a
// prefetch would be declined it is 0 (rule PF-9).
func (c *Cache) StorageHit(ctx context.Context, r *Request) (int, error) {
	const op = "StorageHit"
	if err := c.guard(op, r, Waiting, "ask before Admit"); err != nil {
		return 0, err
	}
	if c.storage == nil || c.storage.closing || c.opts.Disabled {
		return 0, nil
	}
	if !r.matched || r.epoch != c.epoch {
		if err := c.match(op, r); err != nil {
			return 0, err
		}
	}
	anchor, _, key := c.prefetchKey(r)
	if key.Tokens == nil {
		return 0, nil
	}
	last, chained, err := c.tree.LastHash(anchor)
	if err != nil {
		return 0, c.fail(op, err)
	}
	root := anchor == c.tree.Root()
	hit := 0
	if key.Units() >= c.storage.least && (root || chained) && (c.bufferOnly() || c.storage.occupancy < c.host.pools[tree.Full].Size()/2) {
		pages := tree.HashPages(key, c.page)
		if !root {
			pages = tree.HashPagesAfter(last, key, c.page)
		}
		// A store that fails has nothing (rule FL-15); all ranks take part.
		if found, err := storage.Lookup(ctx, c.storage.opts.Store, pages, nil); err == nil {
			hit = found.Usable * c.page
		} else {
			c.stats.Storage.LookupsFailed++
		}
	}
	agreed := []int64{int64(hit)}
	if err := c.agree(agreed); err != nil {
		return 0, c.fail(op, err)
	}
	return int(agreed[0]), nil
}
