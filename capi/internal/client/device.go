// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

func (m *Machine) Reset()            { m.must(C.tc_reset(m.core, m.out)) }
func (m *Machine) Root() tree.NodeID { return m.must(C.tc_root(m.core, m.out)).node() }

func (m *Machine) IsRoot(id tree.NodeID) (bool, error) {
	return get(m, C.tc_is_root(m.core, C.tc_node(id), m.out), (*reader).truth)
}

func (m *Machine) IsBackedUp(id tree.NodeID) (bool, error) {
	return get(m, C.tc_is_backed_up(m.core, C.tc_node(id), m.out), (*reader).truth)
}

func (m *Machine) IsFullDeviceEvicted(id tree.NodeID) (bool, error) {
	return get(m, C.tc_is_full_device_evicted(m.core, C.tc_node(id), m.out), (*reader).truth)
}

func (m *Machine) SetSwitches(s tree.Switches) error {
	var set C.uint32_t
	for i, on := range []bool{s.HostTier, s.Storage, s.WriteBack, s.SWAHostPool, s.HostBufferOnly, s.ExternalLinker, s.SWARingLayout} {
		if on {
			set |= 1 << i
		}
	}
	return m.done(C.tc_set_switches(m.core, set, C.int64_t(s.WriteThroughThreshold), m.out))
}

func (m *Machine) PrefetchAnchor(id tree.NodeID) (tree.Namespace, error) {
	return get(m, C.tc_prefetch_anchor(m.core, C.tc_node(id), m.out), (*reader).namespace)
}

func (m *Machine) Match(k tree.Key) (tree.MatchResult, error) {
	return get(m, C.tc_match(m.core, m.key(k), m.out), (*reader).match)
}

func (m *Machine) EmptyMatch() tree.MatchResult {
	return m.must(C.tc_empty_match(m.core, m.out)).match()
}

func (r *reader) match() (v tree.MatchResult) {
	v.DeviceLen = r.count()
	v.LastDeviceNode, v.BestNode, v.LastHostNode = r.node(), r.node(), r.node()
	v.HostHitLen, v.SWAHostHitLen, v.MambaHostHitLen, v.FullHitLen = r.count(), r.count(), r.count(), r.count()
	v.SWABranchingLen, v.MambaBranchingLen = r.count(), r.count()
	v.Explanation = tree.Explanation{
		Matched: v.DeviceLen, FullOnly: v.FullHitLen,
		Limited: r.truth(), LimitedBy: tree.Component(r.integer()), Reason: tree.Reason(r.integer()),
		Device: r.count(), Host: r.count(), Units: r.count(), PageRemainder: r.count(),
	}
	v.DeviceSlots, v.Actions = r.slots(), r.actions()
	return v
}

func (m *Machine) MatchFullDevicePrefix(k tree.Key) (tree.FullPrefix, error) {
	return get(m, C.tc_match_full_device_prefix(m.core, m.key(k), m.out), func(r *reader) tree.FullPrefix {
		return tree.FullPrefix{Matched: r.count(), Node: r.node(), Pinned: r.count()}
	})
}

func (m *Machine) CollectFullDeviceSlots(from, until tree.NodeID) (tree.Slots, error) {
	return get(m, C.tc_collect_full_device_slots(m.core, C.tc_node(from), C.tc_node(until), m.out), (*reader).slots)
}

func (m *Machine) BeginInsert(p tree.InsertParams) (tree.InsertStep, error) {
	c := (*C.tc_insert)(m.memory(C.sizeof_tc_insert))
	c.size = C.sizeof_tc_insert
	if p.Chunked {
		c.flags |= C.TC_INSERT_CHUNKED
	}
	if p.TrackAdopted {
		c.flags |= C.TC_INSERT_TRACK_ADOPTED
	}
	m.fill(&c.key, p.Key)
	m.fillSlots(&c.slots, p.Slots)
	m.fillSlots(&c.mamba_state, p.MambaState)
	c.prev_prefix_len, c.swa_evicted_len = C.int64_t(p.PrevPrefixLen), C.int64_t(p.SWAEvictedLen)
	c.swa_branching_len, c.priority = C.int64_t(p.SWABranchingLen), C.int64_t(p.Priority)
	c.session, c.session_length = m.text(p.SessionID)
	return get(m, C.tc_begin_insert(m.core, c, m.out), (*reader).step)
}

func (m *Machine) ResumeInsert() (tree.InsertStep, error) {
	return get(m, C.tc_resume_insert(m.core, m.out), (*reader).step)
}

func (r *reader) step() (s tree.InsertStep) {
	s.Actions = r.actions()
	if r.truth() {
		s.Result = &tree.InsertResult{PrefixLen: r.count(), LastDeviceNode: r.node(), MambaExist: r.truth(), SWABranchInserted: r.truth()}
		if r.truth() {
			s.Result.Adopted = &[tree.NumComponents][]tree.Range{r.ranges(), r.ranges(), r.ranges()}
		}
	}
	return s
}

func (m *Machine) HasOngoingInsert() bool {
	return m.must(C.tc_has_ongoing_insert(m.core, m.out)).truth()
}

func (m *Machine) EndInsert() []tree.Action {
	return m.must(C.tc_end_insert(m.core, m.out)).actions()
}

func (m *Machine) SetComponentDeviceValue(id tree.NodeID, c tree.Component, s tree.Slots) error {
	return m.done(C.tc_set_component_device_value(m.core, C.tc_node(id), C.uint32_t(c), m.slots(s), m.out))
}

func (m *Machine) ComponentDeviceValue(id tree.NodeID, c tree.Component) (tree.Slots, error) {
	return get(m, C.tc_component_device_value(m.core, C.tc_node(id), C.uint32_t(c), m.out), (*reader).slots)
}

func (m *Machine) ComponentHasHostValueOnly(id tree.NodeID, c tree.Component) (bool, error) {
	return get(m, C.tc_component_has_host_value_only(m.core, C.tc_node(id), C.uint32_t(c), m.out), (*reader).truth)
}

func (m *Machine) EvictExcessPathStates(tail tree.NodeID) (tree.Evicted, error) {
	return get(m, C.tc_evict_excess_path_states(m.core, C.tc_node(tail), m.out), (*reader).evicted)
}

func (m *Machine) SWATombstoneRanges(k tree.Key, start, end int) ([]tree.Range, error) {
	return get(m, C.tc_swa_tombstone_ranges(m.core, m.key(k), C.int64_t(start), C.int64_t(end), m.out), (*reader).ranges)
}

func (m *Machine) AttachSWAWindow(k tree.Key, start, end int, swa tree.Slots) ([]tree.Action, error) {
	return get(m, C.tc_attach_swa_window(m.core, m.key(k), C.int64_t(start), C.int64_t(end), m.slots(swa), m.out), (*reader).actions)
}

func (m *Machine) Lock(id tree.NodeID, skip tree.ComponentSet) (tree.Receipt, error) {
	return get(m, C.tc_lock(m.core, C.tc_node(id), C.uint32_t(skip), m.out), (*reader).receipt)
}

func (m *Machine) Unlock(id tree.NodeID, r tree.Receipt, skipSWA bool) error {
	return m.done(C.tc_unlock(m.core, C.tc_node(id), m.receipt(r), flag(skipSWA), m.out))
}

func (m *Machine) ReleaseSWALock(id tree.NodeID, r tree.Receipt) (tree.Evicted, error) {
	return get(m, C.tc_release_swa_lock(m.core, C.tc_node(id), m.receipt(r), m.out), (*reader).evicted)
}

func (m *Machine) ReleaseWindowLock(id tree.NodeID, c tree.Component, r tree.Receipt) (tree.Evicted, error) {
	return get(m, C.tc_release_window_lock(m.core, C.tc_node(id), C.uint32_t(c), m.receipt(r), m.out), (*reader).evicted)
}

func (m *Machine) PinFull(id tree.NodeID) error {
	return m.done(C.tc_pin_full(m.core, C.tc_node(id), m.out))
}

func (m *Machine) UnpinFull(id tree.NodeID) error {
	return m.done(C.tc_unpin_full(m.core, C.tc_node(id), m.out))
}

func (m *Machine) EvictStart(c tree.Component, n int) error {
	return m.done(C.tc_evict_start(m.core, C.uint32_t(c), C.int64_t(n), m.out))
}

func (m *Machine) EvictNext(c tree.Component, totals tree.Units) (tree.EvictStep, error) {
	return get(m, C.tc_evict_next(m.core, C.uint32_t(c), m.units(totals), m.out), (*reader).evictStep)
}

func (r *reader) evictStep() tree.EvictStep {
	return tree.EvictStep{
		Node: r.node(), MadeProgress: r.truth(), Paused: r.node(), PausedFor: tree.Component(r.integer()), PausedUnits: r.count(),
		Evicted: r.evicted(),
	}
}

func (m *Machine) EvictLeaf(id tree.NodeID, writeBack bool) (tree.EvictLeafResult, error) {
	return get(m, C.tc_evict_leaf(m.core, C.tc_node(id), flag(writeBack), m.out), func(r *reader) (v tree.EvictLeafResult) {
		if r.truth() {
			v.Backup = r.backup()
		}
		v.Evicted = r.evicted()
		return v
	})
}

func (m *Machine) EvictEnd(c tree.Component) error {
	return m.done(C.tc_evict_end(m.core, C.uint32_t(c), m.out))
}

// Evict is the eviction in one call, which no machine but this has.
func (m *Machine) Evict(u tree.Units) (tree.Evicted, error) {
	return get(m, C.tc_evict(m.core, m.units(u), m.out), (*reader).evicted)
}

func (m *Machine) Demote(id tree.NodeID) (tree.Evicted, error) {
	return get(m, C.tc_demote(m.core, C.tc_node(id), m.out), (*reader).evicted)
}
