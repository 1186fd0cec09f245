// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// evictWriteBack runs an eviction as a controller with write-back does; room
// says whether the host can take a backup.
func (r *rig) evictWriteBack(c tree.Component, n int, room bool) (total, droppedUnits tree.Units) {
	r.t.Helper()
	r.ok(r.EvictStart(c, n))
	for {
		step, err := r.EvictNext(c, total)
		r.ok(err)
		total.Add(step.Freed)
		switch {
		case step.Node == tree.NoNode && !step.MadeProgress:
			r.ok(r.EvictEnd(c))
			r.sane()
			return total, droppedUnits
		case step.Paused != tree.NoNode:
			if room {
				r.finish(r.start(step.Paused, false))
			}
			step, err = r.FinishStateEviction(c, step.Paused)
			r.ok(err)
			total.Add(step.Freed)
		case step.Node != tree.NoNode:
			leaf, err := r.EvictLeaf(step.Node, true)
			r.ok(err)
			evicted := leaf.Evicted
			if leaf.Backup != nil && room {
				r.finish(r.start(step.Node, false))
				evicted, err = r.Demote(step.Node)
				r.ok(err)
			} else if leaf.Backup != nil {
				evicted, _, err = r.DropSubtreeNoHost(step.Node)
				r.ok(err)
				droppedUnits.Add(evicted.Freed)
			}
			total.Add(evicted.Freed)
		}
		r.sane()
	}
}

func TestWritePolicies(t *testing.T) {
	r := hostRig(t, full(1), false)
	n := r.chain(4, 2)
	r.backup(n...)
	total, leaves := r.evict(tree.Full, 2)
	r.equal("X-EV-1", []any{total.Freed, leaves, r.IsDeviceEvictableLeaf(n[0])}, []any{tree.Units{2}, n[1:], true})

	r = newRig(t, full(1))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 2}))
	c := r.chain(3)[0]
	total, _ = r.evict(tree.Full, 3)
	m := r.match(key(1, -3))
	r.equal("X-EV-2", []any{total.Freed, total.Unbacked, m.DeviceLen, m.HostHitLen, r.Contains(c)}, []any{tree.Units{3}, 3, 0, 0, false})
}

func TestWriteBack(t *testing.T) {
	build := func() (r *rig, q, c tree.NodeID) {
		r = hostRig(t, full(1), true)
		n := r.chain(2, 1)
		total, _ := r.evictWriteBack(tree.Full, 1, true)
		r.equal("X-EV-3", []any{total, r.nodes[n[1]].backedUp(), r.evicted(r.nodes[n[1]]), r.nodes[n[0]].backedUp()},
			[]any{tree.Units{1}, true, true, false})
		return r, n[0], n[1]
	}
	r, q, c := build()
	total, droppedUnits := r.evictWriteBack(tree.Full, 2, false)
	r.equal("X-EV-4", []any{total, droppedUnits, r.Nodes()}, []any{tree.Units{2}, tree.Units{2}, ids(r.Root())})

	for name, locked := range map[string]func() tree.NodeID{
		"X-EV-5": func() tree.NodeID { return q },
		"X-EV-6": func() tree.NodeID { return c },
	} {
		r, q, c = build()
		r.lockHostOf(locked())
		before := r.shape()
		total, droppedUnits = r.evictWriteBack(tree.Full, 2, false)
		r.equal(name, []any{total, droppedUnits, r.shape()}, []any{tree.Units{}, tree.Units{}, before})
	}
	r, q, _ = build()
	evicted, dropped, err := r.DropSubtreeNoHost(q)
	r.ok(err)
	r.sane()
	r.equal("what a drop returns", []any{evicted, dropped}, []any{tree.Evicted{
		Frees:    tree.Frees{Device: [3]tree.Slots{slots(1, 2)}, Host: [3]tree.Slots{slots(5000)}},
		Freed:    tree.Units{2},
		Unbacked: 2,
	}, true})
}

func TestDropSubtree(t *testing.T) { // WB-2
	options := withSWA(1, 4)
	options.Events = true
	r := hostRig(t, options, true)
	n := r.chain(2, 1)
	r.insert(tree.InsertParams{Key: key(1, 2, 9), PrevPrefixLen: 2})
	side := r.node(9)
	for _, id := range []tree.NodeID{n[1], side} {
		r.finish(r.start(id, false))
		r.demote(id)
	}
	_, _, err := r.DropSubtreeNoHost(n[1])
	fails[*tree.OrderError](r, "no D-leaf", err)
	_, _, err = r.DropSubtreeNoHost(999)
	fails[*tree.NodeAccessError](r, "stale", err)
	r.ok(r.SetPending(n[0], 3))
	_, _, err = r.DropSubtreeNoHost(n[0])
	fails[*tree.OrderError](r, "pending", err)
	r.ok(r.SetPending(n[0], 0))
	receipt := r.lock(side)
	_, _, err = r.DropSubtreeNoHost(n[0])
	fails[*tree.OrderError](r, "locked from below", err)
	r.unlock(receipt, false)
	r.TakeEvents()
	evicted, dropped, err := r.DropSubtreeNoHost(n[0])
	r.ok(err)
	r.sane()
	r.equal("dropped", dropped, true)
	r.equal("the node's device units", evicted.Freed, tree.Units{2, 2, 0})
	r.equal("host slots", []int{evicted.Frees.Host[tree.Full].Len(), evicted.Frees.Host[tree.SWA].Len()}, []int{2, 4})
	var media []tree.Medium
	for _, e := range r.TakeEvents() {
		media = append(media, e.Medium)
	}
	r.equal("events: below first, joined", media, []tree.Medium{tree.MediumHost, tree.MediumDevice})
}

func TestPausedEviction(t *testing.T) {
	r := hostRig(t, withSWA(1, 4), false)
	r.chain(4, 2)
	total, leaves := r.evict(tree.SWA, 4)
	r.equal("X-EV-8", []any{total.Freed, leaves}, []any{tree.Units{0, 4, 0}, []tree.NodeID(nil)})
	r.looks("1..4 F=1..4 S=-", ".5..6 F=5..6 S=1000005..1000006")

	for _, room := range []bool{true, false} {
		r = hostRig(t, withSWA(1, 4), true)
		n := r.chain(4, 2)
		b := n[0]
		r.ok(r.EvictStart(tree.SWA, 4))
		_, err := r.FinishStateEviction(tree.SWA, b)
		fails[*tree.OrderError](r, "nothing waits", err)
		step, err := r.EvictNext(tree.SWA, tree.Units{})
		r.ok(err)
		r.sane()
		r.equal("X-EV-9", step, tree.EvictStep{MadeProgress: true, Paused: b, PausedFor: tree.SWA, PausedUnits: 4})
		_, err = r.EvictNext(tree.SWA, tree.Units{})
		fails[*tree.OrderError](r, "E-5", err)
		_, err = r.FinishStateEviction(tree.SWA, n[1])
		fails[*tree.OrderError](r, "another node", err)
		_, err = r.FinishStateEviction(tree.SWA, 999)
		fails[*tree.NodeAccessError](r, "stale", err)
		if room {
			r.finish(r.start(b, false))
		}
		step, err = r.FinishStateEviction(tree.SWA, b)
		r.ok(err)
		r.sane()
		r.equal("freed", step, tree.EvictStep{
			Evicted:      tree.Evicted{Frees: tree.Frees{Device: [3]tree.Slots{tree.SWA: slots(1, -4)}}, Freed: tree.Units{0, 4, 0}},
			MadeProgress: true,
		})
		onHost := ids()
		if room {
			onHost = ids(b)
		}
		r.equal("X-EV-9, X-EV-10", []any{r.hostOrder(tree.SWA), r.order(tree.SWA)}, []any{onHost, n[1:]})
		r.equal("full", r.nodes[b].device[tree.Full] != nil, true)
		step, err = r.EvictNext(tree.SWA, step.Freed)
		r.ok(err)
		r.equal("done", step, tree.EvictStep{})
		r.ok(r.EvictEnd(tree.SWA))
	}
}

func TestPauseConditions(t *testing.T) { // EV-7
	for name, c := range map[string]struct {
		component tree.Component
		prepare   func(r *rig, n tree.NodeID)
		paused    bool
	}{
		"swa":         {tree.SWA, func(*rig, tree.NodeID) {}, true},
		"mamba":       {tree.Mamba, func(*rig, tree.NodeID) {}, true},
		"on the host": {tree.SWA, func(r *rig, n tree.NodeID) { r.setHost(n, tree.SWA) }, false},
		"pending":     {tree.Mamba, func(r *rig, n tree.NodeID) { r.ok(r.SetPending(n, 3)) }, false},
		"no swa pool": {tree.SWA, func(r *rig, n tree.NodeID) {
			r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteBack: true, WriteThroughThreshold: 1}))
		}, false},
		"mamba needs no swa pool": {tree.Mamba, func(r *rig, n tree.NodeID) {
			r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteBack: true, WriteThroughThreshold: 1}))
		}, true},
		"no host tier": {tree.Mamba, func(r *rig, n tree.NodeID) {
			r.ok(r.SetSwitches(tree.Switches{WriteBack: true, WriteThroughThreshold: 1}))
		}, false},
		"buffer only": {tree.SWA, func(r *rig, n tree.NodeID) {
			r.ok(r.SetSwitches(tree.Switches{HostTier: true, SWAHostPool: true, HostBufferOnly: true, WriteBack: true, WriteThroughThreshold: 1}))
		}, false},
	} {
		r := hostRig(t, withAll(1, 4, 1), true)
		n := r.chain(4, 2)
		c.prepare(r, n[0])
		r.ok(r.EvictStart(c.component, 1))
		step, err := r.EvictNext(c.component, tree.Units{})
		r.ok(err)
		r.equal(name, step.Paused != tree.NoNode, c.paused)
		r.ok(r.EvictEnd(c.component))
		_, err = r.FinishStateEviction(c.component, n[0])
		fails[*tree.OrderError](r, "ended", err)
		r.sane()
	}
	// Another walk takes the node meanwhile.
	r := hostRig(t, withSWA(1, 4), true)
	n := r.chain(4, 2)
	r.ok(r.EvictStart(tree.SWA, 9))
	_, err := r.EvictNext(tree.SWA, tree.Units{})
	r.ok(err)
	r.setHost(n[0], tree.Full)
	r.setHost(n[1], tree.Full)
	r.demote(n[1], n[0])
	step, err := r.FinishStateEviction(tree.SWA, n[0])
	r.ok(err)
	r.sane()
	r.equal("nothing is left to drop", step, tree.EvictStep{})
	step, err = r.EvictNext(tree.SWA, tree.Units{})
	r.ok(err)
	r.equal("the walk has ended", step, tree.EvictStep{})
}
