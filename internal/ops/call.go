// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// Call is one call of a Machine. Verb says which; of the other fields only
// those that the verb has are looked at (see the tables in the package
// comment). The zero value of a field is its default, but for
// Switches.WriteThroughThreshold, which a parsed call sets to 256.
type Call struct {
	Verb string

	Key         tree.Key
	Node, Until tree.NodeID // Node is also "from"
	Nodes       []tree.NodeID
	Component   tree.Component
	Slots       tree.Slots // nil: absent

	// begin-insert
	Mamba                       tree.Slots
	Prev, SWAEvicted, SWABranch int
	Chunked, Adopted            bool
	Priority                    int64
	Session                     string

	Start, End int // swa-tombstone-ranges, attach-swa-window

	Skip    tree.ComponentSet
	Receipt tree.Receipt
	SkipSWA bool

	N         int
	Totals    tree.Units
	WriteBack bool

	Switches tree.Switches

	ID         string
	Generation int64

	UnlockedOnly, SWAResidentOnly bool
	WriteThrough, LoadBack        []tree.InFlight
	Host                          bool

	// The host tier. Until is also "inserted", Totals "found", N "units".
	Ack                 int64
	Full                tree.Transfer
	Aux                 []tree.Transfer
	Pinned              bool
	Hashes              []tree.Digest
	PrefixLen, TotalLen int
	Dropped, WithPrefix bool
	Success             bool
}

// insertParams returns what begin-insert passes.
func (c *Call) insertParams() tree.InsertParams {
	return tree.InsertParams{
		Key: c.Key, Slots: c.Slots, MambaState: c.Mamba,
		PrevPrefixLen: c.Prev, SWAEvictedLen: c.SWAEvicted, SWABranchingLen: c.SWABranch,
		Chunked: c.Chunked, Priority: c.Priority, TrackAdopted: c.Adopted, SessionID: c.Session,
	}
}
