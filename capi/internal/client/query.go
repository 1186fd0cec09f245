// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

// sizes are all counters that one call returns.
type sizes struct {
	evictable, protected tree.Units
	digest               uint64
	inserting            bool
	root                 tree.NodeID
	nodes                int
}

func (m *Machine) sizes() sizes {
	r := m.must(C.tc_sizes(m.core, m.out))
	v := sizes{r.units(), r.units(), uint64(r.integer()), r.truth(), r.node(), r.count()}
	r.end()
	return v
}

func (m *Machine) EvictableSize(c tree.Component) int {
	if c >= tree.NumComponents {
		return 0
	}
	return m.sizes().evictable[c]
}

func (m *Machine) ProtectedSize(c tree.Component) int {
	if c >= tree.NumComponents {
		return 0
	}
	return m.sizes().protected[c]
}

func (m *Machine) ReclaimDigest() uint64 { return m.sizes().digest }

func (m *Machine) TotalSize() (full, aux int) {
	r := m.must(C.tc_total_size(m.core, m.out))
	return r.count(), r.count()
}

func (m *Machine) OpenSession(id string) int64 {
	p, n := m.text(id)
	return m.must(C.tc_open_session(m.core, p, n, m.out)).integer()
}

func (m *Machine) EnsureSession(id string) int64 {
	p, n := m.text(id)
	return m.must(C.tc_ensure_session(m.core, p, n, m.out)).integer()
}

func (m *Machine) RegisterSession(id string, generation int64, last tree.NodeID) error {
	p, n := m.text(id)
	return m.done(C.tc_register_session(m.core, p, n, C.int64_t(generation), C.tc_node(last), m.out))
}

func (m *Machine) ReleaseSession(id string) {
	p, n := m.text(id)
	m.must(C.tc_release_session(m.core, p, n, m.out))
}

func (m *Machine) FlattenFull() tree.Slots {
	return m.must(C.tc_flatten_full(m.core, m.out)).slots()
}

func (m *Machine) FlattenMamba() tree.Slots {
	return m.must(C.tc_flatten_mamba(m.core, m.out)).slots()
}

func (m *Machine) WalkCanary(unlockedOnly, swaResidentOnly bool) []tree.CanaryRow {
	return items(m.must(C.tc_walk_canary(m.core, flag(unlockedOnly), flag(swaResidentOnly), m.out)), func(r *reader) tree.CanaryRow {
		return tree.CanaryRow{Slot: r.integer(), Position: r.count(), Previous: r.integer()}
	})
}

func (m *Machine) DFSWeightOrder(ids []tree.NodeID) ([]int, error) {
	p, n := m.nodes(ids)
	return get(m, C.tc_dfs_weight_order(m.core, p, n, m.out), (*reader).ints)
}

func (m *Machine) SanityCheck(writeThrough, loadBack []tree.InFlight) error {
	w, wn := m.inFlight(writeThrough)
	l, ln := m.inFlight(loadBack)
	return m.done(C.tc_sanity_check(m.core, w, wn, l, ln, m.out))
}

func (m *Machine) LastHash(id tree.NodeID) (d tree.Digest, ok bool, err error) {
	if err = m.done(C.tc_last_hash(m.core, C.tc_node(id), m.out)); err != nil {
		return d, false, err
	}
	r := m.answer()
	ok = r.truth()
	return r.digest(), ok, nil
}

func (m *Machine) PrefixHashes(id tree.NodeID) ([]tree.Digest, error) {
	return get(m, C.tc_prefix_hashes(m.core, C.tc_node(id), m.out), (*reader).digests)
}

func (m *Machine) Hashes(id tree.NodeID) ([]tree.Digest, error) {
	return get(m, C.tc_hashes(m.core, C.tc_node(id), m.out), (*reader).digests)
}

func (m *Machine) BackfillHashes() int {
	return m.must(C.tc_backfill_hashes(m.core, m.out)).count()
}

func (m *Machine) TakeEvents() []tree.Event {
	return items(m.must(C.tc_take_events(m.core, m.out)), func(r *reader) tree.Event {
		return tree.Event{
			Kind: tree.EventKind(r.integer()), Medium: tree.Medium(r.integer()), Blocks: items(r, (*reader).integer),
			HasParent: r.truth(), Parent: r.integer(), Tokens: r.tokens(), BlockSize: r.count(), CacheSalt: r.text(), SessionID: r.text(),
		}
	})
}

func (m *Machine) RecordAllCleared() { m.must(C.tc_record_all_cleared(m.core, m.out)) }

func (m *Machine) Contains(id tree.NodeID) bool {
	return m.must(C.tc_contains(m.core, C.tc_node(id), m.out)).truth()
}

func (m *Machine) IsDeviceEvictableLeaf(id tree.NodeID) bool {
	return m.must(C.tc_evictable_leaf(m.core, C.tc_node(id), m.out)).truth()
}

func (m *Machine) IsHostEvictableLeaf(id tree.NodeID) bool {
	r := m.must(C.tc_evictable_leaf(m.core, C.tc_node(id), m.out))
	r.truth()
	return r.truth()
}

func (m *Machine) Nodes() []tree.NodeID {
	return m.must(C.tc_nodes(m.core, m.out)).nodes()
}

func (m *Machine) RecencyOrder(c tree.Component, host bool) []tree.NodeID {
	if c >= tree.NumComponents {
		return nil
	}
	return m.must(C.tc_recency_order(m.core, C.uint32_t(c), flag(host), m.out)).nodes()
}

func (m *Machine) HostDuplicates() []tree.NodeID {
	return m.must(C.tc_host_duplicates(m.core, m.out)).nodes()
}

func (m *Machine) Inspect(id tree.NodeID) (tree.NodeInfo, error) {
	return get(m, C.tc_inspect(m.core, C.tc_node(id), m.out), func(r *reader) (n tree.NodeInfo) {
		n.ID, n.Parent, n.Children, n.Namespace = r.node(), r.node(), r.nodes(), r.namespace()
		n.Tokens, n.Units, n.Bigram, n.Hits = r.tokens(), r.count(), r.truth(), r.integer()
		n.Priority, n.DeviceLeaf = r.integer(), r.truth()
		for i := range n.Components {
			n.Components[i] = tree.ComponentInfo{
				Device: r.slots(), Host: r.slots(), Locks: r.count(), HostLocks: r.count(), SessionRefs: r.count(),
				Sessions: items(r, (*reader).text), InDeviceList: r.truth(), InHostList: r.truth(), HostBoundary: uint64(r.integer()),
			}
		}
		n.SWABoundary, n.WriteThroughPending, n.LoadBackPending = uint64(r.integer()), r.integer(), r.integer()
		n.Stored = r.truth()
		return n
	})
}
