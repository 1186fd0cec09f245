// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// Tick takes note of the copies and storage operations that have ended. Call it
// once a turn of the scheduler: what is in flight stays locked until then (rule
// CT-11). Ranks take note of equally many. A *StorageError says that the storage
// tier had to be switched off.
func (c *Cache) Tick() error {
	const op = "Tick"
	if c.broken != nil || c.host == nil {
		return c.broken
	}
	if err := c.tick(); err != nil {
		return c.fail(op, err)
	}
	return nil
}

func (c *Cache) tick() error {
	h, st := c.host, c.storage
	digest := c.tree.ReclaimDigest()
	ended := []int64{
		int64(h.engine.Finished(pool.ToHost)), int64(h.engine.Finished(pool.ToDevice)), 0, 0, 0, 0,
		int64(digest), -int64(digest), // rule MR-5; it has 42 bits
	}
	if st != nil {
		for k := range queue.Kind(queue.NumKinds) {
			ended[2+k] = int64(st.queue.Finished(k))
		}
		ended[5] = -truth(st.queue.Panicked())
	}
	if err := c.agree(ended); err != nil {
		return err
	}
	if ended[6] != -ended[7] {
		return &DivergenceError{Least: uint64(ended[6]), Most: uint64(-ended[7])}
	}
	err := c.takeBackups(int(ended[0]))
	if err == nil {
		err = c.takeLoads(int(ended[1]))
	}
	if err != nil || st == nil {
		return errors.Join(err, c.freeReleased())
	}
	if !st.closing { // a prefetch could not finish any more (rule AT-8)
		if c.bufferOnly() {
			if err := c.retryParked(); err != nil {
				return err
			}
		}
		err = c.takeLookups(int(ended[2+queue.Lookup]))
	}
	if err == nil {
		err = c.takeWrites(int(ended[2+queue.Write]))
	}
	if err == nil {
		err = c.takeReads(int(ended[2+queue.Read]))
	}
	if err = errors.Join(err, c.freeReleased()); err != nil {
		return err
	}
	if ended[5] != 0 {
		return c.switchOff()
	}
	if c.bufferOnly() && !st.closing {
		return c.flush()
	}
	return nil
}

// switchOff ends the storage tier after its store has panicked (rule FL-23).
func (c *Cache) switchOff() error {
	err := errors.New("the store panicked on another rank")
	if c.storage.queue.Panicked() {
		err = errors.New("the store panicked")
	}
	return errors.Join(&StorageError{err}, c.detach(c.context(), "Tick"))
}

// Sync waits until everything that was started has ended, and takes note of it.
// Loads that StartLoading has not started stay queued. Prefetches go on to their
// reads, and wait for their requests. With HostOptions.BufferOnly what waits to
// be written is started, too, as far as there is room to stage it.
func (c *Cache) Sync(ctx context.Context) error {
	if c.broken != nil || c.host == nil {
		return c.broken
	}
	for {
		if err := c.sync(ctx); err != nil || !c.startsWork() {
			return err
		}
	}
}

func (c *Cache) sync(ctx context.Context) error {
	for _, d := range []pool.Direction{pool.ToHost, pool.ToDevice} {
		if err := c.host.engine.Wait(ctx, d); err != nil {
			return err
		}
	}
	if err := c.Tick(); err != nil || c.storage == nil {
		return err
	}
	// The end of a backup starts writes, the answer of a lookup a read.
	for _, k := range []queue.Kind{queue.Lookup, queue.Write, queue.Read} {
		if c.storage == nil {
			return nil
		}
		if err := c.storage.queue.Wait(ctx, k); err != nil {
			return err
		}
		if err := c.Tick(); err != nil {
			return err
		}
	}
	return nil
}

// resetStorage ends every storage operation before the tree goes. The store keeps
// what it has.
func (c *Cache) resetStorage() error {
	st := c.storage
	if st == nil {
		return nil
	}
	for _, p := range st.reads {
		p.read.Stop()
	}
	for _, w := range st.writes {
		w.operation.Stop()
	}
	for _, p := range st.lookups {
		p.lookup.Stop()
	}
	for k := range queue.Kind(queue.NumKinds) {
		if err := st.queue.Wait(c.context(), k); err != nil {
			return &StorageError{err}
		}
	}
	return c.endStorage()
}

// releaseStorageLocks ends what holds host locks under write-back, where nodes
// without a host copy may have to go with all that hangs on them. Where the host
// is a staging area they all are such, and fetches hold pins on them.
func (c *Cache) releaseStorageLocks() error {
	if c.bufferOnly() {
		_, err := c.unpinAll()
		return err
	}
	st := c.storage
	if st == nil || !c.writeBack() {
		return nil
	}
	for r := c.live.first; r != nil; r = r.next {
		if r.fetch != nil {
			if err := c.dropPrefetch(r.fetch); err != nil {
				return err
			}
		}
	}
	for _, w := range st.writes {
		w.operation.Stop()
	}
	if err := st.queue.Wait(c.context(), queue.Write); err != nil {
		return err
	}
	return c.takeWrites(len(st.writes))
}

// fetches returns the prefetches that hold host slots.
func (c *Cache) fetches() []*prefetch {
	if c.storage == nil {
		return nil
	}
	out := append([]*prefetch(nil), c.storage.reads...)
	for r := c.live.first; r != nil; r = r.next {
		if r.fetch != nil && (r.fetch.read == nil || r.fetch.ended) {
			out = append(out, r.fetch)
		}
	}
	return out
}

// held returns the host slots of a component that a prefetch holds.
func (p *prefetch) held(id tree.Component) tree.Slots {
	s := p.rest[id].Clone()
	if id == tree.Full {
		s = s.Append(p.full)
	}
	for _, a := range p.aux {
		if a.component == id && a.sidecar == none && id != tree.Full {
			s = s.Append(a.slots)
		}
	}
	return s
}

// dropPrefetchesUnder drops the prefetches whose results would go under a node
// that loses its host copy (rule ND-6).
func (c *Cache) dropPrefetchesUnder(doomed []*backup) error {
	if c.storage == nil || c.writeBack() {
		return nil
	}
	for r := c.live.first; r != nil; r = r.next {
		if r.fetch == nil {
			continue
		}
		for _, b := range doomed {
			if b.claimOf(r.fetch.anchor).Has(tree.Full) {
				if err := c.dropPrefetch(r.fetch); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
