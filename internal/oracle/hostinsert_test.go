// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// prefetch grafts tokens first..last below the anchor, with a window of SWA
// pages if swaPages > 0.
func (r *rig) prefetch(anchor tree.NodeID, first, last, swaPages, found int) (tree.HostInsertResult, tree.PrefetchResult) {
	r.t.Helper()
	inserted, err := r.InsertHost(tree.HostInsertParams{Anchor: anchor, Key: key(first, -last), Slots: r.hostSlots(last - first + 1)})
	r.ok(err)
	r.sane()
	commit := tree.PrefetchCommit{Anchor: anchor, Inserted: inserted}
	if swaPages > 0 {
		commit.Aux = []tree.Transfer{{Component: tree.SWA, Host: tree.Numbered(100, swaPages*r.page)}}
		commit.Found[tree.SWA] = found
	}
	result, err := r.CommitPrefetch(commit)
	r.ok(err)
	r.sane()
	return inserted, result
}

func TestPrefetchWindow(t *testing.T) {
	anchored := func() (*rig, tree.NodeID) {
		r := hostRig(t, withSWA(4, 8), false)
		a := r.chain(4)[0]
		r.backup(a)
		return r, a
	}
	r := hostRig(t, withSWA(4, 8), false)
	inserted, result := r.prefetch(r.Root(), 1, 4, 1, 1)
	r.equal("X-PF-5", []any{inserted.PrefixLen, inserted.TotalLen, inserted.Dropped, result.Frees.Empty()}, []any{0, 4, false, true})
	r.looks("1..4 F=-/5000..5003 S=-/100..103")
	r.equal("lists and leaves", []any{r.hostOrder(tree.SWA), r.IsHostEvictableLeaf(inserted.Node)}, []any{ids(inserted.Node), true})

	r, a := anchored()
	inserted, result = r.prefetch(a, 5, 8, 1, 1)
	r.equal("X-PF-6", []any{r.nodes[inserted.Node].backedUp(), r.nodes[inserted.Node].host[tree.SWA] == nil, result.Frees.Host[tree.SWA]}, []any{true, true, slots(100, -103)})

	r, a = anchored()
	inserted, result = r.prefetch(a, 5, 20, 2, 2)
	upper := r.node(5, -12)
	r.equal("X-PF-9", []string{r.hostValue(upper, tree.SWA), r.hostValue(inserted.Node, tree.SWA)}, []string{"-", "100..107"})
	r.equal("X-PF-9", []any{len(r.nodes[inserted.Node].key), result.Frees.Empty(), r.hostOrder(tree.SWA)}, []any{8, true, ids(inserted.Node)})

	for _, has := range []bool{false, true} {
		r, a = anchored()
		older, _ := r.prefetch(a, 5, 16, 0, 0)
		if has {
			r.match(key(1, -12, 99, 99, 99, 99)) // splits at 8
			r.setHost(older.Node, tree.SWA)
		}
		inserted, result = r.prefetch(a, 5, 20, 2, 2)
		r.equal("X-PF-10", []any{inserted.PrefixLen, inserted.TotalLen, r.hostValue(inserted.Node, tree.SWA)}, []any{12, 16, "104..107"})
		if has {
			r.equal("X-PF-10", result.Frees.Host[tree.SWA], slots(100, -103))
			continue
		}
		r.equal("X-PF-10", []any{r.hostValue(older.Node, tree.SWA), len(r.nodes[older.Node].key), result.Frees.Empty()}, []any{"100..103", 4, true})
		r.equal("in the order of the walk", r.hostOrder(tree.SWA), ids(older.Node, inserted.Node))
	}

	r, a = anchored() // a part above the anchor
	_, result = r.prefetch(a, 5, 8, 2, 2)
	r.equal("above the anchor", result.Frees.Host[tree.SWA], slots(100, -103))
	r, a = anchored()
	_, result = r.prefetch(a, 5, 20, 2, 1)
	r.equal("not all pages found", result.Frees.Host[tree.SWA].Len(), 8)
}

func TestRefillUnderUnbackedParent(t *testing.T) { // PF-27
	for _, writeBack := range []bool{false, true} {
		r := hostRig(t, withSWA(4, 8), writeBack)
		a := r.chain(8)[0]
		inserted, result := r.prefetch(r.Root(), 1, 12, 3, 3)
		if writeBack {
			r.equal("X-PF-17", []any{inserted.Dropped, inserted.PrefixLen, r.nodes[inserted.Node].parent.id}, []any{false, 8, a})
			r.equal("aux is attached to device-only nodes, too", r.hostValue(a, tree.SWA), "100..107")
			continue
		}
		r.equal("X-PF-16", inserted, tree.HostInsertResult{PrefixLen: 8, TotalLen: 12, Dropped: true})
		r.equal("X-PF-16", result.Frees.Host[tree.SWA].Len(), 12)
		inserted, err := r.InsertHost(tree.HostInsertParams{Anchor: r.Root(), Key: key(1, -4, 99, 98, 97, 96), Slots: r.hostSlots(8)})
		r.ok(err)
		r.sane()
		r.equal("splits stay", []any{inserted.Dropped, inserted.PrefixLen, len(r.nodes[a].key)}, []any{true, 4, 4})
	}
}

func TestInsertHost(t *testing.T) {
	options := full(2)
	options.Eagle = true
	r := hostRig(t, options, false)
	insert := func(p tree.HostInsertParams) tree.HostInsertResult {
		t.Helper()
		result, err := r.InsertHost(p)
		r.ok(err)
		r.sane()
		return result
	}
	other := tree.Namespace{Salt: "x"}
	first := insert(tree.HostInsertParams{Anchor: r.Root(), Key: tree.Key{Tokens: key(1, -6).Tokens, Namespace: other}, Slots: slots(10, -19)})
	n := r.nodes[first.Node]
	r.equal("bigrams, cut to pages", []any{first.TotalLen, len(n.key), r.hostValue(n.id, tree.Full), n.hits, n.priority}, []any{4, 4, "10..13", int64(0), r.root.priority})
	again := insert(tree.HostInsertParams{Anchor: r.Root(), Key: tree.Key{Tokens: key(1, 2, 3).Tokens, Namespace: other}, Slots: slots(20, 21)})
	r.equal("an inner end", again, tree.HostInsertResult{PrefixLen: 2, TotalLen: 2, Node: n.parent.id})
	r.equal("empty", insert(tree.HostInsertParams{Anchor: n.id, Key: tree.Key{Namespace: other}, Slots: tree.Slots{}}), tree.HostInsertResult{Node: n.id})
	r.equal("empty at the root", insert(tree.HostInsertParams{Anchor: r.Root(), Slots: tree.Slots{}}), tree.HostInsertResult{})
	deeper := insert(tree.HostInsertParams{Anchor: n.id, Key: tree.Key{Tokens: key(6, 7, 8).Tokens, Namespace: other}, Slots: slots(30, 31)})
	r.equal("below an anchor", r.nodes[deeper.Node].parent.id, n.id)

	for name, p := range map[string]tree.HostInsertParams{
		"namespace":     {Anchor: n.id, Key: key(6, 7, 8), Slots: slots(1, 2)},
		"no slots":      {Anchor: r.Root(), Key: key(6, 7, 8)},
		"too few slots": {Anchor: r.Root(), Key: key(6, 7, 8), Slots: slots(1)},
		"wrong hashes":  {Anchor: r.Root(), Key: key(6, 7, 8), Slots: slots(1, 2), Hashes: make([]tree.Digest, 2)},
		"opaque":        {Anchor: r.Root(), Key: key(6, 7, 8), Slots: tree.Slots{{Buffer: 1, Length: 2}}},
	} {
		_, err := r.InsertHost(p)
		fails[*tree.ArgumentError](r, name, err)
	}
	_, err := r.InsertHost(tree.HostInsertParams{Anchor: 999})
	fails[*tree.NodeAccessError](r, "stale", err)
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, HostBufferOnly: true, WriteThroughThreshold: 1}))
	_, err = r.InsertHost(tree.HostInsertParams{Anchor: r.Root()})
	fails[*tree.OrderError](r, "buffer only", err)
}

func TestInsertHostHashes(t *testing.T) { // ST-3, PF-25
	r := hostRig(t, full(2), false)
	given := []tree.Digest{{1}, {2}, {3}}
	inserted, err := r.InsertHost(tree.HostInsertParams{Anchor: r.Root(), Key: key(1, -6), Slots: slots(1, -6), Hashes: given})
	r.ok(err)
	r.match(key(1, 2, 99, 99))
	prefix := r.node(1, 2)
	r.equal("a split divides the list", [][]tree.Digest{r.hashes(r.nodes[prefix]), r.hashes(r.nodes[inserted.Node])}, [][]tree.Digest{given[:1], given[1:]})
	more, err := r.InsertHost(tree.HostInsertParams{Anchor: prefix, Key: key(3, -8), Slots: slots(1, -6), Hashes: []tree.Digest{{2}, {3}, {4}}})
	r.ok(err)
	r.equal("only the rest is new", r.hashes(r.nodes[more.Node]), []tree.Digest{{4}})
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, Storage: true, WriteThroughThreshold: 99}))
	plain, err := r.InsertHost(tree.HostInsertParams{Anchor: r.Root(), Key: key(1, 2, 11, 12), Slots: slots(1, -4)})
	r.ok(err)
	r.sane()
	r.equal("hashed on the parent's last", len(r.hashes(r.nodes[plain.Node])), 1)
	r.equal("all have lists", r.BackfillHashes(), 0)
}

func TestPrefetchMamba(t *testing.T) { // PF-28
	r := hostRig(t, withMamba(1, 1), false)
	inserted, err := r.InsertHost(tree.HostInsertParams{Anchor: r.Root(), Key: key(1, -4), Slots: slots(1, -4)})
	r.ok(err)
	commit := func(found int, id tree.NodeID) tree.PrefetchResult {
		result, err := r.CommitPrefetch(tree.PrefetchCommit{
			Anchor:   r.Root(),
			Inserted: tree.HostInsertResult{Node: id},
			Aux:      []tree.Transfer{{Component: tree.Mamba, Host: slots(70)}},
			Found:    [3]int{tree.Mamba: found},
		})
		r.ok(err)
		r.sane()
		return result
	}
	refused := tree.PrefetchResult{MambaExist: true, Frees: tree.Frees{Host: [3]tree.Slots{tree.Mamba: slots(70)}}}
	r.equal("not found", commit(0, inserted.Node), refused)
	r.equal("no target", commit(1, tree.NoNode), refused)
	r.equal("taken", commit(1, inserted.Node), tree.PrefetchResult{})
	r.equal("list", r.hostOrder(tree.Mamba), ids(inserted.Node))
	r.equal("has one", commit(1, inserted.Node), refused)

	for name, p := range map[string]tree.PrefetchCommit{
		"two":            {Aux: []tree.Transfer{{Component: tree.Mamba}, {Component: tree.Mamba}}},
		"not configured": {Aux: []tree.Transfer{{Component: tree.SWA}}},
		"root":           {Inserted: tree.HostInsertResult{Node: r.Root()}},
	} {
		p.Anchor = r.Root()
		_, err := r.CommitPrefetch(p)
		fails[*tree.ArgumentError](r, name, err)
	}
	for name, p := range map[string]tree.PrefetchCommit{
		"anchor": {Anchor: 999},
		"target": {Anchor: r.Root(), Inserted: tree.HostInsertResult{Node: 999}},
		"nodes":  {Anchor: r.Root(), Aux: []tree.Transfer{{Component: tree.Mamba, Nodes: ids(999)}}},
	} {
		_, err := r.CommitPrefetch(p)
		fails[*tree.NodeAccessError](r, name, err)
	}
}
