// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/list"

	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// mostBeliefs is how many pages are believed to be in the store at a time (rule
// BO-5).
const mostBeliefs = 131072

// pageName names a page in the store: the pool's name, and the page's hash.
type pageName struct {
	pool string
	page tree.Digest
}

// beliefs are the pages that are believed to be in the store; of too many those
// go that were not asked for the longest. One that is wrong costs a write, until
// a lookup has shown it; one that is missing costs a second write of the same.
type beliefs struct {
	most  int
	order list.List // of pageName, the latest first
	at    map[pageName]*list.Element
}

func newBeliefs(most int) *beliefs {
	return &beliefs{most: most, at: map[pageName]*list.Element{}}
}

// has reports whether a page is believed to be stored. That makes it recent.
func (b *beliefs) has(x pageName) bool {
	e := b.at[x]
	if e == nil {
		return false
	}
	b.order.MoveToFront(e)
	return true
}

func (b *beliefs) add(x pageName) {
	if b.has(x) {
		return
	}
	b.at[x] = b.order.PushFront(x)
	if b.order.Len() > b.most {
		b.remove(b.order.Back().Value.(pageName))
	}
}

func (b *beliefs) remove(x pageName) {
	if e := b.at[x]; e != nil {
		b.order.Remove(e)
		delete(b.at, x)
	}
}

func (b *beliefs) clear() {
	b.order.Init()
	clear(b.at)
}

// believe notes that the pages of a component and of the sidecars beside it are
// in the store, as far as is known.
func (c *Cache) believe(id tree.Component, pages []tree.Digest) {
	for _, x := range c.poolsOf(id) {
		for _, page := range pages {
			c.host.buffer.beliefs.add(pageName{x.name, page})
		}
	}
}

// heal gives up the beliefs about pages that a lookup has not found (rule BO-15).
func (c *Cache) heal(pages []tree.Digest) {
	for id := tree.Full; id < tree.NumComponents; id++ {
		if c.host.pools[id] == nil {
			continue
		}
		for _, x := range c.poolsOf(id) {
			for _, page := range pages {
				c.host.buffer.beliefs.remove(pageName{x.name, page})
			}
		}
	}
}

// healAll is heal for lookups that have ended, with what was agreed of them. One
// that failed on some rank has shown nothing.
func (c *Cache) healAll(done []*queue.Operation, hits []int64) error {
	answered := make([]bool, len(done))
	for i, o := range done {
		answered[i] = o.Err() == nil
	}
	if err := c.agreeAll(answered); err != nil {
		return err
	}
	for i, o := range done {
		if pages, _ := o.Found(); answered[i] && int(hits[i]) < len(pages) {
			c.heal(pages[hits[i]:])
		}
	}
	return nil
}
