// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Retraction is what a retracted request has on the host: copies of all that its
// next step reads. The slots belong to it and the tree knows nothing of them. It
// ends once: with Restore, with Discard or the request's Abort, or with Reset.
type Retraction struct {
	request *Request
	length  int // positions that were computed
	host    [tree.NumComponents]tree.Slots
}

// Request returns the request that was retracted.
func (s *Retraction) Request() *Request { return s.request }

// Units returns how many host slots of each component it holds, those of whole
// pages; nothing after its end.
func (s *Retraction) Units() tree.Units {
	var u tree.Units
	for id, list := range s.host {
		u[id] = list.Len()
	}
	return u
}

// RetractionError says that what a request has computed could not be copied, for
// another reason than a lack of room. The request is in the state it was in: it
// may run on, or be restored again, or be ended.
type RetractionError struct {
	Op      string
	Request int64
	Err     error
}

func (e *RetractionError) Error() string {
	return fmt.Sprintf("%s: request %d is left as it was, since the copy failed: %v", e.Op, e.Request, e.Err)
}

// Unwrap returns the cause.
func (e *RetractionError) Unwrap() error { return e.Err }

// RetractionMismatchError says that what was saved is not what this cache would
// restore. Nothing has changed.
type RetractionMismatchError struct {
	Request       int64
	Saved, Wanted tree.Units // host slots of each pool; 0: the pool has no part in it
}

func (e *RetractionMismatchError) Error() string {
	return fmt.Sprintf("Restore: request %d has saved %s, this cache restores %s: restore it in the cache that retracted it, or discard it",
		e.Request, poolSet(e.Saved), poolSet(e.Wanted))
}

// poolSet writes pools and their slots as a set.
func poolSet(u tree.Units) string {
	var parts []string
	for id, n := range u {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%v: %d", tree.Component(id), n))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// SupportsRetraction says whether requests can be retracted: nil, or a
// *tree.ConfigError that names the option which is in the way (rule RT-1).
func (c *Cache) SupportsRetraction() error {
	switch {
	case c.host == nil:
		return &tree.ConfigError{Field: "Host", Value: "not set", Allowed: "a host tier, for retraction, in a cache that is not disabled"}
	case c.mamba:
		return &tree.ConfigError{Field: "Tree.Components", Value: c.tree.Options().Components.String(), Allowed: "a set without Mamba, for retraction"}
	case c.swa && c.host.pools[tree.SWA] == nil:
		return &tree.ConfigError{Field: "Host.Pools.SWA", Value: "0", Allowed: fmt.Sprintf("%d (one page) or more, for retraction", c.page)}
	}
	return nil
}

// Retract takes a running request off the device without losing what it has
// computed: all of its Full slots and its window are copied to the host, then it
// gives back its lock and its slots, as Abort would. The tree keeps what it has.
// Restore lets the request run on, Discard or Abort ends it. Positions that were
// allocated ahead are given up.
//
// If what the request reads is still being loaded from the host, that is waited
// for; a load that fails is a *LoadError, and the request is lost. Copies to the
// host that were started before are waited for, too. If the host lacks room, and
// evicting there does not help, it is a *pool.ExhaustedError; if the copy fails
// or ctx ends, a *RetractionError. The request then runs on, and nothing has
// changed but what the host had to evict. When ctx ends, the copy is told to end
// early, and its end is waited for, since it reads the request's slots.
func (c *Cache) Retract(ctx context.Context, r *Request) (*Retraction, error) {
	const op = "Retract"
	if err := c.guard(op, r, Running, "only a running request is retracted"); err != nil {
		return nil, err
	}
	if err := c.SupportsRetraction(); err != nil {
		return nil, err
	}
	if err := c.WaitLoads(ctx, r); err != nil {
		return nil, err
	}
	// Acknowledgements come in order, so those before this copy's are taken first.
	if err := c.together(c.host.engine.Wait(ctx, pool.ToHost)); err != nil {
		return nil, &RetractionError{op, r.id, err}
	}
	if err := c.takeBackups(c.host.engine.InFlight(pool.ToHost)); err != nil {
		return nil, c.fail(op, err)
	}
	s := &Retraction{request: r, length: r.committed}
	if err := c.save(ctx, s); err != nil {
		var failed *RetractionError
		switch {
		case momentary(err):
			c.stats.RetractionsRefused++
			return nil, err
		case errors.As(err, &failed):
			return nil, err
		}
		return nil, c.fail(op, err)
	}
	var err error
	if r.own.length > 0 {
		err = c.freeKV(r.own.runs)
	}
	if err = errors.Join(err, c.unlock(r)); err != nil {
		return nil, c.fail(op, err)
	}
	c.running--
	r.state, r.saved = Retracted, s
	r.node, r.prefix, r.own, r.protected, r.frontier = tree.NoNode, nil, row{}, 0, 0
	c.stats.Retractions++
	return s, nil
}

// save copies what a request has computed to host slots of its own (rules RT-2
// to RT-5).
func (c *Cache) save(ctx context.Context, s *Retraction) error {
	spec, err := c.saveSpec(s.request)
	if err != nil || len(spec.Full) == 0 {
		return err
	}
	if n := spec.Full.Len(); c.host.pools[tree.Full].Available() < n {
		if _, err := c.evictHost(tree.Full, n); err != nil {
			return err
		}
	}
	parts, err := c.hostSlots(&spec)
	if err != nil {
		return err
	}
	for _, p := range parts {
		s.host[p.Component] = p.Host
	}
	if err := c.transfer(ctx, pool.Copy{Direction: pool.ToHost, Parts: parts}); err != nil {
		if free := c.host.freeHost(&s.host); free != nil {
			return free
		}
		return &RetractionError{"Retract", s.request.id, err}
	}
	return nil
}

// saveSpec lists the device slots that are to be saved, in whole pages.
func (c *Cache) saveSpec(r *Request) (tree.BackupSpec, error) {
	var spec tree.BackupSpec
	if r.committed == 0 {
		return spec, nil
	}
	full := r.own.appendTo(r.prefix.Clone(), 0, r.committed-r.protected)
	spec.Full = wholePages(full, c.page)
	if !c.swa {
		return spec, nil
	}
	from := c.windowStart(r.committed)
	window, err := c.dual.Translate(spec.Full.Slice(from, spec.Full.Len()))
	if err != nil {
		return spec, err
	}
	at := from
	for _, run := range window {
		if run.First == 0 {
			return spec, fmt.Errorf("request %d has no SWA slot at position %d, inside its window", r.id, at)
		}
		at += int(run.Length)
	}
	spec.Aux = []tree.Transfer{{Component: tree.SWA, Device: window}}
	return spec, nil
}

// windowStart returns the position from which on a request with n positions is
// saved with its window: a multiple of the page (rule RT-3).
func (c *Cache) windowStart(n int) int {
	from := max(n-c.window, 0)
	return from - from%c.page
}

// savedUnits returns how many host slots of each component n positions take.
func (c *Cache) savedUnits(n int) tree.Units {
	var u tree.Units
	u[tree.Full] = pool.PagesFor(n, c.page) * c.page
	if c.swa {
		u[tree.SWA] = u[tree.Full] - c.windowStart(n)
	}
	return u
}

// transfer makes one copy and waits until it has ended, on all ranks. The copies
// of its direction that were started before must have been taken.
func (c *Cache) transfer(ctx context.Context, x pool.Copy) error {
	return c.together(c.transferHere(ctx, x))
}

func (c *Cache) transferHere(ctx context.Context, x pool.Copy) error {
	e := c.host.engine
	id, err := e.Start(ctx, x)
	if err != nil {
		return err
	}
	cut := e.Wait(ctx, x.Direction)
	if cut != nil {
		// The slots must stay as they are until nobody touches them.
		e.Cancel(id)
		if err := e.Wait(context.WithoutCancel(ctx), x.Direction); err != nil {
			return err
		}
	}
	for _, ack := range e.Take(x.Direction, 1) {
		if ack.Err == nil {
			return nil // it was through before it heard of the end of ctx
		}
		c.stats.CopiesFailed++
		if cut == nil {
			return ack.Err
		}
	}
	return cut
}

// Restore lets a retracted request run on: it gets device slots of its own, for
// all that was computed and, with SWA, for its window, and what was saved is
// copied there. Then the host slots are free. It holds none of the tree's slots;
// CacheUnfinished makes it share them again.
//
// If room is lacking on the device, and evicting does not help, it is a
// *pool.ExhaustedError; if the copy fails or ctx ends, a *RetractionError. The
// request then stays retracted, nothing has changed but what had to be evicted,
// and Restore may be tried again. After the record's end it is an *OrderError,
// and what a cache with other pools has saved is a *RetractionMismatchError.
func (c *Cache) Restore(ctx context.Context, s *Retraction) error {
	const op = "Restore"
	if err := c.SupportsRetraction(); err != nil {
		return err
	}
	if s != nil && s.request != nil && s.request.cache != c {
		if saved, wanted := s.Units(), c.savedUnits(s.length); saved != wanted {
			return &RetractionMismatchError{s.request.id, saved, wanted}
		}
	}
	r, err := c.retracted(op, s)
	if err != nil {
		return err
	}
	want := c.savedUnits(s.length)
	if saved := s.Units(); saved != want {
		return c.fail(op, &RetractionMismatchError{r.id, saved, want})
	}
	// See Retract. Loads that no StartLoading has started stay queued.
	if err := c.together(c.host.engine.Wait(ctx, pool.ToDevice)); err != nil {
		return &RetractionError{op, r.id, err}
	}
	if err := c.takeLoads(c.host.engine.InFlight(pool.ToDevice)); err != nil {
		return c.fail(op, err)
	}
	if err := c.makeRoom(want); err != nil {
		return err // of fail, or a shortage
	}
	own, err := c.bringBack(ctx, s, want)
	if err != nil {
		var failed *RetractionError
		if momentary(err) || errors.As(err, &failed) {
			return err
		}
		return c.fail(op, err)
	}
	r.own, r.frontier = own, 0
	if c.swa {
		r.frontier = c.windowStart(s.length)
	}
	if r.swaBranch > 0 && r.swaBranch-c.window < r.frontier {
		r.swaBranch = 0 // the window below it was not saved
	}
	err = errors.Join(c.lock(r, c.tree.Root(), 0), c.host.freeHost(&s.host))
	s.host = [tree.NumComponents]tree.Slots{}
	r.state, r.saved = Running, nil
	c.running++
	c.stats.Restores++
	if err != nil {
		return c.fail(op, err)
	}
	return nil
}

// bringBack returns device slots with what was saved; there is room for them. On
// an error they are free again.
func (c *Cache) bringBack(ctx context.Context, s *Retraction, want tree.Units) (row, error) {
	if s.length == 0 {
		return row{}, nil
	}
	for id, n := range want {
		if n > 0 {
			if err := c.injected(tree.Component(id), false); err != nil {
				return row{}, err
			}
		}
	}
	own := row{length: s.length}
	x := pool.Extension{Seq: s.length, Last: pool.NoSlot}
	var err error
	if c.swa {
		own.runs, err = c.dual.AllocExtendTail(nil, x, s.length-c.windowStart(s.length))
	} else {
		own.runs, err = c.full.AllocExtend(nil, x)
	}
	if err != nil {
		return row{}, err
	}
	full := wholePages(own.runs, c.page)
	move := pool.Copy{Direction: pool.ToDevice, Parts: []pool.Part{{Component: tree.Full, Device: full, Host: s.host[tree.Full]}}}
	if c.swa {
		window, err := c.dual.Translate(full.Slice(c.windowStart(s.length), full.Len()))
		if err != nil {
			return row{}, err
		}
		move.Parts = append(move.Parts, pool.Part{Component: tree.SWA, Device: window, Host: s.host[tree.SWA]})
	}
	if err := c.transfer(ctx, move); err != nil {
		if free := c.freeKV(own.runs); free != nil {
			return row{}, free
		}
		return row{}, &RetractionError{"Restore", s.request.id, err}
	}
	return own, nil
}

// Discard ends a retracted request without restoring it, as its Abort does: the
// host slots come back. After the record's end it is an *OrderError.
func (c *Cache) Discard(s *Retraction) error {
	const op = "Discard"
	r, err := c.retracted(op, s)
	if err != nil {
		return err
	}
	err = c.host.freeHost(&s.host)
	s.host = [tree.NumComponents]tree.Slots{}
	r.saved = nil
	c.leave(r)
	if err != nil {
		return c.fail(op, err)
	}
	return nil
}

// retracted is guard for the calls on a record: it is its request's, and not
// ended.
func (c *Cache) retracted(op string, s *Retraction) (*Request, error) {
	if c.broken == nil && (s == nil || s.request == nil) {
		return nil, &ArgumentError{Op: op, Field: "retraction", Problem: "there is none: pass what Retract returned"}
	}
	const over = "what was saved is free or restored already, each is done once"
	var r *Request
	if s != nil {
		r = s.request
	}
	if err := c.guard(op, r, Retracted, over); err != nil {
		return nil, err
	}
	if r.saved != s {
		return nil, &OrderError{Op: op, Request: r.id, State: r.state, Problem: over + "; pass what the latest Retract returned"}
	}
	return r, nil
}

// loseRetracted lets Reset end what a request has saved, whose host slots are
// free already.
func (c *Cache) loseRetracted(r *Request) {
	r.saved.host = [tree.NumComponents]tree.Slots{}
	r.saved, r.state, r.committed = nil, Lost, 0
	c.running++
}
