// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// Action is an instruction that the tree returns for its caller to execute, in
// the order of the list (rule I-5). It is one of the types below.
type Action interface{ action() }

// FreeDeviceKV: free these slots in the Full pool, and their SWA partners.
type FreeDeviceKV struct{ Slots Slots }

// FreeDeviceKVFullOnly: free these slots in the Full pool only; their SWA
// partners are gone or belong to somebody else.
type FreeDeviceKVFullOnly struct{ Slots Slots }

// ReplaceWriteThroughOnNodeSplit: in the pending write Ack, replace Old by
// New and then Child (rule ND-18).
type ReplaceWriteThroughOnNodeSplit struct {
	Ack             int64
	Old, New, Child NodeID
}

// BackupKV: copy these nodes, a chain from the root side down, to the host, or
// offload them to the external linker.
type BackupKV struct {
	Nodes        []NodeID
	KeyLen       int  // units of the aligned key whose insert asked
	EndsAtPrompt bool // the last node is where that key ends
}

// SWARebuild: translate the Full slots to SWA slots and store them with
// SetComponentDeviceValue(Node, SWA, ...).
type SWARebuild struct {
	Node NodeID
	Full Slots
}

// RecoverSWAWithLockedFull: let the Kept Full slots point at the SWA partners
// of the Incoming ones, clear the mapping of the incoming ones, free those in
// the Full pool only, and store the SWA slots on Node.
type RecoverSWAWithLockedFull struct {
	Node           NodeID
	Kept, Incoming Slots
}

// MambaEvictExcessPathStates: call EvictExcessPathStates(Tail) and free what
// it returns.
type MambaEvictExcessPathStates struct{ Tail NodeID }

// FreeComponentDeviceSlot: free only this component's device slots.
type FreeComponentDeviceSlot struct {
	Component Component
	Slots     Slots
}

// FreeComponentHostSlot: free only this component's host slots.
type FreeComponentHostSlot struct {
	Component Component
	Slots     Slots
}

// RebuildFullToSWAMapping: let each Full slot point at the SWA slot of the
// same position.
type RebuildFullToSWAMapping struct{ Full, SWA Slots }

func (FreeDeviceKV) action()                   {}
func (FreeDeviceKVFullOnly) action()           {}
func (ReplaceWriteThroughOnNodeSplit) action() {}
func (BackupKV) action()                       {}
func (SWARebuild) action()                     {}
func (RecoverSWAWithLockedFull) action()       {}
func (MambaEvictExcessPathStates) action()     {}
func (FreeComponentDeviceSlot) action()        {}
func (FreeComponentHostSlot) action()          {}
func (RebuildFullToSWAMapping) action()        {}

// barrier reports whether an insert step ends at this action, because later
// steps depend on its execution (rule I-6).
func barrier(a Action) bool {
	switch a.(type) {
	case FreeDeviceKV, FreeDeviceKVFullOnly, ReplaceWriteThroughOnNodeSplit:
		return false
	}
	return true
}
