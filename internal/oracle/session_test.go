// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"testing"

	"github.com/treecore/treecore/tree"
)

func sessionRig(t *testing.T, options tree.Options) *rig {
	options.Sessions = true
	return newRig(t, options)
}

func (r *rig) register(id string, last tree.NodeID) {
	r.t.Helper()
	r.ok(r.RegisterSession(id, r.EnsureSession(id), last))
	r.sane()
}

func (r *rig) release(id string) {
	r.t.Helper()
	r.ReleaseSession(id)
	r.sane()
}

func TestSessionGenerations(t *testing.T) {
	r := sessionRig(t, full(1)) // X-SR-1
	r.add(1, -4)
	leaf := r.at(1, -4)
	r.register("s", leaf.id)
	r.equal("X-SR-1", leaf.refs[tree.Full], 1)
	r.release("s")
	r.equal("X-SR-1", leaf.refs[tree.Full], 0)

	r = sessionRig(t, full(1)) // X-SR-2
	r.add(1, -4)
	leaf = r.at(1, -4)
	r.equal("generation", r.OpenSession("s"), int64(1))
	r.release("s")
	r.ok(r.RegisterSession("s", 1, 999)) // closed: the node is not looked at (SR-4)
	r.equal("generation", r.OpenSession("s"), int64(2))
	r.ok(r.RegisterSession("s", 1, leaf.id))
	r.equal("X-SR-2", leaf.refs[tree.Full], 0)
	fails[*tree.NodeAccessError](r, "stale node", r.RegisterSession("s", 2, 999))
	r.ok(r.RegisterSession("s", 2, r.Root()))
	r.ok(r.RegisterSession("", 2, leaf.id))
	r.equal("nothing", leaf.refs[tree.Full], 0)
	r.Reset()
	r.equal("SR-6", r.OpenSession("s"), int64(1))

	r = sessionRig(t, full(1)) // X-SR-7
	r.OpenSession("first")
	r.ReleaseSession("first")
	for i := range closedSessions {
		if i == closedSessions-1 {
			r.equal("still closed", r.isClosed("first"), true)
		}
		r.ReleaseSession(fmt.Sprint("other", i))
	}
	r.equal("forgotten", r.isClosed("first"), false)
	r.add(1)
	r.ok(r.RegisterSession("first", 1, r.node(1)))
	r.equal("X-SR-7", r.at(1).refs[tree.Full], 0)
	r.equal("X-SR-7", r.EnsureSession("first"), int64(2))
	r.equal("X-SR-7", r.EnsureSession("first"), int64(2))

	r = newRig(t, full(1)) // the feature is off
	r.add(1)
	r.equal("SR-2", r.OpenSession("s"), int64(1))
	r.ok(r.RegisterSession("s", 1, 999))
	r.register("s", r.node(1))
	r.equal("SR-4", r.at(1).refs[tree.Full], 0)
}

func TestSessionFull(t *testing.T) {
	r := sessionRig(t, full(1)) // X-SR-3
	r.add(1, -4)
	r.register("s", r.node(1, -4))
	r.add(7, -9)
	r.evict(tree.Full, 3)
	r.looks("1..4 F=1..4")

	build := func() (r *rig, a, b *node) { // X-SR-4
		r = sessionRig(t, full(1))
		r.add(1, -4)
		a = r.at(1, -4)
		r.register("s", a.id)
		r.add(1, -8)
		b = r.at(5, -8)
		r.register("s", b.id)
		r.equal("growth", []int{a.refs[0], b.refs[0]}, []int{1, 1})
		r.equal("frontier", sortedKeys(r.frontiers[tree.Full]["s"]), []tree.NodeID{b.id})
		return r, a, b
	}
	r, a, b := build() // X-SR-5 without C
	_, err := r.EvictLeaf(b.id, false)
	r.ok(err)
	r.sane()
	r.equal("X-SR-5", []any{a.refs[0], a.marks[0]["s"]}, []any{1, true})

	r, a, b = build()
	r.add(1, -4, 9)
	c := r.at(9)
	r.register("s", c.id)
	r.equal("branch", []int{a.refs[0], b.refs[0], c.refs[0]}, []int{2, 1, 1})
	r.equal("frontier", sortedKeys(r.frontiers[tree.Full]["s"]), []tree.NodeID{b.id, c.id})
	r.equal("mark", a.marks[0]["s"], false)
	_, err = r.EvictLeaf(b.id, false)
	r.ok(err)
	r.sane()
	r.equal("X-SR-5", []any{a.refs[0], a.marks[0]["s"]}, []any{2, true})

	r = sessionRig(t, full(1)) // X-SR-11
	r.add(12)                  // y, the oldest
	r.add(13)                  // z
	r.add(11)                  // x, the newest
	r.register("s1", r.node(12))
	r.register("s1", r.node(13))
	r.register("s2", r.node(13))
	r.equal("X-SR-11", r.victims(3), []string{"11", "12", "13"})
}

func TestSessionSWA(t *testing.T) {
	r := sessionRig(t, withSWA(1, 4)) // X-SR-6
	for _, end := range []int{3, 6, 9} {
		r.insert(tree.InsertParams{Key: key(1, -end), PrevPrefixLen: end})
	}
	a, b, c := r.at(1, -3), r.at(4, -6), r.at(7, -9)
	r.register("s", c.id)
	r.equal("X-SR-6", []int{a.refs[1], b.refs[1], c.refs[1]}, []int{0, 1, 1})
	r.equal("covered", r.frontiers[tree.SWA]["s"][c.id], 6)
	r.match(key(1, -4))
	r.equal("split", []int{r.at(4).refs[1], b.refs[1]}, []int{1, 1})
	r.release("s")
	for _, n := range r.preorder() {
		r.equal("released", n.refs, [3]int{})
	}

	r = sessionRig(t, withSWA(4, 6)) // X-SR-9
	for _, end := range []int{4, 8, 16} {
		r.insert(tree.InsertParams{Key: key(1, -end), PrevPrefixLen: end})
	}
	a, b, c = r.at(1, -4), r.at(5, -8), r.at(9, -16)
	r.register("s", c.id)
	r.equal("X-SR-9", []int{a.refs[1], b.refs[1], c.refs[1]}, []int{0, 1, 1})
	r.equal("covered", r.frontiers[tree.SWA]["s"][c.id], 12)

	r = sessionRig(t, withSWA(1, 4)) // X-SR-10
	for i := 4; i >= 1; i-- {
		r.add(i)
	}
	ids := []tree.NodeID{r.node(1), r.node(2), r.node(3), r.node(4)} // a, b, c, d
	r.register("b", ids[1])
	r.register("a", ids[0])
	r.equal("partitions", r.order(tree.SWA), ids)
	r.release("b")
	r.equal("X-SR-10", r.order(tree.SWA), ids)
	r.equal("referenced", []bool{r.at(1).refs[1] > 0, r.at(2).refs[1] > 0}, []bool{true, false})
	_, leaves := r.evict(tree.SWA, 4)
	r.equal("X-SR-10 victims", leaves, []tree.NodeID{ids[3], ids[2], ids[1], ids[0]})
}

func TestSessionFrontierOfWindow(t *testing.T) { // SR-7
	r := sessionRig(t, withSWA(1, 4))
	r.insert(tree.InsertParams{Key: key(1, -3)})
	r.insert(tree.InsertParams{Key: key(1, -6), PrevPrefixLen: 3})
	r.insert(tree.InsertParams{Key: key(1, -8), PrevPrefixLen: 6, SWAEvictedLen: 8})
	a, b, c := r.at(1, -3), r.at(4, -6), r.at(7, 8)
	r.register("s", c.id) // c is a gap; b counts 3, a 6
	r.equal("frontier", sortedKeys(r.frontiers[tree.SWA]["s"]), []tree.NodeID{a.id})
	r.equal("counts", []int{a.refs[1], b.refs[1], c.refs[1]}, []int{1, 0, 0})
	r.equal("full frontier", sortedKeys(r.frontiers[tree.Full]["s"]), []tree.NodeID{c.id})
}

func TestSessionMambaWalk(t *testing.T) { // X-SR-8
	r := sessionRig(t, withMamba(1, 1))
	r.insert(tree.InsertParams{Key: key(1, -4), MambaState: slots(70)})
	r.register("s", r.node(1, -4))
	x := r.at(1, -4)
	x.refs[tree.Mamba] = 0 // no call makes this state on a lone leaf
	r.ok(r.EvictStart(tree.Mamba, 1))
	step, err := r.EvictNext(tree.Mamba, tree.Units{})
	r.ok(err)
	r.equal("X-SR-8", step, tree.EvictStep{MadeProgress: true, Evicted: tree.Evicted{
		Freed: tree.Units{tree.Mamba: 1}, Frees: tree.Frees{Device: [3]tree.Slots{nil, nil, slots(70)}},
	}})
	r.looks("1..4 F=1..4 M=-")

	// By calls alone: the session's Mamba frontier moves down with the state,
	// and the leaf above stays referenced by Full only after a branch died.
	r = sessionRig(t, withMamba(1, 1))
	r.insert(tree.InsertParams{Key: key(1, -4), MambaState: slots(70)})
	r.register("s", r.node(1, -4))
	r.insert(tree.InsertParams{Key: key(1, -8), MambaState: slots(71), PrevPrefixLen: 4})
	r.register("s", r.node(5, -8))
	a, b := r.at(1, -4), r.at(5, -8)
	r.equal("mamba", []int{a.refs[2], b.refs[2], a.refs[0], b.refs[0]}, []int{0, 1, 1, 1})
	total, leaves := r.evict(tree.Mamba, 1)
	r.equal("the internal one", []any{total.Freed, len(leaves)}, []any{tree.Units{tree.Mamba: 1}, 0})
	total, leaves = r.evict(tree.Mamba, 1) // b's own reference is > 0 (SR-21)
	r.equal("the leaf", []any{total.Freed, leaves}, []any{tree.Units{4, 0, 1}, []tree.NodeID{b.id}})
	r.equal("fallback", []any{a.marks[0]["s"], a.refs[0], len(r.frontiers[tree.Mamba])}, []any{true, 1, 0})
}

func TestSessionMark(t *testing.T) { // SR-20
	r := sessionRig(t, withMamba(1, 1))
	for i := 1; i <= 4; i++ {
		r.insert(tree.InsertParams{Key: key(i), MambaState: slots(70 + i)})
	}
	ids := []tree.NodeID{r.node(1), r.node(2), r.node(3), r.node(4)}
	r.ok(r.EvictStart(tree.Mamba, 9))
	visit := func(want tree.NodeID) {
		t.Helper()
		step, err := r.EvictNext(tree.Mamba, tree.Units{})
		r.ok(err)
		r.equal("visit", step.Node, want)
		r.sane()
	}
	visit(ids[0])
	r.register("s", ids[0]) // 1 goes to the front; the walk does not skip 2
	visit(ids[1])
	r.match(key(4)) // moves 4 to the front of the unreferenced: it stays due
	visit(ids[2])
	visit(ids[3])
	visit(ids[0])
	visit(tree.NoNode)
	r.ok(r.EvictEnd(tree.Mamba))
	r.equal("list", r.order(tree.Mamba), []tree.NodeID{ids[0], ids[3], ids[2], ids[1]})
	r.sane()
}
