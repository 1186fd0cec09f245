// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// Lock protects a node and what a request that stands there reads (9.2).
func (o *Oracle) Lock(id tree.NodeID, skip tree.ComponentSet) (tree.Receipt, error) {
	const op = "Lock"
	anchor, err := o.resolve(op, id)
	if err != nil {
		return tree.Receipt{}, err
	}
	// L-2.
	takes := func(c tree.Component) bool { return o.has(c) && !skip.Has(c) }
	if !takes(tree.Full) && (takes(tree.SWA) || takes(tree.Mamba)) {
		return tree.Receipt{}, &tree.ArgumentError{Op: op, Field: "skip", Problem: "full can only be skipped with all others"}
	}
	if o.has(tree.SWA) && !takes(tree.SWA) && takes(tree.Mamba) {
		return tree.Receipt{}, &tree.ArgumentError{Op: op, Field: "skip", Problem: "swa can only be skipped together with mamba"}
	}
	receipt := tree.Receipt{Node: id, Skipped: skip}
	if anchor == o.root { // L-3
		return receipt, nil
	}
	if takes(tree.Full) {
		if err := o.checkBackbone(op, anchor); err != nil {
			return tree.Receipt{}, err
		}
		receipt.Delta = o.lockFull(anchor)
	}
	if takes(tree.SWA) { // L-6
		segment, reached := o.segment(anchor)
		for _, n := range segment {
			n.locks[tree.SWA]++
		}
		if reached {
			boundary := segment[len(segment)-1]
			if boundary.swaBoundary == 0 {
				o.lastUUID++
				boundary.swaBoundary = o.lastUUID
			}
			receipt.Boundary[tree.SWA] = boundary.swaBoundary
		}
	}
	if takes(tree.Mamba) { // L-7
		anchor.locks[tree.Mamba]++
	}
	return receipt, nil
}

// checkBackbone is rule L-5: above a node with Full on the device all have it.
func (o *Oracle) checkBackbone(op string, anchor *node) error {
	seen := false
	for _, n := range o.pathUp(anchor) {
		if n.device[tree.Full] != nil {
			seen = true
		} else if seen {
			return &tree.InternalError{Op: op, Problem: fmt.Sprintf("node %d has no full slots on the device, but a node below it has", n.id)}
		}
	}
	return nil
}

// lockFull takes the path lock of rule L-4 and returns the delta.
func (o *Oracle) lockFull(anchor *node) int {
	delta := 0
	for _, n := range o.pathUp(anchor) {
		if n.locks[tree.Full] == 0 {
			delta += len(n.device[tree.Full])
		}
		n.locks[tree.Full]++
	}
	return delta
}

// segment returns the nodes that an SWA lock covers, the deepest first, and
// whether the window was filled before the root came (rule L-6).
func (o *Oracle) segment(anchor *node) (nodes []*node, reached bool) {
	covered := 0
	for n := anchor; n != o.root; n = n.parent {
		nodes = append(nodes, n)
		covered += len(n.key)
		if covered >= o.window {
			return nodes, true
		}
	}
	return nodes, false
}

// lockedSegment returns the nodes that the receipt's SWA lock covers (L-12),
// and whether they can all be released (L-14).
func (o *Oracle) lockedSegment(anchor *node, receipt tree.Receipt) (nodes []*node, ok bool) {
	uuid := receipt.Boundary[tree.SWA]
	for n := anchor; n != o.root; n = n.parent {
		if n.locks[tree.SWA] == 0 {
			return nil, false
		}
		nodes = append(nodes, n)
		if uuid != 0 && n.swaBoundary == uuid {
			return nodes, true
		}
	}
	return nodes, uuid == 0
}

// anchorOf resolves the node and the anchor that the receipt names. That
// both are the same is checked by checkAnchor.
func (o *Oracle) anchorOf(op string, id tree.NodeID, receipt tree.Receipt) (*node, error) {
	anchor, err := o.resolve(op, id)
	if err != nil {
		return nil, err
	}
	if receipt.Node != tree.NoNode {
		if _, err := o.resolve(op, receipt.Node); err != nil {
			return nil, err
		}
	}
	return anchor, nil
}

// checkAnchor is rule L-10.
func checkAnchor(op string, id tree.NodeID, receipt tree.Receipt) error {
	if receipt.Node != tree.NoNode && receipt.Node != id {
		return &tree.ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("the receipt is for node %d", receipt.Node)}
	}
	return nil
}

func mirror(op string, id tree.NodeID, c tree.Component) error {
	return &tree.ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("no %v lock is there that this receipt could have taken", c)}
}

// Unlock releases a lock (section 9.3).
func (o *Oracle) Unlock(id tree.NodeID, receipt tree.Receipt, skipSWA bool) error {
	const op = "Unlock"
	anchor, err := o.anchorOf(op, id, receipt)
	if err != nil {
		return err
	}
	if err := checkAnchor(op, id, receipt); err != nil {
		return err
	}
	if anchor == o.root { // L-12
		return nil
	}
	// L-11. Without SWA skipSWA has no effect.
	early := skipSWA && o.has(tree.SWA)
	releases := func(c tree.Component) bool {
		if !o.has(c) || receipt.Skipped.Has(c) {
			return false
		}
		return c == tree.Full || !early
	}

	// L-14: everything is checked before anything is changed.
	if releases(tree.Mamba) && anchor.locks[tree.Mamba] == 0 {
		return mirror(op, id, tree.Mamba)
	}
	var segment []*node
	if releases(tree.SWA) {
		var ok bool
		if segment, ok = o.lockedSegment(anchor, receipt); !ok {
			return mirror(op, id, tree.SWA)
		}
	}
	if releases(tree.Full) && !o.fullLocked(anchor) {
		return mirror(op, id, tree.Full)
	}

	if releases(tree.Mamba) {
		anchor.locks[tree.Mamba]--
	}
	for _, n := range segment {
		n.locks[tree.SWA]--
	}
	if releases(tree.Full) {
		for _, n := range o.pathUp(anchor) {
			n.locks[tree.Full]--
		}
	}
	return nil
}

// fullLocked reports whether the whole path has Full locks to lower.
func (o *Oracle) fullLocked(anchor *node) bool {
	for _, n := range o.pathUp(anchor) {
		if n.locks[tree.Full] == 0 {
			return false
		}
	}
	return true
}

// ReleaseSWALock is the early release of section 9.4 (rules L-17 to L-19).
func (o *Oracle) ReleaseSWALock(id tree.NodeID, receipt tree.Receipt) (tree.Evicted, error) {
	const op = "ReleaseSWALock"
	anchor, err := o.anchorOf(op, id, receipt)
	if err != nil {
		return tree.Evicted{}, err
	}
	if err := checkAnchor(op, id, receipt); err != nil {
		return tree.Evicted{}, err
	}
	if anchor == o.root || !o.has(tree.SWA) {
		return tree.Evicted{}, nil
	}
	releasesMamba := o.has(tree.Mamba) && !receipt.Skipped.Has(tree.Mamba)
	if releasesMamba && anchor.locks[tree.Mamba] == 0 {
		return tree.Evicted{}, mirror(op, id, tree.Mamba)
	}
	var out dropped
	if !receipt.Skipped.Has(tree.SWA) {
		segment, ok := o.lockedSegment(anchor, receipt)
		if !ok {
			return tree.Evicted{}, mirror(op, id, tree.SWA)
		}
		o.releaseSegment(segment, &out)
	}
	if releasesMamba { // L-19
		anchor.locks[tree.Mamba]--
	}
	return out.evicted(), nil
}

// releaseSegment is rule L-18.
func (o *Oracle) releaseSegment(segment []*node, out *dropped) {
	for _, n := range segment {
		n.locks[tree.SWA]--
		if n.locks[tree.SWA] == 0 && n.device[tree.SWA] != nil && o.isDeviceLeaf(n) {
			o.dropDevice(n, tree.SWA, out)
		}
	}
}

// ReleaseWindowLock releases only the window lock of one component (L-21).
func (o *Oracle) ReleaseWindowLock(id tree.NodeID, c tree.Component, receipt tree.Receipt) (tree.Evicted, error) {
	const op = "ReleaseWindowLock"
	anchor, err := o.anchorOf(op, id, receipt)
	if err != nil {
		return tree.Evicted{}, err
	}
	if c != tree.SWA || !o.has(c) {
		return tree.Evicted{}, &tree.ArgumentError{Op: op, Field: "component", Problem: fmt.Sprintf("%v has no window lock here", c)}
	}
	if err := checkAnchor(op, id, receipt); err != nil {
		return tree.Evicted{}, err
	}
	if anchor == o.root || receipt.Skipped.Has(c) {
		return tree.Evicted{}, nil
	}
	if o.has(tree.Mamba) && !receipt.Skipped.Has(tree.Mamba) {
		return tree.Evicted{}, &tree.ArgumentError{Op: op, Field: "receipt", Problem: "it has a mamba lock on the same node: use ReleaseSWALock"}
	}
	segment, ok := o.lockedSegment(anchor, receipt)
	if !ok {
		return tree.Evicted{}, mirror(op, id, c)
	}
	var out dropped
	o.releaseSegment(segment, &out)
	return out.evicted(), nil
}

// PinFull takes the Full path lock alone (rule L-22).
func (o *Oracle) PinFull(id tree.NodeID) error {
	anchor, err := o.resolve("PinFull", id)
	if err != nil {
		return err
	}
	if err := o.checkBackbone("PinFull", anchor); err != nil {
		return err
	}
	o.lockFull(anchor)
	return nil
}

// UnpinFull releases one PinFull.
func (o *Oracle) UnpinFull(id tree.NodeID) error {
	anchor, err := o.resolve("UnpinFull", id)
	if err != nil {
		return err
	}
	if !o.fullLocked(anchor) {
		return mirror("UnpinFull", id, tree.Full)
	}
	for _, n := range o.pathUp(anchor) {
		n.locks[tree.Full]--
	}
	return nil
}
