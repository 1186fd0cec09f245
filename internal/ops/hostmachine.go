// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// HostMachine is the host-tier surface of a tree core, beside the device tier's.
type HostMachine interface {
	Machine

	// Host locks.
	LockHost(tree.NodeID) (tree.Receipt, error)
	UnlockHost(tree.NodeID, tree.Receipt) error

	// Backup, device to host.
	BuildBackupSpec(tree.NodeID) (tree.BackupSpec, error)
	CommitBackup(id tree.NodeID, full tree.Slots, aux []tree.Transfer) (tree.Frees, error)
	MarkWriteThroughPending(ids []tree.NodeID, ack int64) ([]tree.NodeID, error)
	FinishWriteThrough(ids []tree.NodeID, ack int64) error
	UndoBackup(id tree.NodeID, components tree.ComponentSet, ack int64) (tree.Frees, error)

	// Load back, host to device.
	BuildLoadBackSpec(tree.NodeID) (tree.LoadBackSpec, error)
	CommitLoadBack(id tree.NodeID, full tree.Slots, spec tree.LoadBackSpec) ([]tree.Action, error)
	FinishLoadBack(tree.NodeID) error

	// Eviction: of the host tier, and the write-back parts of the device's.
	EvictHost(c tree.Component, n int) (tree.Evicted, error) // Freed counts host units
	ReclaimDigest() uint64
	DropSubtreeNoHost(tree.NodeID) (out tree.Evicted, dropped bool, err error)
	FinishStateEviction(c tree.Component, id tree.NodeID) (tree.EvictStep, error)

	// Storage to host and back.
	InsertHost(tree.HostInsertParams) (tree.HostInsertResult, error)
	CommitPrefetch(tree.PrefetchCommit) (tree.PrefetchResult, error)
	BuildStorageSpec(id tree.NodeID, withPrefix bool) (spec tree.StorageSpec, ok bool, err error)

	// Marks of what is in storage.
	MarkStored(from, until tree.NodeID) error

	// Offloads to an external linker.
	BuildOffload(tree.NodeID) ([]tree.Transfer, error)
	MarkOffloadPending(tree.NodeID) error
	FinishOffload(ids []tree.NodeID, ack int64, success bool) error

	// Buffer-only mode.
	SnapshotBufferBackup(id tree.NodeID, withPrefix bool) (tree.BufferSnapshot, bool)
	ValidateBufferBackup(id tree.NodeID, units int) (tree.BufferState, bool)

	// HostDuplicates lists the registry of nodes with Full on both tiers, in
	// order of entry (rule ND-14), entries that are stale left out.
	HostDuplicates() []tree.NodeID
}
