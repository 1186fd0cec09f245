// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle is the slow twin of package tree: the same behaviour, written
// for a reader who holds it against the behaviour specification rule by rule.
//
// Nothing here is clever. Slot lists are plain lists of numbers, keys are plain
// lists of units, recency lists are slices, and whatever can be computed from
// the tree (sizes, leaf sets, depths, hash chains) is computed from it at each
// question. Package tree lends its types for parameters and results, and the
// constructor that turns slot numbers into runs; no decision is shared.
//
// Opaque slot runs are not supported: they are an *tree.ArgumentError.
package oracle

import (
	"math"

	"github.com/treecore/treecore/tree"
)

// Oracle is a tree core for the device and the host tier, with the methods of
// ops.HostMachine. It is not safe for concurrent use.
type Oracle struct {
	components []tree.Component // configured, in component order
	page       int              // P
	window     int              // W; 0 without SWA
	grid       int              // G; 0 without Mamba
	stateCap   int              // -1: no cap
	eagle      bool             // keys are bigrams
	events     bool
	sessions   bool
	policy     policy
	switches   tree.Switches
	loose      bool // the policy was write-back at some time since the reset (WT-1)

	root     *node
	nodes    map[tree.NodeID]*node // looked up by id only, never iterated
	lastID   tree.NodeID
	lastTick int64
	lastUUID uint64

	device [tree.NumComponents]recency
	host   [tree.NumComponents]recency

	insert   *insertion // suspended insert; nil: none
	fullWalk *fullWalk  // nil: none is on
	auxWalks [tree.NumComponents]*auxWalk

	lastGeneration int64
	generations    map[string]int64
	closed         []string // closed session ids, the oldest first
	frontiers      [tree.NumComponents]map[string]frontierSet

	queue []tree.Event

	duplicates []*node // registry of ND-14, in order of entry
	reclaimed  uint64  // digest of HE-5
}

// New returns an empty oracle. The error joins one *tree.ConfigError for each
// wrong field (rule CF-9).
func New(options tree.Options) (*Oracle, error) {
	o := &Oracle{
		nodes:    map[tree.NodeID]*node{},
		switches: tree.Switches{WriteThroughThreshold: 256}, // CF-8
	}
	if err := o.configure(options); err != nil {
		return nil, err
	}
	o.Reset()
	return o, nil
}

// Reset drops everything and builds a new root (rule N-10). The counters of
// ids, ticks and boundary uuids go on; queued events and switches stay.
func (o *Oracle) Reset() {
	o.nodes = map[tree.NodeID]*node{}
	o.insert = nil
	o.fullWalk = nil
	o.duplicates = nil
	o.reclaimed = 0
	o.loose = o.switches.WriteBack
	for _, c := range allComponents {
		o.device[c] = recency{component: c}
		o.host[c] = recency{component: c}
		o.auxWalks[c] = nil
		o.frontiers[c] = map[string]frontierSet{}
	}
	// SR-6: the counter of generations starts again, too.
	o.lastGeneration = 0
	o.generations = map[string]int64{}
	o.closed = nil

	// N-3.
	o.root = o.newNode()
	o.root.priority = math.MinInt64
	o.root.device[tree.Full] = []tree.Slot{}
	o.root.hasHashes = true
	for _, c := range o.components {
		o.root.locks[c] = 1
	}
}

// Root returns the root's id, the same for every namespace (rule K-12).
func (o *Oracle) Root() tree.NodeID { return o.root.id }

// IsRoot reports whether id is the root; a stale id is an error (rule A-7).
func (o *Oracle) IsRoot(id tree.NodeID) (bool, error) {
	n, err := o.resolve("IsRoot", id)
	if err != nil {
		return false, err
	}
	return n == o.root, nil
}

// IsBackedUp reports whether the node has a Full host value.
func (o *Oracle) IsBackedUp(id tree.NodeID) (bool, error) {
	n, err := o.resolve("IsBackedUp", id)
	if err != nil {
		return false, err
	}
	return n.backedUp(), nil
}

// IsFullDeviceEvicted reports whether the node is evicted (rule M-28).
func (o *Oracle) IsFullDeviceEvicted(id tree.NodeID) (bool, error) {
	n, err := o.resolve("IsFullDeviceEvicted", id)
	if err != nil {
		return false, err
	}
	return o.evicted(n), nil
}

// SetSwitches changes the switches of rule CF-8.
func (o *Oracle) SetSwitches(s tree.Switches) error {
	if s.WriteThroughThreshold < 1 {
		return &tree.ArgumentError{Op: "SetSwitches", Field: "WriteThroughThreshold", Problem: "it must be 1 or more"}
	}
	if err := o.checkLinker(s); err != nil {
		return err
	}
	o.switches = s
	if s.WriteBack {
		o.loose = true
	}
	if s.ExternalLinker {
		o.switches.WriteThroughThreshold = 1
	}
	return nil
}

// PrefetchAnchor returns the namespace of the node; the root has none.
func (o *Oracle) PrefetchAnchor(id tree.NodeID) (tree.Namespace, error) {
	n, err := o.resolve("PrefetchAnchor", id)
	if err != nil {
		return tree.Namespace{}, err
	}
	return n.namespace, nil
}

// resolve is the one place where ids become nodes (rule A-3).
func (o *Oracle) resolve(op string, id tree.NodeID) (*node, error) {
	if n := o.nodes[id]; n != nil {
		return n, nil
	}
	return nil, &tree.NodeAccessError{Op: op, Node: id}
}

// alive reports whether n is still in the tree.
func (o *Oracle) alive(n *node) bool { return o.nodes[n.id] == n }

func (o *Oracle) has(c tree.Component) bool {
	for _, configured := range o.components {
		if configured == c {
			return true
		}
	}
	return false
}

func (o *Oracle) tick() int64 {
	o.lastTick++
	return o.lastTick
}
