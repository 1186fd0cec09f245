// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"sort"

	"github.com/treecore/treecore/tree"
)

// EvictableSize returns the device units of unlocked nodes (rule Z-1).
func (o *Oracle) EvictableSize(c tree.Component) int { return o.size(c, false) }

// ProtectedSize returns the device units of locked nodes (rule Z-1).
func (o *Oracle) ProtectedSize(c tree.Component) int { return o.size(c, true) }

func (o *Oracle) size(c tree.Component, locked bool) int {
	if !o.has(c) {
		return 0 // Z-2
	}
	sum := 0
	for _, n := range o.preorder() {
		if n != o.root && (n.locks[c] > 0) == locked {
			sum += len(n.device[c])
		}
	}
	return sum
}

// TotalSize returns the device units of Full, and those of the others (Z-4).
func (o *Oracle) TotalSize() (full, aux int) {
	for _, n := range o.preorder() {
		full += len(n.device[tree.Full])
		aux += len(n.device[tree.SWA]) + len(n.device[tree.Mamba])
	}
	return full, aux
}

// FlattenFull joins all Full device values (rule Q-2).
func (o *Oracle) FlattenFull() tree.Slots { return o.flatten(tree.Full) }

// FlattenMamba joins all Mamba device values (rule Q-2).
func (o *Oracle) FlattenMamba() tree.Slots { return o.flatten(tree.Mamba) }

func (o *Oracle) flatten(c tree.Component) tree.Slots {
	list := []tree.Slot{}
	for _, n := range o.preorder() {
		list = append(list, n.device[c]...)
	}
	return runs(list)
}

// WalkCanary returns a row for each Full device slot (rule Q-3).
func (o *Oracle) WalkCanary(unlockedOnly, swaResidentOnly bool) []tree.CanaryRow {
	bySWA := swaResidentOnly && o.has(tree.SWA)
	lock := tree.Full
	if bySWA {
		lock = tree.SWA
	}
	var rows []tree.CanaryRow
	for _, n := range o.preorder() {
		if n == o.root || (bySWA && n.device[tree.SWA] == nil) || (unlockedOnly && n.locks[lock] > 0) {
			continue
		}
		previous := int64(-1)
		for up := n.parent; up != nil; up = up.parent {
			if k := len(up.device[tree.Full]); k > 0 {
				previous = int64(up.device[tree.Full][k-1])
				break
			}
		}
		position := n.depth() - len(n.key)
		for _, slot := range n.device[tree.Full] {
			rows = append(rows, tree.CanaryRow{Slot: int64(slot), Position: position, Previous: previous})
			previous = int64(slot)
			position++
		}
	}
	return rows
}

// DFSWeightOrder orders the given nodes so that neighbours share prefixes
// (rule Q-4).
func (o *Oracle) DFSWeightOrder(ids []tree.NodeID) ([]int, error) {
	var given []*node
	for _, id := range ids {
		n, err := o.resolve("DFSWeightOrder", id)
		if err != nil {
			return nil, err
		}
		given = append(given, n)
	}
	weight := func(n *node) int {
		w := 0
		for _, g := range given {
			if g == n || n.isAncestorOf(g) {
				w++
			}
		}
		return w
	}
	order := []int{}
	// A node stands twice on the stack: to open it, and below its children to
	// put out its own indices.
	type visit struct {
		node *node
		own  bool
	}
	stack := []visit{{node: o.root}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v.own {
			for i, g := range given {
				if g == v.node {
					order = append(order, i)
				}
			}
			continue
		}
		children := append([]*node{}, v.node.children...)
		sort.SliceStable(children, func(i, j int) bool { return weight(children[i]) > weight(children[j]) })
		stack = append(stack, visit{node: v.node, own: true})
		for i := len(children) - 1; i >= 0; i-- {
			stack = append(stack, visit{node: children[i]})
		}
	}
	return order, nil
}

// Contains reports whether the id is a live node's (rule A-5).
func (o *Oracle) Contains(id tree.NodeID) bool { return o.nodes[id] != nil }

// IsDeviceEvictableLeaf is false for stale ids, too (rule A-5).
func (o *Oracle) IsDeviceEvictableLeaf(id tree.NodeID) bool {
	n := o.nodes[id]
	return n != nil && o.isDeviceLeaf(n)
}

// IsHostEvictableLeaf is false for stale ids, too (rule A-5).
func (o *Oracle) IsHostEvictableLeaf(id tree.NodeID) bool {
	n := o.nodes[id]
	return n != nil && o.isHostLeaf(n)
}

// Nodes returns all ids, parents before children, children in edge order.
func (o *Oracle) Nodes() []tree.NodeID {
	var ids []tree.NodeID
	for _, n := range o.preorder() {
		ids = append(ids, n.id)
	}
	return ids
}

// Inspect returns a copy of what is known about a node (rule Q-5).
func (o *Oracle) Inspect(id tree.NodeID) (tree.NodeInfo, error) {
	n, err := o.resolve("Inspect", id)
	if err != nil {
		return tree.NodeInfo{}, err
	}
	info := tree.NodeInfo{
		ID:                  n.id,
		Namespace:           n.namespace,
		Tokens:              o.rawTokens(n.key),
		Units:               len(n.key),
		Bigram:              o.eagle,
		Hits:                n.hits,
		Priority:            n.priority,
		DeviceLeaf:          o.isDeviceLeaf(n),
		SWABoundary:         n.swaBoundary,
		WriteThroughPending: n.writePending,
		LoadBackPending:     n.loadPending,
		Stored:              n.stored,
	}
	if n.parent != nil {
		info.Parent = n.parent.id
	}
	for _, child := range n.children {
		info.Children = append(info.Children, child.id)
	}
	for _, c := range o.components {
		info.Components[c] = tree.ComponentInfo{
			Device:       runs(n.device[c]),
			Host:         runs(n.host[c]),
			Locks:        n.locks[c],
			HostLocks:    n.hostLocks[c],
			HostBoundary: n.hostBoundary[c],
			SessionRefs:  n.refs[c],
			Sessions:     sortedKeys(n.marks[c]),
			InDeviceList: o.device[c].contains(n),
			InHostList:   o.host[c].contains(n),
		}
	}
	return info, nil
}
