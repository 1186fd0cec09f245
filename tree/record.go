// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/binary"
	"slices"
)

// EventID returns the id under which events name the page of a digest: its
// first 8 bytes, big-endian (rule H-5).
func (d Digest) EventID() int64 { return int64(binary.BigEndian.Uint64(d[:8])) }

// blocks returns the event ids of n's pages. It fills n's hash lists, and those
// of its ancestors, if need be (rules H-6, H-7).
func (c *Core) blocks(n *node) []int64 {
	chain := c.chainOf(n)
	c.fill(storageChain, n)
	if !n.ns.name.isDefault() {
		c.fill(eventChain, n)
	}
	list := chain.get(n)
	ids := make([]int64, len(list))
	for i, d := range list {
		ids[i] = d.EventID()
	}
	return ids
}

func (c *Core) chainOf(n *node) hashChain {
	if n.ns.name.isDefault() {
		return storageChain
	}
	return eventChain
}

// recordStored records that n's Full is on a medium now (rules EV-3, EV-7).
func (c *Core) recordStored(n *node, m Medium, session string) {
	if !c.opts.Events {
		return
	}
	e := Event{
		Kind: BlockStored, Medium: m, Blocks: c.blocks(n), BlockSize: c.opts.PageSize,
		CacheSalt: n.ns.name.Salt, SessionID: session,
	}
	if p := n.parent; p.parent != nil {
		list := c.chainOf(n).get(p)
		e.Parent, e.HasParent = list[len(list)-1].EventID(), true
	}
	for i := 0; i < n.units; i++ {
		e.Tokens = append(e.Tokens, n.raw[i:i+1+c.extra]...)
	}
	// Coalesce with the last event where this one continues it (rule EV-9).
	if last := c.lastEvent(); last != nil && last.Kind == BlockStored && last.Medium == m &&
		last.BlockSize == e.BlockSize && last.CacheSalt == e.CacheSalt && last.SessionID == session &&
		e.HasParent && len(last.Blocks) > 0 && last.Blocks[len(last.Blocks)-1] == e.Parent {
		last.Blocks = append(last.Blocks, e.Blocks...)
		last.Tokens = append(last.Tokens, e.Tokens...)
		return
	}
	c.events = append(c.events, e)
}

// recordRemoved records that n's Full left a medium (rules EV-4, EV-8).
func (c *Core) recordRemoved(n *node, m Medium) {
	if !c.opts.Events {
		return
	}
	blocks := c.blocks(n)
	if last := c.lastEvent(); last != nil && last.Kind == BlockRemoved && last.Medium == m {
		last.Blocks = append(last.Blocks, blocks...)
		return
	}
	c.events = append(c.events, Event{Kind: BlockRemoved, Medium: m, Blocks: blocks})
}

func (c *Core) lastEvent() *Event {
	if len(c.events) == 0 {
		return nil
	}
	return &c.events[len(c.events)-1]
}

// RecordAllCleared records that nothing is cached any more; the caller does so
// with Reset.
func (c *Core) RecordAllCleared() {
	if c.log != nil {
		c.log.plain("record-all-cleared")
	}
	if c.opts.Events {
		c.events = append(c.events, Event{Kind: AllBlocksCleared})
	}
}

// TakeEvents returns the events recorded since the last call and forgets them.
// The list is the caller's.
func (c *Core) TakeEvents() []Event {
	if c.log != nil {
		c.log.plain("take-events")
	}
	events := c.events
	c.events = nil
	return slices.Clip(events)
}
