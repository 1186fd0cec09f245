// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// victims evicts n units of Full and returns the tokens of the leaves that went,
// in order.
func (r *rig) victims(n int) []string {
	r.t.Helper()
	names := map[tree.NodeID]string{}
	for _, node := range r.preorder() {
		names[node.id] = span(r.rawTokens(node.key))
	}
	_, leaves := r.evict(tree.Full, n)
	var list []string
	for _, id := range leaves {
		list = append(list, names[id])
	}
	return list
}

func (r *rig) add(tokens ...int) { r.t.Helper(); r.insert(tree.InsertParams{Key: key(tokens...)}) }

func policyOf(name string, params map[string]int) tree.Options {
	return tree.Options{Policy: tree.PolicyOptions{Name: name, Params: params}}
}

func TestEvictFull(t *testing.T) {
	t.Run("X-E-1", func(t *testing.T) {
		r := newRig(t, tree.Options{Events: true})
		r.add(1, 2)
		r.add(7, 8)
		r.match(key(7, 8))
		r.TakeEvents()
		a := r.node(1, 2)
		total, leaves := r.evict(tree.Full, 2)
		r.equal("leaves", leaves, []tree.NodeID{a})
		r.equal("totals", []any{total.Freed, total.Unbacked}, []any{tree.Units{2}, 2})
		r.equal("frees", total.Frees.Device[tree.Full], slots(1, 2))
		events := r.TakeEvents()
		r.equal("events", []any{len(events), events[0].Kind}, []any{1, tree.BlockRemoved})
	})
	t.Run("X-E-2", func(t *testing.T) {
		r := newRig(t, full(1))
		r.add(1, 2)
		r.add(1, -4)
		r.add(1, -6)
		r.equal("victims", r.victims(5), []string{"5..6", "3..4", "1..2"})
	})
	t.Run("X-E-3", func(t *testing.T) {
		r := newRig(t, full(1))
		r.add(1)
		r.add(1, 2)
		r.add(1, 3)
		r.lock(r.node(3))
		r.equal("victims", r.victims(100), []string{"2"})
	})
	t.Run("X-E-4", func(t *testing.T) {
		r := newRig(t, full(1))
		r.add(1)
		r.add(1, 2)
		receipt := r.lock(r.node(1))
		r.equal("victims", r.victims(100), []string{"2"})
		r.equal("leaf", r.IsDeviceEvictableLeaf(receipt.Node), false)
		r.unlock(receipt, false)
		r.equal("leaf", r.IsDeviceEvictableLeaf(receipt.Node), true)
	})
	t.Run("no second visit", func(t *testing.T) { // E-9, E-13
		r := newRig(t, full(1))
		r.add(1)
		r.add(2)
		r.ok(r.EvictStart(tree.Full, 9))
		for _, want := range []tree.NodeID{r.node(1), r.node(2), tree.NoNode} {
			step, err := r.EvictNext(tree.Full, tree.Units{})
			r.ok(err)
			r.equal("node", step.Node, want)
		}
		r.ok(r.EvictEnd(tree.Full))
	})
}

func TestEvictPolicies(t *testing.T) {
	t.Run("X-E-5", func(t *testing.T) {
		r := newRig(t, policyOf("priority", nil))
		r.insert(tree.InsertParams{Key: key(1, 2), Priority: 10})
		r.add(7, 8)
		r.equal("victims", r.victims(2), []string{"7..8"})
	})
	t.Run("X-E-6", func(t *testing.T) {
		r := newRig(t, policyOf("slru", nil))
		r.add(2)
		r.add(2)
		r.add(1)
		r.equal("victims", r.victims(1), []string{"1"})

		r = newRig(t, policyOf("lfu", nil))
		r.add(1)
		r.add(1)
		r.add(1) // three hits, the oldest
		r.add(3)
		r.add(2)
		r.equal("victims", r.victims(3), []string{"3", "2", "1"})
	})
	t.Run("X-E-7", func(t *testing.T) {
		for policy, want := range map[string]string{"fifo": "1", "filo": "2", "mru": "1"} {
			r := newRig(t, policyOf(policy, nil))
			r.add(1)
			r.add(2)
			r.match(key(1))
			r.equal(policy, r.victims(1), []string{want})
		}
	})
	t.Run("X-E-8", func(t *testing.T) {
		r := newRig(t, policyOf("tlru", map[string]int{"threshold": 4}))
		r.add(101, -112) // older, 12 units
		r.add(1, -4)
		r.add(1, -8)
		r.add(1, -12)
		r.equal("victims", r.victims(18), []string{"9..12", "101..112", "5..8"})
	})
	t.Run("X-E-18", func(t *testing.T) {
		r := newRig(t, policyOf("lfu", nil))
		r.add(1)
		r.add(2)
		r.add(1)
		r.add(3)
		r.equal("victims", r.victims(3), []string{"2", "3", "1"})
	})
	t.Run("X-E-19", func(t *testing.T) {
		r := newRig(t, policyOf("priority", nil))
		r.insert(tree.InsertParams{Key: key(1, -3), Priority: 5})
		r.insert(tree.InsertParams{Key: key(1, 2, 9), Priority: 1})
		r.equal("victims", r.victims(3), []string{"9", "3", "1..2"})
	})
	t.Run("X-E-20", func(t *testing.T) {
		r := newRig(t, policyOf("fifo", nil))
		r.add(1, -3)
		r.add(7)
		r.match(key(1, 2))
		r.equal("victims", r.victims(3), []string{"3", "1..2"})
	})
	t.Run("X-N-1", func(t *testing.T) {
		r := newRig(t, policyOf("lru", nil))
		r.add(1, -4)
		r.add(1, 2, 5, 6)
		p, a, l := r.at(1, 2).stamp, r.at(3, 4).stamp, r.at(5, 6).stamp
		r.equal("order", []bool{p.older(a), a.older(l)}, []bool{true, true})
		r.equal("victims", r.victims(6), []string{"3..4", "5..6", "1..2"})
	})
	t.Run("X-N-2", func(t *testing.T) {
		r := newRig(t, policyOf("", nil))
		r.add(1, -4)
		r.add(1, 2, 5, 6)
		r.match(key(1, -4))
		l, p, a := r.at(5, 6).stamp, r.at(1, 2).stamp, r.at(3, 4).stamp
		r.equal("order", []bool{l.older(p), p.older(a)}, []bool{true, true})
		r.equal("root", r.root.stamp.older(p), true)
		r.equal("victims", r.victims(2), []string{"5..6"})
	})
}

// sixAndTen builds A[1..6] > B[7..10], both with SWA, W=4.
func sixAndTen(t *testing.T) (r *rig, a, b tree.NodeID) {
	r = newRig(t, withSWA(1, 4))
	r.insert(tree.InsertParams{Key: key(1, -10), Slots: slots(0, -9)})
	return r, r.node(1, -6), r.node(7, -10)
}

func TestEvictSWA(t *testing.T) {
	t.Run("X-E-9", func(t *testing.T) {
		r, a, _ := sixAndTen(t)
		r.equal("list", r.order(tree.SWA)[1], a)
		r.ok(r.EvictStart(tree.SWA, 4))
		step, err := r.EvictNext(tree.SWA, tree.Units{})
		r.ok(err)
		r.sane()
		r.equal("step", []any{step.Node, step.MadeProgress, step.Freed}, []any{tree.NoNode, true, tree.Units{tree.SWA: 6}})
		r.equal("frees", step.Frees, tree.Frees{Device: [3]tree.Slots{tree.SWA: slots(0, -5)}})
		step, err = r.EvictNext(tree.SWA, step.Freed)
		r.ok(err)
		r.equal("done", step, tree.EvictStep{})
		r.ok(r.EvictEnd(tree.SWA))
		r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"10/0", "4/0"})
		r.equal("match", r.match(key(1, -10)).DeviceLen, 10)
	})
	t.Run("X-E-10", func(t *testing.T) {
		r, a, b := sixAndTen(t)
		total, leaves := r.evict(tree.SWA, 8)
		r.equal("leaves", leaves, []tree.NodeID{b})
		r.equal("totals", total.Freed, tree.Units{tree.Full: 4, tree.SWA: 10})
		r.equal("frees", total.Frees.Device, [3]tree.Slots{slots(6, -9), slots(0, -9), nil})
		r.equal("leaf", r.IsDeviceEvictableLeaf(a), true)
	})
	t.Run("X-E-11", func(t *testing.T) {
		r, _, b := sixAndTen(t)
		receipt := r.lock(b)
		_, err := r.ReleaseSWALock(b, receipt)
		r.ok(err)
		r.ok(r.EvictStart(tree.SWA, 10))
		var totals tree.Units
		for _, want := range []tree.EvictStep{
			{MadeProgress: true, Evicted: tree.Evicted{Freed: tree.Units{tree.SWA: 6}, Frees: tree.Frees{Device: [3]tree.Slots{nil, slots(0, -5), nil}}}},
			{MadeProgress: true, Evicted: tree.Evicted{Freed: tree.Units{tree.SWA: 4}, Frees: tree.Frees{Device: [3]tree.Slots{nil, slots(6, -9), nil}}}},
			{},
		} {
			step, err := r.EvictNext(tree.SWA, totals)
			r.ok(err)
			r.sane()
			r.equal("step", step, want)
			totals.Add(step.Freed)
		}
		r.looks("1..6 F=0..5 S=- L1/0/0", ".7..10 F=6..9 S=- L1/0/0 u1")
	})
	t.Run("X-E-16", func(t *testing.T) {
		r := newRig(t, withSWA(4, 4))
		r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(0, -7)})
		r.insert(tree.InsertParams{Key: key(1, -4, 50, -57), Slots: slots(100, -111)})
		r.looks("1..4 F=0..3 S=1000000..1000003", ".5..8 F=4..7 S=1000004..1000007",
			".50..53 F=104..107 S=1000104..1000107", "..54..57 F=108..111 S=1000108..1000111")
		b := r.node(5, -8)
		r.equal("list", r.order(tree.SWA), []tree.NodeID{r.node(54, -57), r.node(50, -53), b, r.node(1, -4)})
		r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"16/0", "16/0"})
		total, leaves := r.evict(tree.SWA, 6)
		r.equal("leaves", leaves, []tree.NodeID{b})
		r.equal("totals", total.Freed, tree.Units{tree.Full: 4, tree.SWA: 8})
		r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"12/0", "8/0"})
	})
}

func TestEvictMamba(t *testing.T) {
	t.Run("X-E-12", func(t *testing.T) {
		build := func() *rig {
			r := newRig(t, withAll(1, 4, 1))
			r.insert(tree.InsertParams{Key: key(1, -4), MambaState: slots(70)})
			r.insert(tree.InsertParams{Key: key(1, -8), MambaState: slots(71), PrevPrefixLen: 4})
			return r
		}
		r := build()
		total, _ := r.evict(tree.SWA, 1)
		r.equal("swa", total.Freed, tree.Units{tree.SWA: 4, tree.Mamba: 1})
		r = build()
		total, _ = r.evict(tree.Mamba, 1)
		r.equal("mamba", total.Freed, tree.Units{tree.Mamba: 1})

		r = build() // X-E-13
		a := r.at(1, -4)
		a.locks[tree.Mamba], a.locks[tree.Full] = 1, 1
		before := r.shape()
		r.ok(r.EvictStart(tree.SWA, 1))
		_, err := r.EvictNext(tree.SWA, tree.Units{})
		fails[*tree.InternalError](r, "X-E-13", err)
		r.equal("X-E-13", r.shape(), before)
	})
	t.Run("X-E-14", func(t *testing.T) {
		r := newRig(t, withMamba(1, 1))
		r.insert(tree.InsertParams{Key: key(1, -4), MambaState: slots(70)})
		r.insert(tree.InsertParams{Key: key(1, -8), MambaState: slots(71)})
		total, _ := r.evict(tree.Mamba, 1)
		r.equal("frees", total.Frees.Device, [3]tree.Slots{nil, nil, slots(70)})
		r.equal("1..4", r.match(key(1, -4)).DeviceLen, 0)
		r.equal("1..8", r.match(key(1, -8)).DeviceLen, 8)
	})
	t.Run("X-E-17", func(t *testing.T) {
		r := newRig(t, withAll(1, 4, 4))
		r.insert(tree.InsertParams{Key: key(1, -6), Slots: slots(0, -5), MambaState: slots(70)})
		r.insert(tree.InsertParams{Key: key(1, -10), Slots: slots(10, -19), MambaState: slots(71)})
		r.looks("1..2 F=0..1 S=1000000..1000001 M=-", ".3..6 F=2..5 S=1000002..1000005 M=70", "..7..10 F=16..19 S=1000016..1000019 M=71")
		total, leaves := r.evict(tree.SWA, 3)
		r.equal("first", []any{total.Freed, len(leaves)}, []any{tree.Units{tree.SWA: 6, tree.Mamba: 1}, 0})
		r.equal("frees", total.Frees.Device, [3]tree.Slots{nil, slots(0, -5), slots(70)})
		total, leaves = r.evict(tree.SWA, 2)
		r.equal("second", []any{total.Freed, len(leaves)}, []any{tree.Units{4, 4, 1}, 1})
		m := r.match(key(1, -10))
		r.equal("match", []int{m.DeviceLen, m.FullHitLen, m.SWABranchingLen, m.MambaBranchingLen}, []int{0, 6, 6, 4})
	})
}

func TestEvictProtocol(t *testing.T) { // X-E-15
	r, _, _ := sixAndTen(t)
	r.ok(r.EvictStart(tree.SWA, 1))
	fails[*tree.OrderError](r, "second start", r.EvictStart(tree.SWA, 1))
	r.ok(r.EvictStart(tree.Full, 1))
	fails[*tree.ArgumentError](r, "not configured", r.EvictStart(tree.Mamba, 1))
	r.ok(r.EvictEnd(tree.SWA))
	fails[*tree.OrderError](r, "no walk", r.EvictEnd(tree.SWA))
	_, err := r.EvictNext(tree.SWA, tree.Units{})
	fails[*tree.OrderError](r, "no walk", err)
	_, err = r.EvictLeaf(r.node(1, -6), false)
	fails[*tree.OrderError](r, "no leaf", err)
	_, err = r.Demote(r.node(7, -10))
	fails[*tree.OrderError](r, "not backed up", err)
}

func TestEvictCursor(t *testing.T) {
	build := func(sessions bool) (*rig, []tree.NodeID) {
		options := withMamba(1, 1)
		options.Sessions = sessions
		r := newRig(t, options)
		for i := 1; i <= 4; i++ {
			r.insert(tree.InsertParams{Key: key(i), MambaState: slots(70 + i)})
		}
		return r, []tree.NodeID{r.node(1), r.node(2), r.node(3), r.node(4)}
	}
	next := func(r *rig, want tree.NodeID) {
		t.Helper()
		step, err := r.EvictNext(tree.Mamba, tree.Units{})
		r.ok(err)
		r.equal("next", step.Node, want)
	}
	for _, sessions := range []bool{false, true} {
		r, ids := build(sessions)
		r.ok(r.EvictStart(tree.Mamba, 9))
		next(r, ids[0])
		next(r, ids[1])
		r.dropValue(r.nodes[ids[2]], tree.Mamba) // the cursor's node leaves the list
		if sessions {
			next(r, ids[3]) // SR-20: from the mark
		} else {
			next(r, ids[0]) // E-16: restart at the LRU end
			next(r, ids[1])
			r.nodes[ids[3]].locks[tree.Mamba] = 1 // the cursor's node is locked
		}
		next(r, tree.NoNode)
	}
}

func TestEvictWriteBack(t *testing.T) {
	r := newRig(t, withSWA(1, 4))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteBack: true, WriteThroughThreshold: 1}))
	r.insert(tree.InsertParams{Key: key(1, 2), Slots: slots(1, 2)})
	a := r.node(1, 2)
	r.equal("hits (E-35)", r.nodes[a].hits, int64(0))
	before := r.shape()
	result, err := r.EvictLeaf(a, true)
	r.ok(err)
	r.equal("backup", []any{result.Backup, result.Evicted}, []any{&tree.BackupKV{Nodes: []tree.NodeID{a}}, tree.Evicted{}})
	r.equal("tree", r.shape(), before)
	r.ok(r.SetHostValue(a, tree.SWA, slots(31, 32)))
	r.ok(r.SetHostValue(a, tree.Full, slots(21, 22)))
	result, err = r.EvictLeaf(a, true)
	r.ok(err)
	r.sane()
	r.equal("demoted", []any{result.Backup == nil, result.Freed, result.Unbacked}, []any{true, tree.Units{2, 2, 0}, 0})
	r.looks("1..2 F=-/21..22 S=-/31..32")
	r.equal("host list", r.RecencyOrder(tree.SWA, true), []tree.NodeID{a})
}

func TestSizes(t *testing.T) { // X-Z-1 to X-Z-5
	r := newRig(t, withSWA(1, 4))
	sizes := func() []string { return []string{r.sizes(tree.Full), r.sizes(tree.SWA)} }
	r.insert(tree.InsertParams{Key: key(1, -10)})
	r.equal("X-Z-1", sizes(), []string{"10/0", "10/0"})
	receipt := r.lock(r.node(7, -10))
	r.equal("X-Z-2", sizes(), []string{"0/10", "6/4"})
	r.evict(tree.SWA, 6)
	r.equal("X-Z-3", sizes(), []string{"0/10", "0/4"})
	r.unlock(receipt, false)
	r.equal("X-Z-4", sizes(), []string{"10/0", "4/0"})
	r.evict(tree.Full, 4)
	r.equal("X-Z-5", sizes(), []string{"6/0", "0/0"})
	f, aux := r.TotalSize()
	r.equal("Z-4", []int{f, aux}, []int{6, 0})
	r.equal("Z-2", r.sizes(tree.Mamba), "0/0")
}
