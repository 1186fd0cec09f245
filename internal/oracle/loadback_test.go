// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// twoTiers builds a path of backed-up nodes; the last one is demoted.
func twoTiers(t *testing.T, options tree.Options, writeBack bool, lengths ...int) (*rig, []tree.NodeID) {
	r := hostRig(t, options, writeBack)
	n := r.chain(lengths...)
	r.backup(n...)
	r.demote(n[len(n)-1])
	return r, n
}

func TestLoadBackFull(t *testing.T) {
	options := full(1)
	options.Events = true
	r, n := twoTiers(t, options, false, 20, 12)
	m := r.match(key(1, -32))
	r.equal("match", []any{m.BestNode, m.LastDeviceNode, m.HostHitLen}, []any{n[1], n[0], 12})
	l := r.build(n[1])
	r.equal("X-LB-4: the delta", l.delta, 20)
	r.TakeEvents()
	r.commit(l)
	r.equal("X-LB-1", []any{l.spec.Full.Host.Len(), l.spec.Full.Nodes, len(l.actions)}, []any{12, n[1:], 0})
	r.equal("X-LB-1", []any{r.nodes[n[1]].device[tree.Full] != nil, r.nodes[n[1]].backedUp()}, []any{true, true})
	events := r.TakeEvents()
	r.equal("stored", []any{len(events), events[0].Kind, events[0].Medium, len(events[0].Blocks)}, []any{1, tree.BlockStored, tree.MediumDevice, 12})
	r.equal("before the ack", r.HostDuplicates(), n[:1])
	r.match(key(1, -25, 99)) // X-LB-13: splits B at 5
	r.acked(l)
	prefix := r.node(21, -25)
	r.equal("X-LB-13", r.HostDuplicates(), ids(n[0], prefix, n[1]))
	r.equal("X-LB-13", r.sizes(tree.Full), "32/0")

	for name, length := range map[string]int{"X-LB-2": 9, "X-LB-9, X-LB-10: given up": 12} {
		r, n = twoTiers(t, full(1), false, 20, length)
		before := r.shape()
		l = r.build(n[1])
		r.equal(name, []int{l.spec.Full.Host.Len(), len(l.spec.Aux)}, []int{length, 0})
		r.giveUp(l)
		r.equal(name, []any{r.shape(), r.nodes[n[1]].hostLocks}, []any{before, [3]int{}})
	}

	r, n = twoTiers(t, full(1), false, 20, 12) // X-LB-5
	request := r.lock(n[0])
	l = r.build(n[1])
	r.equal("X-LB-5", l.delta, 0)
	r.giveUp(l)
	r.unlock(request, false)

	for name, elsewhere := range map[string]int{"X-LB-6": 8, "X-LB-7": 7} {
		r, n = twoTiers(t, full(1), false, 20, 12)
		r.insert(tree.InsertParams{Key: key(101, -(100 + elsewhere))})
		l = r.build(n[1])
		total, _ := r.evict(tree.Full, 8)
		r.equal(name, total.Freed[tree.Full], elsewhere)
		if elsewhere < 8 {
			r.giveUp(l)
			r.equal(name, r.sizes(tree.Full), "20/0")
			continue
		}
		r.commit(l)
		r.acked(l)
		r.equal(name, r.sizes(tree.Full), "32/0")
	}
}

func TestLoadBackAux(t *testing.T) {
	r, n := twoTiers(t, withSWA(1, 4), false, 4, 3)
	l := r.build(n[1])
	r.equal("X-LB-3", []any{l.spec.Full.Host.Len(), l.spec.Aux[0].Host.Len(), l.spec.Aux[0].Nodes}, []any{3, 3, n[1:]})
	r.commit(l)
	r.equal("LB-17", l.actions, []tree.Action{tree.RebuildFullToSWAMapping{
		Full: runs(r.nodes[n[1]].device[tree.Full]), SWA: runs(r.nodes[n[1]].device[tree.SWA]),
	}})
	r.equal("lists", []any{r.hostOrder(tree.SWA), r.order(tree.SWA)[0]}, []any{ids(), n[1]})
	r.acked(l)

	r = hostRig(t, withMamba(1, 1), false) // X-LB-8
	a := r.chain(4)[0]
	r.backup(a)
	r.dropValue(r.nodes[a], tree.Mamba)
	r.equal("host only", r.hostOrder(tree.Mamba), ids(a))
	l = r.build(a)
	r.equal("X-LB-8", l.spec, tree.LoadBackSpec{
		Full: tree.Transfer{Component: tree.Full, Host: tree.Slots{}},
		Aux:  []tree.Transfer{{Component: tree.Mamba, Host: runs(r.nodes[a].host[tree.Mamba]), Nodes: ids(a)}},
	})
	r.commit(l)
	r.equal("LB-18", []any{r.hostOrder(tree.Mamba), r.order(tree.Mamba), len(l.actions)}, []any{ids(), ids(a), 0})
	r.acked(l)

	for window, want := range map[int][]tree.NodeID{6: ids(2), 4: nil} { // X-LB-11, X-LB-12
		r = hostRig(t, withSWA(4, window), false)
		n = r.chain(4, 4)
		r.setHost(n[0], tree.Full, tree.SWA)
		r.dropValue(r.nodes[n[0]], tree.SWA)
		spec, err := r.BuildLoadBackSpec(n[1])
		r.ok(err)
		var got []tree.NodeID
		for _, t := range spec.Aux {
			got = t.Nodes
		}
		r.equal("X-LB-11, X-LB-12", got, want)
	}
	r.nodes[n[1]].device[tree.SWA] = nil
	_, err := r.BuildLoadBackSpec(n[1])
	fails[*tree.InternalError](r, "a gap in the window", err)
}

func TestLoadBackMarks(t *testing.T) {
	r, n := twoTiers(t, full(1), true, 4, 12) // X-LB-14
	l := r.build(n[1])
	r.commit(l)
	r.equal("marked", r.nodes[n[1]].loadPending, int64(n[1]))
	r.equal("X-LB-14", []any{r.evictHost(tree.Full, 99).Freed, r.nodes[n[1]].backedUp()}, []any{tree.Units{4}, true})
	m := r.match(key(1, -10, 99))
	prefix := r.node(5, -10)
	r.equal("a fragment carries the mark", []any{m.LastDeviceNode, r.nodes[prefix].loadPending}, []any{prefix, int64(n[1])})
	r.acked(l)
	r.equal("registered from below", r.HostDuplicates(), ids(n[1], prefix))
	r.equal("cleared", []int64{r.nodes[n[1]].loadPending, r.nodes[prefix].loadPending}, []int64{0, 0})

	r, n = twoTiers(t, withSWA(1, 4), true, 4, 2, 2) // another anchor's mark
	r.demote(n[1])
	first := r.build(n[1])
	r.commit(first)
	r.equal("the window above it too", r.nodes[n[0]].loadPending, int64(0))
	r.demoteUnderway(n[1])
	second := r.build(n[2])
	r.equal("pinned", second.spec, tree.LoadBackSpec{Full: tree.Transfer{Component: tree.Full, Host: tree.Slots{}}, Pinned: true})
	spec := tree.LoadBackSpec{Full: tree.Transfer{Component: tree.Full, Nodes: n[1:]}}
	_, err := r.CommitLoadBack(n[2], slots(1, -4), spec)
	fails[*tree.OrderError](r, "LB-15", err)
	r.equal("nothing changed", []int64{r.nodes[n[1]].loadPending, r.nodes[n[2]].loadPending}, []int64{int64(n[1]), 0})
}

// demoteUnderway takes a node off the device whatever holds it.
func (r *rig) demoteUnderway(id tree.NodeID) {
	r.dropValue(r.nodes[id], tree.SWA)
	r.dropValue(r.nodes[id], tree.Full)
}

func TestLoadBackErrors(t *testing.T) {
	r, n := twoTiers(t, withAll(1, 4, 1), false, 4, 2, 2)
	r.demote(n[1])
	before := r.shape()
	fullOf := func(nodes ...tree.NodeID) tree.Transfer {
		return tree.Transfer{Component: tree.Full, Nodes: nodes}
	}
	aux := func(c tree.Component, device tree.Slots, nodes ...tree.NodeID) []tree.Transfer {
		return []tree.Transfer{{Component: c, Device: device, Nodes: nodes}}
	}
	for name, c := range map[string]struct {
		full tree.Slots
		spec tree.LoadBackSpec
	}{
		"too few slots":      {slots(1, 2), tree.LoadBackSpec{Full: fullOf(n[1:]...)}},
		"too many slots":     {slots(1, -5), tree.LoadBackSpec{Full: fullOf(n[1:]...)}},
		"parent not loaded":  {slots(1, 2), tree.LoadBackSpec{Full: fullOf(n[2])}},
		"wrong order":        {slots(1, -4), tree.LoadBackSpec{Full: fullOf(n[2], n[1])}},
		"on the device":      {slots(1, -4), tree.LoadBackSpec{Full: fullOf(n[0])}},
		"root":               {nil, tree.LoadBackSpec{Full: fullOf(r.Root())}},
		"twice":              {slots(1, -4), tree.LoadBackSpec{Full: fullOf(n[1], n[1])}},
		"swa: lengths":       {slots(1, 2), tree.LoadBackSpec{Full: fullOf(n[1]), Aux: aux(tree.SWA, slots(1), n[1])}},
		"swa: on the device": {nil, tree.LoadBackSpec{Aux: aux(tree.SWA, slots(1, -4), n[0])}},
		"swa: full is not":   {nil, tree.LoadBackSpec{Aux: aux(tree.SWA, slots(1, 2), n[1])}},
		"mamba: no state":    {slots(1, 2), tree.LoadBackSpec{Full: fullOf(n[1]), Aux: aux(tree.Mamba, nil, n[1])}},
		"mamba: has one":     {nil, tree.LoadBackSpec{Aux: aux(tree.Mamba, slots(1), n[0])}},
		"full as aux":        {nil, tree.LoadBackSpec{Aux: aux(tree.Full, slots(1), n[0])}},
	} {
		_, err := r.CommitLoadBack(n[2], c.full, c.spec)
		fails[*tree.ArgumentError](r, name, err)
	}
	_, err := r.CommitLoadBack(n[2], nil, tree.LoadBackSpec{Aux: aux(tree.SWA, nil, 999)})
	fails[*tree.NodeAccessError](r, "stale", err)
	fails[*tree.NodeAccessError](r, "stale", r.FinishLoadBack(999))
	r.equal("nothing changed", r.shape(), before)
	spec, err := r.BuildLoadBackSpec(r.Root())
	r.ok(err)
	r.equal("root", spec, tree.LoadBackSpec{Full: tree.Transfer{Component: tree.Full, Host: tree.Slots{}}})
	r.ok(r.FinishLoadBack(r.Root()))
	l := r.build(n[2])
	r.equal("root side first", []any{l.spec.Full.Nodes, l.spec.Aux[0].Nodes, l.spec.Aux[1].Nodes}, []any{n[1:], n[1:], n[2:]})
	r.commit(l)
	r.acked(l)
	r.equal("registered", r.HostDuplicates(), ids(n[0], n[2], n[1]))
}
