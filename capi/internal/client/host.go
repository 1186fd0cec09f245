// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

func (m *Machine) LockHost(id tree.NodeID) (tree.Receipt, error) {
	return get(m, C.tc_lock_host(m.core, C.tc_node(id), m.out), (*reader).receipt)
}

func (m *Machine) UnlockHost(id tree.NodeID, r tree.Receipt) error {
	return m.done(C.tc_unlock_host(m.core, C.tc_node(id), m.receipt(r), m.out))
}

func (m *Machine) BuildBackupSpec(id tree.NodeID) (tree.BackupSpec, error) {
	return get(m, C.tc_build_backup_spec(m.core, C.tc_node(id), m.out), func(r *reader) tree.BackupSpec {
		return tree.BackupSpec{Full: r.slots(), Aux: r.transfers()}
	})
}

func (m *Machine) CommitBackup(id tree.NodeID, full tree.Slots, aux []tree.Transfer) (tree.Frees, error) {
	p, n := m.transfers(aux)
	return get(m, C.tc_commit_backup(m.core, C.tc_node(id), m.slots(full), p, n, m.out), (*reader).frees)
}

func (m *Machine) MarkWriteThroughPending(ids []tree.NodeID, ack int64) ([]tree.NodeID, error) {
	p, n := m.nodes(ids)
	return get(m, C.tc_mark_write_through_pending(m.core, p, n, C.int64_t(ack), m.out), (*reader).nodes)
}

func (m *Machine) FinishWriteThrough(ids []tree.NodeID, ack int64) error {
	p, n := m.nodes(ids)
	return m.done(C.tc_finish_write_through(m.core, p, n, C.int64_t(ack), m.out))
}

func (m *Machine) UndoBackup(id tree.NodeID, components tree.ComponentSet, ack int64) (tree.Frees, error) {
	return get(m, C.tc_undo_backup(m.core, C.tc_node(id), C.uint32_t(components), C.int64_t(ack), m.out), (*reader).frees)
}

func (m *Machine) BuildLoadBackSpec(id tree.NodeID) (tree.LoadBackSpec, error) {
	return get(m, C.tc_build_load_back_spec(m.core, C.tc_node(id), m.out), func(r *reader) tree.LoadBackSpec {
		return tree.LoadBackSpec{Pinned: r.truth(), Full: r.transfer(), Aux: r.transfers()}
	})
}

func (m *Machine) CommitLoadBack(id tree.NodeID, full tree.Slots, spec tree.LoadBackSpec) ([]tree.Action, error) {
	f, _ := m.transfers([]tree.Transfer{spec.Full})
	p, n := m.transfers(spec.Aux)
	return get(m, C.tc_commit_load_back(m.core, C.tc_node(id), m.slots(full), f, p, n, flag(spec.Pinned), m.out), (*reader).actions)
}

func (m *Machine) FinishLoadBack(id tree.NodeID) error {
	return m.done(C.tc_finish_load_back(m.core, C.tc_node(id), m.out))
}

func (m *Machine) EvictHost(c tree.Component, n int) (tree.Evicted, error) {
	return get(m, C.tc_evict_host(m.core, C.uint32_t(c), C.int64_t(n), m.out), (*reader).evicted)
}

func (m *Machine) DropSubtreeNoHost(id tree.NodeID) (out tree.Evicted, dropped bool, err error) {
	out, err = get(m, C.tc_drop_subtree_no_host(m.core, C.tc_node(id), m.out), func(r *reader) tree.Evicted {
		dropped = r.truth()
		return r.evicted()
	})
	return out, dropped, err
}

func (m *Machine) FinishStateEviction(c tree.Component, id tree.NodeID) (tree.EvictStep, error) {
	return get(m, C.tc_finish_state_eviction(m.core, C.uint32_t(c), C.tc_node(id), m.out), (*reader).evictStep)
}

func (m *Machine) InsertHost(p tree.HostInsertParams) (tree.HostInsertResult, error) {
	hashes, n := array(m, p.Hashes)
	return get(m, C.tc_insert_host(m.core, C.tc_node(p.Anchor), m.key(p.Key), m.slots(p.Slots), (*C.uint8_t)(hashes), n, m.out), func(r *reader) tree.HostInsertResult {
		return tree.HostInsertResult{PrefixLen: r.count(), TotalLen: r.count(), Node: r.node(), Dropped: r.truth(), Actions: r.actions()}
	})
}

func (m *Machine) CommitPrefetch(p tree.PrefetchCommit) (tree.PrefetchResult, error) {
	c := (*C.tc_host_inserted)(m.memory(C.sizeof_tc_host_inserted))
	c.prefix_len, c.total_len = C.int64_t(p.Inserted.PrefixLen), C.int64_t(p.Inserted.TotalLen)
	c.node, c.dropped = C.int64_t(p.Inserted.Node), C.int64_t(flag(p.Inserted.Dropped))
	t, n := m.transfers(p.Aux)
	return get(m, C.tc_commit_prefetch(m.core, C.tc_node(p.Anchor), c, t, n, m.units(p.Found), m.out), func(r *reader) tree.PrefetchResult {
		return tree.PrefetchResult{MambaExist: r.truth(), Frees: r.frees(), Actions: r.actions()}
	})
}

func (m *Machine) BuildStorageSpec(id tree.NodeID, withPrefix bool) (spec tree.StorageSpec, ok bool, err error) {
	spec, err = get(m, C.tc_build_storage_spec(m.core, C.tc_node(id), flag(withPrefix), m.out), func(r *reader) (s tree.StorageSpec) {
		if ok = r.truth(); ok {
			s = tree.StorageSpec{Full: r.slots(), Tokens: r.tokens(), Hashes: r.digests(), Prefix: r.digests(), Aux: r.transfers()}
		}
		return s
	})
	return spec, ok, err
}

func (m *Machine) MarkStored(from, until tree.NodeID) error {
	return m.done(C.tc_mark_stored(m.core, C.tc_node(from), C.tc_node(until), m.out))
}

func (m *Machine) BuildOffload(id tree.NodeID) ([]tree.Transfer, error) {
	return get(m, C.tc_build_offload(m.core, C.tc_node(id), m.out), (*reader).transfers)
}

func (m *Machine) MarkOffloadPending(id tree.NodeID) error {
	return m.done(C.tc_mark_offload_pending(m.core, C.tc_node(id), m.out))
}

func (m *Machine) FinishOffload(ids []tree.NodeID, ack int64, success bool) error {
	p, n := m.nodes(ids)
	return m.done(C.tc_finish_offload(m.core, p, n, C.int64_t(ack), flag(success), m.out))
}

func (m *Machine) SnapshotBufferBackup(id tree.NodeID, withPrefix bool) (s tree.BufferSnapshot, ok bool) {
	r := m.must(C.tc_snapshot_buffer_backup(m.core, C.tc_node(id), flag(withPrefix), m.out))
	if ok = r.truth(); ok {
		s.Node, s.Parent, s.ParentIsRoot, s.HasParent, s.ParentHash = r.node(), r.node(), r.truth(), r.truth(), r.digest()
		s.Hashes, s.Key.Tokens, s.Key.Namespace, s.Key.Bigram = r.digests(), r.tokens(), r.namespace(), r.truth()
		s.Units, s.Prefix = r.count(), r.digests()
	}
	r.end()
	return s, ok
}

func (m *Machine) ValidateBufferBackup(id tree.NodeID, units int) (s tree.BufferState, ok bool) {
	r := m.must(C.tc_validate_buffer_backup(m.core, C.tc_node(id), C.int64_t(units), m.out))
	if ok = r.truth(); ok {
		s = tree.BufferState{Parent: r.node(), ParentIsRoot: r.truth(), HasParent: r.truth(), ParentHash: r.digest()}
	}
	r.end()
	return s, ok
}
