// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// NodeID names a node to the outside. Ids are handed out in rising order from 1
// and never given out again, also not after Reset.
type NodeID int64

// NoNode is the id that no node has.
const NoNode NodeID = 0

// MatchResult says how much of a key a request can reuse (chapter 6 of the
// behaviour specification). Lengths are in units.
type MatchResult struct {
	DeviceSlots       Slots  // Full device slots from the root to LastDeviceNode; the caller's own
	DeviceLen         int    // their number
	LastDeviceNode    NodeID // deepest node that all components accept on the device
	BestNode          NodeID // deepest node that all components accept on any tier
	LastHostNode      NodeID // anchor for a prefetch from storage
	HostHitLen        int    // Full units to be loaded back from the host
	SWAHostHitLen     int    // SWA units of the window that are on the host only
	MambaHostHitLen   int    // 1 if the state of BestNode is on the host only
	FullHitLen        int    // how far Full reaches on any tier, whatever the others say
	SWABranchingLen   int    // position where a window would help; 0: none (rule M-21)
	MambaBranchingLen int    // position where a state would help; 0: none (rule M-22)
	Actions           []Action
	Explanation       Explanation
}

// Reason says why a match was not longer.
type Reason uint8

// The reasons, from "nothing is missing" to "nothing was there".
const (
	// ReasonComplete: every unit of the key is reused.
	ReasonComplete Reason = iota
	// ReasonPageRemainder: all whole pages are reused; the tail that is left
	// does not fill a page.
	ReasonPageRemainder
	// ReasonWindowTombstoned: Full is there, but the window of SWA that a
	// reader would need at a deeper boundary has a gap.
	ReasonWindowTombstoned
	// ReasonNoState: Full is there, but no recurrent state sits at a deeper
	// boundary.
	ReasonNoState
	// ReasonHostOnly: more is there, on the host; it must be loaded back.
	ReasonHostOnly
	// ReasonOtherNamespace: nothing of the key is there in its namespace, but
	// its first page is there in another one.
	ReasonOtherNamespace
	// ReasonNeverSeen: the tree holds no more of this key (any more).
	ReasonNeverSeen

	// NumReasons is the number of reasons.
	NumReasons = int(ReasonNeverSeen) + 1
)

var reasonNames = [NumReasons]string{
	"complete", "page_remainder", "window_tombstoned", "no_state",
	"host_only", "other_namespace", "never_seen",
}

// String returns the reason's stable name, as in reports.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Explanation says what limited a match. It is filled by every match from what
// the walk sees anyway.
type Explanation struct {
	Matched   int // units usable at once: DeviceLen
	FullOnly  int // units that Full alone would have reached: FullHitLen
	Limited   bool
	LimitedBy Component // the component that refused deeper boundaries; only if Limited
	Reason    Reason
	// Device and Host are the units of the longest boundary that all
	// components accept, by the tier they come from.
	Device, Host int
	// Units and PageRemainder are the key's length and the part of it that
	// does not fill a page.
	Units, PageRemainder int
}

// FullPrefix is the answer of MatchFullDevicePrefix.
type FullPrefix struct {
	Matched int    // units of the key that nodes with Full on device hold
	Node    NodeID // deepest node entered
	Pinned  int    // whole length of the nodes entered
}

// InsertParams describes what a request hands to the tree. The tokens and slots
// must not change until the insert has ended: a suspended insert still reads
// them.
type InsertParams struct {
	Key Key
	// Slots are the Full slots, one a unit. More than the aligned key has
	// are ignored. nil: the token ids stand in for slots (tests, demos).
	Slots Slots
	// MambaState is the state's slots. Required with Mamba unless the aligned
	// key is empty.
	MambaState Slots
	// PrevPrefixLen says how many leading slots are the tree's own already,
	// from a match or an earlier insert; they are never freed.
	PrevPrefixLen int
	// SWAEvictedLen is the position below which the request's own SWA slots
	// have been freed already. A multiple of the page.
	SWAEvictedLen int
	// SWABranchingLen is the branch position to publish; 0: none.
	SWABranchingLen int
	// Chunked marks a part of a chunked prefill: hits are not counted.
	Chunked bool
	// Priority is raised to on all nodes that the key passes.
	Priority int64
	// TrackAdopted asks for InsertResult.Adopted.
	TrackAdopted bool
	// SessionID goes into placement events only; "" is none.
	SessionID string
}

// Range is the positions [Start, End).
type Range struct{ Start, End int }

// InsertResult is what the last step of an insert returns.
type InsertResult struct {
	PrefixLen         int    // units that were in the tree before
	LastDeviceNode    NodeID // node at which the key ends
	MambaExist        bool   // the tree did not take MambaState
	SWABranchInserted bool   // the branch position is published
	// Adopted lists, for each component, the positions whose slots the tree
	// took; nil unless asked for.
	Adopted *[NumComponents][]Range
}

// InsertStep is one step of an insert: actions to execute now, and the result
// if this was the last step.
type InsertStep struct {
	Actions []Action
	Result  *InsertResult
}

// Receipt is what a lock returns and its release must present. It is a plain
// value. The zero receipt names no anchor and no boundary.
type Receipt struct {
	Node      NodeID // anchor; NoNode: unknown
	Skipped   ComponentSet
	Boundary  [NumComponents]uint64 // device segment boundary; 0: up to the root
	HostBound [NumComponents]uint64 // host segment boundary; 0: up to the root
	Delta     int                   // Full units that became protected by this lock
}

// Units counts units for each component.
type Units [NumComponents]int

// Add adds v to u.
func (u *Units) Add(v Units) {
	for c := range u {
		u[c] += v[c]
	}
}

// Frees are slots that the caller must free now, for each component in order.
// Device[SWA] holds the Full slots whose SWA partners are to be freed (rule
// E-11); the others hold the component's own slots.
type Frees struct {
	Device, Host [NumComponents]Slots
}

// Empty reports whether there is nothing to free.
func (f *Frees) Empty() bool {
	for c := range f.Device {
		if len(f.Device[c]) > 0 || len(f.Host[c]) > 0 {
			return false
		}
	}
	return true
}

func (f *Frees) addDevice(c Component, s Slots) { f.Device[c] = f.Device[c].Append(s) }
func (f *Frees) addHost(c Component, s Slots)   { f.Host[c] = f.Host[c].Append(s) }

// Evicted is what every call that drops data returns.
type Evicted struct {
	Frees    Frees
	Freed    Units // device units dropped (host units for host-only drops)
	Unbacked int   // Full device units dropped that had no Full host copy
}

// EvictStep is one step of an eviction walk.
type EvictStep struct {
	Evicted
	Node         NodeID // leaf to evict with EvictLeaf; NoNode: none
	MadeProgress bool
	// Paused names an internal node whose value of PausedFor should be backed
	// up before it goes; call FinishStateEviction next, whether or not that
	// worked. Only with write-back (rule EV-7).
	Paused      NodeID
	PausedFor   Component
	PausedUnits int // SWA units to back up
}

// EvictLeafResult is the outcome of EvictLeaf. Backup is set, and nothing has
// changed, if the leaf must be backed up first.
type EvictLeafResult struct {
	Evicted
	Backup *BackupKV
}

// CanaryRow is one row of WalkCanary: a Full device slot, its position, and
// the slot before it on its path. Previous is -1 if there is none.
type CanaryRow struct {
	Slot     int64
	Position int
	Previous int64
}

// InFlight is one operation that the caller has in flight, for SanityCheck.
type InFlight struct {
	ID   int64
	Node NodeID
}
