// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/treecore/treecore/tree"

// BuildStorageSpec says what a write of the node to storage reads from the
// host (rule ST-11).
func (o *Oracle) BuildStorageSpec(id tree.NodeID, withPrefix bool) (tree.StorageSpec, bool, error) {
	n, err := o.resolve("BuildStorageSpec", id)
	if err != nil {
		return tree.StorageSpec{}, false, err
	}
	if !n.backedUp() {
		return tree.StorageSpec{}, false, nil
	}
	hashes := o.hashes(n)
	spec := tree.StorageSpec{
		Full:   runs(n.host[tree.Full]),
		Tokens: o.rawTokens(n.key),
		Hashes: hashes,
	}
	if withPrefix {
		spec.Prefix = o.prefixHashes(n)
	}
	if len(hashes) == 0 {
		return spec, true, nil
	}
	if window := n.host[tree.SWA]; window != nil {
		pages := len(window) / o.page
		spec.Aux = append(spec.Aux, tree.Transfer{
			Component: tree.SWA,
			Host:      runs(window[len(window)-pages*o.page:]),
			Nodes:     []tree.NodeID{id},
			Keys:      hashes[len(hashes)-pages:],
		})
	}
	if state := n.host[tree.Mamba]; state != nil {
		spec.Aux = append(spec.Aux, tree.Transfer{
			Component: tree.Mamba,
			Host:      runs(state),
			Nodes:     []tree.NodeID{id},
			Keys:      hashes[len(hashes)-1:],
		})
	}
	return spec, true, nil
}

// SnapshotBufferBackup remembers a node whose buffer-only backup is queued
// (rule BO-6). A stale id has no snapshot (rule A-5).
func (o *Oracle) SnapshotBufferBackup(id tree.NodeID, withPrefix bool) (tree.BufferSnapshot, bool) {
	n := o.nodes[id]
	if n == nil || n == o.root || o.evicted(n) || !n.hasHashes || !o.switches.Storage {
		return tree.BufferSnapshot{}, false
	}
	snapshot := tree.BufferSnapshot{
		Node:         id,
		Parent:       n.parent.id,
		ParentIsRoot: n.parent == o.root,
		Hashes:       o.hashes(n),
		Key:          tree.Key{Tokens: o.rawTokens(n.key), Namespace: n.namespace, Bigram: o.eagle},
		Units:        len(n.key),
	}
	snapshot.ParentHash, snapshot.HasParent = o.lastHash(n.parent)
	if withPrefix {
		snapshot.Prefix = o.prefixHashes(n)
	}
	return snapshot, true
}

// ValidateBufferBackup says what still holds of a snapshot of the node (BO-10).
func (o *Oracle) ValidateBufferBackup(id tree.NodeID, units int) (tree.BufferState, bool) {
	n := o.nodes[id]
	if n == nil || n == o.root || o.evicted(n) || len(n.key) != units {
		return tree.BufferState{}, false
	}
	state := tree.BufferState{Parent: n.parent.id, ParentIsRoot: n.parent == o.root}
	state.ParentHash, state.HasParent = o.lastHash(n.parent)
	return state, true
}
