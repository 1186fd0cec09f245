// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// swaPart returns the device slots and nodes of the SWA transfer; "-" if none.
func (r *rig) swaPart(target tree.NodeID) (string, []tree.NodeID) {
	r.t.Helper()
	spec, err := r.BuildBackupSpec(target)
	r.ok(err)
	for _, t := range spec.Aux {
		if t.Component == tree.SWA {
			return t.Device.String(), t.Nodes
		}
	}
	return "-", nil
}

func TestBackupWindow(t *testing.T) {
	type nodes = []tree.NodeID // A, B, C
	for _, c := range []struct {
		name    string
		window  int
		prepare func(r *rig, n nodes)
		device  string
		want    func(n nodes) nodes
	}{
		{"X-BK-6", 8, func(r *rig, n nodes) { r.backup(n[0]) }, "1000005..1000012", func(n nodes) nodes { return n[1:] }},
		{"X-BK-7: B pending", 8, func(r *rig, n nodes) { r.backup(n[0]); r.ok(r.SetPending(n[1], 77)) }, "1000009..1000012", func(n nodes) nodes { return n[2:] }},
		{"X-BK-8: B a tombstone", 8, func(r *rig, n nodes) { r.dropValue(r.nodes[n[1]], tree.SWA) }, "1000009..1000012", func(n nodes) nodes { return n[2:] }},
		{"X-BK-9: B on the host only", 12, func(r *rig, n nodes) {
			r.setHost(n[0], tree.Full)
			r.setHost(n[1], tree.Full, tree.SWA)
			r.dropValue(r.nodes[n[1]], tree.SWA)
		}, "1000001..1000004,1000009..1000012", func(n nodes) nodes { return nodes{n[0], n[2]} }},
		{"the target pending", 8, func(r *rig, n nodes) { r.ok(r.SetPending(n[2], 77)) }, "-", func(nodes) nodes { return nil }},
		{"BK-8: no SWA host pool", 8, func(r *rig, n nodes) {
			r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 99}))
		}, "-", func(nodes) nodes { return nil }},
		{"BK-10: buffer only", 8, func(r *rig, n nodes) {
			r.ok(r.SetSwitches(tree.Switches{HostTier: true, SWAHostPool: true, HostBufferOnly: true, WriteThroughThreshold: 99}))
		}, "1000009..1000012", func(n nodes) nodes { return n[2:] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := hostRig(t, withSWA(4, c.window), false)
			n := r.chain(4, 4, 4)
			c.prepare(r, n)
			device, got := r.swaPart(n[2])
			r.equal("device", device, c.device)
			r.equal("nodes", got, c.want(n))
		})
	}

	r := hostRig(t, withSWA(4, 8), false) // X-BK-13
	wide := r.insert(tree.InsertParams{Key: key(1, -12), SWAEvictedLen: 12}).LastDeviceNode
	r.ok(r.SetComponentDeviceValue(wide, tree.SWA, slots(51, -62)))
	device, nodes13 := r.swaPart(wide)
	r.equal("X-BK-13", []any{device, nodes13}, []any{"51..62", ids(wide)})
}

func TestCommitBackup(t *testing.T) {
	r := hostRig(t, withSWA(4, 8), false)
	n := r.chain(4, 4, 4)
	r.backup(n[0])
	r.setHost(n[1], tree.Full)
	_, err := r.CommitBackup(n[2], tree.Numbered(40, 4), []tree.Transfer{{Component: tree.SWA, Host: tree.Numbered(20, 8), Nodes: n[1:]}})
	r.ok(err)
	publish, err := r.MarkWriteThroughPending(ids(n[2], n[1], n[2]), int64(n[2]))
	r.ok(err)
	r.sane()
	r.equal("X-BK-10", []string{r.hostValue(n[1], tree.SWA), r.hostValue(n[2], tree.SWA)}, []string{"20..23", "24..27"})
	r.equal("X-BK-10", []int64{r.nodes[n[1]].writePending, r.nodes[n[2]].writePending}, []int64{int64(n[2]), int64(n[2])})
	r.equal("BK-16", publish, n[1:])
	r.equal("in flight", r.HostDuplicates(), n[:1])
	_, err = r.MarkWriteThroughPending(ids(n[0], n[1]), 99)
	fails[*tree.OrderError](r, "another ack", err)
	r.equal("nothing changed", r.nodes[n[0]].writePending, int64(0))
	r.ok(r.FinishWriteThrough(publish, 98))
	r.equal("BK-18: another id keeps its mark", r.nodes[n[1]].writePending, int64(n[2]))
	r.ok(r.FinishWriteThrough(publish, int64(n[2])))
	r.equal("acknowledged", r.HostDuplicates(), n)

	r = hostRig(t, withSWA(4, 8), false)
	n = r.chain(8, 4)
	r.backup(n[0])
	r.nodes[n[0]].host[tree.SWA] = nil
	before := r.shape()
	aux := []tree.Transfer{{Component: tree.SWA, Host: tree.Numbered(30, 8), Nodes: n}}
	_, err = r.CommitBackup(n[1], tree.Numbered(50, 4), aux)
	fails[*tree.ArgumentError](r, "X-BK-12", err)
	r.equal("X-BK-12", r.shape(), before)
	aux[0].Host = tree.Numbered(30, 12)
	_, err = r.CommitBackup(n[1], nil, aux)
	r.ok(err)
	r.equal("X-BK-11", []string{r.hostValue(n[0], tree.SWA), r.hostValue(n[1], tree.SWA)}, []string{"30..37", "38..41"})
	r.equal("no full", r.nodes[n[1]].backedUp(), false)
	frees, err := r.CommitBackup(n[1], tree.Numbered(50, 4), []tree.Transfer{{Component: tree.SWA, Host: tree.Numbered(90, 4)}})
	r.ok(err)
	r.equal("a value that came meanwhile stays", frees, tree.Frees{Host: [3]tree.Slots{tree.SWA: slots(90, -93)}})
}

func TestCommitBackupErrors(t *testing.T) {
	r := hostRig(t, withAll(1, 4, 1), false)
	n := r.chain(2, 2)
	r.backup(n[0])
	before := r.shape()
	swa := func(host tree.Slots, nodes ...tree.NodeID) tree.Transfer {
		return tree.Transfer{Component: tree.SWA, Host: host, Nodes: nodes}
	}
	mamba := func(host tree.Slots, nodes ...tree.NodeID) tree.Transfer {
		return tree.Transfer{Component: tree.Mamba, Host: host, Nodes: nodes}
	}
	for name, c := range map[string]struct {
		full tree.Slots
		aux  []tree.Transfer
	}{
		"full too short":       {full: slots(1)},
		"not configured":       {aux: []tree.Transfer{{Component: 7}}},
		"full as aux":          {aux: []tree.Transfer{{Component: tree.Full}}},
		"two transfers":        {aux: []tree.Transfer{mamba(slots(1)), mamba(slots(2))}},
		"a node twice":         {aux: []tree.Transfer{swa(slots(1, -4), n[1], n[1])}},
		"left over":            {aux: []tree.Transfer{swa(slots(1, -3), n[1])}},
		"root":                 {aux: []tree.Transfer{mamba(slots(1), r.Root())}},
		"no state":             {aux: []tree.Transfer{mamba(nil)}},
		"opaque":               {full: tree.Slots{{Buffer: 3, Length: 2}}},
		"two nodes, one state": {aux: []tree.Transfer{mamba(slots(1), n...)}},
	} {
		_, err := r.CommitBackup(n[1], c.full, c.aux)
		fails[*tree.ArgumentError](r, name, err)
	}
	_, err := r.CommitBackup(n[0], slots(1, 2), nil)
	fails[*tree.ArgumentError](r, "backed up already", err)
	_, err = r.CommitBackup(n[1], slots(1, 2), []tree.Transfer{swa(nil, 999)})
	fails[*tree.NodeAccessError](r, "stale", err)
	_, err = r.BuildBackupSpec(r.Root())
	fails[*tree.OrderError](r, "root", err)
	_, err = r.MarkWriteThroughPending(n, 0)
	fails[*tree.ArgumentError](r, "ack 0", err)
	_, err = r.MarkWriteThroughPending(ids(n[0], r.Root()), 4)
	fails[*tree.ArgumentError](r, "root", err)
	fails[*tree.ArgumentError](r, "root", r.FinishWriteThrough(ids(r.Root()), 4))
	fails[*tree.NodeAccessError](r, "stale", r.FinishWriteThrough(ids(n[0], 999), 4))
	publish, err := r.MarkWriteThroughPending(nil, 4)
	r.ok(err)
	r.equal("empty", len(publish), 0)
	r.equal("nothing changed", r.shape(), before)
	r.backup(n[1])
	r.demote(n[1])
	_, err = r.BuildBackupSpec(n[1])
	fails[*tree.OrderError](r, "evicted", err)
}

func TestIncrementalBackupSpec(t *testing.T) {
	r := hostRig(t, withSWA(4, 8), false) // X-BK-14
	c := r.chain(4)[0]
	w := r.start(c, true)
	r.nodes[c].host[tree.SWA] = nil // as if SWA had come only now
	r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 4})
	r.equal("X-BK-14: pending", r.transcript, []string{""})
	r.finish(w)
	r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 4})
	r.equal("X-BK-14: after the ack", r.transcript, []string{"backup([2],4,true)"})

	for _, writeBack := range []bool{false, true} { // X-BK-15 to X-BK-17
		r = hostRig(t, withAll(4, 8, 4), writeBack)
		c = r.chain(4)[0]
		r.setHost(c, tree.Full, tree.SWA)
		r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 4, MambaState: slots(900)})
		spec, err := r.BuildBackupSpec(c)
		r.ok(err)
		r.equal("X-BK-17: only the state", spec, tree.BackupSpec{
			Full: tree.Slots{},
			Aux:  []tree.Transfer{{Component: tree.Mamba, Device: slots(504), Nodes: ids(c)}},
		})
		want := "backup([2],4,true)"
		if writeBack {
			want = "" // X-BK-15
		}
		r.equal("X-BK-15, X-BK-17", r.transcript[0], want)
	}
	r = hostRig(t, withSWA(4, 8), true)
	c = r.chain(4)[0]
	r.setHost(c, tree.Full)
	r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 4})
	r.equal("X-BK-16", r.transcript[0], "backup([2],4,true)")
	spec, err := r.BuildBackupSpec(c)
	r.ok(err)
	r.equal("X-BK-16", []int{spec.Full.Len(), len(spec.Aux), spec.Aux[0].Device.Len()}, []int{0, 1, 4})
}
