// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// Lock protects what a request reads that resumes at id: for each component
// that is not in skip its own span (chapter 9). The receipt must be presented
// at the release. Skipping Full but not the others, or SWA but not Mamba, is an
// *ArgumentError. Locking the root does nothing.
func (c *Core) Lock(id NodeID, skip ComponentSet) (Receipt, error) {
	const op = "Lock"
	if c.log != nil {
		c.log.lock(id, skip)
	}
	n, err := c.resolve(op, id)
	if err != nil {
		return Receipt{}, err
	}
	taken := c.opts.Components &^ skip
	if skip.Has(Full) && taken != 0 {
		return Receipt{}, &ArgumentError{Op: op, Field: "skip", Problem: fmt.Sprintf("full is skipped but %v is taken: a lock of any component needs the Full path", taken)}
	}
	if skip.Has(SWA) && taken.Has(Mamba) && c.opts.Components.Has(SWA) {
		return Receipt{}, &ArgumentError{Op: op, Field: "skip", Problem: "swa is skipped but mamba is taken: a state needs the window around it"}
	}
	// The receipt lives in the core while the components fill it, so that a
	// lock allocates nothing.
	r := &c.receipt
	*r = Receipt{Node: id, Skipped: skip}
	if n == c.root {
		return *r, nil
	}
	if taken.Has(Full) {
		if err := c.checkPath(op, n); err != nil {
			return Receipt{}, err
		}
	}
	for _, h := range c.comps {
		if !skip.Has(h.id()) {
			h.lock(n, r)
		}
	}
	c.refreshLeaf(n)
	return *r, nil
}

// checkPath verifies that above the first node with Full on the device all
// have it (rule L-5).
func (c *Core) checkPath(op string, n *node) error {
	seen := false
	for ; n.parent != nil; n = n.parent {
		if n.state[Full].device != nil {
			seen = true
		} else if seen {
			return &InternalError{Op: op, Problem: fmt.Sprintf("node %d above a node with Full on the device has none", n.id)}
		}
	}
	return nil
}

// Unlock releases what the lock that gave r took on id. With skipSWA it leaves
// out SWA and the components of lower priority, which an early release gave
// back already. A release that does not mirror its lock is a *ReceiptError.
func (c *Core) Unlock(id NodeID, r Receipt, skipSWA bool) error {
	const op = "Unlock"
	if c.log != nil {
		c.log.unlock("unlock", id, r, skipSWA)
	}
	c.receipt = r
	n, err := c.checkRelease(op, id, &c.receipt)
	if err != nil || n == c.root {
		return err
	}
	released := func(h hooks) bool {
		if r.Skipped.Has(h.id()) {
			return false
		}
		return !skipSWA || !c.opts.Components.Has(SWA) || h.internalPriority() > swaPriority
	}
	for _, h := range c.comps {
		if released(h) && !h.canUnlock(n, &c.receipt) {
			return &ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("the %v lock does not cover what the receipt says: it was released before, or is another core's", h.id())}
		}
	}
	for i := len(c.comps) - 1; i >= 0; i-- {
		if h := c.comps[i]; released(h) {
			h.unlock(n, &c.receipt)
		}
	}
	c.refreshLeaf(n)
	return nil
}

const swaPriority = 1 // swaHooks.internalPriority

// checkRelease resolves the anchor of a release and holds the receipt against
// it (rule L-10).
func (c *Core) checkRelease(op string, id NodeID, r *Receipt) (*node, error) {
	n, err := c.resolve(op, id)
	if err != nil {
		return nil, err
	}
	if r.Node != NoNode && r.Node != id {
		return nil, &ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("the receipt was given for node %d", r.Node)}
	}
	return n, nil
}

// ReleaseSWALock gives the SWA segment of a lock back early, and what has lower
// priority (Mamba) with it: for a request that no longer reads them. At most
// once a receipt; the final Unlock must then skip SWA. It returns what it
// dropped at once.
func (c *Core) ReleaseSWALock(id NodeID, r Receipt) (Evicted, error) {
	const op = "ReleaseSWALock"
	if c.log != nil {
		c.log.unlock("release-swa-lock", id, r, false)
	}
	n, err := c.checkRelease(op, id, &r)
	if err != nil || n == c.root || !c.opts.Components.Has(SWA) {
		return Evicted{}, err
	}
	return c.releaseWindow(op, n, &r, true)
}

// ReleaseWindowLock is ReleaseSWALock for the window component alone: nothing
// of lower priority is released with it. Components without a window lock are
// an *ArgumentError, and so is SWA where the receipt holds a Mamba lock.
func (c *Core) ReleaseWindowLock(id NodeID, component Component, r Receipt) (Evicted, error) {
	const op = "ReleaseWindowLock"
	if c.log != nil {
		c.log.windowUnlock(id, component, r)
	}
	n, err := c.checkRelease(op, id, &r)
	if err != nil {
		return Evicted{}, err
	}
	if component != SWA || !c.opts.Components.Has(SWA) {
		return Evicted{}, &ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v has no window lock here", component)}
	}
	if n == c.root || r.Skipped.Has(SWA) {
		return Evicted{}, nil
	}
	if c.opts.Components.Has(Mamba) && !r.Skipped.Has(Mamba) {
		return Evicted{}, &ArgumentError{Op: op, Field: "component", Problem: "the receipt holds a mamba lock, which needs the window: use ReleaseSWALock"}
	}
	return c.releaseWindow(op, n, &r, false)
}

func (c *Core) releaseWindow(op string, n *node, r *Receipt, withLower bool) (Evicted, error) {
	var out Evicted
	released := func(h hooks) bool {
		return !r.Skipped.Has(h.id()) && (h.id() == SWA || withLower && h.internalPriority() < swaPriority)
	}
	for _, h := range c.comps {
		if released(h) && !h.canUnlock(n, r) {
			return out, &ReceiptError{Op: op, Node: n.id, Problem: fmt.Sprintf("the %v lock does not cover what the receipt says: it was released before, or is another core's", h.id())}
		}
	}
	for i := len(c.comps) - 1; i >= 0; i-- {
		h := c.comps[i]
		if w, ok := h.(*swaHooks); ok && released(h) {
			w.release(n, r, func(n *node) {
				if c.isDeviceLeaf(n) && n.state[SWA].device != nil {
					c.dropDevice(n, w, &out)
				}
			})
		}
	}
	for i := len(c.comps) - 1; i >= 0; i-- {
		if h := c.comps[i]; h.id() != SWA && released(h) {
			h.unlock(n, r)
		}
	}
	c.refreshLeaf(n)
	return out, nil
}

// PinFull protects the Full path of id and nothing else. Pins nest, and mix
// with locks. Pinning the root does nothing.
func (c *Core) PinFull(id NodeID) error {
	const op = "PinFull"
	if c.log != nil {
		c.log.nodes("pin-full", id)
	}
	n, err := c.resolve(op, id)
	if err != nil || n == c.root {
		return err
	}
	if err := c.checkPath(op, n); err != nil {
		return err
	}
	c.receipt = Receipt{}
	c.comps[Full].lock(n, &c.receipt)
	c.refreshLeaf(n)
	return nil
}

// UnpinFull takes one pin back. Without one it is a *ReceiptError.
func (c *Core) UnpinFull(id NodeID) error {
	const op = "UnpinFull"
	if c.log != nil {
		c.log.nodes("unpin-full", id)
	}
	n, err := c.resolve(op, id)
	if err != nil || n == c.root {
		return err
	}
	full := c.comps[Full]
	if !full.canUnlock(n, nil) {
		return &ReceiptError{Op: op, Node: id, Problem: "the path is not pinned"}
	}
	full.unlock(n, nil)
	c.refreshLeaf(n)
	return nil
}
