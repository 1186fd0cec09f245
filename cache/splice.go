// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// mostDeferrals is how many admissions of a request may find no room on the
// device for what was fetched, until it is dropped (rule FR-3).
const mostDeferrals = 8

// BaseGoneError says that what was fetched for a request went on from a prefix
// that is not on the device any more, and so was dropped. The request waits on:
// prefetch again, or admit it with what the device has. It wraps a
// *FetchingError, for callers that only try again later.
type BaseGoneError struct{ Request int64 }

// Unwrap returns a *FetchingError.
func (e *BaseGoneError) Unwrap() error { return &FetchingError{Request: e.Request} }

func (e *BaseGoneError) Error() string {
	return fmt.Sprintf("request %d: the prefix that its fetched tokens go on from has gone, and they with it: prefetch again, or admit it with what is there", e.Request)
}

// spliced is a hold whose copy to the device is queued or in flight.
type spliced struct {
	hold *hold
	// superfluous are SWA slots that the copy writes to, for positions whose
	// window was there (rule BO-21).
	superfluous tree.Slots
}

// splicePlan is what an admission decides about a hold (rule BO-19).
type splicePlan struct {
	base   tree.FullPrefix // what of the hold's key the device has, a whole node's end
	window int             // position at which the staged window begins
}

// useHold plans what was fetched for a waiting request, and splices it into the
// tree, so that the match of its prompt finds it. A shortage on the device is a
// *pool.ExhaustedError, and the hold waits for the next admission; but where no
// request runs, that could make room, it is dropped at once.
func (c *Cache) useHold(op string, r *Request, quota int) error {
	h, s := r.hold, &c.stats.Storage
	if r.match.DeviceLen >= h.end() {
		s.HoldsCovered++
		r.offered = 0 // nothing is missed
		return c.dropped(op, r)
	}
	p, ok, err := c.planSplice(h)
	if err != nil {
		return c.fail(op, err)
	}
	if !ok {
		s.HoldsShrunk++
		s.LostTokens += int64(h.fetched)
		if err := c.dropped(op, r); err != nil {
			return err
		}
		return &BaseGoneError{Request: r.id}
	}
	short, err := c.splice(r, p, quota)
	alone := c.running == 0 && quota < 0
	if err == nil && short != nil && alone {
		var gave bool
		if gave, err = c.unpinAll(); gave && err == nil {
			short, err = c.splice(r, p, quota)
		}
	}
	if err != nil {
		return c.fail(op, err)
	}
	if short != nil {
		s.DeferredSplices++
		e := c.host.engine
		alone = alone && e.InFlight(pool.ToHost)+e.InFlight(pool.ToDevice) == 0
		if h.deferrals++; h.deferrals < mostDeferrals && !alone {
			return short
		}
		s.HoldsDeviceCapacity++
		s.LostTokens += int64(h.fetched)
		if err := c.dropped(op, r); err != nil {
			return err
		}
	}
	if r.epoch == c.epoch {
		return nil
	}
	return c.match(op, r)
}

func (c *Cache) dropped(op string, r *Request) error {
	if err := c.dropHold(r); err != nil {
		return c.fail(op, err)
	}
	return nil
}

// planSplice looks up what a hold goes on from. ok is false if its base has gone:
// Full of it, or the part of the window that was not fetched.
func (c *Cache) planSplice(h *hold) (p splicePlan, ok bool, err error) {
	p.window = h.end() - h.swa.Len()
	m, err := c.tree.Match(h.key) // a node ends where the key ends
	if err == nil {
		err = c.apply(m.Actions)
	}
	if err == nil {
		p.base, err = c.tree.MatchFullDevicePrefix(h.key)
	}
	if err != nil || p.base.Matched < h.matched {
		return p, false, err
	}
	if from := c.windowStart(h.end()); c.swa && from < p.window {
		// The window was fetched from h.matched on only.
		gaps, err := c.tree.SWATombstoneRanges(h.key, from, p.window)
		return p, len(gaps) == 0, err
	}
	return p, true, nil
}

// splice puts a hold on the device: it allocates, inserts what is new, fills the
// gaps of the window, and queues the copy (rules BO-20, BO-21). short says that
// there is no room; then nothing is left but what was evicted.
func (c *Cache) splice(r *Request, p splicePlan, quota int) (short, err error) {
	h, d := r.hold, p.base.Matched
	receipt, err := c.tree.Lock(p.base.Node, 0)
	if err != nil {
		return nil, err
	}
	full, swa, short, err := c.spliceRoom(h, d, quota, receipt)
	if err != nil || short != nil {
		return short, errors.Join(err, c.tree.Unlock(p.base.Node, receipt, false))
	}
	// The tree must still be what was planned on: then the insert only adds, and
	// nothing that the copy writes to is given back before its end.
	now, err := c.tree.MatchFullDevicePrefix(h.key)
	if err != nil {
		return nil, err
	}
	if now != p.base || now.Pinned != d {
		return nil, fmt.Errorf("request %d is spliced onto %+v, which was planned as %+v", r.id, now, p.base)
	}
	l := &load{node: p.base.Node, from: d}
	prefix, err := c.tree.CollectFullDeviceSlots(p.base.Node, c.tree.Root())
	if err != nil {
		return nil, err
	}
	x := &spliced{hold: h}
	if c.swa {
		if err := c.fillWindow(h, p.window, prefix, full, swa, l, x); err != nil {
			return nil, err
		}
	}
	if len(full) > 0 {
		if err := c.insertSpliced(r, p, prefix.Append(full)); err != nil {
			return nil, err
		}
	}
	m, err := c.tree.Match(h.key)
	if err == nil {
		err = c.apply(m.Actions)
	}
	if err != nil {
		return nil, err
	}
	if m.DeviceLen != h.end() || !m.DeviceSlots.Slice(d, h.end()).Equal(full) {
		return nil, fmt.Errorf("request %d has spliced %d tokens after %d of %d, and finds %d with other slots", r.id, full.Len(), d, h.end(), m.DeviceLen)
	}
	l.node, l.spliced = m.LastDeviceNode, x
	if l.device, err = c.tree.Lock(l.node, 0); err != nil {
		return nil, err
	}
	if err := errors.Join(c.tree.Unlock(p.base.Node, receipt, false), c.unpin(&h.pin)); err != nil {
		return nil, err
	}
	c.queueSplice(r, l, full, swa)
	return nil, nil
}

// spliceRoom allocates the device slots of a hold whose base is locked: all of
// them, or none.
func (c *Cache) spliceRoom(h *hold, d, quota int, base tree.Receipt) (full, swa tree.Slots, short, err error) {
	n := h.end() - d
	if quota >= 0 && n-base.Delta > quota {
		return nil, nil, &pool.ExhaustedError{Pool: tree.Full.String(), Want: n, Free: quota + base.Delta}, nil
	}
	lack := func(id tree.Component, n int) error {
		return &pool.ExhaustedError{Pool: id.String(), Want: n, Free: c.pool(id).Available()}
	}
	full, err = c.deviceSlots(tree.Full, n)
	if err != nil {
		return nil, nil, nil, err
	}
	if full == nil {
		return nil, nil, lack(tree.Full, n), nil
	}
	if w := h.swa.Len(); w > 0 {
		swa, err = c.deviceSlots(tree.SWA, w)
		if err == nil && swa == nil {
			short = lack(tree.SWA, w)
		}
		if swa == nil && len(full) > 0 {
			err = errors.Join(err, c.freeFullOnly(full))
		}
	}
	return full, swa, short, err
}

// fillWindow gives the staged window's slots to the positions that lack them
// (rule BO-21): to gaps on nodes that are there, and to what is new. It notes
// where the first of them begins, and what is left over.
func (c *Cache) fillWindow(h *hold, from int, prefix, full, swa tree.Slots, l *load, x *spliced) error {
	d := prefix.Len()
	at := from // what of the window lies below d is done up to here
	if from < d {
		gaps, err := c.tree.SWATombstoneRanges(h.key, from, d)
		if err != nil {
			return err
		}
		if err := c.gapsAgree(prefix, from, gaps); err != nil {
			return err
		}
		for i, gap := range gaps {
			if i == 0 {
				l.from = gap.Start
			}
			x.superfluous = x.superfluous.Append(swa.Slice(at-from, gap.Start-from))
			slots := swa.Slice(gap.Start-from, gap.End-from)
			if err := c.dual.SetMap(prefix.Slice(gap.Start, gap.End), slots); err != nil {
				return err
			}
			actions, err := c.tree.AttachSWAWindow(h.key, gap.Start, gap.End, slots)
			if err == nil {
				err = c.apply(actions)
			}
			if err != nil {
				return err
			}
			at = gap.End
		}
		x.superfluous = x.superfluous.Append(swa.Slice(at-from, d-from))
	}
	fresh := max(from, d)
	if fresh == h.end() {
		return nil
	}
	return c.dual.SetMap(full.Slice(fresh-d, h.end()-d), swa.Slice(fresh-from, h.end()-from))
}

// gapsAgree verifies that the map says what the tree says: positions from the
// given one on lack SWA slots exactly in the gaps.
func (c *Cache) gapsAgree(prefix tree.Slots, from int, gaps []tree.Range) error {
	twins, err := c.dual.Translate(prefix.Slice(from, prefix.Len()))
	if err != nil {
		return err
	}
	at := from
	for _, run := range twins {
		for end := at + int(run.Length); at < end; at++ {
			for len(gaps) > 0 && gaps[0].End <= at {
				gaps = gaps[1:]
			}
			gap := len(gaps) > 0 && gaps[0].Start <= at
			if gap != (run.First == 0) {
				return fmt.Errorf("position %d lacks an SWA slot: the tree says %v, the map %v", at, gap, run.First == 0)
			}
		}
	}
	return nil
}

// insertSpliced lets the tree have the new slots. It is not counted as a hit.
func (c *Cache) insertSpliced(r *Request, p splicePlan, slots tree.Slots) error {
	result, late, err := c.insert(tree.InsertParams{
		Key: r.hold.key, Slots: slots, PrevPrefixLen: p.base.Matched, SWAEvictedLen: p.window,
		Chunked: true, Priority: r.priority, SessionID: r.session,
	})
	if err = errors.Join(err, late); err != nil {
		return err
	}
	if result.PrefixLen != p.base.Matched {
		return fmt.Errorf("request %d has spliced onto %d tokens, the tree had %d", r.id, p.base.Matched, result.PrefixLen)
	}
	return nil
}

// queueSplice enters the copy among the loads, and takes the hold off its request.
func (c *Cache) queueSplice(r *Request, l *load, full, swa tree.Slots) {
	h := r.hold
	fresh := full.Len()
	if fresh > 0 {
		l.parts = append(l.parts, pool.Part{Component: tree.Full, Device: full, Host: h.full.Slice(h.fetched-fresh, h.fetched)})
	}
	if len(swa) > 0 {
		l.parts = append(l.parts, pool.Part{Component: tree.SWA, Device: swa, Host: h.swa})
	}
	l.units[tree.Full], l.units[tree.SWA] = fresh, swa.Len()
	c.host.lastSeq++
	l.seq = c.host.lastSeq
	c.host.loads = append(c.host.loads, l)
	r.hold = nil
	r.loaded += fresh
	r.came = h.fetched // what the device had by then is not missed
	if d := h.end() - fresh; r.hostFrom == none || d < r.hostFrom {
		r.hostFrom = d
	}
	c.stats.Storage.Splices++
	c.stats.Storage.PrefetchedTokens += int64(fresh)
	c.epoch++
}

// endSplice frees what a splice held, when its copy has ended. The tree has what
// it brought already (rule BO-23).
func (c *Cache) endSplice(x *spliced) error {
	err := c.freeHold(x.hold)
	if len(x.superfluous) > 0 {
		err = errors.Join(err, c.dual.SWA().Free(x.superfluous))
	}
	return err
}
