// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_begin_insert
func tc_begin_insert(handle C.tc_core, insert *C.tc_insert, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "BeginInsert"
		if c.tree.HasOngoingInsert() {
			// Its tokens stand where those of this one would go.
			return &tree.OrderError{Op: op, Problem: "an insert is suspended: end it first"}
		}
		if insert == nil {
			return bad(op, "insert", "it is null")
		}
		if insert.size != C.sizeof_tc_insert {
			return bad(op, "insert.size", "it is %d: set it to sizeof(tc_insert), here %d", uint32(insert.size), C.sizeof_tc_insert)
		}
		if insert.flags&^(C.TC_INSERT_CHUNKED|C.TC_INSERT_TRACK_ADOPTED) != 0 {
			return bad(op, "insert.flags", "%#x has unknown bits", uint32(insert.flags))
		}
		p := tree.InsertParams{
			PrevPrefixLen: int(insert.prev_prefix_len), SWAEvictedLen: int(insert.swa_evicted_len),
			SWABranchingLen: int(insert.swa_branching_len), Priority: int64(insert.priority),
			Chunked:      insert.flags&C.TC_INSERT_CHUNKED != 0,
			TrackAdopted: insert.flags&C.TC_INSERT_TRACK_ADOPTED != 0,
		}
		var err error
		if p.Key, err = c.key(op, &insert.key, &c.insert, true); err != nil {
			return err
		}
		if p.Slots, err = slots(op, "slots", &insert.slots); err != nil {
			return err
		}
		if p.MambaState, err = slots(op, "mamba_state", &insert.mamba_state); err != nil {
			return err
		}
		if p.SessionID, err = text(op, "session", insert.session, insert.session_length); err != nil {
			return err
		}
		return c.step(c.tree.BeginInsert(p))
	})
}

//export tc_resume_insert
func tc_resume_insert(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.step(c.tree.ResumeInsert()) })
}

func (c *core) step(s tree.InsertStep, err error) error {
	if err != nil {
		return err
	}
	w := &c.out
	w.actions(s.Actions)
	w.truth(s.Result != nil)
	if r := s.Result; r != nil {
		w.count(r.PrefixLen)
		w.node(r.LastDeviceNode)
		w.truth(r.MambaExist)
		w.truth(r.SWABranchInserted)
		w.truth(r.Adopted != nil)
		if r.Adopted != nil {
			for _, ranges := range r.Adopted {
				w.ranges(ranges)
			}
		}
	}
	return nil
}

//export tc_has_ongoing_insert
func tc_has_ongoing_insert(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.truth(c.tree.HasOngoingInsert())
		return nil
	})
}

//export tc_end_insert
func tc_end_insert(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.actions(c.tree.EndInsert())
		return nil
	})
}

//export tc_set_component_device_value
func tc_set_component_device_value(handle C.tc_core, node C.tc_node, which C.uint32_t, value *C.tc_slots, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "SetComponentDeviceValue"
		id, err := component(op, which)
		if err != nil {
			return err
		}
		s, err := slots(op, "slots", value)
		if err != nil {
			return err
		}
		return c.tree.SetComponentDeviceValue(tree.NodeID(node), id, s)
	})
}

//export tc_component_device_value
func tc_component_device_value(handle C.tc_core, node C.tc_node, which C.uint32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("ComponentDeviceValue", which)
		if err != nil {
			return err
		}
		s, err := c.tree.ComponentDeviceValue(tree.NodeID(node), id)
		if err == nil {
			c.out.slots(s)
		}
		return err
	})
}

//export tc_component_has_host_value_only
func tc_component_has_host_value_only(handle C.tc_core, node C.tc_node, which C.uint32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("ComponentHasHostValueOnly", which)
		if err != nil {
			return err
		}
		return c.answer(c.tree.ComponentHasHostValueOnly(tree.NodeID(node), id))
	})
}

// answer writes the answer to a question.
func (c *core) answer(v bool, err error) error {
	if err == nil {
		c.out.truth(v)
	}
	return err
}

// dropped writes what a call dropped.
func (c *core) dropped(e tree.Evicted, err error) error {
	if err == nil {
		c.out.evicted(&e)
	}
	return err
}

//export tc_evict_excess_path_states
func tc_evict_excess_path_states(handle C.tc_core, tail C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.dropped(c.tree.EvictExcessPathStates(tree.NodeID(tail))) })
}

//export tc_swa_tombstone_ranges
func tc_swa_tombstone_ranges(handle C.tc_core, key *C.tc_key, start, end C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		k, err := c.key("SWATombstoneRanges", key, &c.read, false)
		if err != nil {
			return err
		}
		r, err := c.tree.SWATombstoneRanges(k, int(start), int(end))
		if err == nil {
			c.out.ranges(r)
		}
		return err
	})
}

//export tc_attach_swa_window
func tc_attach_swa_window(handle C.tc_core, key *C.tc_key, start, end C.int64_t, swa *C.tc_slots, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "AttachSWAWindow"
		k, err := c.key(op, key, &c.read, false)
		if err != nil {
			return err
		}
		s, err := slots(op, "swa", swa)
		if err != nil {
			return err
		}
		a, err := c.tree.AttachSWAWindow(k, int(start), int(end), s)
		if err == nil {
			c.out.actions(a)
		}
		return err
	})
}
