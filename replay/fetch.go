// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/storage/queue"
)

// join puts a request in line. What storage has of its prompt begins to come.
func (d *driver) join(j *job) error {
	j.asked, j.dropped = false, 0
	d.line.join(j)
	if d.o.Concurrency > 0 {
		return nil // it comes when it is its turn
	}
	return d.prefetch(j)
}

// prefetch asks storage once for what the cache lacks of a prompt. A request for
// which nothing is fetched holds nothing while it waits.
func (d *driver) prefetch(j *job) error {
	if d.shelf == nil || j.asked || d.sizes.tooBig(j.request.InputLen, j.request.OutputLen) != nil {
		return nil
	}
	j.asked = true
	r, err := d.waiting(j)
	if neverFits(err) != nil {
		return nil // it is refused when its turn comes
	}
	if err != nil {
		return err
	}
	lookups := d.shelf.count[queue.Lookup]
	d.shelf.asker = j
	err = d.cache.prefetch(r)
	if d.shelf.asker = nil; err != nil {
		return err
	}
	if d.shelf.count[queue.Lookup] > lookups {
		return nil
	}
	err = d.leave(j)
	d.drop(j)
	return err
}

// waiting gives the cache's record of a request in line.
func (d *driver) waiting(j *job) (*cache.Request, error) {
	if j.tokens == nil {
		j.tokens = d.buffers.prompt(j.request)
	}
	if j.waiting != nil {
		return j.waiting, nil
	}
	r, err := d.cache.newRequest(cache.RequestParams{
		Tokens: j.tokens[:j.request.InputLen], Namespace: namespaceOf(j.request), Session: j.request.Session,
	})
	j.waiting = r
	return r, err
}

// leave gives up the record of a request in line, with what is being fetched for
// it.
func (d *driver) leave(j *job) error {
	r := j.waiting
	if j.waiting = nil; r == nil {
		return nil
	}
	if d.shelf != nil {
		d.shelf.cut(j)
	}
	return d.cache.abort(r)
}

// standBy ends an attempt to admit a request that waits on. What was fetched for
// it is remembered by its record, which is kept then.
func (d *driver) standBy(j *job) error {
	if d.shelf != nil {
		return nil
	}
	return d.leave(j)
}

// drop gives the tokens of a request back that does not run.
func (d *driver) drop(j *job) {
	if j.tokens != nil {
		d.buffers.back(j.tokens)
		j.tokens = nil
	}
}

// fetched reports whether the request whose turn it is has nothing to wait for.
// One that has steps aside, unless the order is strict, and comes back to its
// place when something has changed.
func (d *driver) fetched(j *job) (bool, error) {
	if d.shelf == nil {
		return true, nil
	}
	if err := d.prefetch(j); err != nil {
		return false, err
	}
	if j.waiting == nil {
		return true, nil
	}
	ready, err := d.look(j)
	switch {
	case err != nil:
		return false, err
	case !ready:
		if !j.fetching {
			j.fetching, j.since = true, d.now
		}
		if !d.line.listed {
			d.line.leave()
			d.aside = append(d.aside, j)
		}
		return false, nil
	}
	d.arrived(j)
	return true, nil
}

// look asks the cache whether a request has nothing to wait for. If so, what did
// not come is not read any more.
func (d *driver) look(j *job) (ready bool, err error) {
	d.shelf.reach(j, d.cache.c)
	if ready, err = d.cache.ready(j.waiting); ready {
		d.shelf.cut(j)
	} else if at, ok := d.link.next(); ok && !d.o.bufferOnly && d.shelf.reading(j) < 0 {
		// What was read may have to wait for the host copy of what it stands on. One
		// that takes no time ends at a later moment, too, so that it is seen.
		d.wakeWaiting(max(at, d.now+1))
	}
	return ready, err
}

// rejoin lets those who stepped aside stand in line again when they need not wait
// any more, which may be long before a step has room for them.
func (d *driver) rejoin() error {
	still := d.aside[:0]
	for _, j := range d.aside {
		ready, err := d.look(j)
		if err != nil {
			return err
		}
		if !ready {
			still = append(still, j)
			continue
		}
		d.arrived(j)
		d.line.join(j)
	}
	d.aside = still
	if j := d.line.first(); j != nil && j.fetching { // the order is strict
		if ready, err := d.look(j); !ready {
			return err
		}
		d.arrived(j)
	}
	return nil
}

// arrived notes that a request need not wait for storage any more.
func (d *driver) arrived(j *job) {
	if j.fetching {
		j.fetching = false
		d.rec.waited(d.now - j.since)
	}
}

// wakeWaiting asks for a look at those who wait for storage: one at a moment, as
// each is at all of them, and each of them may ask for the next.
func (d *driver) wakeWaiting(at time.Duration) {
	if d.looks[at] {
		return
	}
	d.looks[at] = true
	d.events.schedule(event{at: at, kind: eventFetch})
}

// awaitWrite lets the oldest write to storage end, for which everybody waits: it
// keeps its pages on the host, so that nothing could go there. It reports
// whether there was one.
func (d *driver) awaitWrite() (bool, error) {
	end, ok := d.shelf.written()
	if !ok {
		return false, nil
	}
	d.link.standStill(end)
	d.shelf.next(queue.Write, d.cache.c)
	return true, d.shelf.tick(d.cache.c)
}

// mayWait is awaitWrite for a running request that found something short: under
// write-back what has to go first goes to the host, which a write may keep full;
// and one that is alone waits for everything before it is given up.
func (d *driver) mayWait() (bool, error) {
	if d.o.writePolicy != cache.WriteBack && len(d.running) > 1 {
		return false, nil
	}
	return d.awaitWrite()
}

// engaged counts those who count as in flight: where arrival times are not kept,
// a request that waits for storage keeps its place.
func (d *driver) engaged() int {
	if d.o.Concurrency > 0 {
		return len(d.running) + len(d.aside)
	}
	return len(d.running)
}
