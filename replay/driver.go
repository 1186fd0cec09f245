// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/workload"
)

// driver brings the requests of a workload through a cache, in virtual time.
type driver struct {
	o     *Options
	cache *meter
	sizes sizes
	rec   *recorder

	jobs    []job
	depends *dependencies
	link    *link  // nil without a host tier
	shelf   *shelf // nil without a storage tier
	stamps  *stamps
	aside   []*job                 // in line, but what is fetched for them is not there yet
	looks   map[time.Duration]bool // moments at which they are looked at; looked up only
	events  eventQueue
	line    line
	buffers buffers

	now     time.Duration
	running []*job // by admission, the youngest last
	step    []part // the prefill step in flight; empty: none
	partial *job   // the request whose prompt is under way, outside of a step
	ended   int

	// blocked: the first in line did not fit, and nothing has ended since.
	blocked bool
}

// part is what a step computes of one request.
type part struct {
	job *job
	run int // the job's run when the step began
	n   int // tokens
}

// decodeStride is the number of tokens that a request generates between two
// looks at the cache.
const decodeStride = 64

func newDriver(w *workload.Workload, o *Options, s sizes, m *meter, rec *recorder) *driver {
	d := &driver{
		o: o, cache: m, sizes: s, rec: rec,
		jobs:    make([]job, len(w.Requests)),
		depends: newDependencies(w.Requests),
		line:    line{listed: o.Order == OrderListed},
		looks:   map[time.Duration]bool{},
	}
	for i := range w.Requests {
		r := &w.Requests[i]
		d.jobs[i] = job{index: i, request: r}
		if len(r.After) > 0 {
			continue
		}
		arrival := r.Arrival
		if o.Concurrency > 0 {
			arrival = 0
		}
		d.events.schedule(event{at: arrival, kind: eventReady, job: &d.jobs[i]})
	}
	return d
}

// drive runs until every request has ended.
func (d *driver) drive(ctx context.Context) error {
	for d.events.Len() > 0 && d.ended < len(d.jobs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		// What happens at the same moment is known before the next step.
		d.now = d.events.list[0].at
		if err := d.advance(); err != nil {
			return err
		}
		for d.events.Len() > 0 && d.events.list[0].at == d.now {
			if err := d.handle(d.events.next()); err != nil {
				return err
			}
		}
		if err := d.startStep(); err != nil {
			return err
		}
		if err := d.stage(); err != nil {
			return err
		}
		d.rec.sample(d.now, d.cache)
	}
	if d.ended != len(d.jobs) {
		return fmt.Errorf("replay stands still with %d of %d requests ended: this is a fault of the program", d.ended, len(d.jobs))
	}
	return nil
}

// advance ends copies and storage operations whose time has come.
func (d *driver) advance() error {
	if d.shelf != nil {
		d.shelf.now = d.now // the end of a copy begins a write
	}
	copied, err := d.link.advance(d.now, d.cache.c)
	if err != nil {
		return err
	}
	if copied {
		d.shelf.settle()
	}
	written, err := d.shelf.advance(d.now, d.cache.c)
	if err != nil {
		return err
	}
	if copied || written && d.o.writePolicy == cache.WriteBack {
		d.blocked = false // its locks are gone
	}
	return nil
}

func (d *driver) handle(e event) error {
	switch {
	case e.kind == eventReady:
		e.job.ready = d.now
		return d.join(e.job)
	case e.kind == eventFetch:
		delete(d.looks, e.at)
		return d.rejoin()
	case e.kind == eventWake:
		return nil
	case e.kind == eventStep:
		return d.endStep()
	case e.job.running && e.job.run == e.run:
		return d.decode(e.job)
	}
	return nil // the run that the event belongs to was taken off
}

// end notes that a request has ended, one way or the other.
func (d *driver) end(j *job, x Outcome) {
	d.ended++
	d.depends.ended(j.index, func(i int) {
		next := &d.jobs[i]
		d.events.schedule(event{at: d.now + next.request.Think, kind: eventReady, job: next})
	})
	if d.o.Observe != nil {
		d.o.Observe(x)
	}
	if d.o.Progress != nil {
		d.o.Progress(d.ended)
	}
}

// stop takes a request from the running ones. Its cache request has been
// finished or aborted.
func (d *driver) stop(j *job) {
	for i, other := range d.running {
		if other == j {
			d.running = append(d.running[:i], d.running[i+1:]...)
			break
		}
	}
	if d.partial == j {
		d.partial = nil
	}
	d.drop(j)
	j.live, j.running = nil, false
}
