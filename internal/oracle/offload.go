// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// checkLinker is rule XL-1.
func (o *Oracle) checkLinker(s tree.Switches) error {
	if !s.ExternalLinker {
		return nil
	}
	if o.has(tree.Mamba) || s.HostTier || s.HostBufferOnly {
		return &tree.ArgumentError{Op: "SetSwitches", Field: "ExternalLinker", Problem: "it goes with neither mamba nor a host tier"}
	}
	return nil
}

// BuildOffload says what a linker stores of the node (rule XL-7).
func (o *Oracle) BuildOffload(id tree.NodeID) ([]tree.Transfer, error) {
	const op = "BuildOffload"
	n, err := o.resolve(op, id)
	if err != nil {
		return nil, err
	}
	if n != o.root && (n.stored || n.writePending != 0) {
		return nil, nil
	}
	if err := o.checkOnDevice(op, n); err != nil {
		return nil, err
	}
	o.fillHashes(n)
	hashes := o.hashes(n)
	spec := []tree.Transfer{{Component: tree.Full, Device: runs(n.device[tree.Full]), Nodes: []tree.NodeID{id}, Keys: hashes}}
	if window := n.device[tree.SWA]; window != nil {
		pages := len(window) / o.page
		spec = append(spec, tree.Transfer{Component: tree.SWA, Device: runs(window), Nodes: []tree.NodeID{id}, Keys: hashes[len(hashes)-pages:]})
	}
	if state := n.device[tree.Mamba]; state != nil {
		spec = append(spec, tree.Transfer{Component: tree.Mamba, Device: runs(state), Nodes: []tree.NodeID{id}, Keys: hashes[len(hashes)-1:]})
	}
	return spec, nil
}

// MarkOffloadPending notes that the offload of the node is under way (XL-8).
func (o *Oracle) MarkOffloadPending(id tree.NodeID) error {
	const op = "MarkOffloadPending"
	n, err := o.resolve(op, id)
	if err != nil {
		return err
	}
	if n == o.root {
		return &tree.ArgumentError{Op: op, Field: "node", Problem: "it is the root"}
	}
	if n.writePending != 0 {
		return &tree.OrderError{Op: op, Problem: fmt.Sprintf("node %d is pending for %d", id, n.writePending)}
	}
	n.writePending = int64(id)
	return nil
}

// FinishOffload ends an offload (rule XL-8).
func (o *Oracle) FinishOffload(ids []tree.NodeID, ack int64, success bool) error {
	const op = "FinishOffload"
	nodes, err := o.resolveAll(op, ids)
	if err != nil {
		return err
	}
	if ack == 0 {
		return &tree.ArgumentError{Op: op, Field: "ack", Problem: "an ack is never 0"}
	}
	for _, n := range nodes {
		if n == o.root {
			return &tree.ArgumentError{Op: op, Field: "nodes", Problem: "the root is among them"}
		}
	}
	for _, n := range nodes {
		if n.writePending == ack {
			n.writePending = 0
			if success {
				n.stored = true
			}
			o.enterDuplicate(n)
		}
	}
	return nil
}

// wantsCopy: a hit on the node asks for a copy on a lower tier (rules BK-1,
// XL-9).
func (o *Oracle) wantsCopy(n *node) bool {
	if o.switches.ExternalLinker {
		return !n.stored && n.writePending == 0
	}
	return o.switches.HostTier && !n.backedUp()
}
