// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// Machine is the device-tier surface of a tree core (chapter 21 of the
// behaviour specification). The core and the slow oracle both have it, so that
// one script, one log and one random walk run on either.
type Machine interface {
	// Reset, Root and the plain questions.
	Reset()
	Root() tree.NodeID
	IsRoot(tree.NodeID) (bool, error)
	IsBackedUp(tree.NodeID) (bool, error)
	IsFullDeviceEvicted(tree.NodeID) (bool, error)
	SetSwitches(tree.Switches) error
	PrefetchAnchor(tree.NodeID) (tree.Namespace, error)

	// Match.
	Match(tree.Key) (tree.MatchResult, error)
	EmptyMatch() tree.MatchResult
	MatchFullDevicePrefix(tree.Key) (tree.FullPrefix, error)
	CollectFullDeviceSlots(from, until tree.NodeID) (tree.Slots, error)

	// Insert.
	BeginInsert(tree.InsertParams) (tree.InsertStep, error)
	ResumeInsert() (tree.InsertStep, error)
	HasOngoingInsert() bool
	EndInsert() []tree.Action
	SetComponentDeviceValue(tree.NodeID, tree.Component, tree.Slots) error
	ComponentDeviceValue(tree.NodeID, tree.Component) (tree.Slots, error) // nil: absent
	ComponentHasHostValueOnly(tree.NodeID, tree.Component) (bool, error)
	EvictExcessPathStates(tail tree.NodeID) (tree.Evicted, error)
	SWATombstoneRanges(key tree.Key, start, end int) ([]tree.Range, error)
	AttachSWAWindow(key tree.Key, start, end int, swa tree.Slots) ([]tree.Action, error)

	// Locks.
	Lock(tree.NodeID, tree.ComponentSet) (tree.Receipt, error)
	Unlock(id tree.NodeID, r tree.Receipt, skipSWA bool) error
	ReleaseSWALock(tree.NodeID, tree.Receipt) (tree.Evicted, error)
	ReleaseWindowLock(tree.NodeID, tree.Component, tree.Receipt) (tree.Evicted, error)
	PinFull(tree.NodeID) error
	UnpinFull(tree.NodeID) error

	// Eviction.
	EvictStart(c tree.Component, n int) error
	EvictNext(c tree.Component, totals tree.Units) (tree.EvictStep, error)
	EvictLeaf(id tree.NodeID, writeBack bool) (tree.EvictLeafResult, error)
	Demote(tree.NodeID) (tree.Evicted, error)
	EvictEnd(c tree.Component) error

	// Sizes.
	EvictableSize(tree.Component) int
	ProtectedSize(tree.Component) int
	TotalSize() (full, aux int)

	// Sessions. Ids are never empty; "" is "absent".
	OpenSession(id string) int64
	EnsureSession(id string) int64
	RegisterSession(id string, generation int64, last tree.NodeID) error
	ReleaseSession(id string)

	// Queries.
	FlattenFull() tree.Slots
	FlattenMamba() tree.Slots
	WalkCanary(unlockedOnly, swaResidentOnly bool) []tree.CanaryRow
	DFSWeightOrder([]tree.NodeID) ([]int, error)
	SanityCheck(writeThrough, loadBack []tree.InFlight) error

	// Hash chains and events.
	LastHash(tree.NodeID) (h tree.Digest, ok bool, err error)
	PrefixHashes(tree.NodeID) ([]tree.Digest, error)
	Hashes(tree.NodeID) ([]tree.Digest, error)
	BackfillHashes() int
	TakeEvents() []tree.Event
	RecordAllCleared()

	// Inspect gives a copy of everything that the specification's chapter 17
	// calls observable about a node's place in the tree; Nodes lists all ids
	// in depth-first order, children in edge order, root first.
	Contains(tree.NodeID) bool
	IsDeviceEvictableLeaf(tree.NodeID) bool
	IsHostEvictableLeaf(tree.NodeID) bool
	Nodes() []tree.NodeID
	Inspect(tree.NodeID) (tree.NodeInfo, error)
	RecencyOrder(c tree.Component, host bool) []tree.NodeID // most recent first; nil if not configured
}
