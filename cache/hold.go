// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"

	"github.com/treecore/treecore/tree"
)

// hold is what was read from the store for a waiting request: staging slots that
// are copied to the device when it is admitted (rule BO-18).
type hold struct {
	key              tree.Key // all of it: what the device had, and what was fetched
	matched, fetched int      // units of both
	full, swa        tree.Slots
	pin              pin
	reserved         int // tokens that count as occupied
	deferrals        int // admissions that found no room on the device
}

func (h *hold) end() int { return h.matched + h.fetched }

// pin keeps the Full path, and nothing else, of what a fetch goes on from (rule
// BO-17). The zero pin keeps nothing.
type pin struct {
	node  tree.NodeID
	units int
}

// mostPinned is how many Full tokens all pins together may keep from eviction.
func (c *Cache) mostPinned() int { return c.full.Size() / 2 }

func (c *Cache) unpin(p *pin) error {
	if p.node == tree.NoNode {
		return nil
	}
	node := p.node
	c.host.buffer.pinned -= p.units
	*p = pin{}
	return c.tree.UnpinFull(node)
}

// unpinAll gives up all pins, for something that matters more than what waits. A
// hold stays: whether its base is still there is seen at its admission.
func (c *Cache) unpinAll() (gave bool, err error) {
	if !c.bufferOnly() || c.host.buffer.pinned == 0 {
		return false, nil
	}
	for r := c.live.first; r != nil; r = r.next {
		for _, p := range r.pins() {
			if p.node != tree.NoNode {
				c.stats.Storage.PinsGivenUp++
				err = errors.Join(err, c.unpin(p))
			}
		}
	}
	return true, err
}

// pins returns where a request may have a pin.
func (r *Request) pins() []*pin {
	var out []*pin
	if r.fetch != nil {
		out = append(out, &r.fetch.pin)
	}
	if r.hold != nil {
		out = append(out, &r.hold.pin)
	}
	return out
}

// beginRead starts to read what a lookup has found, or parks it where there is no
// room for it yet (rules BO-16, BO-17). The device is asked once more: a base
// that has gone, or that has grown over what was found, ends the fetch.
func (c *Cache) beginRead(p *prefetch) error {
	st, s, b := c.storage, &c.stats.Storage, c.host.buffer
	size := c.host.pools[tree.Full].Size()
	// What is more than the whole pool is never there at once.
	p.hit = min(p.hit, size/c.page)
	hit := p.hit * c.page
	if hit < st.least {
		s.RevokedNoRoom++
		return c.dropPrefetch(p)
	}
	key := c.span(p, hit)
	base, err := c.tree.MatchFullDevicePrefix(key)
	if err != nil {
		return err
	}
	if base.Matched < p.matched {
		s.RevokedBaseGone++
		return c.dropPrefetch(p)
	}
	if usable, err := c.usableOnDevice(key, p.matched+hit, base.Matched); err != nil {
		return err
	} else if usable {
		s.RevokedCovered++
		p.request.offered = 0 // nothing is missed
		return c.dropPrefetch(p)
	}
	want := pin{base.Node, base.Pinned}
	if want.units > c.mostPinned() || want.units == 0 {
		want = pin{}
	}
	used := size - c.host.pools[tree.Full].Available() - b.staged[tree.Full]
	if used >= max(size*9/10, 1) || b.pinned+want.units > c.mostPinned() {
		c.park(p)
		return nil
	}
	full, err := c.stagingRoom(tree.Full, hit)
	if err != nil || full == nil {
		c.park(p)
		return err
	}
	p.full, p.hashes = full, p.hashes[:p.hit]
	if ok, err := c.auxRoom(p); err != nil || !ok {
		c.letGo(p, 0)
		c.park(p)
		return errors.Join(err, c.freeReleased())
	}
	if want.node != tree.NoNode {
		if err := c.tree.PinFull(want.node); err != nil {
			return err
		}
		p.pin = want
		b.pinned += want.units
	}
	p.reserved = hit
	st.occupancy += hit
	c.unpark(p)
	p.read = st.queue.Read(c.batch(c.poolsOf(tree.Full)[0], full, p.hashes), c.auxBatches(p))
	st.reads = append(st.reads, p)
	return nil
}

// span is the key of what a fetch goes on from and its first units.
func (c *Cache) span(p *prefetch, units int) tree.Key {
	key := p.key
	key.Tokens = p.request.tokens[:p.matched+units+c.extra]
	return key
}

// usableOnDevice reports whether a request could resume at the end of a key, of
// which the device has full units of Full.
func (c *Cache) usableOnDevice(key tree.Key, end, full int) (bool, error) {
	if full < end || !c.swa {
		return full >= end, nil
	}
	gaps, err := c.tree.SWATombstoneRanges(key, c.windowStart(end), end)
	return err == nil && len(gaps) == 0, err
}

// park lets a fetch wait for room. It keeps its place in the line.
func (c *Cache) park(p *prefetch) {
	if p.parked {
		return
	}
	p.parked = true
	b := c.host.buffer
	b.parked = append(b.parked, p)
	c.stats.Storage.Parked++
	c.stats.Storage.DeclinedRateLimited++
}

func (c *Cache) unpark(p *prefetch) {
	if !p.parked {
		return
	}
	p.parked = false
	b := c.host.buffer
	for i, x := range b.parked {
		if x == p {
			b.parked = append(b.parked[:i:i], b.parked[i+1:]...)
			return
		}
	}
}

// retryParked tries what is parked again, in order.
func (c *Cache) retryParked() error {
	for _, p := range c.host.buffer.parked { // beginRead replaces the list
		if err := c.beginRead(p); err != nil {
			return err
		}
	}
	return nil
}

// stage makes the usable part of what was read a hold. What it has shown to be in
// the store is believed to be there (rule BO-18).
func (c *Cache) stage(p *prefetch, usable int) error {
	r := p.request
	h := &hold{
		key: c.span(p, usable), matched: p.matched, fetched: usable,
		full: p.full.Slice(0, usable), pin: p.pin, reserved: usable,
	}
	pages := p.hashes[:usable/c.page]
	c.believe(tree.Full, pages)
	for _, a := range p.aux {
		if a.component == tree.SWA && a.sidecar == none {
			h.swa = a.slots
			c.believe(tree.SWA, pages[len(pages)-a.slots.Len()/c.page:])
		}
	}
	p.pin, p.aux = pin{}, nil
	p.reserved -= usable
	c.letGo(p, usable)
	r.hold = h
	return c.leavePrefetch(p)
}

// dropHold gives back what a request's hold has (rule BO-24).
func (c *Cache) dropHold(r *Request) error {
	h := r.hold
	err := c.unpin(&h.pin)
	r.hold = nil
	return errors.Join(err, c.freeHold(h))
}

// freeHold frees a hold's staging slots.
func (c *Cache) freeHold(h *hold) error {
	if c.storage != nil { // else what it reserved has gone with the store
		c.storage.occupancy -= h.reserved
	}
	return c.host.freeHost(&[tree.NumComponents]tree.Slots{tree.Full: h.full, tree.SWA: h.swa})
}
