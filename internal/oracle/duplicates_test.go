// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestNodeStates(t *testing.T) {
	r := newRig(t, full(4))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 1}))
	a := r.insert(tree.InsertParams{Key: key(1, -4)}).LastDeviceNode
	r.equal("X-BK-1", r.transcript, []string{"backup([2],4,true)"})
	w := r.start(a, true)
	r.equal("X-ND-1", []any{r.nodes[a].writePending, r.HostDuplicates(), r.IsDeviceEvictableLeaf(a)}, []any{int64(a), ids(), false})
	r.finish(w)
	r.equal("X-ND-2", []any{r.nodes[a].writePending, r.HostDuplicates(), r.IsDeviceEvictableLeaf(a)}, []any{int64(0), ids(a), true})
	total, leaves := r.evict(tree.Full, 4)
	r.equal("X-ND-3", []any{total.Freed[tree.Full], total.Unbacked, leaves}, []any{4, 0, ids(a)})
	r.equal("X-ND-3", []any{r.HostDuplicates(), r.IsHostEvictableLeaf(a)}, []any{ids(), true})
}

func TestSplitOfPending(t *testing.T) { // X-ND-4, X-ND-5
	r := hostRig(t, withSWA(2, 8), false)
	a := r.chain(8)[0]
	_, err := r.CommitBackup(a, tree.Numbered(0, 8), []tree.Transfer{{Component: tree.SWA, Host: tree.Numbered(20, 8)}})
	r.ok(err)
	_, err = r.MarkWriteThroughPending(ids(a), 7)
	r.ok(err)
	m := r.match(key(1, -4, 99, 99))
	n := r.node(1, -4)
	r.equal("X-ND-4", m.Actions, []tree.Action{tree.ReplaceWriteThroughOnNodeSplit{Ack: 7, Old: a, New: n, Child: a}})
	r.equal("pending", []int64{r.nodes[n].writePending, r.nodes[a].writePending}, []int64{7, 7})
	r.equal("host values", []string{r.hostValue(n, tree.Full), r.hostValue(a, tree.Full), r.hostValue(n, tree.SWA), r.hostValue(a, tree.SWA)},
		[]string{"0..3", "4..7", "20..23", "24..27"})
	m = r.match(key(1, -6, 99, 99))
	middle := r.node(5, 6)
	r.equal("X-ND-5", m.Actions, []tree.Action{tree.ReplaceWriteThroughOnNodeSplit{Ack: 7, Old: a, New: middle, Child: a}})
	r.equal("in flight", r.HostDuplicates(), ids())
	r.ok(r.FinishWriteThrough(ids(n, middle, a), 7))
	r.sane()
	r.equal("acknowledged", r.HostDuplicates(), ids(n, middle, a))
	r.match(key(1, 99)) // smaller than a page: nothing
	r.match(key(1, 2, 99, 99))
	r.equal("a split enters the prefix at the end", r.HostDuplicates(), ids(n, middle, a, r.node(1, 2)))
}

func TestBackupInvariant(t *testing.T) { // X-ND-6, X-ND-7
	r := hostRig(t, full(1), true)
	nodes := r.chain(2, 1)
	r.finish(r.start(nodes[1], false))
	r.demote(nodes[1])
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 1}))
	r.sane() // WT-1

	r = hostRig(t, full(1), false)
	nodes = r.chain(2, 1)
	r.ok(r.SetHostValue(nodes[1], tree.Full, tree.Numbered(0, 1)))
	broken := fails[*tree.CheckError](r, "X-ND-6", r.SanityCheck(nil, nil))
	r.equal("X-ND-6", []any{broken.Violations[0].Check, broken.Violations[0].Node}, []any{"V-10", nodes[1]})

	r = hostRig(t, withSWA(1, 4), false)
	a := r.chain(2)[0]
	r.backup(a)
	r.demote(a)
	r.putDevice(r.nodes[a], tree.SWA, []tree.Slot{1, 2})
	broken = fails[*tree.CheckError](r, "X-ND-7", r.SanityCheck(nil, nil))
	r.equal("X-ND-7", []any{broken.Violations[0].Check, broken.Violations[0].Node}, []any{"V-7", a})
	r.equal("X-ND-7", strings.Contains(broken.Violations[0].Detail, "swa without full on the device"), true)
}

func TestDuplicates(t *testing.T) { // ND-14
	r := hostRig(t, full(1), false)
	nodes := r.chain(2, 2)
	r.backup(nodes[0], nodes[1])
	r.equal("by acks", r.HostDuplicates(), nodes)
	r.ok(r.SetPending(nodes[0], 5))
	r.equal("pending: left out", r.HostDuplicates(), nodes[1:])
	r.ok(r.SetPending(nodes[0], 0))
	r.equal("it kept its place", r.HostDuplicates(), nodes)
	r.demote(nodes[1], nodes[0])
	r.equal("demoted", r.HostDuplicates(), ids())
	r.insert(tree.InsertParams{Key: key(1, -4), Slots: slots(11, -14)})
	r.equal("revived", r.HostDuplicates(), nodes)
	r.Reset()
	r.equal("reset", r.HostDuplicates(), ids())

	// V-25.
	a := r.chain(2)[0]
	r.setHost(a, tree.Full)
	r.sane()
	r.duplicates = nil
	broken := fails[*tree.CheckError](r, "not tracked", r.SanityCheck(nil, nil))
	r.equal("V-25", broken.Violations[0].Check, "V-25")
	r.duplicates = []*node{r.nodes[a], r.nodes[a], r.root}
	broken = fails[*tree.CheckError](r, "tracked in vain", r.SanityCheck(nil, nil))
	r.equal("V-25", len(broken.Violations), 2)
}

func TestHostChecks(t *testing.T) { // V-8, V-21, V-35
	for check, breaks := range map[string]func(r *rig, n *node){
		"V-8":  func(r *rig, n *node) { n.host[tree.SWA] = []tree.Slot{1, 2} },
		"V-21": func(r *rig, n *node) { r.host[tree.SWA].toFront(n) },
		"V-35": func(r *rig, n *node) { n.loadPending = 9 },
	} {
		r := hostRig(t, withSWA(1, 4), false)
		r.chain(2)
		breaks(r, r.at(1, 2))
		broken := fails[*tree.CheckError](r, check, r.SanityCheck(nil, nil))
		r.equal(check, broken.Violations[0].Check, check)
	}
}
