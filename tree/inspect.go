// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "slices"

// Contains reports whether id names a live node.
func (c *Core) Contains(id NodeID) bool { return c.nodes.find(id) != nil }

// IsDeviceEvictableLeaf reports whether the node is in the set of device
// leaves (rule E-1). A stale id is not.
func (c *Core) IsDeviceEvictableLeaf(id NodeID) bool {
	n := c.nodes.find(id)
	return n != nil && n.leaf.index == &c.leaves
}

// IsHostEvictableLeaf reports whether the node is in the set of host leaves
// (rule E-2). A stale id is not.
func (c *Core) IsHostEvictableLeaf(id NodeID) bool {
	n := c.nodes.find(id)
	return n != nil && n.leaf.index == &c.hostLeaves
}

// Nodes returns the ids of all nodes, the root first, parents before children,
// children in edge order.
func (c *Core) Nodes() []NodeID {
	ids := make([]NodeID, 0, c.nodes.len())
	for n := c.root; n != nil; n = n.following() {
		ids = append(ids, n.id)
	}
	return ids
}

// NodeCount returns the number of nodes, the root included.
func (c *Core) NodeCount() int { return c.nodes.len() }

// Inspect returns a copy of what the tree knows about a node.
func (c *Core) Inspect(id NodeID) (NodeInfo, error) {
	n, err := c.resolve("Inspect", id)
	if err != nil {
		return NodeInfo{}, err
	}
	info := NodeInfo{
		ID: n.id, Tokens: slices.Clone(n.raw), Units: n.units, Bigram: c.extra == 1,
		Hits: n.hits, Priority: n.priority, DeviceLeaf: c.isDeviceLeaf(n), SWABoundary: n.swaBoundary,
		WriteThroughPending: n.writeThroughPending(), LoadBackPending: n.loadBackPending(),
		Stored: n.stored(),
	}
	if n.parent != nil {
		info.Parent = n.parent.id
		info.Namespace = n.ns.name
	}
	for child := n.firstChild; child != nil; child = child.next {
		info.Children = append(info.Children, child.id)
	}
	for i := range n.state {
		s := &n.state[i]
		x := &info.Components[i]
		x.Device, x.Host = s.device.Clone(), s.host.Clone()
		x.Locks, x.HostLocks, x.SessionRefs = int(s.locks), int(s.hostLocks), int(s.refs)
		x.InDeviceList, x.InHostList = c.device[i].contains(n), c.host[i].contains(n)
		if n.ext != nil {
			x.Sessions = slices.Clone(n.ext.sessions[i])
		}
	}
	if n.ext != nil {
		info.Components[Full].HostBoundary = n.ext.fullHostBoundary
		info.Components[SWA].HostBoundary = n.ext.swaHostBoundary
	}
	return info, nil
}

// Place returns the node's parent, NoNode for the root, and how many units it
// has: what Inspect says of them, without copying anything.
func (c *Core) Place(id NodeID) (parent NodeID, units int, err error) {
	n, err := c.resolve("Place", id)
	if err != nil {
		return NoNode, 0, err
	}
	if n.parent != nil {
		parent = n.parent.id
	}
	return parent, n.units, nil
}

// RecencyOrder returns the nodes of an auxiliary component's recency list, the
// most recent first; nil for a component that has none.
func (c *Core) RecencyOrder(id Component, host bool) []NodeID {
	if id == Full || !c.opts.Components.Has(id) {
		return nil
	}
	if host {
		return c.host[id].order()
	}
	return c.device[id].order()
}

// EvictionOrder returns the device-evictable leaves in the order in which the
// policy would evict them now.
func (c *Core) EvictionOrder() []NodeID {
	ids := make([]NodeID, 0, c.leaves.count)
	for n := c.leaves.first(); n != nil; n = c.leaves.after(n.leaf.key) {
		ids = append(ids, n.id)
	}
	return ids
}
