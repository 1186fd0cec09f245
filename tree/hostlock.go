// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// LockHost protects the host values that a load back, a storage write or a
// prefetch below the node needs from host eviction (section 7.1). The receipt
// must be presented at the release. Locking the root does nothing.
func (c *Core) LockHost(id NodeID) (Receipt, error) {
	if c.log != nil {
		c.log.nodes("lock-host", id)
	}
	n, err := c.resolve("LockHost", id)
	if err != nil {
		return Receipt{}, err
	}
	r := &c.receipt
	*r = Receipt{Node: id}
	if n == c.root {
		return *r, nil
	}
	for _, h := range c.comps {
		h.lockHost(n, r)
	}
	c.refreshLeaf(n)
	return *r, nil
}

// UnlockHost undoes exactly the LockHost that gave r. A release that does not
// mirror it is a *ReceiptError.
func (c *Core) UnlockHost(id NodeID, r Receipt) error {
	const op = "UnlockHost"
	if c.log != nil {
		c.log.unlock("unlock-host", id, r, false)
	}
	c.receipt = r
	n, err := c.checkRelease(op, id, &c.receipt)
	if err != nil || n == c.root {
		return err
	}
	for _, h := range c.comps {
		if !r.Skipped.Has(h.id()) && !h.canUnlockHost(n, &c.receipt) {
			return &ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("the %v host lock does not cover what the receipt says: it was released before, or is another core's", h.id())}
		}
	}
	for i := len(c.comps) - 1; i >= 0; i-- {
		if h := c.comps[i]; !r.Skipped.Has(h.id()) {
			h.unlockHost(n, &c.receipt)
		}
	}
	c.refreshLeaf(n)
	return nil
}

// lockHost counts the node alone, and only if there is something to protect;
// under write-back the anchor of a refill may still be on the device only. The
// mark makes a split's prefix part of the locked span (rule ND-16).
func (f *fullHooks) lockHost(anchor *node, r *Receipt) {
	if !anchor.backedUp() && !f.core.switches.WriteBack {
		r.Skipped |= SetOf(Full)
		return
	}
	e := anchor.extend()
	if e.fullHostBoundary == 0 {
		f.core.uuid++
		e.fullHostBoundary = f.core.uuid
	}
	r.HostBound[Full] = e.fullHostBoundary
	anchor.state[Full].hostLocks++
	f.core.refreshLeaf(anchor)
}

func (f *fullHooks) canUnlockHost(anchor *node, r *Receipt) bool {
	for n := anchor; n.parent != nil; n = n.parent {
		if n.state[Full].hostLocks == 0 {
			return false
		}
		if f.endsHostLock(n, r) {
			return true
		}
	}
	return r.HostBound[Full] == 0
}

func (f *fullHooks) endsHostLock(n *node, r *Receipt) bool {
	b := r.HostBound[Full]
	return b != 0 && n.ext != nil && n.ext.fullHostBoundary == b
}

func (f *fullHooks) unlockHost(anchor *node, r *Receipt) {
	for n := anchor; n.parent != nil; n = n.parent {
		last := f.endsHostLock(n, r)
		n.state[Full].hostLocks--
		f.core.refreshLeaf(n)
		if last {
			return
		}
	}
}

// lockHost counts one window above the anchor, every node of it, with or
// without a host value: one that comes later is protected at once.
func (w *swaHooks) lockHost(anchor *node, r *Receipt) {
	c := w.core
	covered := 0
	for n := anchor; n.parent != nil; n = n.parent {
		s := &n.state[SWA]
		if s.hostLocks++; s.hostLocks == 1 {
			c.host[SWA].remove(n)
			c.refreshLeaf(n)
		}
		if covered += n.units; covered >= w.window {
			e := n.extend()
			if e.swaHostBoundary == 0 {
				c.uuid++
				e.swaHostBoundary = c.uuid
			}
			r.HostBound[SWA] = e.swaHostBoundary
			return
		}
	}
}

func (w *swaHooks) canUnlockHost(anchor *node, r *Receipt) bool {
	for n := anchor; n.parent != nil; n = n.parent {
		if n.state[SWA].hostLocks == 0 {
			return false
		}
		if b := r.HostBound[SWA]; b != 0 && n.ext != nil && n.ext.swaHostBoundary == b {
			return true
		}
	}
	return r.HostBound[SWA] == 0
}

func (w *swaHooks) unlockHost(anchor *node, r *Receipt) {
	c := w.core
	for n := anchor; n.parent != nil; n = n.parent {
		b := r.HostBound[SWA]
		last := b != 0 && n.ext != nil && n.ext.swaHostBoundary == b
		s := &n.state[SWA]
		if s.hostLocks--; s.hostLocks == 0 {
			c.joinHostList(n, SWA)
			c.refreshLeaf(n)
		}
		if last {
			return
		}
	}
}

// lockHost counts the node alone, with or without a state.
func (m *mambaHooks) lockHost(anchor *node, _ *Receipt) {
	s := &anchor.state[Mamba]
	if s.hostLocks++; s.hostLocks == 1 {
		m.core.host[Mamba].remove(anchor)
		m.core.refreshLeaf(anchor)
	}
}

func (m *mambaHooks) canUnlockHost(anchor *node, _ *Receipt) bool {
	return anchor.state[Mamba].hostLocks > 0
}

func (m *mambaHooks) unlockHost(anchor *node, _ *Receipt) {
	s := &anchor.state[Mamba]
	if s.hostLocks--; s.hostLocks == 0 {
		m.core.joinHostList(anchor, Mamba)
		m.core.refreshLeaf(anchor)
	}
}
