// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_build_backup_spec
func tc_build_backup_spec(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, err := c.tree.BuildBackupSpec(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.slots(s.Full)
		c.out.transfers(s.Aux)
		return nil
	})
}

//export tc_commit_backup
func tc_commit_backup(handle C.tc_core, node C.tc_node, full *C.tc_slots, aux *C.tc_transfer, auxCount C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "CommitBackup"
		s, err := slots(op, "full", full)
		if err != nil {
			return err
		}
		a, err := transfers(op, "aux", aux, auxCount)
		if err != nil {
			return err
		}
		return c.freed(c.tree.CommitBackup(tree.NodeID(node), s, a))
	})
}

// freed writes what a call gave back.
func (c *core) freed(f tree.Frees, err error) error {
	if err == nil {
		c.out.frees(&f)
	}
	return err
}

//export tc_undo_backup
func tc_undo_backup(handle C.tc_core, node C.tc_node, components C.uint32_t, ack C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, err := set("UndoBackup", "components", components)
		if err != nil {
			return err
		}
		return c.freed(c.tree.UndoBackup(tree.NodeID(node), s, int64(ack)))
	})
}

//export tc_mark_write_through_pending
func tc_mark_write_through_pending(handle C.tc_core, given *C.int64_t, count C.uint64_t, ack C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		ids, err := nodes("MarkWriteThroughPending", "nodes", given, count)
		if err != nil {
			return err
		}
		ids, err = c.tree.MarkWriteThroughPending(ids, int64(ack))
		if err == nil {
			c.out.nodes(ids)
		}
		return err
	})
}

//export tc_finish_write_through
func tc_finish_write_through(handle C.tc_core, given *C.int64_t, count C.uint64_t, ack C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		ids, err := nodes("FinishWriteThrough", "nodes", given, count)
		if err != nil {
			return err
		}
		return c.tree.FinishWriteThrough(ids, int64(ack))
	})
}

//export tc_build_load_back_spec
func tc_build_load_back_spec(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, err := c.tree.BuildLoadBackSpec(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.truth(s.Pinned)
		c.out.transfer(s.Full)
		c.out.transfers(s.Aux)
		return nil
	})
}

//export tc_commit_load_back
func tc_commit_load_back(handle C.tc_core, node C.tc_node, full *C.tc_slots, specFull, aux *C.tc_transfer, auxCount C.uint64_t, pinned C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "CommitLoadBack"
		s, err := slots(op, "full", full)
		if err != nil {
			return err
		}
		if specFull == nil {
			return bad(op, "spec_full", "it is null")
		}
		spec := tree.LoadBackSpec{Pinned: pinned != 0}
		if spec.Full, err = transfer(op, "spec_full", specFull); err != nil {
			return err
		}
		if spec.Aux, err = transfers(op, "aux", aux, auxCount); err != nil {
			return err
		}
		a, err := c.tree.CommitLoadBack(tree.NodeID(node), s, spec)
		if err == nil {
			c.out.actions(a)
		}
		return err
	})
}

//export tc_finish_load_back
func tc_finish_load_back(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.tree.FinishLoadBack(tree.NodeID(node)) })
}
