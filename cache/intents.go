// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	"github.com/treecore/treecore/tree"
)

// place names what is written at once: one component of one node.
type place struct {
	node      tree.NodeID
	component tree.Component
}

// intent is a node's data of one component that is to be written to the store.
// It holds no lock and no slots, so that eviction takes the node as if it were
// not there (rules BO-6, BO-14).
type intent struct {
	place
	snapshot tree.BufferSnapshot
}

// units are the tokens that it writes: a node's component is there for all of its
// units, or not at all.
func (x *intent) units() int { return x.snapshot.Units }

// pages are the hashes under which they are written.
func (x *intent) pages() []tree.Digest { return x.snapshot.Hashes }

// intend executes a BackupKV action: what is not in the store yet, nor on its way
// there, waits for the next flush. Within one insert a node is looked at once.
func (c *Cache) intend(nodes []tree.NodeID) error {
	b := c.host.buffer
	if c.storage == nil || c.storage.closing {
		return nil
	}
	for _, id := range nodes {
		if b.looked[id] {
			continue
		}
		b.looked[id] = true
		list, ok, err := c.intentsOf(id, tree.Full, tree.SWA)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for _, x := range list {
			if err := c.admitIntent(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// intentsOf returns an intent for each of the components that the node has on the
// device. ok is false if there is nothing that could be written.
func (c *Cache) intentsOf(id tree.NodeID, components ...tree.Component) (list []*intent, ok bool, err error) {
	s, ok := c.tree.SnapshotBufferBackup(id, false)
	if !ok {
		return nil, false, nil
	}
	for _, component := range components {
		if c.host.pools[component] == nil {
			continue
		}
		if component != tree.Full {
			value, err := c.tree.ComponentDeviceValue(id, component)
			if err != nil {
				return nil, false, err
			}
			if value == nil {
				continue
			}
		}
		list = append(list, &intent{place: place{id, component}, snapshot: s})
	}
	return list, true, nil
}

// admitIntent queues an intent, or does not (rule BO-7). What is turned down
// asks again when an insert passes its node the next time.
func (c *Cache) admitIntent(x *intent) error {
	b, s := c.host.buffer, &c.stats.Storage
	full := func() bool { return b.backlog[tree.Full]+b.backlog[tree.SWA] >= 2*c.full.Size() }
	if full() { // of nodes that are gone, unless the counts are wrong
		if err := c.refresh(); err != nil {
			return err
		}
	}
	if c.covered(x.component, x.pages()) || b.queued[x.place] || b.flying[x.place] > 0 {
		return nil
	}
	parent := tree.BufferState{
		Parent: x.snapshot.Parent, ParentIsRoot: x.snapshot.ParentIsRoot,
		ParentHash: x.snapshot.ParentHash, HasParent: x.snapshot.HasParent,
	}
	switch {
	case full():
		s.BacklogOverflows++
	case !c.parentCovered(parent), c.oversize(x):
	default:
		b.intents = append(b.intents, x)
		b.queued[x.place] = true
		b.backlog[x.component] += x.units()
		return nil
	}
	s.DroppedWriteTokens += int64(x.units())
	return nil
}

// covered reports whether all pages, of a component's pool and of the sidecars
// beside it, are believed to be in the store or are on their way there.
func (c *Cache) covered(id tree.Component, pages []tree.Digest) bool {
	for _, x := range c.poolsOf(id) {
		for _, page := range pages {
			if !c.onItsWay(pageName{x.name, page}) {
				return false
			}
		}
	}
	return true
}

func (c *Cache) onItsWay(x pageName) bool {
	return c.host.buffer.launched[x] > 0 || c.host.buffer.beliefs.has(x)
}

// parentCovered reports whether what a node goes on from is in the store, or will
// be: without it no lookup could reach the node's pages (rule BO-8).
func (c *Cache) parentCovered(s tree.BufferState) bool {
	b, parent := c.host.buffer, place{s.Parent, tree.Full}
	return s.ParentIsRoot || b.queued[parent] || b.flying[parent] > 0 ||
		s.HasParent && c.onItsWay(pageName{tree.Full.String(), s.ParentHash})
}

// oversize reports whether there could never be room to stage an intent, which
// would then keep all others waiting (rule BO-9).
func (c *Cache) oversize(x *intent) bool {
	size := c.host.pools[x.component].Size()
	if x.component != tree.Full {
		size -= c.windowMargin()
	}
	return x.units() > size
}

// refresh holds the intents against the tree as it is (rule BO-10): those of
// nodes that were split become those of the fragments, and those of nodes that
// are gone are dropped.
func (c *Cache) refresh() error {
	b := c.host.buffer
	kept := b.intents[:0:0]
	placed := map[place]bool{}
	b.backlog = tree.Units{}
	for _, x := range b.intents {
		now := []*intent{x}
		if _, ok := c.tree.ValidateBufferBackup(x.node, x.units()); !ok {
			var err error
			if now, ok, err = c.fragments(x); err != nil {
				return err
			}
			if !ok {
				c.stats.Storage.DroppedWriteTokens += int64(x.units())
			}
		}
		for _, y := range now {
			if placed[y.place] || y != x && (b.flying[y.place] > 0 || c.covered(y.component, y.pages())) {
				continue
			}
			placed[y.place] = true
			b.backlog[y.component] += y.units()
			kept = append(kept, y)
		}
	}
	b.intents, b.queued = kept, placed
	return nil
}

// fragments returns the intents of what a node became that was split, parents
// first. ok is false unless they cover exactly what it was.
func (c *Cache) fragments(x *intent) (list []*intent, ok bool, err error) {
	left := x.units()
	for id := x.node; ; {
		s, ok := c.tree.SnapshotBufferBackup(id, false)
		if !ok || s.Units > left {
			return nil, false, nil
		}
		piece, _, err := c.intentsOf(id, x.component)
		if err != nil {
			return nil, false, err
		}
		list = append(list, piece...)
		if left -= s.Units; left == 0 {
			slices.Reverse(list)
			return list, s.Parent == x.snapshot.Parent, nil
		}
		id = s.Parent
	}
}
