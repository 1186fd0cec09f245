// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// EvictLeaf evicts a leaf: it demotes one that is backed up, deletes one that
// is not, or, with writeBack, asks for its backup and changes nothing (rule
// E-19). A node that is no device-evictable leaf is an *OrderError. Where the
// policy has been write-back, one that is not backed up may have children on the
// host; they go with it, and if something of them is locked nothing changes.
func (c *Core) EvictLeaf(id NodeID, writeBack bool) (EvictLeafResult, error) {
	const op = "EvictLeaf"
	if c.log != nil {
		c.log.evictLeaf(id, writeBack)
	}
	var r EvictLeafResult
	n, err := c.resolve(op, id)
	if err != nil {
		return r, err
	}
	if n.leaf.index != &c.leaves {
		return r, &OrderError{Op: op, Problem: fmt.Sprintf("node %d is not a device-evictable leaf", id)}
	}
	switch {
	case n.backedUp():
		c.demote(n, &r.Evicted)
	case writeBack:
		r.Backup = &BackupKV{Nodes: []NodeID{id}}
	case n.children > 0 && c.looseHost:
		c.dropSubtree(n, &r.Evicted)
	case n.children > 0:
		return r, &OrderError{Op: op, Problem: fmt.Sprintf("node %d has children on the host and no host copy of its own: drop the subtree", id)}
	default:
		c.deleteLeaf(n, &r.Evicted)
	}
	return r, nil
}

// Demote drops all device values of a node that is backed up (rule E-21). A
// node in any other state is an *OrderError.
func (c *Core) Demote(id NodeID) (Evicted, error) {
	const op = "Demote"
	if c.log != nil {
		c.log.nodes("demote", id)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return Evicted{}, err
	}
	problem := ""
	switch {
	case n == c.root:
		problem = "is the root"
	case !n.backedUp():
		problem = "is not backed up"
	case n.evicted():
		problem = "is evicted already"
	case n.deviceChildren > 0:
		problem = "has a child with Full on the device"
	}
	for i := range n.state {
		if problem == "" && n.state[i].locks > 0 {
			problem = fmt.Sprintf("has a device lock of %v", Component(i))
		}
	}
	if problem != "" {
		return Evicted{}, &OrderError{Op: op, Problem: fmt.Sprintf("node %d %s", id, problem)}
	}
	var out Evicted
	c.demote(n, &out)
	return out, nil
}

func (c *Core) demote(n *node, out *Evicted) {
	c.dropAllDevice(n, out)
	c.recordRemoved(n, MediumDevice)
	c.refreshLeaf(n)
	c.refreshLeaf(n.parent)
}

// dropAllDevice drops every device value, Full last, since the payload of SWA
// is the node's Full slots.
func (c *Core) dropAllDevice(n *node, out *Evicted) {
	for i := len(c.comps) - 1; i >= 0; i-- {
		if h := c.comps[i]; n.state[h.id()].device != nil {
			c.dropDevice(n, h, out)
		}
	}
}

// deleteLeaf removes a leaf with all its data, and the ancestors that are left
// with nothing (rules E-20, E-29).
func (c *Core) deleteLeaf(n *node, out *Evicted) {
	c.recordRemoved(n, MediumDevice)
	parent := n.parent
	c.dropAllDevice(n, out)
	c.dropAllHost(n, out)
	c.removeNode(n)
	c.removeBareAncestors(parent, out)
}

func (c *Core) dropAllHost(n *node, out *Evicted) {
	for _, h := range c.comps {
		if n.state[h.id()].host != nil {
			c.dropHost(n, h.id(), out)
		}
	}
}

// removeNode takes a node without data and children out of the tree.
func (c *Core) removeNode(n *node) {
	if n.leaf.index != nil {
		c.leaveIndex(n)
	}
	c.forgetSessions(n)
	parent := n.parent
	parent.unlinkChild(n, c)
	c.names.release(n.ns)
	c.nodes.release(n)
	c.refreshLeaf(parent)
}

// removeBareAncestors is rule E-29.
func (c *Core) removeBareAncestors(n *node, out *Evicted) {
	for n.parent != nil && n.children == 0 {
		for i := range n.state {
			if n.state[i].locks > 0 || n.state[i].hostLocks > 0 {
				return
			}
		}
		if n.state[Full].device != nil {
			c.refreshLeaf(n)
			return
		}
		c.dropAllDevice(n, out)
		if n.backedUp() {
			c.refreshLeaf(n)
			return
		}
		c.dropAllHost(n, out)
		parent := n.parent
		c.removeNode(n)
		n = parent
	}
}
