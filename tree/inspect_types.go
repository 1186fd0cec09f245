// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// NodeInfo is a copy of what the tree knows about one node, for tests and
// tools (rule Q-5).
type NodeInfo struct {
	ID         NodeID
	Parent     NodeID   // NoNode for the root
	Children   []NodeID // in edge order
	Namespace  Namespace
	Tokens     []Token // raw tokens that the key spans: one more than units for bigrams
	Units      int
	Bigram     bool
	Hits       int64
	Priority   int64
	DeviceLeaf bool // rule E-1, computed now
	Components [NumComponents]ComponentInfo
	// Boundary marks of lock segments; 0: none.
	SWABoundary                          uint64
	WriteThroughPending, LoadBackPending int64
	Stored                               bool // marked as stored, see MarkStored
}

// ComponentInfo is what one component has on a node.
type ComponentInfo struct {
	Device, Host             Slots // nil: absent
	Locks, HostLocks         int
	SessionRefs              int
	Sessions                 []string // session ids marked here, ascending
	InDeviceList, InHostList bool
	HostBoundary             uint64 // mark that ends host lock segments here; 0: none. Mamba has none
}
