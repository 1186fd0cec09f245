// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"slices"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// backup is a copy to the host in flight (rule CT-2).
type backup struct {
	copy    int64 // its number in the engine
	ack     int64 // its number in the tree: the target's id
	node    tree.NodeID
	locked  bool // eviction's own take no lock
	receipt tree.Receipt
	publish []tree.NodeID // nodes it claims, ancestors first
	claims  []claim       // what it has attached to them
	units   tree.Units
	// undone: its host values are off the tree again, and orphans are the slots,
	// which the copy may still write.
	undone  bool
	orphans [tree.NumComponents]tree.Slots
}

type claim struct {
	node tree.NodeID
	set  tree.ComponentSet
}

func (b *backup) claimOf(node tree.NodeID) tree.ComponentSet {
	for _, x := range b.claims {
		if x.node == node {
			return x.set
		}
	}
	return 0
}

func (b *backup) claim(node tree.NodeID, set tree.ComponentSet) {
	for i := range b.claims {
		if b.claims[i].node == node {
			b.claims[i].set |= set
			return
		}
	}
	b.claims = append(b.claims, claim{node, set})
}

// backUpNodes executes a BackupKV action: node by node, ancestors first, up to
// the first that fails (rule BK-12).
func (c *Cache) backUpNodes(nodes []tree.NodeID) error {
	for _, id := range nodes {
		spec, err := c.tree.BuildBackupSpec(id)
		if err != nil {
			return err
		}
		if done, err := c.backUp(id, spec, true); err != nil || !done {
			return err
		}
	}
	return nil
}

// backUp starts the copy of what a spec says. done is false if there was no
// room: then nothing is left of the attempt but evictions on the host. Under
// write-back the backup that an eviction runs takes no lock (rules BK-13 to
// BK-17).
func (c *Cache) backUp(id tree.NodeID, spec tree.BackupSpec, lock bool) (done bool, err error) {
	if len(spec.Full) == 0 && len(spec.Aux) == 0 {
		return true, nil
	}
	b := &backup{ack: int64(id), node: id}
	parts, err := c.hostSlotsBelow(id, &spec)
	if err != nil {
		if momentary(err) {
			c.stats.BackupsRefused++
			return false, nil
		}
		return false, err
	}
	b.copy, err = c.startBackup(id, parts)
	if err != nil {
		var lists [tree.NumComponents]tree.Slots
		for _, p := range parts {
			lists[p.Component] = p.Host
		}
		if free := c.host.freeHost(&lists); free != nil {
			return false, free
		}
		return false, &BackupError{err}
	}
	var full tree.Slots
	for _, p := range parts {
		b.units[p.Component] += p.Host.Len()
		if p.Component == tree.Full {
			full = p.Host
			b.claim(id, tree.SetOf(tree.Full))
		}
	}
	claimed := []tree.NodeID{id}
	for _, t := range spec.Aux {
		for _, n := range t.Nodes {
			b.claim(n, tree.SetOf(t.Component))
			claimed = append(claimed, n)
		}
	}
	frees, err := c.tree.CommitBackup(id, full, spec.Aux)
	if err == nil {
		err = c.host.freeHost(&frees.Host)
	}
	if err != nil {
		return false, err
	}
	if lock {
		if b.receipt, err = c.tree.Lock(id, 0); err != nil {
			return false, err
		}
		b.locked = true
	}
	if b.publish, err = c.tree.MarkWriteThroughPending(claimed, b.ack); err != nil {
		return false, err
	}
	c.host.backups = append(c.host.backups, b)
	c.epoch++
	return true, nil
}

// hostSlotsBelow is hostSlots that keeps the copy of the node's parent, on which
// the node's own will stand: with a storage tier even that could make room.
func (c *Cache) hostSlotsBelow(id tree.NodeID, spec *tree.BackupSpec) ([]pool.Part, error) {
	if !c.host.mirrorsGo || c.writeBack() {
		return c.hostSlots(spec)
	}
	parent, _, err := c.tree.Place(id)
	if err != nil {
		return nil, err
	}
	receipt, err := c.tree.LockHost(parent)
	if err != nil {
		return nil, err
	}
	parts, short := c.hostSlots(spec)
	if err := c.tree.UnlockHost(parent, receipt); err != nil {
		return nil, err
	}
	return parts, short
}

// hostSlots allocates the host side of a spec, evicting exactly what is missing
// there, and fills it into the transfers. A shortage is a *pool.ExhaustedError
// with nothing allocated.
func (c *Cache) hostSlots(spec *tree.BackupSpec) ([]pool.Part, error) {
	var parts []pool.Part
	h := c.host
	if n := spec.Full.Len(); n > 0 {
		p := h.pools[tree.Full]
		if short := n - p.Available(); short > 0 {
			if _, err := c.evictHost(tree.Full, short); err != nil {
				return nil, err
			}
		}
		if err := c.injected(tree.Full, true); err != nil {
			return nil, err
		}
		full, err := p.Alloc(n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, pool.Part{Component: tree.Full, Device: spec.Full, Host: full})
	}
	var moves []pool.Move
	var err error
	for _, t := range spec.Aux {
		moves = append(moves, pool.Move{Pool: t.Component.String(), Device: t.Device})
		err = errors.Join(err, c.injected(t.Component, true))
	}
	if err == nil {
		var anchor pool.Move
		if len(parts) > 0 {
			anchor = pool.Move{Pool: tree.Full.String(), Device: parts[0].Device, Host: parts[0].Host}
		}
		err = h.group.Resolve(pool.ToHost, anchor, moves)
	}
	if err != nil {
		if len(parts) > 0 {
			if free := h.pools[tree.Full].Free(parts[0].Host); free != nil {
				return nil, free
			}
		}
		return nil, err
	}
	for i := range spec.Aux {
		spec.Aux[i].Host = moves[i].Host
		parts = append(parts, pool.Part{Component: spec.Aux[i].Component, Device: moves[i].Device, Host: moves[i].Host})
	}
	return parts, nil
}

func (c *Cache) startBackup(id tree.NodeID, parts []pool.Part) (int64, error) {
	if f := c.host.faults; f != nil && f.backup != nil {
		if err := f.backup(id); err != nil {
			return 0, err
		}
	}
	return c.host.engine.Start(c.host.ctx, pool.Copy{Direction: pool.ToHost, Parts: parts})
}

// relocate lets the fragments of a split node take its place in the write that
// claims it (rule ND-18).
func (h *hostTier) relocate(a tree.ReplaceWriteThroughOnNodeSplit) {
	for _, b := range h.backups {
		if b.ack != a.Ack || b.undone {
			continue
		}
		if i := slices.Index(b.publish, a.Old); i >= 0 {
			b.publish = slices.Replace(b.publish, i, i+1, a.New, a.Child)
		}
		if set := b.claimOf(a.Old); set != 0 {
			// A state stays with the part that ends where it was.
			b.claim(a.New, set&^tree.SetOf(tree.Mamba))
			b.claim(a.Child, set)
		}
	}
}

// takeBackups processes the acknowledgements of the n oldest backups, or of as
// many as have ended (rule BK-18).
func (c *Cache) takeBackups(n int) error {
	acks := c.host.engine.Take(pool.ToHost, n)
	worked := make([]bool, len(acks))
	for i, ack := range acks {
		worked[i] = ack.Err == nil
	}
	if err := c.agreeAll(worked); err != nil {
		return err
	}
	if c.bufferOnly() {
		return c.takeLaunches(acks, worked)
	}
	for i, ack := range acks {
		if len(c.host.backups) == 0 || c.host.backups[0].copy != ack.ID {
			return fmt.Errorf("copy %d ended, which is not the oldest backup", ack.ID)
		}
		b := c.host.backups[0]
		c.host.backups = c.host.backups[1:]
		var err error
		switch {
		case b.undone: // with a parent whose copy failed
		case !worked[i]:
			err = c.undo(b)
		default:
			err = c.tree.FinishWriteThrough(b.publish, b.ack)
			c.stats.BackedUp.Add(b.units)
			c.stats.BackedUpBytes += c.host.bytes(b.units)
			c.stats.Backups++
		}
		if !worked[i] {
			c.stats.CopiesFailed++
		}
		if b.locked {
			err = errors.Join(err, c.tree.Unlock(b.node, b.receipt, false))
		}
		if worked[i] && !b.undone && err == nil {
			for _, id := range b.publish {
				err = errors.Join(err, c.write(id))
			}
		}
		if err = errors.Join(err, c.host.freeHost(&b.orphans)); err != nil {
			return err
		}
	}
	return nil
}

// undo takes a failed backup's host values off the tree, and those of backups in
// flight that stand on them: outside of write-back a node has no copy where its
// parent has none (rules FL-11, ND-6). b is not among those in flight any more.
func (c *Cache) undo(b *backup) error {
	doomed := []*backup{b}
	if !c.writeBack() {
		lost := map[tree.NodeID]bool{} // looked up only
		note := func(x *backup) {
			for _, id := range x.publish {
				if x.claimOf(id).Has(tree.Full) {
					lost[id] = true
				}
			}
		}
		note(b)
		for _, x := range c.host.backups {
			on, err := c.standsOn(x, lost)
			if err != nil {
				return err
			}
			if on && !x.undone {
				doomed = append(doomed, x)
				note(x)
			}
		}
	}
	c.epoch++
	if err := c.dropPrefetchesUnder(doomed); err != nil {
		return err
	}
	for _, x := range slices.Backward(doomed) {
		for _, id := range slices.Backward(x.publish) {
			frees, err := c.tree.UndoBackup(id, x.claimOf(id), x.ack)
			if err != nil {
				return err
			}
			for i, s := range frees.Host {
				x.orphans[i] = x.orphans[i].Append(s)
			}
		}
		x.undone = true
	}
	return nil
}

// standsOn reports whether a backup claims Full of a node below one of lost.
func (c *Cache) standsOn(x *backup, lost map[tree.NodeID]bool) (bool, error) {
	for _, id := range x.publish {
		if !x.claimOf(id).Has(tree.Full) {
			continue
		}
		for id != tree.NoNode {
			if lost[id] {
				return true, nil
			}
			n, err := c.tree.Inspect(id)
			if err != nil {
				return false, err
			}
			id = n.Parent
		}
	}
	return false, nil
}

// bytes returns the size of slots in the cache's own memory.
func (h *hostTier) bytes(u tree.Units) int64 {
	n := int64(0)
	for id, units := range u {
		n += int64(units) * int64(max(h.opts.SlotBytes[id], pool.StampBytes))
	}
	return n
}

// evictVictim evicts a leaf that write-back wants to be on the host first. What
// finds no room there is dropped with what hangs on it; where that is locked the
// node stays (rules WB-1 to WB-3).
func (c *Cache) evictVictim(id tree.NodeID, freed *tree.Units) error {
	spec, err := c.tree.BuildBackupSpec(id)
	if err != nil {
		return err
	}
	done, err := c.backUp(id, spec, false)
	if err != nil {
		return err
	}
	if done {
		if err := c.drainBackups(); err != nil {
			return err
		}
		if done, err = c.tree.IsBackedUp(id); err != nil { // the copy may have failed
			return err
		}
	}
	if done {
		e, err := c.tree.Demote(id)
		if err != nil {
			return err
		}
		c.stats.Leaves++
		return c.account(&e, freed)
	}
	e, dropped, err := c.tree.DropSubtreeNoHost(id)
	if err != nil || !dropped {
		c.stats.DropsDeclined++
		return err
	}
	c.stats.Leaves++
	c.stats.DroppedHostPressure.Add(e.Freed)
	return c.account(&e, freed)
}

// finishPaused backs up the value of an internal node that a walk wants to drop,
// if there is room, and lets the walk go on (rule EV-7).
func (c *Cache) finishPaused(step tree.EvictStep, freed *tree.Units) error {
	err := c.backUpState(step.Paused, step.PausedFor)
	if err == nil {
		err = c.drainBackups()
	}
	if err != nil {
		return err // the value stays, the walk ends
	}
	next, err := c.tree.FinishStateEviction(step.PausedFor, step.Paused)
	if err != nil {
		return err
	}
	c.stats.Tombstones[step.PausedFor]++
	return c.account(&next.Evicted, freed)
}

// backUpState starts the backup of one node's own auxiliary values: the one that
// is about to go, and those that would go with it if they fit, too.
func (c *Cache) backUpState(id tree.NodeID, component tree.Component) error {
	spec, err := c.tree.BuildBackupSpec(id)
	if err != nil {
		return err
	}
	n, err := c.tree.Inspect(id)
	if err != nil {
		return err
	}
	own := func(all bool) tree.BackupSpec {
		var out tree.BackupSpec
		for _, t := range spec.Aux {
			if slices.Contains(t.Nodes, id) && (t.Component == component || all && t.Component > component) {
				out.Aux = append(out.Aux, tree.Transfer{Component: t.Component, Nodes: []tree.NodeID{id}, Device: n.Components[t.Component].Device})
			}
		}
		return out
	}
	done, err := c.backUp(id, own(true), false)
	if err == nil && !done {
		_, err = c.backUp(id, own(false), false)
	}
	return err
}
