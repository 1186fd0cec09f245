// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// componentSize is the number of device units of one component on nodes that
// are free to go, and on nodes that are locked for it (rule Z-1).
type componentSize struct{ evictable, protected int }

// book adds units to the component's size on the side where n's lock puts it.
func (c *Core) book(id Component, n *node, units int) {
	if n.state[id].locks > 0 {
		c.sizes[id].protected += units
	} else {
		c.sizes[id].evictable += units
	}
}

// deviceUnits returns the length of n's device value.
func (n *node) deviceUnits(id Component) int {
	if id == Mamba {
		return n.state[id].device.Len()
	}
	if n.state[id].device == nil {
		return 0
	}
	return n.units
}

// setFullDevice gives a node that has none a Full device value. The list
// becomes the tree's own.
func (c *Core) setFullDevice(n *node, s Slots) {
	c.rememberBuffers(s)
	n.state[Full].device = s
	if n.parent != nil {
		n.parent.deviceChildren++
	}
	c.book(Full, n, n.units)
}

// setAuxDevice gives a node that has none a device value of an auxiliary
// component (rule I-36). The list becomes the tree's own.
func (c *Core) setAuxDevice(n *node, id Component, s Slots) {
	c.rememberBuffers(s)
	c.host[id].remove(n)
	n.state[id].device = s
	c.device[id].add(n)
	c.book(id, n, n.deviceUnits(id))
}

// dropDevice drops the device value of one component, which nobody has locked
// (rule E-24). The payload of SWA is the node's Full slots, so who drops both
// drops Full last.
func (c *Core) dropDevice(n *node, h hooks, out *Evicted) {
	id := h.id()
	s := &n.state[id]
	units := n.deviceUnits(id)
	out.Frees.addDevice(id, h.devicePayload(n))
	out.Freed[id] += units
	c.sizes[id].evictable -= units
	c.forgetBuffers(s.device)
	s.device = nil
	if id == Full {
		c.untrackDuplicate(n)
		n.parent.deviceChildren--
		if !n.backedUp() {
			out.Unbacked += units
		}
		return
	}
	c.device[id].remove(n)
	c.joinHostList(n, id)
}

// joinHostList puts n into the host list of an auxiliary component if it
// belongs there and is not in it (rule N-8).
func (c *Core) joinHostList(n *node, id Component) {
	s := &n.state[id]
	if s.host != nil && s.device == nil && s.hostLocks == 0 && s.list == nil {
		c.host[id].add(n)
	}
}

// dropHost drops the host value of one component (rule E-25).
func (c *Core) dropHost(n *node, id Component, out *Evicted) {
	s := &n.state[id]
	out.Frees.addHost(id, s.host)
	c.forgetBuffers(s.host)
	s.host = nil
	if id == Full {
		c.untrackDuplicate(n)
	} else {
		c.host[id].remove(n)
	}
}

// setHost gives a node that has none a host value. The list becomes the tree's
// own.
func (c *Core) setHost(n *node, id Component, s Slots) {
	c.rememberBuffers(s)
	n.state[id].host = s
	if id != Full {
		c.joinHostList(n, id)
	}
}

// hostUnits returns the length of n's host value.
func (n *node) hostUnits(id Component) int {
	if id == Mamba {
		return n.state[id].host.Len()
	}
	if n.state[id].host == nil {
		return 0
	}
	return n.units
}

// addRefs changes a node's session reference count and moves the node where
// that changes its place (rules SR-12, SR-19).
func (c *Core) addRefs(n *node, id Component, delta int32) {
	s := &n.state[id]
	before := s.refs > 0
	list := s.list
	if list != nil && before != (s.refs+delta > 0) {
		list.unlink(n)
		s.refs += delta
		list.owner.add(n)
		return
	}
	s.refs += delta
	if id == Full {
		c.reorderLeaf(n)
	}
}

// rememberBuffers counts the opaque units that the tree now holds.
func (c *Core) rememberBuffers(s Slots) {
	for _, r := range s {
		if r.Buffer != 0 {
			if c.buffers == nil {
				c.buffers = map[BufferID]int64{}
			}
			c.buffers[r.Buffer] += int64(r.Length)
		}
	}
}

// forgetBuffers counts opaque units down; a buffer without units is dead.
func (c *Core) forgetBuffers(s Slots) {
	for _, r := range s {
		if r.Buffer == 0 {
			continue
		}
		if c.buffers[r.Buffer] -= int64(r.Length); c.buffers[r.Buffer] == 0 {
			delete(c.buffers, r.Buffer)
			c.dead = append(c.dead, r.Buffer)
		}
	}
}

// TakeDeadBuffers returns the opaque buffers of which the tree no longer holds
// a unit, in the order in which that happened, and forgets them. Lists that
// earlier calls returned may still name them.
func (c *Core) TakeDeadBuffers() []BufferID {
	if c.log != nil {
		c.log.plain("take-dead-buffers")
	}
	d := c.dead
	c.dead = nil
	return d
}

// EvictableSize returns the device units of the component on nodes that no
// lock of it protects; 0 if it is not configured. States count their slots.
func (c *Core) EvictableSize(id Component) int {
	if id >= NumComponents {
		return 0
	}
	return c.sizes[id].evictable
}

// ProtectedSize returns the device units of the component on locked nodes.
func (c *Core) ProtectedSize(id Component) int {
	if id >= NumComponents {
		return 0
	}
	return c.sizes[id].protected
}

// TotalSize returns the device units of Full, and those of all auxiliary
// components together. It walks the tree.
func (c *Core) TotalSize() (full, aux int) {
	for n := c.root.following(); n != nil; n = n.following() {
		full += n.deviceUnits(Full)
		for id := SWA; int(id) < len(n.state); id++ {
			aux += n.deviceUnits(id)
		}
	}
	return full, aux
}
