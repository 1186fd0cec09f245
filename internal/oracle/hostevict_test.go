// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestEvictHostFull(t *testing.T) {
	build := func(events bool) (*rig, []tree.NodeID) {
		options := full(1)
		options.Events = events
		r := hostRig(t, options, false)
		n := r.chain(4, 4)
		r.backup(n...)
		r.demote(n[1], n[0])
		return r, n
	}
	r, _ := build(true)
	r.TakeEvents()
	evicted := r.evictHost(tree.Full, 5)
	r.equal("X-HE-1", evicted, tree.Evicted{
		Frees: tree.Frees{Host: [3]tree.Slots{slots(5004, -5007, 5000, -5003)}},
		Freed: tree.Units{8},
	})
	r.equal("X-HE-1", r.Nodes(), ids(r.Root()))
	events := r.TakeEvents()
	r.equal("events", []any{len(events), events[0].Medium, events[0].Kind, len(events[0].Blocks)}, []any{1, tree.MediumHost, tree.BlockRemoved, 8})
	r.equal("HE-5: no write-back", r.ReclaimDigest(), uint64(0))

	r, n := build(false)
	receipt := r.lockHostOf(n[1])
	r.equal("X-HE-2", r.evictHost(tree.Full, 5), tree.Evicted{})
	r.ok(r.UnlockHost(n[1], receipt))
	r.equal("n <= 0", r.evictHost(tree.Full, 0), tree.Evicted{})
	r.equal("one leaf is enough", r.evictHost(tree.Full, 4).Freed, tree.Units{4})
	_, err := r.EvictHost(tree.SWA, 1)
	fails[*tree.ArgumentError](r, "not configured", err)
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, HostBufferOnly: true, WriteThroughThreshold: 1}))
	r.equal("X-HE-10", r.evictHost(tree.Full, 100), tree.Evicted{})
}

func TestEvictHostAux(t *testing.T) {
	build := func() (*rig, tree.NodeID) {
		r := hostRig(t, withAll(1, 4, 1), false)
		n := r.chain(4, 2)
		r.setHost(n[0], allComponents...)
		r.setHost(n[1], tree.Full)
		r.demote(n[1], n[0])
		return r, n[0]
	}
	r, a := build()
	r.equal("X-HE-3", r.evictHost(tree.SWA, 1).Freed, tree.Units{0, 4, 1})
	r.equal("X-HE-3", []any{r.nodes[a].backedUp(), r.hostOrder(tree.SWA), r.hostOrder(tree.Mamba)}, []any{true, ids(), ids()})
	r, a = build()
	r.equal("X-HE-4", r.evictHost(tree.Mamba, 1).Freed, tree.Units{0, 0, 1})
	r.equal("X-HE-4", []any{r.nodes[a].backedUp(), r.hostOrder(tree.SWA)}, []any{true, ids(a)})
	r, a = build()
	r.nodes[a].loadPending = 9
	evicted, err := r.EvictHost(tree.SWA, 1)
	r.ok(err)
	r.equal("EV-8", evicted, tree.Evicted{})
	r.nodes[a].loadPending = 0
	r.nodes[a].hostLocks[tree.Mamba] = 1
	before := r.shape()
	_, err = r.EvictHost(tree.SWA, 1)
	fails[*tree.InternalError](r, "a lock below", err)
	r.equal("a lock below", r.shape(), before)

	r = hostRig(t, withAll(1, 4, 1), false) // an H-leaf goes whole
	n := r.chain(4, 2)
	for _, id := range n {
		r.setHost(id, allComponents...)
	}
	r.demote(n[1], n[0])
	r.equal("leaf", r.evictHost(tree.Mamba, 1).Freed, tree.Units{2, 2, 1})
	r.equal("leaf", r.Contains(n[1]), false)
}

func TestEvictHostWithSessions(t *testing.T) { // SR-18, SR-21, SR-22
	options := withAll(1, 4, 1)
	options.Sessions = true
	r := hostRig(t, options, false)
	n := r.chain(4, 2)
	side := r.insert(tree.InsertParams{Key: key(1, 2, 3, 4, 9), PrevPrefixLen: 4, MambaState: slots(909)}).LastDeviceNode
	for _, id := range append(ids(side), n...) {
		r.setHost(id, allComponents...)
	}
	r.register("s", n[1])
	r.demote(n[1], side, n[0])
	r.equal("referenced first", r.hostOrder(tree.Mamba), ids(n[1], n[0], side))
	r.equal("unreferenced leaf", r.evictHost(tree.Mamba, 1).Freed, tree.Units{1, 1, 1})
	r.equal("internal", r.evictHost(tree.Mamba, 1).Freed, tree.Units{0, 0, 1})
	// n[1] is referenced by its own component, so it goes whole.
	r.equal("referenced leaf", r.evictHost(tree.Mamba, 1).Freed, tree.Units{2, 2, 1})
	r.sane()
	r.equal("A is a leaf that only Full and SWA reference", r.evictHost(tree.Full, 1).Freed, tree.Units{4, 4, 0})

	r = hostRig(t, options, false) // SR-21: spared as a leaf
	n = r.chain(2, 1)
	for _, id := range n {
		r.setHost(id, tree.Full, tree.SWA)
	}
	r.setHost(n[1], tree.Mamba)
	r.demote(n[1], n[0])
	r.nodes[n[1]].refs[tree.Full] = 1
	evicted, err := r.EvictHost(tree.Mamba, 1)
	r.ok(err)
	r.equal("the unreferenced window goes along, full stays", evicted.Freed, tree.Units{0, 1, 1})
}

// registry builds the registry of X-HE-5: A(4) and B(4), which have children,
// and the leaf L(4), entered in the given order.
func registry(t *testing.T, order ...tree.NodeID) *rig {
	r := hostRig(t, full(1), true)
	for first := range 3 {
		r.insert(tree.InsertParams{Key: key(900 + first)}) // handles 2 to 4
	}
	r.insert(tree.InsertParams{Key: key(1, -4)})                     // A: 5
	r.insert(tree.InsertParams{Key: key(1, -5), PrevPrefixLen: 4})   // 6
	r.insert(tree.InsertParams{Key: key(903)})                       // 7
	r.insert(tree.InsertParams{Key: key(11, -14)})                   // L: 8
	r.insert(tree.InsertParams{Key: key(21, -24)})                   // B: 9
	r.insert(tree.InsertParams{Key: key(21, -25), PrevPrefixLen: 4}) // 10
	for _, id := range order {
		r.setHost(id, tree.Full)
	}
	r.equal("registry", r.HostDuplicates(), order)
	return r
}

func TestReclaim(t *testing.T) { // HE-4, HE-5
	r := registry(t, 5, 8, 9)
	r.equal("X-HE-5", r.evictHost(tree.Full, 6).Freed, tree.Units{8})
	r.equal("X-HE-5", []any{r.HostDuplicates(), r.ReclaimDigest()}, []any{ids(8), uint64(6000028)})
	r.equal("X-HE-6", r.evictHost(tree.Full, 12).Freed, tree.Units{4})
	r.equal("X-HE-6", []any{r.HostDuplicates(), r.ReclaimDigest()}, []any{ids(), uint64(1601999488989)})
	r.Reset()
	r.equal("reset", r.ReclaimDigest(), uint64(0))

	r = registry(t, 9, 5)
	r.evictHost(tree.Full, 6)
	r.equal("X-HE-7", r.ReclaimDigest(), uint64(10000036))

	r = registry(t, 5)
	r.ok(r.SetPending(5, 3))
	r.equal("X-HE-8", r.evictHost(tree.Full, 1), tree.Evicted{})
	r.ok(r.SetPending(5, 0))
	receipt := r.lockHostOf(5)
	r.equal("host-locked", r.evictHost(tree.Full, 1), tree.Evicted{})
	r.ok(r.UnlockHost(5, receipt))

	leaf := r.node(11, -14) // X-HE-9
	r.finish(r.start(leaf, false))
	r.demote(leaf)
	l := r.build(leaf)
	r.commit(l)
	r.equal("X-HE-9", r.evictHost(tree.Full, 9).Freed, tree.Units{4}) // A only
	r.equal("X-HE-9", r.HostDuplicates(), ids())
	r.acked(l)
	r.equal("X-HE-9", r.HostDuplicates(), ids(leaf))
	r.equal("X-HE-9", r.evictHost(tree.Full, 9).Freed, tree.Units{4})
}

func TestReclaimWindow(t *testing.T) { // HE-4 for SWA
	r := hostRig(t, withSWA(1, 4), true)
	n := r.chain(2, 2)
	leaf := r.insert(tree.InsertParams{Key: key(11, 12)}).LastDeviceNode
	for _, id := range append(ids(leaf), n...) {
		r.setHost(id, tree.SWA)
	}
	r.equal("device list", r.order(tree.SWA), ids(leaf, n[1], n[0]))
	r.equal("internal first", r.evictHost(tree.SWA, 1), tree.Evicted{
		Frees: tree.Frees{Host: [3]tree.Slots{tree.SWA: runs(nil).Append(slots(5002, 5003))}},
		Freed: tree.Units{0, 2, 0},
	})
	r.equal("digest", r.ReclaimDigest(), uint64(n[0])+1)
	r.equal("then leaves from the LRU end", r.evictHost(tree.SWA, 2).Frees.Host[tree.SWA], slots(5004, 5005))
	receipt := r.lockHostOf(leaf)
	r.equal("locked", r.evictHost(tree.SWA, 9), tree.Evicted{})
	r.ok(r.UnlockHost(leaf, receipt))
	r.equal("the last", r.evictHost(tree.SWA, 9).Freed, tree.Units{0, 2, 0})
}
