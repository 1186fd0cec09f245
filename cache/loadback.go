// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// NoQuota is the quota that admits any load back.
const NoQuota = -1

// load is a copy from the host in flight, or queued (rule CT-2).
type load struct {
	seq          int64 // counts loads
	copy         int64 // its number in the engine; 0: queued
	node         tree.NodeID
	device, host tree.Receipt
	parts        []pool.Part
	units        tree.Units
	from         int // position at which the first node that it loads begins
	// copies are the requests that start from the node's state, which must be
	// there before it is copied.
	copies  []*Request
	spliced *spliced // what it copies where the host is a staging area; else nil
}

// loadBack loads what the match of a waiting request found on the host, so that
// a further match finds it on the device. It reports whether it did; if not, the
// request goes on with its device prefix (sections 8.1, 8.2).
func (c *Cache) loadBack(r *Request, quota int) (done bool, err error) {
	best := r.match.BestNode
	host, err := c.tree.LockHost(best)
	if err != nil {
		return false, err
	}
	device, err := c.tree.Lock(best, 0)
	if err != nil {
		return false, errors.Join(err, c.tree.UnlockHost(best, host))
	}
	l := &load{node: best, host: host, device: device}
	hadState := r.checkpoint.state != 0
	done, err = c.tryLoad(r, l, quota)
	if done || err != nil && !isUsable(err) {
		return done, err
	}
	// Giving up undoes exactly what was done (rule LB-12).
	c.stats.LoadBacksGivenUp++
	err = errors.Join(err, c.tree.Unlock(best, device, false), c.tree.UnlockHost(best, host))
	if !hadState && r.checkpoint.state != 0 {
		err = errors.Join(err, c.states.FreeOne(r.checkpoint.state))
		r.checkpoint.state = 0
	}
	return false, err
}

// tryLoad does everything between the locks and the books. What it allocated is
// free again if it is not done; locks and state stay the caller's business.
func (c *Cache) tryLoad(r *Request, l *load, quota int) (bool, error) {
	if r.match.MambaHostHitLen > 0 && r.checkpoint.state == 0 {
		s, err := c.deviceSlots(tree.Mamba, 1)
		if err != nil || s == nil {
			return false, err
		}
		_, r.checkpoint.state = s.At(0)
	}
	spec, err := c.tree.BuildLoadBackSpec(l.node)
	if err != nil {
		return false, err
	}
	n := spec.Full.Host.Len()
	switch {
	case spec.Pinned,
		n < c.host.opts.LoadBackThreshold && len(spec.Aux) == 0,
		quota >= 0 && n-l.device.Delta > quota:
		return false, nil
	}
	full, err := c.deviceSlots(tree.Full, n)
	if err != nil || full == nil {
		return false, err
	}
	moves := make([]pool.Move, len(spec.Aux))
	for i, t := range spec.Aux {
		moves[i] = pool.Move{Pool: t.Component.String(), Host: t.Host}
	}
	err = c.host.group.Resolve(pool.ToDevice, pool.Move{Pool: tree.Full.String(), Device: full, Host: spec.Full.Host}, moves)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, c.full.Free(full))
		}
		if momentary(err) {
			err = nil
		}
		return false, err
	}
	for i := range moves {
		spec.Aux[i].Device = moves[i].Device
	}
	return true, c.commitLoad(l, full, spec)
}

// deviceSlots allocates slots of one component alone, after evicting exactly what
// is missing (rules LB-6, LB-9, LB-10); nil if there are none to be had.
func (c *Cache) deviceSlots(id tree.Component, n int) (tree.Slots, error) {
	if n == 0 {
		return tree.Slots{}, nil
	}
	side := c.deviceSide(id)
	if short := n - c.pool(id).Available(); short > 0 {
		if short > c.tree.EvictableSize(id) {
			// Backups in flight keep what they read locked.
			if err := c.drainBackups(); err != nil {
				return nil, err
			}
		}
		if err := side.Evict(short); err != nil {
			return nil, err
		}
	}
	s, err := side.Alloc(n)
	if err != nil {
		if momentary(err) {
			err = nil
		}
		return nil, err
	}
	return s, nil
}

// commitLoad attaches the device slots, moves the lock to the node as it is then,
// and queues the copy (rule LB-11).
func (c *Cache) commitLoad(l *load, full tree.Slots, spec tree.LoadBackSpec) error {
	if err := c.tree.Unlock(l.node, l.device, false); err != nil {
		return err
	}
	actions, err := c.tree.CommitLoadBack(l.node, full, spec)
	if err != nil {
		return err
	}
	if err := c.apply(actions); err != nil {
		return err
	}
	if l.device, err = c.tree.Lock(l.node, 0); err != nil {
		return err
	}
	first := l.node
	if n := spec.Full.Nodes; len(n) > 0 {
		first = n[0]
	}
	for _, t := range spec.Aux {
		// Both lists begin with the node nearest to the root.
		if above, err := c.isAbove(t.Nodes[0], first); err != nil {
			return err
		} else if above {
			first = t.Nodes[0]
		}
	}
	if l.from, err = c.depthAbove(first); err != nil {
		return err
	}
	if len(full) > 0 {
		l.parts = append(l.parts, pool.Part{Component: tree.Full, Device: full, Host: spec.Full.Host})
	}
	for _, t := range spec.Aux {
		l.parts = append(l.parts, pool.Part{Component: t.Component, Device: t.Device, Host: t.Host})
	}
	for _, p := range l.parts {
		l.units[p.Component] += p.Host.Len()
	}
	c.host.lastSeq++
	l.seq = c.host.lastSeq
	c.host.loads = append(c.host.loads, l)
	c.epoch++
	return nil
}

// StartLoading starts the loads that admissions have queued, as one copy, and
// returns its number; 0 if there are none. Call it when a batch is launched: the
// batch's requests may compute when Loading says that they read nothing that is
// still on its way (rule CT-13).
func (c *Cache) StartLoading() (id int64, err error) {
	if c.broken != nil || c.host == nil {
		return 0, c.broken
	}
	merged := pool.Copy{Direction: pool.ToDevice}
	var queued []*load
	for _, l := range c.host.loads {
		if l.copy == 0 {
			queued = append(queued, l)
			merged.Parts = append(merged.Parts, l.parts...)
		}
	}
	if len(queued) == 0 {
		return 0, nil
	}
	if id, err = c.host.engine.Start(c.host.ctx, merged); err != nil {
		return 0, &BackupError{err}
	}
	for _, l := range queued {
		l.copy = id
	}
	return id, nil
}

// Loading reports whether what a request reads may still be on its way from the
// host. Until it is not, Commit and Decode refuse the request.
func (c *Cache) Loading(r *Request) bool {
	return r != nil && r.cache == c && c.host != nil && len(c.host.loads) > 0 && c.host.loads[0].seq <= r.waits
}

// WaitLoads starts what is queued and waits until everything that the request
// reads is there. A load that failed is a *LoadError; the request is lost then.
func (c *Cache) WaitLoads(ctx context.Context, r *Request) error {
	const op = "WaitLoads"
	if err := c.guard(op, r, Running, "admit it before, and do not use it after its end"); err != nil {
		return err
	}
	if !c.Loading(r) {
		return nil
	}
	if _, err := c.StartLoading(); err != nil {
		return err
	}
	for c.Loading(r) {
		if err := c.host.engine.Wait(ctx, pool.ToDevice); err != nil {
			return err
		}
		if err := c.takeLoads(c.host.engine.InFlight(pool.ToDevice)); err != nil {
			return c.fail(op, err)
		}
	}
	if r.state == Lost {
		return &LoadError{Request: r.id, Err: c.host.lastFailure}
	}
	return nil
}

// stillLoading refuses a request that would compute before what it reads is there.
func (c *Cache) stillLoading(op string, r *Request) error {
	if !c.Loading(r) {
		return nil
	}
	return &OrderError{Op: op, Request: r.id, State: r.state, Problem: "what it reuses is still being loaded from the host: StartLoading, and WaitLoads or Tick until Loading says no"}
}

// copyState copies the state of the node that a request resumes at into the
// request's own, when it is there.
func (c *Cache) copyState(r *Request) error {
	if c.opts.CopyState == nil {
		return nil
	}
	from, err := c.tree.ComponentDeviceValue(r.node, tree.Mamba)
	if err != nil || from.Len() == 0 {
		return err
	}
	if c.host != nil {
		for _, l := range c.host.loads {
			if l.node == r.node && l.units[tree.Mamba] > 0 {
				l.copies = append(l.copies, r)
				return nil
			}
		}
	}
	_, slot := from.At(0)
	c.opts.CopyState(slot, r.checkpoint.state)
	return nil
}

// dropCopies forgets that a request waits for a state.
func (h *hostTier) dropCopies(r *Request) {
	for _, l := range h.loads {
		for i, x := range l.copies {
			if x == r {
				l.copies = append(l.copies[:i], l.copies[i+1:]...)
				break
			}
		}
	}
}

// takeLoads processes the acknowledgements of the n oldest loads, or of as many
// as have ended (rule LB-19).
func (c *Cache) takeLoads(n int) error {
	h := c.host
	var failed []*load
	acks := h.engine.Take(pool.ToDevice, n)
	worked := make([]bool, len(acks))
	for i, ack := range acks {
		worked[i] = ack.Err == nil
	}
	if err := c.agreeAll(worked); err != nil {
		return err
	}
	for i, ack := range acks {
		if len(h.loads) == 0 || h.loads[0].copy != ack.ID {
			return fmt.Errorf("copy %d ended, which is not the oldest load", ack.ID)
		}
		for len(h.loads) > 0 && h.loads[0].copy == ack.ID {
			l := h.loads[0]
			h.loads = h.loads[1:]
			if !worked[i] {
				if h.lastFailure = ack.Err; ack.Err == nil {
					h.lastFailure = errors.New("the copy failed on another rank")
				}
				failed = append(failed, l)
				continue
			}
			if err := c.loaded(l); err != nil {
				return err
			}
		}
	}
	if len(failed) > 0 {
		return c.failLoads(failed)
	}
	return nil
}

func (c *Cache) loaded(l *load) error {
	if len(l.copies) > 0 {
		from, err := c.tree.ComponentDeviceValue(l.node, tree.Mamba)
		if err != nil {
			return err
		}
		_, slot := from.At(0)
		for _, r := range l.copies {
			c.opts.CopyState(slot, r.checkpoint.state)
		}
	}
	c.stats.LoadBacks++
	c.stats.LoadedBack.Add(l.units)
	c.stats.LoadedBackBytes += c.host.bytes(l.units)
	return c.endLoad(l)
}

func (c *Cache) endLoad(l *load) error {
	if l.spliced != nil {
		return errors.Join(c.tree.Unlock(l.node, l.device, false), c.endSplice(l.spliced))
	}
	return errors.Join(
		c.tree.Unlock(l.node, l.device, false),
		c.tree.UnlockHost(l.node, l.host),
		c.tree.FinishLoadBack(l.node),
	)
}

// failLoads drops what failed loads have attached, and everything on the device
// below it: nobody may read it. Requests that do are lost; the host copies stay
// (rule FL-12).
func (c *Cache) failLoads(failed []*load) error {
	h := c.host
	// No other copy may hold a lock there, so that what is in flight ends first;
	// what is queued may stand on what failed and goes with it.
	if err := h.engine.Wait(h.ctx, pool.ToHost); err != nil {
		return err
	}
	if err := c.takeBackups(h.engine.InFlight(pool.ToHost)); err != nil {
		return err
	}
	if err := c.releaseStorageLocks(); err != nil {
		return err
	}
	if err := h.engine.Wait(h.ctx, pool.ToDevice); err != nil {
		return err
	}
	h.engine.Take(pool.ToDevice, h.engine.InFlight(pool.ToDevice))
	failed = append(failed, h.loads...)
	h.loads = nil
	c.epoch++
	for _, l := range failed {
		c.stats.CopiesFailed++
		if err := c.endLoad(l); err != nil {
			return err
		}
	}
	for _, l := range failed {
		if err := c.dropLoaded(l); err != nil {
			return err
		}
	}
	return nil
}

// dropLoaded drops the device values of a load's nodes and of all below.
func (c *Cache) dropLoaded(l *load) error {
	if !c.tree.Contains(l.node) {
		return nil // went with another one
	}
	top := l.node
	for {
		n, err := c.tree.Inspect(top)
		if err != nil {
			return err
		}
		start, err := c.depthAbove(n.Parent)
		if err != nil {
			return err
		}
		parent, err := c.tree.Inspect(n.Parent)
		if err != nil {
			return err
		}
		if parent.Parent == tree.NoNode || start < l.from {
			break
		}
		top = n.Parent
	}
	for r := c.live.first; r != nil; r = r.next {
		if !r.locked {
			continue
		}
		below := r.node == top
		if !below {
			var err error
			if below, err = c.isAbove(top, r.node); err != nil {
				return err
			}
		}
		if !below {
			continue
		}
		c.host.dropCopies(r)
		if err := c.unlock(r); err != nil {
			return err
		}
		if r.state == Running { // else it is being admitted, and starts anew
			r.state = Lost
		}
	}
	return c.dropDevice(top)
}

// dropDevice drops the device values of a subtree, the deepest nodes first.
func (c *Cache) dropDevice(id tree.NodeID) error {
	n, err := c.tree.Inspect(id)
	if err != nil {
		return err
	}
	if n.Components[tree.Full].Device == nil {
		return nil // nothing below has any, either
	}
	for _, child := range n.Children {
		if err := c.dropDevice(child); err != nil {
			return err
		}
	}
	if !c.tree.Contains(id) {
		return nil
	}
	var e tree.Evicted
	switch backed, err := c.tree.IsBackedUp(id); {
	case err != nil:
		return err
	case backed:
		e, err = c.tree.Demote(id)
		if err != nil {
			return err
		}
	default:
		if e, _, err = c.tree.DropSubtreeNoHost(id); err != nil {
			return err
		}
	}
	c.stats.Evicted.Add(e.Freed)
	return c.release(&e)
}
