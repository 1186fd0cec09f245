// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "fmt"

// Finish ends a running request with what it has computed. With insert the tree
// takes what it lacks of the whole pages; everything else the request held is
// freed, and its lock given back. A second Finish is an *OrderError.
func (c *Cache) Finish(r *Request, insert bool) error {
	const op = "Finish"
	if err := c.ending(op, r); err != nil {
		return err
	}
	return c.finish(op, r, r.committed, insert)
}

// FinishAt is Finish with the request cut to its first n tokens, 0 to Len, for
// output that is not wanted (what follows a stop word).
func (c *Cache) FinishAt(r *Request, n int, insert bool) error {
	const op = "FinishAt"
	if err := c.ending(op, r); err != nil {
		return err
	}
	if n < 0 || n > r.committed {
		return &ArgumentError{Op: op, Field: "n", Problem: fmt.Sprintf("%d tokens: the request has computed %d", n, r.committed)}
	}
	return c.finish(op, r, n, insert)
}

// ending is guard for the calls that end a running request.
func (c *Cache) ending(op string, r *Request) error {
	want := Running
	if r != nil && r.state == Lost {
		want = Lost
	}
	return c.guard(op, r, want, "only a running request is finished, once; Abort ends one that waits")
}

// Abort ends a request at any point: what it held comes back, once, and nothing
// is added to the tree. After the end of the request it is an *OrderError.
func (c *Cache) Abort(r *Request) error {
	const op = "Abort"
	if r != nil && r.cache == c && r.state == Waiting {
		if err := c.guard(op, r, Waiting, ""); err != nil {
			return err
		}
		if r.fetch != nil {
			if err := c.dropPrefetch(r.fetch); err != nil {
				return c.fail(op, err)
			}
		}
		if r.hold != nil {
			c.stats.Storage.HoldsDropped++
			if err := c.dropHold(r); err != nil {
				return c.fail(op, err)
			}
		}
		c.leave(r)
		return nil
	}
	if r != nil && r.cache == c && r.state == Retracted {
		return c.Discard(r.saved)
	}
	if err := c.ending(op, r); err != nil {
		return err
	}
	return c.finish(op, r, r.committed, false)
}

func (c *Cache) finish(op string, r *Request, n int, insert bool) error {
	given := none
	var late error // of a backup; the end goes on
	if insert && r.state == Running && !c.opts.Disabled {
		var err error
		if given, late, err = c.finalInsert(r, n); err != nil {
			return c.fail(op, err)
		}
	}
	// What is left of the row is the request's: from the insert's end to what
	// was allocated ahead.
	if r.own.length > 0 {
		if err := c.freeKV(r.own.runs); err != nil {
			return c.fail(op, err)
		}
	}
	if err := c.unlock(r); err != nil {
		return c.fail(op, err)
	}
	if err := c.freeStates(r, given); err != nil {
		return c.fail(op, err)
	}
	c.running--
	c.leave(r)
	return late
}

// finalInsert hands the first n tokens to the tree. It returns the track buffer
// whose state is not the request's any more: none if there is no such one.
func (c *Cache) finalInsert(r *Request, n int) (buffer int, late, err error) {
	p := c.plan(r, n)
	if p.whole == 0 {
		return none, nil, nil
	}
	given := handOver{buffer: p.buffer}
	if p.buffer != none {
		given.state = r.checkpoint.buffers[p.buffer]
	}
	result, late, err := c.insert(c.params(r, p, given.value(), false))
	if err != nil {
		return none, nil, err
	}
	if err := c.settle(given, result); err != nil {
		return none, nil, err
	}
	c.published(r, p, result)
	r.own.dropFront(p.whole - r.protected)
	if r.session != "" {
		if err := c.tree.RegisterSession(r.session, r.generation, result.LastDeviceNode); err != nil {
			return none, nil, err
		}
	}
	return p.buffer, late, nil
}

// leave takes a request out of the books and drops what its record holds.
func (c *Cache) leave(r *Request) {
	c.live.remove(r)
	r.state = Finished
	r.prefix, r.own, r.protected = nil, row{}, 0
	r.match.DeviceSlots = nil
}
