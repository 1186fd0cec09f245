// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// Transfer describes what one component moves between two tiers. The tree says
// what; its caller allocates the side that is nil and copies.
type Transfer struct {
	Component    Component
	Device, Host Slots    // nil: to be allocated, as many as the other side has
	Nodes        []NodeID // nodes whose values are moved, the root side first
	Keys         []Digest // storage keys, one a page; for storage transfers only
}

// BackupSpec is what a backup of a node copies to the host (rules BK-6 to
// BK-10).
type BackupSpec struct {
	Full Slots      // Full device slots; empty when Full is on the host already
	Aux  []Transfer // in component order; Host is nil
}

// LoadBackSpec is what a load back to a node copies to the device (rule LB-7).
type LoadBackSpec struct {
	Full Transfer   // host slots of the evicted nodes; empty when none is
	Aux  []Transfer // in component order; Device is nil
	// Pinned says that a node which would have to be loaded is part of another
	// load back that is in flight; then there is nothing else in the spec.
	Pinned bool
}

// HostInsertParams hands data that came from storage to the host tier.
type HostInsertParams struct {
	Anchor NodeID   // node below which the key goes on
	Key    Key      // the tokens beyond the anchor's end
	Slots  Slots    // Full host slots, one a unit
	Hashes []Digest // one a page
}

// HostInsertResult says what became of it (rules PF-25 to PF-27).
type HostInsertResult struct {
	PrefixLen int    // units that were in the tree already; their slots are the caller's to free
	TotalLen  int    // units of the aligned key
	Node      NodeID // end node with Full on the host; NoNode: none
	Dropped   bool   // declined: all slots stay the caller's
	Actions   []Action
}

// PrefetchCommit attaches what auxiliary components fetched with a host insert.
type PrefetchCommit struct {
	Anchor   NodeID
	Inserted HostInsertResult
	Aux      []Transfer         // Host set: SWA a window that ends where the key ends, Mamba one state
	Found    [NumComponents]int // pages (Mamba: states) that were read for each
}

// PrefetchResult says what was taken (rules PF-28 to PF-30).
type PrefetchResult struct {
	MambaExist bool  // the state was not taken
	Frees      Frees // host slots that were not taken
	Actions    []Action
}

// StorageSpec is what a write of a node to storage reads from the host (rule
// ST-11).
type StorageSpec struct {
	Full   Slots    // Full host slots
	Tokens []Token  // raw tokens that the node's key spans
	Hashes []Digest // the node's own; nil: never hashed
	Prefix []Digest // those of its ancestors, the root side first, if asked for
	Aux    []Transfer
}

// BufferSnapshot is what a queued buffer-only backup remembers of its node.
type BufferSnapshot struct {
	Node, Parent NodeID
	ParentIsRoot bool
	ParentHash   Digest // last of the parent's list
	HasParent    bool   // the parent has a list
	Hashes       []Digest
	Key          Key
	Units        int
	Prefix       []Digest
}

// BufferState is what still holds of a snapshot.
type BufferState struct {
	Parent       NodeID
	ParentIsRoot bool
	ParentHash   Digest
	HasParent    bool
}
