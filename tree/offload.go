// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
)

// An external linker stores device data without a host tier (chapter 12). An
// offload in flight leaves the same mark on its nodes as a backup does, with the
// id of its node as the ack, so splits relocate it in the same way.

// checkLinker says what is wrong with switching an external linker on.
func (c *Core) checkLinker(s Switches) error {
	problem := ""
	switch {
	case !s.ExternalLinker:
		return nil
	case c.opts.Components.Has(Mamba):
		problem = "a core with the mamba component has no external linker: leave it off"
	case s.HostTier || s.HostBufferOnly:
		problem = "an external linker works without a host tier: set HostTier and HostBufferOnly to false"
	default:
		return nil
	}
	return &ArgumentError{Op: "SetSwitches", Field: "ExternalLinker", Problem: problem}
}

// mayOffload reports whether n is neither stored nor on its way.
func (n *node) mayOffload() bool { return !n.stored() && n.writeThroughPending() == 0 }

// BuildOffload says what an external linker stores of the node (rule XL-7): Full
// first, with a key a page, then the window and the state that the node has. It
// is nil if the node is stored or an offload of it is in flight. Hashes that the
// node lacks are computed. A node whose Full is not on the device is an
// *OrderError.
func (c *Core) BuildOffload(id NodeID) ([]Transfer, error) {
	const op = "BuildOffload"
	if c.log != nil {
		c.log.nodes("build-offload", id)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return nil, err
	}
	if n == c.root || n.mayOffload() && n.evicted() {
		return nil, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has no Full on the device", id)}
	}
	if !n.mayOffload() {
		return nil, nil
	}
	c.fill(storageChain, n)
	hashes := storageChain.get(n)
	var list []Transfer
	for _, h := range c.comps {
		value := n.state[h.id()].device
		if value == nil {
			continue
		}
		keys := hashes
		if h.id() == Mamba {
			keys = hashes[len(hashes)-1:]
		}
		list = append(list, Transfer{
			Component: h.id(), Device: value.Clone(), Nodes: []NodeID{id}, Keys: slices.Clone(keys),
		})
	}
	return list, nil
}

// MarkOffloadPending marks the node as part of the offload whose ack is the
// node's id (rule XL-8). A node that is part of another write is an *OrderError.
func (c *Core) MarkOffloadPending(id NodeID) error {
	const op = "MarkOffloadPending"
	if c.log != nil {
		c.log.nodes("mark-offload-pending", id)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return err
	}
	if n == c.root {
		return &ArgumentError{Op: op, Field: "node", Problem: "the root is never written"}
	}
	if p := n.writeThroughPending(); p != 0 {
		return &OrderError{Op: op, Problem: fmt.Sprintf("node %d is part of write %d", id, p)}
	}
	n.extend().writeThroughPending = int64(id)
	return nil
}

// FinishOffload ends the offload ack on the nodes of its publish list (rule
// XL-8): marks that carry it go, and if it succeeded their nodes are stored. A
// failure takes no stored mark away.
func (c *Core) FinishOffload(ids []NodeID, ack int64, success bool) error {
	const op = "FinishOffload"
	if c.log != nil {
		c.log.finishOffload(ids, ack, success)
	}
	nodes, err := c.resolveAll(op, ids)
	if err != nil {
		return err
	}
	if ack == 0 {
		return &ArgumentError{Op: op, Field: "ack", Problem: "0 names no offload"}
	}
	if slices.Contains(nodes, c.root) {
		return &ArgumentError{Op: op, Field: "nodes", Problem: "the root is never written"}
	}
	for _, n := range nodes {
		if n.writeThroughPending() != ack {
			continue
		}
		n.ext.writeThroughPending = 0
		n.ext.stored = n.ext.stored || success
		c.trackDuplicate(n)
	}
	return nil
}
