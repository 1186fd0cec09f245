// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// apply executes actions of the tree in their order, each once. It stops at the
// first that fails.
func (c *Cache) apply(actions []tree.Action) error {
	for _, a := range actions {
		if err := c.execute(a); err != nil {
			return err
		}
	}
	return nil
}

// execute carries out one action (rule CT-8).
func (c *Cache) execute(action tree.Action) error {
	switch a := action.(type) {
	case tree.FreeDeviceKV:
		c.stats.DuplicatesFreed += int64(a.Slots.Len())
		return c.freeKV(a.Slots)
	case tree.FreeDeviceKVFullOnly:
		c.stats.DuplicatesFreed += int64(a.Slots.Len())
		return c.freeFullOnly(a.Slots)
	case tree.FreeComponentDeviceSlot:
		return c.freeComponent(a.Component, a.Slots)
	case tree.SWARebuild:
		swa, err := c.dual.Translate(a.Full)
		if err != nil {
			return err
		}
		return c.tree.SetComponentDeviceValue(a.Node, tree.SWA, swa)
	case tree.RecoverSWAWithLockedFull:
		swa, err := c.dual.MoveMap(a.Kept, a.Incoming)
		if err != nil {
			return err
		}
		c.stats.DuplicatesFreed += int64(a.Incoming.Len())
		if err := c.dual.FreeFullOnly(a.Incoming); err != nil {
			return err
		}
		return c.tree.SetComponentDeviceValue(a.Node, tree.SWA, swa)
	case tree.RebuildFullToSWAMapping:
		return c.dual.SetMap(a.Full, a.SWA)
	case tree.MambaEvictExcessPathStates:
		e, err := c.tree.EvictExcessPathStates(a.Tail)
		c.stats.PathStatesDropped += int64(e.Freed[tree.Mamba])
		return errors.Join(c.release(&e), err)
	case tree.ReplaceWriteThroughOnNodeSplit:
		if c.host != nil {
			c.host.relocate(a)
		}
		return nil
	case tree.BackupKV:
		if c.host == nil {
			return &UnsupportedError{Action: "BackupKV"}
		}
		if c.bufferOnly() {
			return c.intend(a.Nodes)
		}
		return c.backUpNodes(a.Nodes)
	case tree.FreeComponentHostSlot:
		if c.host == nil || a.Component >= tree.NumComponents || c.host.pools[a.Component] == nil {
			return &UnsupportedError{Action: "FreeComponentHostSlot"}
		}
		list := &c.host.released[a.Component]
		*list = list.Append(a.Slots)
		return nil
	default:
		return &UnsupportedError{Action: "an unknown action"}
	}
}

// insert hands a request's slots to the tree and executes what it asks for; the
// insert is ended whatever happens (rule CT-6). A backup that could not even be
// tried is no reason to leave it half done, since the slots that it has settled
// are not the request's any more: the insert goes on to its end, and then late is
// the *BackupError. Other actions fail only if the books are wrong.
func (c *Cache) insert(p tree.InsertParams) (result *tree.InsertResult, late, err error) {
	c.stats.Inserts++
	step, err := c.tree.BeginInsert(p)
	if err != nil {
		return nil, nil, err
	}
	c.epoch++
	if c.bufferOnly() {
		clear(c.host.buffer.looked)
	}
	for {
		for _, a := range step.Actions {
			if err = c.execute(a); err == nil {
				continue
			}
			if !isUsable(err) {
				break
			}
			late, err = errors.Join(late, err), nil
		}
		if err != nil || step.Result != nil {
			break
		}
		if step, err = c.tree.ResumeInsert(); err != nil {
			break
		}
	}
	err = errors.Join(err, c.apply(c.tree.EndInsert()))
	return step.Result, late, err
}

// release frees what an eviction returned, before the next call to anything
// (rule CT-9). The SWA part goes first: it is named by Full slots, whose map
// entries end with the Full part. A failure does not skip the rest.
func (c *Cache) release(e *tree.Evicted) error {
	var err error
	for _, id := range [...]tree.Component{tree.SWA, tree.Full, tree.Mamba} {
		if s := e.Frees.Device[id]; len(s) > 0 {
			err = errors.Join(err, c.freeComponent(id, s))
		}
	}
	if c.host != nil {
		return errors.Join(err, c.host.freeHost(&e.Frees.Host))
	}
	for _, s := range e.Frees.Host {
		if len(s) > 0 {
			err = errors.Join(err, &UnsupportedError{Action: "freeing host slots"})
		}
	}
	return err
}

// freeComponent frees slots of one component only. For SWA they are Full slots.
func (c *Cache) freeComponent(id tree.Component, s tree.Slots) error {
	switch {
	case id == tree.Full:
		return c.freeFullOnly(s)
	case id == tree.SWA && c.swa:
		return c.dual.FreeSWA(s)
	case id == tree.Mamba && c.mamba:
		return c.states.Free(s)
	}
	return &UnsupportedError{Action: "freeing slots of " + id.String()}
}

func (c *Cache) freeKV(s tree.Slots) error {
	if c.swa {
		return c.dual.Free(s)
	}
	return c.full.Free(s)
}

func (c *Cache) freeFullOnly(s tree.Slots) error {
	if c.swa {
		return c.dual.FreeFullOnly(s)
	}
	return c.full.Free(s)
}

func (c *Cache) allocExtend(dst tree.Slots, x pool.Extension) (tree.Slots, error) {
	if c.swa {
		return c.dual.AllocExtend(dst, x)
	}
	return c.full.AllocExtend(dst, x)
}

// momentary reports whether an error is a shortage that may go away.
func momentary(err error) bool {
	var short *pool.ExhaustedError
	return errors.As(err, &short)
}
