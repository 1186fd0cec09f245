// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"slices"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// shelf is the way to the store in virtual time. Lookups, reads and writes are a
// line each: an operation starts when the one before it has ended; a lookup takes
// a latency, the others a latency and the bytes of the model's pages at the
// bandwidth, whatever the store really moves. An operation runs, and the cache
// hears of it, when virtual time has passed its end.
type shelf struct {
	pages     map[string]float64 // bytes of a page by pool; looked up only
	page      int                // tokens
	bandwidth float64            // bytes a second
	latency   time.Duration
	stop      cache.StopPolicy
	timeout   queue.Timeout
	wake      func(time.Duration) // asks for a look at those who wait
	wrote     func(time.Duration) // asks for a moment at which a write ends; nil: whoever waits asks himself
	staging   bool                // the host is a staging area: ticks begin reads for any that wait for room
	found     []finding           // those, and the one whose answer is being served
	asker     *job                // for whom an operation is being started; nil: for nobody
	now       time.Duration

	free    [queue.NumKinds]time.Duration // end of the last operation of each line
	busy    [queue.NumKinds]time.Duration
	count   [queue.NumKinds]int64
	moved   [queue.NumKinds]float64  // bytes
	flights [queue.NumKinds][]errand // the oldest first
	grown   float64                  // bytes of pages that the store did not have
	answers [2]int64                 // lookups that found something, and nothing
	serving time.Duration            // when the lookup began whose answer is being served
}

// errand is an operation on its way.
type errand struct {
	operation *queue.Operation
	job       *job          // nil: for nobody
	began     time.Duration // it got in line
	turn, end time.Duration // it is served
}

func newShelf(o *Options) *shelf {
	s := &shelf{
		pages: map[string]float64{}, page: o.PageSize, bandwidth: o.StorageBandwidth, latency: o.StorageLatency,
		stop: o.stopPolicy, timeout: queue.DefaultTimeout,
	}
	s.pages[tree.Full.String()] = float64(o.PageSize) * float64(o.Profile.Full.BytesPerToken)
	if p := o.Profile.SWA; p != nil {
		s.pages[tree.SWA.String()] = float64(o.PageSize) * float64(p.BytesPerToken)
	}
	if p := o.Profile.Mamba; p != nil {
		s.pages[tree.Mamba.String()] = float64(p.BytesPerState)
	}
	return s
}

// clock is the time that the cache's queue sees.
func (s *shelf) clock() time.Time { return time.Unix(0, 0).Add(s.now) }

// bytes gives what an operation moves.
func (s *shelf) bytes(o *queue.Operation) float64 {
	full, aux := o.Size()
	n := float64(full) * s.pages[tree.Full.String()]
	for _, b := range aux {
		n += float64(len(b.Pages)) * s.pages[b.Pool]
	}
	return n
}

// started books an operation.
func (s *shelf) started(o *queue.Operation) {
	k := o.Kind()
	bytes := 0.0
	if k != queue.Lookup {
		bytes = s.bytes(o)
	}
	// What takes no time at all ends at a later moment, too, so that it is seen.
	takes := max(1, s.latency+time.Duration(bytes/s.bandwidth*float64(time.Second)))
	turn := max(s.now, s.free[k])
	end := turn + takes
	s.free[k], s.busy[k], s.moved[k] = end, s.busy[k]+takes, s.moved[k]+bytes
	s.count[k]++
	s.flights[k] = append(s.flights[k], errand{o, s.asker, s.now, turn, end})
	if k == queue.Write {
		if s.wrote != nil {
			s.wrote(end)
		}
		return // nobody else waits for it
	}
	if len(s.flights[k]) == 1 {
		s.wake(end) // the others when it is their turn
	}
	if s.stop != cache.WaitTimeout || k == queue.Read && s.staging {
		return
	}
	from, tokens := s.now, 0
	if k == queue.Read { // the time of a prefetch begins with its lookup
		full, _ := o.Size()
		from, tokens = s.serving, full*s.page
	}
	// It has passed when more than that is over.
	if over := from + s.timeout.For(tokens) + 1; over > s.now && over < end {
		s.wake(over)
	}
}

// advance moves virtual time on: operations that have ended by then run now, and
// it reports whether there were writes, whose locks are gone.
func (s *shelf) advance(now time.Duration, c *cache.Cache) (written bool, err error) {
	if s == nil {
		return false, nil
	}
	s.now = now
	for k := range queue.Kind(queue.NumKinds) {
		any := false
		for len(s.flights[k]) > 0 && s.flights[k][0].end <= now {
			x := s.next(k, c)
			any = true
			if k != queue.Lookup {
				continue
			}
			if err := s.answered(x, c); err != nil {
				return false, err
			}
		}
		if any && k != queue.Lookup {
			if err := s.tick(c); err != nil {
				return false, err
			}
			written = k == queue.Write
		}
	}
	return written, nil
}

// next runs the oldest operation of a line.
func (s *shelf) next(k queue.Kind, c *cache.Cache) errand {
	x := s.flights[k][0]
	s.flights[k] = s.flights[k][1:]
	if k != queue.Write && len(s.flights[k]) > 0 {
		s.wake(s.flights[k][0].end)
	}
	if q := c.Storage(); q != nil {
		q.Complete(x.operation.ID())
	}
	return x
}

// counted is a store that tells a shelf what is new in it. The writes of a replay
// come one after the other.
type counted struct {
	storage.Store
	shelf *shelf
}

func (c counted) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	before := c.Store.Stats().Written
	stored, err := c.Store.Put(ctx, keys, pages)
	if len(keys) > 0 { // all of one pool
		c.shelf.grown += float64(c.Store.Stats().Written-before) * c.shelf.pages[keys[0].Pool]
	}
	return stored, err
}

// answered lets the cache serve the answer of a lookup, which may begin a read.
func (s *shelf) answered(x errand, c *cache.Cache) error {
	if _, found := x.operation.Found(); found.Usable > 0 {
		s.answers[0]++
	} else {
		s.answers[1]++
	}
	if s.staging {
		if x.job != nil && x.job.waiting != nil {
			s.found = append(s.found, finding{x.job, x.job.waiting, x.began})
		}
		return s.tick(c)
	}
	s.serving, s.asker = x.began, x.job
	err := c.Tick()
	s.asker = nil
	return err
}

// reading gives the place in line of the read for a request; -1: there is none.
func (s *shelf) reading(j *job) int {
	return slices.IndexFunc(s.flights[queue.Read], func(x errand) bool { return x.job == j })
}

// reach lets the read for a request come as far as it is by now: Full pages come
// one after the other.
func (s *shelf) reach(j *job, c *cache.Cache) {
	i := s.reading(j)
	if i < 0 || s.stop == cache.WaitComplete || c.Storage() == nil {
		return // nobody looks at a part
	}
	x := &s.flights[queue.Read][i]
	if passed := (s.now - x.turn - s.latency).Seconds(); passed > 0 {
		c.Storage().Advance(x.operation.ID(), int(passed*s.bandwidth/s.pages[tree.Full.String()]))
	}
}

// cut ends the read for a request that did not wait for all of it. Those behind
// it come earlier.
func (s *shelf) cut(j *job) {
	i := s.reading(j)
	if i < 0 {
		return
	}
	line := s.flights[queue.Read]
	x := &line[i]
	x.job = nil
	over := max(s.now, x.turn) + 1 // a moment that is still to come
	saved := x.end - over
	if saved <= 0 {
		return
	}
	unread := min(saved.Seconds()*s.bandwidth, s.bytes(x.operation))
	x.end = over
	for k := i + 1; k < len(line); k++ {
		line[k].turn -= saved
		line[k].end -= saved
	}
	s.free[queue.Read] -= saved
	s.busy[queue.Read] -= saved
	s.moved[queue.Read] -= unread
	if i == 0 {
		s.wake(over)
	}
}

// written gives the moment at which the next write ends; false if none is on its
// way.
func (s *shelf) written() (time.Duration, bool) {
	if s == nil || len(s.flights[queue.Write]) == 0 {
		return 0, false
	}
	return s.flights[queue.Write][0].end, true
}
