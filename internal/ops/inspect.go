// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// inspect writes all that is known about a node in one line.
func (e *Executor) inspect(n *tree.NodeInfo) string {
	w := words{e.node(n.ID)}
	parent := "none"
	if n.Parent != tree.NoNode {
		parent = e.node(n.Parent)
	}
	w.add("parent", parent)
	if len(n.Children) > 0 {
		w.add("children", strings.ReplaceAll(e.nodeList(n.Children), " ", ","))
	}
	if ns := n.Namespace; ns.HasExtraKey || ns.ExtraKey != "" || ns.Salt != "" {
		w = append(w, namespaceText(ns))
	}
	w.add("tokens", formatTokens(n.Tokens))
	w.add("units", strconv.Itoa(n.Units))
	w.flag("bigram", n.Bigram)
	w = append(w, e.nodeState(n)...)
	w.flag("device-leaf", n.DeviceLeaf)
	for c := tree.Full; c < tree.NumComponents; c++ {
		w.flag(c.String()+"-device-list", n.Components[c].InDeviceList)
		w.flag(c.String()+"-host-list", n.Components[c].InHostList)
	}
	return w.String()
}

var componentLetters = [tree.NumComponents]string{"F", "S", "M"}

// nodeState writes what is on a node: values, locks, counts and marks.
func (e *Executor) nodeState(n *tree.NodeInfo) words {
	var w words
	var locks, hostLocks, refs tree.Units
	for c := tree.Full; c < tree.NumComponents; c++ {
		s := &n.Components[c]
		if s.Device != nil {
			w.add(componentLetters[c], e.slots(c, s.Device))
		}
		if s.Host != nil {
			w.add("host-"+componentLetters[c], formatSlots(s.Host))
		}
		locks[c], hostLocks[c], refs[c] = s.Locks, s.HostLocks, s.SessionRefs
	}
	vector := func(name string, u tree.Units) {
		if u != (tree.Units{}) {
			w.add(name, formatUnits(u))
		}
	}
	vector("locks", locks)
	vector("host-locks", hostLocks)
	w.flag("boundary", n.SWABoundary != 0)
	for c := tree.Full; c < tree.NumComponents; c++ {
		w.flag(c.String()+"-host-boundary", n.Components[c].HostBoundary != 0)
	}
	vector("refs", refs)
	for c := tree.Full; c < tree.NumComponents; c++ {
		for _, id := range n.Components[c].Sessions {
			w.add("frontier-"+c.String(), id)
		}
	}
	if n.WriteThroughPending != 0 {
		w.add("write-through", formatInt64(n.WriteThroughPending))
	}
	if n.LoadBackPending != 0 {
		w.add("load-back", e.node(tree.NodeID(n.LoadBackPending)))
	}
	w.flag("stored", n.Stored)
	w.add("hits", formatInt64(n.Hits))
	if n.Priority != 0 && n.Priority != -1<<63 {
		w.add("priority", formatInt64(n.Priority))
	}
	return w
}

// keyText writes a node's own part of the key: [1..4], for bigrams the raw
// tokens that it spans.
func keyText(n *tree.NodeInfo) string {
	if !n.Bigram {
		return "[" + formatTokens(n.Tokens) + "]"
	}
	return fmt.Sprintf("[%s|%d pairs]", formatTokens(n.Tokens), n.Units)
}
