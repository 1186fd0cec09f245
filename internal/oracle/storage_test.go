// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestStorageSpec(t *testing.T) {
	r := hostRig(t, full(2), false) // X-ST-1
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, Storage: true, WriteThroughThreshold: 99}))
	r.insert(tree.InsertParams{Key: key(1, -4)})
	b := r.node(1, -4)
	r.insert(tree.InsertParams{Key: key(1, 2, 5, 6)})
	a, c := r.node(1, 2), r.node(5, 6)
	want := r.chain2(t)
	r.equal("X-ST-1", []tree.Digest{r.hashes(r.nodes[a])[0], r.hashes(r.nodes[b])[0]}, want)
	prefix, err := r.PrefixHashes(c)
	r.ok(err)
	r.equal("X-ST-1", []any{prefix, len(r.hashes(r.nodes[c]))}, []any{want[:1], 1})

	_, ok, err := r.BuildStorageSpec(b, true)
	r.ok(err)
	r.equal("not backed up", ok, false)
	r.backup(a, b)
	spec, ok, err := r.BuildStorageSpec(b, true)
	r.ok(err)
	r.equal("spec", []any{spec, ok}, []any{tree.StorageSpec{
		Full: runs(r.nodes[b].host[tree.Full]), Tokens: []tree.Token{3, 4}, Hashes: want[1:], Prefix: want[:1],
	}, true})
	spec, _, _ = r.BuildStorageSpec(b, false)
	r.equal("no prefix", spec.Prefix, []tree.Digest(nil))
	_, ok, err = r.BuildStorageSpec(r.Root(), true)
	r.equal("root", []any{ok, err}, []any{false, nil})
	_, _, err = r.BuildStorageSpec(999, true)
	fails[*tree.NodeAccessError](r, "stale", err)

	r = hostRig(t, withAll(2, 6, 2), false) // X-ST-6
	n := r.chain(6)[0]
	r.setHost(n, allComponents...)
	spec, _, err = r.BuildStorageSpec(n, false)
	r.ok(err)
	r.equal("never hashed", []int{len(spec.Hashes), len(spec.Aux)}, []int{0, 0})
	r.BackfillHashes()
	r.nodes[n].host[tree.SWA] = []tree.Slot{30, 31, 32, 33} // no call makes this
	spec, _, err = r.BuildStorageSpec(n, false)
	r.ok(err)
	hashes := r.hashes(r.nodes[n])
	r.equal("X-ST-6", spec.Aux, []tree.Transfer{
		{Component: tree.SWA, Host: slots(30, -33), Nodes: ids(n), Keys: hashes[1:]},
		{Component: tree.Mamba, Host: runs(r.nodes[n].host[tree.Mamba]), Nodes: ids(n), Keys: hashes[2:]},
	})
}

// chain2 returns the digests of the tokens 1, 2, 3, 4 in pages of two, from an
// oracle of its own (X-H-2).
func (r *rig) chain2(t *testing.T) []tree.Digest {
	other := newRig(t, full(2))
	id := other.insert(tree.InsertParams{Key: key(1, -4)}).LastDeviceNode
	other.BackfillHashes()
	digests := other.hashes(other.nodes[id])
	r.equal("X-H-2", digests[0].String(), "34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f")
	return digests
}

func TestBufferBackup(t *testing.T) { // BO-6, BO-10
	r := hostRig(t, full(2), false)
	n := r.chain(4, 2)
	r.BackfillHashes()
	_, ok := r.SnapshotBufferBackup(n[0], true)
	r.equal("storage is off", ok, false)
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, HostBufferOnly: true, Storage: true, WriteThroughThreshold: 99}))
	hashes := r.hashes(r.nodes[n[0]])
	snapshot, ok := r.SnapshotBufferBackup(n[1], true)
	r.equal("snapshot", []any{snapshot, ok}, []any{tree.BufferSnapshot{
		Node: n[1], Parent: n[0], ParentHash: hashes[1], HasParent: true,
		Hashes: r.hashes(r.nodes[n[1]]), Key: key(5, 6), Units: 2, Prefix: hashes,
	}, true})
	snapshot, ok = r.SnapshotBufferBackup(n[0], false)
	r.equal("below the root", []any{ok, snapshot.ParentIsRoot, snapshot.HasParent, len(snapshot.Prefix)}, []any{true, true, false, 0})
	for name, id := range map[string]tree.NodeID{"root": r.Root(), "stale": 999} {
		_, ok = r.SnapshotBufferBackup(id, true)
		r.equal(name, ok, false)
		_, ok = r.ValidateBufferBackup(id, 2)
		r.equal(name, ok, false)
	}
	state, ok := r.ValidateBufferBackup(n[1], 2)
	r.equal("valid", []any{state, ok}, []any{tree.BufferState{Parent: n[0], ParentHash: hashes[1], HasParent: true}, true})
	r.match(key(1, 2, 99, 99))
	_, ok = r.ValidateBufferBackup(n[0], 4)
	r.equal("split", ok, false)
	r.nodes[n[1]].hasHashes = false
	_, ok = r.SnapshotBufferBackup(n[1], true)
	r.equal("no list", ok, false)
}
