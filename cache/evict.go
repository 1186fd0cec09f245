// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Usage counts the slots of one component. Size is Free + Evictable + Protected
// + Held.
type Usage struct {
	Size      int
	Free      int // in the pool
	Evictable int // cached, locked by nobody
	Protected int // cached, locked by requests
	Held      int // of requests: computed or to be computed, not cached; and of a splice, not needed after its copy
}

// Available returns what could be allocated: free slots, and those that
// eviction would bring.
func (u Usage) Available() int { return u.Free + u.Evictable }

// Usage returns the counts of a component: tokens for Full and SWA, states for
// Mamba, all 0 for a component that is not configured.
func (c *Cache) Usage(id tree.Component) Usage {
	p := c.pool(id)
	if p == nil {
		return Usage{}
	}
	u := Usage{Size: p.Size(), Free: p.Available(), Evictable: c.tree.EvictableSize(id), Protected: c.tree.ProtectedSize(id)}
	u.Held = u.Size - u.Free - u.Evictable - u.Protected
	return u
}

// Available returns how many slots of a component could be allocated now.
func (c *Cache) Available(id tree.Component) int { return c.Usage(id).Available() }

func (c *Cache) pool(id tree.Component) *pool.Paged {
	switch {
	case id == tree.Full:
		return c.full
	case id == tree.SWA && c.swa:
		return c.dual.SWA()
	case id == tree.Mamba && c.mamba:
		return &c.states.Paged
	}
	return nil
}

// Evict drops cached data until n units of a component came free or nothing of
// it is left to evict. It returns what was freed of each component; whole nodes
// go, so it may be more than n. A component that is not configured, and n below
// 0, is an *ArgumentError.
func (c *Cache) Evict(id tree.Component, n int) (tree.Units, error) {
	const op = "Evict"
	if c.broken != nil {
		return tree.Units{}, c.broken
	}
	if c.pool(id) == nil {
		return tree.Units{}, &ArgumentError{Op: op, Field: "component", Problem: id.String() + " is not configured"}
	}
	if n < 0 {
		return tree.Units{}, &ArgumentError{Op: op, Field: "n", Problem: fmt.Sprintf("%d units: 0 or more", n)}
	}
	var want tree.Units
	want[id] = n
	freed, err := c.evict(want)
	if err != nil {
		return freed, c.fail(op, err)
	}
	return freed, nil
}

// evict drives one walk a component that misses something. What one walk frees
// counts for the next (rule EV-1).
func (c *Cache) evict(want tree.Units) (tree.Units, error) {
	var freed tree.Units
	if c.opts.Disabled {
		return freed, nil
	}
	began := c.now()
	defer func() { c.stats.EvictionTime += c.now() - began }()
	for id := tree.Full; id < tree.NumComponents; id++ {
		if want[id] > freed[id] {
			if err := c.walk(id, want[id], &freed); err != nil {
				return freed, err
			}
		}
	}
	if freed != (tree.Units{}) {
		c.epoch++
	}
	return freed, c.drainEvictions()
}

func (c *Cache) walk(id tree.Component, n int, freed *tree.Units) error {
	if err := c.tree.EvictStart(id, n); err != nil {
		return err
	}
	c.stats.EvictionWalks++
	err := c.steps(id, freed)
	return errors.Join(err, c.tree.EvictEnd(id))
}

func (c *Cache) steps(id tree.Component, freed *tree.Units) error {
	for {
		step, err := c.tree.EvictNext(id, *freed)
		if err != nil {
			return err
		}
		if err := c.account(&step.Evicted, freed); err != nil {
			return err
		}
		if step.Paused != tree.NoNode {
			if err := c.finishPaused(step, freed); err != nil {
				return err
			}
			continue
		}
		if step.Node == tree.NoNode {
			if !step.MadeProgress {
				return nil
			}
			c.stats.Tombstones[id]++
			continue
		}
		leaf, err := c.tree.EvictLeaf(step.Node, c.writeBack())
		if err != nil {
			return err
		}
		if leaf.Backup != nil {
			if err := c.evictVictim(step.Node, freed); err != nil {
				return err
			}
			continue
		}
		c.stats.Leaves++
		if err := c.account(&leaf.Evicted, freed); err != nil {
			return err
		}
	}
}

func (c *Cache) account(e *tree.Evicted, freed *tree.Units) error {
	freed.Add(e.Freed)
	c.stats.Evicted.Add(e.Freed)
	c.stats.Unbacked += int64(e.Unbacked)
	return c.release(e)
}

// drainEvictions waits for what evictions under write-back have started (rule
// WB-5).
func (c *Cache) drainEvictions() error {
	if !c.writeBack() {
		return nil
	}
	return c.drainBackups()
}

// makeRoom evicts so that each component has the wanted number of free slots:
// exactly what is missing, and nothing at all if it would not be enough. The
// error is then a *pool.ExhaustedError.
func (c *Cache) makeRoom(want tree.Units) error {
	var missing tree.Units
	for id := tree.Full; id < tree.NumComponents; id++ {
		if want[id] == 0 {
			continue
		}
		free := c.pool(id).Available()
		if missing[id] = want[id] - free; missing[id] <= c.tree.EvictableSize(id) {
			continue
		}
		// Copies in flight keep what they read or write locked.
		if waited, err := c.drain(); err != nil {
			return c.fail("evict", err)
		} else if waited {
			return c.makeRoom(want)
		}
		// So do pins, for requests that wait: those that run go first.
		if gave, err := c.unpinAll(); err != nil {
			return c.fail("evict", err)
		} else if gave {
			return c.makeRoom(want)
		}
		return &pool.ExhaustedError{Pool: id.String(), Want: want[id], Free: free}
	}
	if _, err := c.evict(missing); err != nil {
		return c.fail("evict", err)
	}
	for id := tree.Full; id < tree.NumComponents; id++ {
		if free := c.pool(id); want[id] > 0 && free.Available() < want[id] {
			return &pool.ExhaustedError{Pool: id.String(), Want: want[id], Free: free.Available()}
		}
	}
	return nil
}
