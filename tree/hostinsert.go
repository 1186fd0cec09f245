// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// InsertHost puts data that was read from storage under the anchor, on the host
// tier (rules PF-25 to PF-27). What the tree has already stays; the rest becomes
// one node that is on the host only. Outside write-back a refill below a node
// without a host copy is declined, and so is one below a node whose copy is still
// under way and may fail.
func (c *Core) InsertHost(p HostInsertParams) (HostInsertResult, error) {
	const op = "InsertHost"
	if c.log != nil {
		c.log.insertHost(p)
	}
	bad := func(field, format string, args ...any) (HostInsertResult, error) {
		return HostInsertResult{}, &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	at, err := c.resolve(op, p.Anchor)
	if err != nil {
		return HostInsertResult{}, err
	}
	if c.switches.HostBufferOnly {
		return HostInsertResult{}, &OrderError{Op: op, Problem: "in buffer-only mode the host is no tier of the tree"}
	}
	v, _, err := c.view(op, p.Key)
	if err != nil {
		return HostInsertResult{}, err
	}
	pages := v.units / c.opts.PageSize
	if err := p.Slots.check(op, "slots"); err != nil {
		return HostInsertResult{}, err
	}
	switch {
	case p.Slots == nil || p.Slots.Len() < v.units:
		return bad("slots", "%d given for %d units of the aligned key", p.Slots.Len(), v.units)
	case p.Hashes != nil && len(p.Hashes) != pages:
		return bad("hashes", "%d given for %d pages", len(p.Hashes), pages)
	case at != c.root && at.ns.name != p.Key.Namespace.canonical():
		return bad("key", "its namespace is not that of the anchor, node %d", p.Anchor)
	}
	r := HostInsertResult{TotalLen: v.units}
	ns := c.names.find(p.Key.Namespace)
	for v.units > 0 && ns != nil {
		child := c.edges.find(at, ns, v)
		if child == nil {
			break
		}
		c.touch(child)
		n := common(child.key(c.extra), v, c.opts.PageSize)
		if n < child.units {
			prefix, relocation := c.split(child, n)
			if relocation != nil {
				r.Actions = append(r.Actions, relocation)
			}
			child = prefix
		}
		r.PrefixLen += n
		at, v = child, v.from(n)
	}
	if v.units > 0 {
		if at != c.root && (!at.backedUp() || at.writeThroughPending() != 0) && !c.switches.WriteBack {
			r.Dropped = true
			return r, nil
		}
		at = c.newHostNode(at, p, v, r.PrefixLen)
	}
	if at.backedUp() {
		r.Node = at.id
	}
	return r, nil
}

// newHostNode makes the node for what the tree lacks.
func (c *Core) newHostNode(parent *node, p HostInsertParams, rest view, from int) *node {
	n := c.newNode()
	n.ns = c.names.retain(p.Key.Namespace)
	n.setKey(cloneTokens(rest.span(rest.units)), rest.units)
	n.priority = parent.priority
	parent.linkChild(n, c)
	c.setHost(n, Full, p.Slots.Slice(from, from+rest.units))
	if p.Hashes != nil {
		n.extend().hashes = append([]Digest(nil), p.Hashes[from/c.opts.PageSize:]...)
	} else if c.switches.Storage {
		c.fill(storageChain, n)
	}
	c.growTails(n)
	c.refreshLeaf(n)
	c.refreshLeaf(parent)
	return n
}

// CommitPrefetch attaches what the auxiliary components read with a host insert
// (rules PF-28 to PF-30): a state to the end node, and a window to the nodes
// that it covers. A window that came back shorter than a whole one is taken only
// below the root, where the sequence is its own window. What is not taken is
// returned to be freed.
func (c *Core) CommitPrefetch(p PrefetchCommit) (PrefetchResult, error) {
	const op = "CommitPrefetch"
	if c.log != nil {
		c.log.commitPrefetch(p)
	}
	var r PrefetchResult
	anchor, err := c.resolve(op, p.Anchor)
	if err != nil {
		return r, err
	}
	var end *node
	if p.Inserted.Node != NoNode {
		if end, err = c.resolve(op, p.Inserted.Node); err != nil {
			return r, err
		}
	}
	if _, err := c.resolveTransfers(op, p.Aux); err != nil {
		return r, err
	}
	if err := c.checkAux(op, p.Aux); err != nil {
		return r, err
	}
	for _, t := range p.Aux {
		if err := t.Host.check(op, "aux"); err != nil {
			return r, err
		}
		if t.Component == SWA && t.Host.Len()%c.opts.PageSize != 0 {
			return r, &ArgumentError{Op: op, Field: "aux", Problem: fmt.Sprintf("%d host slots of swa are not whole pages", t.Host.Len())}
		}
	}
	if end == c.root {
		return r, &ArgumentError{Op: op, Field: "inserted", Problem: "the root holds no data"}
	}
	if end != nil {
		at := end
		for at != nil && at != anchor {
			at = at.parent
		}
		if at == nil {
			return r, &ArgumentError{Op: op, Field: "anchor", Problem: fmt.Sprintf("node %d is not above node %d", anchor.id, end.id)}
		}
	}
	for _, t := range p.Aux {
		switch t.Component {
		case Mamba:
			c.commitPrefetchedState(end, t, p.Found[Mamba], &r)
		case SWA:
			c.commitPrefetchedWindow(anchor, end, t, p.Found[SWA], &r)
		}
	}
	return r, nil
}

func (c *Core) commitPrefetchedState(end *node, t Transfer, found int, r *PrefetchResult) {
	if found < 1 || end == nil || end == c.root || t.Host.Len() == 0 || end.state[Mamba].host != nil {
		r.MambaExist = true
		r.Frees.addHost(Mamba, t.Host)
		return
	}
	c.setHost(end, Mamba, t.Host.canonical())
}

func (c *Core) commitPrefetchedWindow(anchor, end *node, t Transfer, found int, r *PrefetchResult) {
	page := c.opts.PageSize
	pages, whole := t.Host.Len()/page, (c.opts.SlidingWindow+page-1)/page
	if end == nil || pages == 0 || found < pages || anchor != c.root && pages < whole {
		r.Frees.addHost(SWA, t.Host)
		return
	}
	left := t.Host.Len() // units of the window not yet given to a node
	for n := end; n != anchor && n.parent != nil && left > 0; n = n.parent {
		take := min(n.units, left)
		piece := t.Host.Slice(left-take, left)
		left -= take
		if n.state[SWA].host != nil {
			r.Frees.addHost(SWA, piece)
			continue
		}
		if take < n.units {
			_, relocation := c.split(n, n.units-take)
			if relocation != nil {
				r.Actions = append(r.Actions, relocation)
			}
		}
		c.setHost(n, SWA, piece)
	}
	if left > 0 {
		r.Frees.addHost(SWA, t.Host.Slice(0, left))
	}
}

// BuildStorageSpec says what a write of the node to storage reads from the host
// (rule ST-11); ok is false if the node is not backed up.
func (c *Core) BuildStorageSpec(id NodeID, withPrefix bool) (spec StorageSpec, ok bool, err error) {
	const op = "BuildStorageSpec"
	if c.log != nil {
		c.log.storage("build-storage", id, withPrefix)
	}
	n, err := c.resolve(op, id)
	if err != nil || n == c.root || !n.backedUp() {
		return StorageSpec{}, false, err
	}
	spec.Full = n.state[Full].host.Clone()
	spec.Tokens = cloneTokens(n.raw)
	hashes := storageChain.get(n)
	spec.Hashes = append([]Digest(nil), hashes...)
	if withPrefix {
		spec.Prefix = c.prefixHashes(n)
	}
	if len(hashes) == 0 {
		return spec, true, nil
	}
	for id := SWA; int(id) < len(n.state); id++ {
		host := n.state[id].host
		if host == nil {
			continue
		}
		pages := 1
		if id == SWA {
			pages = n.units / c.opts.PageSize
		}
		spec.Aux = append(spec.Aux, Transfer{
			Component: id, Host: host.Clone(), Nodes: []NodeID{n.id},
			Keys: append([]Digest(nil), hashes[len(hashes)-pages:]...),
		})
	}
	return spec, true, nil
}

// SnapshotBufferBackup returns what a queued buffer-only backup must remember
// of its node; ok is false if there is nothing to back up: the node is gone,
// evicted, or without hashes.
func (c *Core) SnapshotBufferBackup(id NodeID, withPrefix bool) (s BufferSnapshot, ok bool) {
	if c.log != nil {
		c.log.storage("snapshot-buffer", id, withPrefix)
	}
	n := c.nodes.find(id)
	if n == nil || n == c.root || n.evicted() || !c.switches.Storage || len(storageChain.get(n)) == 0 {
		return s, false
	}
	state := c.bufferState(n)
	s = BufferSnapshot{
		Node: id, Parent: state.Parent, ParentIsRoot: state.ParentIsRoot,
		ParentHash: state.ParentHash, HasParent: state.HasParent,
		Hashes: append([]Digest(nil), storageChain.get(n)...),
		Key:    Key{Tokens: cloneTokens(n.raw), Namespace: n.ns.name, Bigram: c.extra == 1}, Units: n.units,
	}
	if withPrefix {
		s.Prefix = c.prefixHashes(n)
	}
	return s, true
}

// ValidateBufferBackup re-checks a queued backup of a node that had the given
// number of units; ok is false if it is gone, evicted, or was split.
func (c *Core) ValidateBufferBackup(id NodeID, units int) (s BufferState, ok bool) {
	if c.log != nil {
		c.log.validateBuffer(id, units)
	}
	n := c.nodes.find(id)
	if n == nil || n == c.root || n.evicted() || n.units != units {
		return s, false
	}
	return c.bufferState(n), true
}

func (c *Core) bufferState(n *node) BufferState {
	s := BufferState{Parent: n.parent.id, ParentIsRoot: n.parent == c.root}
	if list := storageChain.get(n.parent); len(list) > 0 {
		s.ParentHash, s.HasParent = list[len(list)-1], true
	}
	return s
}
