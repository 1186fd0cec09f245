// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_match
func tc_match(handle C.tc_core, key *C.tc_key, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		k, err := c.key("Match", key, &c.read, false)
		if err != nil {
			return err
		}
		r, err := c.tree.Match(k)
		if err != nil {
			return err
		}
		c.out.match(&r)
		return nil
	})
}

//export tc_empty_match
func tc_empty_match(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		r := c.tree.EmptyMatch()
		c.out.match(&r)
		return nil
	})
}

// match writes the words of tc_match_head, the slots and the actions.
func (w *writer) match(r *tree.MatchResult) {
	w.count(r.DeviceLen)
	w.node(r.LastDeviceNode)
	w.node(r.BestNode)
	w.node(r.LastHostNode)
	w.count(r.HostHitLen)
	w.count(r.SWAHostHitLen)
	w.count(r.MambaHostHitLen)
	w.count(r.FullHitLen)
	w.count(r.SWABranchingLen)
	w.count(r.MambaBranchingLen)
	e := &r.Explanation
	w.truth(e.Limited)
	w.integer(int64(e.LimitedBy))
	w.integer(int64(e.Reason))
	w.count(e.Device)
	w.count(e.Host)
	w.count(e.Units)
	w.count(e.PageRemainder)
	w.slots(r.DeviceSlots)
	w.actions(r.Actions)
}

//export tc_match_full_device_prefix
func tc_match_full_device_prefix(handle C.tc_core, key *C.tc_key, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		k, err := c.key("MatchFullDevicePrefix", key, &c.read, false)
		if err != nil {
			return err
		}
		p, err := c.tree.MatchFullDevicePrefix(k)
		if err != nil {
			return err
		}
		c.out.count(p.Matched)
		c.out.node(p.Node)
		c.out.count(p.Pinned)
		return nil
	})
}

//export tc_collect_full_device_slots
func tc_collect_full_device_slots(handle C.tc_core, from, until C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, err := c.tree.CollectFullDeviceSlots(tree.NodeID(from), tree.NodeID(until))
		if err == nil {
			c.out.slots(s)
		}
		return err
	})
}
