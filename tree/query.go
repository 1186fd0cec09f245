// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"
)

// FlattenFull returns the Full device slots of all nodes, parents before
// children, children in edge order.
func (c *Core) FlattenFull() Slots { return c.flatten("flatten-full", Full) }

// FlattenMamba returns the Mamba device slots of all nodes in the same order.
func (c *Core) FlattenMamba() Slots { return c.flatten("flatten-mamba", Mamba) }

func (c *Core) flatten(name string, id Component) Slots {
	if c.log != nil {
		c.log.plain(name)
	}
	out := Slots{}
	if !c.opts.Components.Has(id) {
		return out
	}
	for n := c.root.following(); n != nil; n = n.following() {
		out = out.Append(n.state[id].device)
	}
	return out
}

// WalkCanary returns a row for every Full device slot, for checking that memory
// and tree agree (rule Q-3). With swaResidentOnly only nodes with SWA on the
// device have rows; with unlockedOnly only nodes without a lock of SWA then, of
// Full otherwise. Opaque slots have no numbers; their rows show -1.
func (c *Core) WalkCanary(unlockedOnly, swaResidentOnly bool) []CanaryRow {
	if c.log != nil {
		c.log.canary(unlockedOnly, swaResidentOnly)
	}
	filter := Full
	if swaResidentOnly && c.opts.Components.Has(SWA) {
		filter = SWA
	}
	type place struct {
		position int
		last     int64
	}
	rows := []CanaryRow{}
	at := place{last: -1} // before the next node
	var path []place      // before each node on the path to it
	for n := c.root.firstChild; n != nil; {
		shown := (filter == Full || n.state[SWA].device != nil) && (!unlockedOnly || n.state[filter].locks == 0)
		before := at
		position := at.position
		for _, r := range n.state[Full].device {
			for i := uint32(0); i < r.Length; i++ {
				slot := int64(r.First) + int64(i)
				if r.Buffer != 0 {
					slot = -1
				}
				if shown {
					rows = append(rows, CanaryRow{Slot: slot, Position: position, Previous: at.last})
				}
				at.last = slot
				position++
			}
		}
		at.position += n.units
		if n.firstChild != nil {
			path = append(path, before)
			n = n.firstChild
			continue
		}
		at = before
		for n != nil && n.next == nil {
			n = n.parent
			if n == c.root {
				return rows
			}
			at, path = path[len(path)-1], path[:len(path)-1]
		}
		n = n.next
	}
	return rows
}

// DFSWeightOrder returns the order in which to run requests that wait on the
// given nodes, so that neighbours share prefixes: a permutation of the indices
// of ids (rule Q-4). It costs a walk over the paths of the nodes and the
// children on them.
func (c *Core) DFSWeightOrder(ids []NodeID) ([]int, error) {
	const op = "DFSWeightOrder"
	if c.log != nil {
		c.log.nodeList("dfs-weight-order", ids)
	}
	waiting := map[*node][]int{}
	for i, id := range ids {
		n, err := c.resolve(op, id)
		if err != nil {
			return nil, err
		}
		waiting[n] = append(waiting[n], i)
	}
	// The nodes on the paths, each once and after all those above it; then
	// their weights, from the deepest up.
	weight := map[*node]int{}
	var onPaths []*node
	for _, id := range ids {
		from := len(onPaths)
		for n := c.nodes.find(id); n != nil; n = n.parent {
			if _, seen := weight[n]; seen {
				break
			}
			weight[n] = len(waiting[n])
			onPaths = append(onPaths, n)
		}
		slices.Reverse(onPaths[from:])
	}
	for _, n := range slices.Backward(onPaths) {
		if n.parent != nil {
			weight[n.parent] += weight[n]
		}
	}
	order := make([]int, 0, len(ids))
	heavyFirst := func(n *node) []*node {
		var children []*node
		for child := n.firstChild; child != nil; child = child.next {
			if weight[child] > 0 {
				children = append(children, child)
			}
		}
		slices.SortStableFunc(children, func(a, b *node) int { return cmp.Compare(weight[b], weight[a]) })
		return children
	}
	type visit struct {
		n        *node
		children []*node
	}
	stack := []visit{{c.root, heavyFirst(c.root)}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.children) > 0 {
			child := top.children[0]
			top.children = top.children[1:]
			stack = append(stack, visit{child, heavyFirst(child)})
			continue
		}
		order = append(order, waiting[top.n]...)
		stack = stack[:len(stack)-1]
	}
	return order, nil
}

// SupportsFastMatch reports that a scheduler may match every waiting request in
// each of its rounds.
func (c *Core) SupportsFastMatch() bool { return true }

// PrefetchAnchor returns the namespace of a node's key; the root's is the zero
// Namespace.
func (c *Core) PrefetchAnchor(id NodeID) (Namespace, error) {
	if c.log != nil {
		c.log.nodes("prefetch-anchor", id)
	}
	n, err := c.resolve("PrefetchAnchor", id)
	if err != nil || n == c.root {
		return Namespace{}, err
	}
	return n.ns.name, nil
}
