// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/binary"

	"github.com/treecore/treecore/tree"
)

// eventIDs returns the ids of the node's blocks (rules H-5, EV-14).
func (o *Oracle) eventIDs(n *node) []int64 {
	var ids []int64
	stored := n.namespace == tree.Namespace{} // H-4: there it is the storage chain
	for _, digest := range o.chain(n, eventSeed(n.namespace), stored) {
		ids = append(ids, int64(binary.BigEndian.Uint64(digest[:8])))
	}
	return ids
}

// recordStored records one event a page of the node (rule EV-7).
func (o *Oracle) recordStored(n *node, medium tree.Medium, session string) {
	if !o.events {
		return
	}
	o.fillHashes(n) // H-6
	var parent int64
	hasParent := n.parent != o.root
	if hasParent {
		above := o.eventIDs(n.parent)
		parent = above[len(above)-1]
	}
	for i, id := range o.eventIDs(n) {
		var tokens []tree.Token
		for _, u := range n.key[i*o.page : (i+1)*o.page] { // EV-1
			tokens = append(tokens, u.first)
			if o.eagle {
				tokens = append(tokens, u.second)
			}
		}
		o.enqueue(tree.Event{
			Kind:      tree.BlockStored,
			Medium:    medium,
			Blocks:    []int64{id},
			Parent:    parent,
			HasParent: hasParent,
			Tokens:    tokens,
			BlockSize: o.page,
			CacheSalt: n.namespace.Salt,
			SessionID: session,
		})
		parent, hasParent = id, true
	}
}

// recordRemoved records one event with all pages of the node (rule EV-8).
func (o *Oracle) recordRemoved(n *node, medium tree.Medium) {
	if !o.events {
		return
	}
	o.fillHashes(n)
	o.enqueue(tree.Event{Kind: tree.BlockRemoved, Medium: medium, Blocks: o.eventIDs(n)})
}

// enqueue joins the event with the last queued one or appends it (rule EV-9).
func (o *Oracle) enqueue(e tree.Event) {
	if k := len(o.queue) - 1; k >= 0 {
		tail := &o.queue[k]
		switch {
		case e.Kind == tree.BlockRemoved && tail.Kind == tree.BlockRemoved && e.Medium == tail.Medium:
			tail.Blocks = append(tail.Blocks, e.Blocks...)
			return
		case e.Kind == tree.BlockStored && tail.Kind == tree.BlockStored &&
			e.Medium == tail.Medium && e.BlockSize == tail.BlockSize &&
			e.CacheSalt == tail.CacheSalt && e.SessionID == tail.SessionID &&
			e.HasParent && e.Parent == tail.Blocks[len(tail.Blocks)-1]:
			tail.Blocks = append(tail.Blocks, e.Blocks...)
			tail.Tokens = append(tail.Tokens, e.Tokens...)
			return
		}
	}
	o.queue = append(o.queue, e)
}

// TakeEvents returns the queue and empties it (rule EV-12).
func (o *Oracle) TakeEvents() []tree.Event {
	queue := o.queue
	o.queue = nil
	return queue
}

// RecordAllCleared appends AllBlocksCleared (rule EV-13).
func (o *Oracle) RecordAllCleared() {
	if o.events {
		o.queue = append(o.queue, tree.Event{Kind: tree.AllBlocksCleared})
	}
}
