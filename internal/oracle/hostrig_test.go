// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// hostRig is a rig with a host tier. Backups are made by hand.
func hostRig(t *testing.T, options tree.Options, writeBack bool) *rig {
	t.Helper()
	r := newRig(t, options)
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, SWAHostPool: true, WriteThroughThreshold: 99, WriteBack: writeBack}))
	r.lastHost = 5000
	return r
}

// chain inserts the key 1, 2, 3 ... cut into nodes of the given lengths, the
// root side first, and returns them. Slots are the tokens; with Mamba each
// node has a state, its last token plus 500.
func (r *rig) chain(lengths ...int) []tree.NodeID {
	r.t.Helper()
	var ids []tree.NodeID
	total := 0
	for _, length := range lengths {
		before := total
		total += length
		p := tree.InsertParams{Key: key(1, -total), PrevPrefixLen: before}
		if r.has(tree.Mamba) {
			p.MambaState = slots(total + 500)
		}
		ids = append(ids, r.insert(p).LastDeviceNode)
	}
	return ids
}

// hostSlots hands out fresh host slots.
func (r *rig) hostSlots(n int) tree.Slots {
	r.lastHost += tree.Slot(n)
	return tree.Numbered(r.lastHost-tree.Slot(n), n)
}

// write is a backup whose ack is to come.
type write struct {
	ack     int64
	publish []tree.NodeID
	receipt *tree.Receipt // nil: an eviction waits for it, there is no lock
}

// start starts a backup of the node as it is now (rule BK-14).
func (r *rig) start(id tree.NodeID, locked bool) *write {
	r.t.Helper()
	spec, err := r.BuildBackupSpec(id)
	r.ok(err)
	nodes := []tree.NodeID{id}
	for i := range spec.Aux {
		spec.Aux[i].Host = r.hostSlots(spec.Aux[i].Device.Len())
		nodes = append(nodes, spec.Aux[i].Nodes...)
	}
	frees, err := r.CommitBackup(id, r.hostSlots(spec.Full.Len()), spec.Aux)
	r.ok(err)
	r.equal("frees", frees.Empty(), true)
	w := &write{ack: int64(id)}
	if locked {
		receipt := r.lock(id)
		w.receipt = &receipt
	}
	w.publish, err = r.MarkWriteThroughPending(nodes, w.ack)
	r.ok(err)
	r.sane()
	return w
}

// finish takes the ack.
func (r *rig) finish(w *write) {
	r.t.Helper()
	r.ok(r.FinishWriteThrough(w.publish, w.ack))
	if w.receipt != nil {
		r.unlock(*w.receipt, false)
	}
	r.sane()
}

// backup backs the nodes up, one after the other.
func (r *rig) backup(ids ...tree.NodeID) {
	r.t.Helper()
	for _, id := range ids {
		r.finish(r.start(id, true))
	}
}

// demote takes the nodes off the device.
func (r *rig) demote(ids ...tree.NodeID) {
	r.t.Helper()
	for _, id := range ids {
		_, err := r.Demote(id)
		r.ok(err)
		r.sane()
	}
}

// setHost gives host values through the test door.
func (r *rig) setHost(id tree.NodeID, components ...tree.Component) {
	r.t.Helper()
	for _, c := range components {
		n := len(r.nodes[id].key)
		if c == tree.Mamba {
			n = 1
		}
		r.ok(r.SetHostValue(id, c, r.hostSlots(n)))
	}
}

// load is a load back under way.
type load struct {
	best         tree.NodeID
	spec         tree.LoadBackSpec
	actions      []tree.Action
	delta        int
	host, device tree.Receipt
}

// build makes the steps LB-4 to LB-7.
func (r *rig) build(best tree.NodeID) *load {
	r.t.Helper()
	l := &load{best: best}
	var err error
	l.host, err = r.LockHost(best)
	r.ok(err)
	l.device = r.lock(best)
	l.delta = l.device.Delta
	l.spec, err = r.BuildLoadBackSpec(best)
	r.ok(err)
	return l
}

// giveUp is rule LB-12.
func (r *rig) giveUp(l *load) {
	r.t.Helper()
	r.unlock(l.device, false)
	r.ok(r.UnlockHost(l.best, l.host))
	r.sane()
}

// commit makes step LB-11; the new device slots are 100 000 above the host's.
func (r *rig) commit(l *load) {
	r.t.Helper()
	above := func(s tree.Slots) tree.Slots {
		numbers, err := s.Numbers()
		r.ok(err)
		for i := range numbers {
			numbers[i] += 100_000
		}
		return tree.SlotsOf(numbers...)
	}
	for i := range l.spec.Aux {
		l.spec.Aux[i].Device = above(l.spec.Aux[i].Host)
	}
	r.unlock(l.device, false)
	var err error
	l.actions, err = r.CommitLoadBack(l.best, above(l.spec.Full.Host), l.spec)
	r.ok(err)
	l.device, err = r.Lock(l.best, 0)
	r.ok(err)
	r.loads = append(r.loads, tree.InFlight{ID: int64(l.best), Node: l.best})
	r.sane()
}

// acked takes the ack of a load back (rule LB-19).
func (r *rig) acked(l *load) {
	r.t.Helper()
	r.ok(r.Unlock(l.best, l.device, false))
	r.ok(r.UnlockHost(l.best, l.host))
	r.ok(r.FinishLoadBack(l.best))
	r.loads = nil
	r.sane()
}

func (r *rig) evictHost(c tree.Component, n int) tree.Evicted {
	r.t.Helper()
	evicted, err := r.EvictHost(c, n)
	r.ok(err)
	r.sane()
	return evicted
}

func (r *rig) hostOrder(c tree.Component) []tree.NodeID { return r.RecencyOrder(c, true) }

// hostValue draws the node's host value.
func (r *rig) hostValue(id tree.NodeID, c tree.Component) string {
	return runs(r.nodes[id].host[c]).String()
}

func ids(list ...tree.NodeID) []tree.NodeID { return append([]tree.NodeID{}, list...) }
