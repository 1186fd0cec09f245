// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// none is the answer where there is nothing to return.
const none = "none"

// nodesText is nodeList for lists of which nil and empty mean the same.
func (e *Executor) nodesText(list []tree.NodeID) string {
	if len(list) == 0 {
		return none
	}
	return e.nodeList(list)
}

// hostReceipt writes the receipt of a host lock. Where the answer names nodes
// it says only that there is a boundary, as the nodes do.
func (e *Executor) hostReceipt(r tree.Receipt) string {
	var w words
	if e.nameNode == nil {
		w.add("receipt", formatReceipt(r))
		return w.String()
	}
	w.add("anchor", e.node(r.Node))
	if r.Skipped != 0 {
		w.add("skipped", r.Skipped.String())
	}
	w.flag("full-boundary", r.HostBound[tree.Full] != 0)
	w.flag("swa-boundary", r.HostBound[tree.SWA] != 0)
	return w.String()
}

func (e *Executor) transfer(t *tree.Transfer) string {
	w := words{t.Component.String()}
	if t.Device != nil {
		w.add("device", e.slots(t.Component, t.Device))
	}
	if t.Host != nil {
		w.add("host", formatSlots(t.Host))
	}
	if len(t.Nodes) > 0 {
		w.add("nodes", strings.ReplaceAll(e.nodeList(t.Nodes), "] ", "],"))
	}
	if t.Keys != nil {
		w.add("keys", formatDigests(t.Keys))
	}
	return w.String()
}

func (e *Executor) transfers(list []tree.Transfer) string {
	var b strings.Builder
	for i := range list {
		b.WriteString("; " + e.transfer(&list[i]))
	}
	return b.String()
}

func (e *Executor) offload(list []tree.Transfer) string {
	if list == nil {
		return none
	}
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = e.transfer(&list[i])
	}
	return strings.Join(parts, "; ")
}

func (e *Executor) backupSpec(s *tree.BackupSpec) string {
	return "full=" + e.value(tree.Full, s.Full) + e.transfers(s.Aux)
}

func (e *Executor) loadBackSpec(s *tree.LoadBackSpec) string {
	text := e.transfer(&s.Full) + e.transfers(s.Aux)
	if s.Pinned {
		text += "; pinned"
	}
	return text
}

func (e *Executor) dropSubtree(v *tree.Evicted, dropped bool, err error) string {
	if err != nil || dropped {
		return e.evicted(*v, err)
	}
	text := "declined"
	if more := e.evictedText(v); more != "" {
		text += " " + more
	}
	return text
}

func (e *Executor) hostInsert(r *tree.HostInsertResult) string {
	var w words
	w.add("prefix", strconv.Itoa(r.PrefixLen))
	w.add("total", strconv.Itoa(r.TotalLen))
	if r.Node != tree.NoNode {
		w.add("node", e.node(r.Node))
	}
	w.flag("dropped", r.Dropped)
	return w.String() + e.moreActions(r.Actions)
}

func (e *Executor) moreActions(list []tree.Action) string {
	if len(list) == 0 {
		return ""
	}
	return "; " + e.actions(list)
}

func (e *Executor) prefetch(r *tree.PrefetchResult) string {
	var w words
	w.flag("mamba-exist", r.MambaExist)
	if text := e.evicted(tree.Evicted{Frees: r.Frees}, nil); text != "nothing" {
		w = append(w, "back", text)
	}
	if len(w) == 0 {
		w = words{"ok"}
	}
	return w.String() + e.moreActions(r.Actions)
}

func (e *Executor) storageSpec(s *tree.StorageSpec, ok bool) string {
	if !ok {
		return none
	}
	var w words
	w.add("full", e.hostValue(s.Full))
	w.add("tokens", formatTokens(s.Tokens))
	if s.Hashes != nil {
		w.add("hashes", formatDigests(s.Hashes))
	}
	if len(s.Prefix) > 0 {
		w.add("prefix", formatDigests(s.Prefix))
	}
	return w.String() + e.transfers(s.Aux)
}

func (e *Executor) hostValue(s tree.Slots) string {
	if s == nil {
		return "absent"
	}
	return formatSlots(s)
}

func (e *Executor) bufferSnapshot(s *tree.BufferSnapshot, ok bool) string {
	if !ok {
		return none
	}
	var w words
	w.add("node", e.node(s.Node))
	w = append(w, e.bufferParent(s.Parent, s.ParentIsRoot, s.HasParent, s.ParentHash)...)
	w.add("hashes", formatDigests(s.Hashes))
	w.add("tokens", formatTokens(s.Key.Tokens))
	if ns := s.Key.Namespace; ns.HasExtraKey || ns.ExtraKey != "" || ns.Salt != "" {
		w = append(w, namespaceText(ns))
	}
	w.flag("bigram", s.Key.Bigram)
	w.add("units", strconv.Itoa(s.Units))
	if len(s.Prefix) > 0 {
		w.add("prefix", formatDigests(s.Prefix))
	}
	return w.String()
}

func (e *Executor) bufferState(s *tree.BufferState, ok bool) string {
	if !ok {
		return none
	}
	return e.bufferParent(s.Parent, s.ParentIsRoot, s.HasParent, s.ParentHash).String()
}

func (e *Executor) bufferParent(parent tree.NodeID, isRoot, has bool, hash tree.Digest) words {
	var w words
	w.add("parent", e.node(parent))
	w.flag("parent-is-root", isRoot)
	if has {
		w.add("parent-hash", hash.String())
	}
	return w
}
