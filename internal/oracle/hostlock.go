// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// LockHost protects the node's host values (rule HL-1).
func (o *Oracle) LockHost(id tree.NodeID) (tree.Receipt, error) {
	anchor, err := o.resolve("LockHost", id)
	if err != nil {
		return tree.Receipt{}, err
	}
	receipt := tree.Receipt{Node: id}
	if anchor == o.root {
		return receipt, nil
	}
	if anchor.backedUp() || o.switches.WriteBack {
		o.lockHost(anchor, tree.Full)
		receipt.HostBound[tree.Full] = o.hostMark(anchor, tree.Full)
	} else {
		receipt.Skipped = tree.SetOf(tree.Full)
	}
	if o.has(tree.SWA) {
		segment, reached := o.segment(anchor)
		for _, n := range segment {
			o.lockHost(n, tree.SWA)
		}
		if reached {
			receipt.HostBound[tree.SWA] = o.hostMark(segment[len(segment)-1], tree.SWA)
		}
	}
	if o.has(tree.Mamba) {
		o.lockHost(anchor, tree.Mamba)
	}
	return receipt, nil
}

// hostMark returns the node's mark, minted if it has none. Device and host
// marks come from one counter.
func (o *Oracle) hostMark(n *node, c tree.Component) uint64 {
	if n.hostBoundary[c] == 0 {
		o.lastUUID++
		n.hostBoundary[c] = o.lastUUID
	}
	return n.hostBoundary[c]
}

// lockHost and unlockHost change one count and the host list (rule HL-2).
func (o *Oracle) lockHost(n *node, c tree.Component) {
	n.hostLocks[c]++
	o.host[c].remove(n)
}

func (o *Oracle) unlockHost(n *node, c tree.Component) {
	n.hostLocks[c]--
	o.joinHostList(n, c)
}

// hostSegment returns the nodes from the anchor up to the one that bears the
// receipt's mark (0: up to the root), and whether they can all be released.
func (o *Oracle) hostSegment(anchor *node, receipt tree.Receipt, c tree.Component) (nodes []*node, ok bool) {
	uuid := receipt.HostBound[c]
	for n := anchor; n != o.root; n = n.parent {
		if n.hostLocks[c] == 0 {
			return nil, false
		}
		nodes = append(nodes, n)
		if uuid != 0 && n.hostBoundary[c] == uuid {
			return nodes, true
		}
	}
	return nodes, uuid == 0
}

// UnlockHost undoes one LockHost (rule HL-3).
func (o *Oracle) UnlockHost(id tree.NodeID, receipt tree.Receipt) error {
	const op = "UnlockHost"
	anchor, err := o.anchorOf(op, id, receipt)
	if err != nil {
		return err
	}
	if err := checkAnchor(op, id, receipt); err != nil {
		return err
	}
	if anchor == o.root {
		return nil
	}
	// Everything is checked before anything is changed.
	var released [tree.NumComponents][]*node
	for _, c := range o.components {
		if receipt.Skipped.Has(c) {
			continue
		}
		if c == tree.Mamba {
			released[c] = []*node{anchor}
			if anchor.hostLocks[c] == 0 {
				return hostMirror(op, id, c)
			}
			continue
		}
		var ok bool
		if released[c], ok = o.hostSegment(anchor, receipt, c); !ok {
			return hostMirror(op, id, c)
		}
	}
	for i := len(o.components) - 1; i >= 0; i-- {
		c := o.components[i]
		for _, n := range released[c] {
			o.unlockHost(n, c)
		}
	}
	return nil
}

func hostMirror(op string, id tree.NodeID, c tree.Component) error {
	return &tree.ReceiptError{Op: op, Node: id, Problem: fmt.Sprintf("no %v host lock is there that this receipt could have taken", c)}
}
