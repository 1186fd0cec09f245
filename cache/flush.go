// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// launch is an intent on its way: copied from the device to staging slots, under
// a lock on its node, and from there written to the store (rules BO-11 to BO-13).
type launch struct {
	place
	copy    int64 // its number in the engine
	receipt tree.Receipt
	host    tree.Slots
	pages   []tree.Digest
	// forgotten: the store was emptied, or the write was cut off, so that nothing
	// is to be believed of it.
	forgotten bool
}

// fate is what becomes of the intent at the head of the queue.
type fate uint8

const (
	waits   fate = iota // there is no room yet: nothing overtakes it
	done                // launched, or there is nothing left to write
	dropped             // it cannot be written any more
)

// flush launches what waits to be written, in order, as far as there is room to
// stage it (rule BO-10).
func (c *Cache) flush() error {
	b := c.host.buffer
	if len(b.intents) == 0 {
		return nil
	}
	if err := c.refresh(); err != nil {
		return err
	}
	for len(b.intents) > 0 {
		x := b.intents[0]
		end, err := c.launch(x)
		if err != nil || end == waits {
			return err
		}
		if end == dropped {
			c.stats.Storage.DroppedWriteTokens += int64(x.units())
		}
		b.intents = b.intents[1:]
		delete(b.queued, x.place)
		b.backlog[x.component] -= x.units()
	}
	return nil
}

// launch starts the copy of an intent, if it is still to be written and there is
// room.
func (c *Cache) launch(x *intent) (fate, error) {
	b := c.host.buffer
	state, ok := c.tree.ValidateBufferBackup(x.node, x.units())
	if !ok || !c.parentCovered(state) {
		return dropped, nil
	}
	if b.staged[tree.Full] >= c.liveCap() {
		return waits, nil
	}
	if loading, err := c.beingLoaded(x.node); err != nil || loading {
		return waits, err
	}
	device, err := c.toWrite(x)
	if err != nil {
		return waits, err
	}
	n := device.Len()
	switch {
	case n == 0, c.covered(x.component, x.pages()):
		return done, nil
	case c.oversize(x):
		return dropped, nil
	case x.component != tree.Full && c.host.pools[x.component].Available()-c.windowMargin() < n:
		return waits, nil
	}
	host, err := c.stagingRoom(x.component, n)
	if err != nil || host == nil {
		return waits, err
	}
	l := &launch{place: x.place, host: host, pages: x.pages()}
	l.copy, err = c.startBackup(x.node, []pool.Part{{Component: x.component, Device: device, Host: host}})
	if err != nil {
		if free := c.host.pools[x.component].Free(host); free != nil {
			return waits, free
		}
		return waits, &BackupError{err}
	}
	if l.receipt, err = c.tree.Lock(x.node, 0); err != nil {
		return waits, err
	}
	b.copying = append(b.copying, l)
	c.book(l, 1)
	return done, nil
}

// toWrite returns the device slots that an intent copies now.
func (c *Cache) toWrite(x *intent) (tree.Slots, error) {
	spec, err := c.tree.BuildBackupSpec(x.node)
	if err != nil || x.component == tree.Full {
		return spec.Full, err
	}
	for _, t := range spec.Aux {
		if t.Component == x.component {
			return t.Device, nil
		}
	}
	return nil, nil // its window has gone
}

// beingLoaded reports whether a copy to the device may still write to the slots
// of a node.
func (c *Cache) beingLoaded(id tree.NodeID) (bool, error) {
	for _, l := range c.host.loads {
		on := l.node == id
		if !on {
			var err error
			if on, err = c.isAbove(id, l.node); err != nil {
				return false, err
			}
		}
		if !on {
			continue
		}
		if from, err := c.depthAbove(id); err != nil || from >= l.from {
			return true, err
		}
	}
	return false, nil
}

// book enters a launch into the counts, or takes it out of them.
func (c *Cache) book(l *launch, by int) {
	b := c.host.buffer
	b.staged[l.component] += by * l.host.Len()
	if b.flying[l.place] += by; b.flying[l.place] == 0 {
		delete(b.flying, l.place)
	}
	for _, x := range c.poolsOf(l.component) {
		for _, page := range l.pages {
			name := pageName{x.name, page}
			if b.launched[name] += by; b.launched[name] == 0 {
				delete(b.launched, name)
			}
		}
	}
}

// takeLaunches processes the acknowledgements of copies to staging slots: the
// device may evict the node again, and the write begins (rule BO-12). worked says
// which of them did on all ranks.
func (c *Cache) takeLaunches(acks []pool.Ack, worked []bool) error {
	b := c.host.buffer
	for i, ack := range acks {
		if len(b.copying) == 0 || b.copying[0].copy != ack.ID {
			return fmt.Errorf("copy %d ended, which is not that of the oldest write", ack.ID)
		}
		l := b.copying[0]
		b.copying = b.copying[1:]
		err := c.tree.Unlock(l.node, l.receipt, false)
		switch {
		case !worked[i]:
			c.stats.CopiesFailed++
			err = errors.Join(err, c.retire(l))
		case c.storage == nil || c.storage.closing:
			err = errors.Join(err, c.retire(l))
		default:
			c.writeStaged(l)
		}
		if err != nil {
			return err
		}
		if worked[i] {
			var units tree.Units
			units[l.component] = l.host.Len()
			c.stats.BackedUp.Add(units)
			c.stats.BackedUpBytes += c.host.bytes(units)
			c.stats.Backups++
		}
	}
	return nil
}

// writeStaged starts the write of what was copied.
func (c *Cache) writeStaged(l *launch) {
	st := c.storage
	full := queue.Batch{Pool: tree.Full.String()}
	var aux []queue.Batch
	for i, x := range c.poolsOf(l.component) {
		switch {
		case l.component != tree.Full || i > 0: // a window, or a sidecar
			aux = append(aux, c.batch(x, l.host, l.pages))
		case !st.opts.FullElsewhere:
			full = c.batch(x, l.host, l.pages)
		}
	}
	st.writes = append(st.writes, &pageWrite{operation: st.queue.Write(full, aux), launch: l})
	c.stats.Storage.Writes++
}

// stored ends a write. Its pages are believed to be in the store even if it
// failed, since that may be so on one rank only; a lookup will tell (rule BO-13).
func (c *Cache) stored(l *launch) error {
	if !l.forgotten {
		c.believe(l.component, l.pages)
	}
	return c.retire(l)
}

// retire gives back the staging slots of a launch whose way has ended.
func (c *Cache) retire(l *launch) error {
	c.book(l, -1)
	return c.host.pools[l.component].Free(l.host)
}
