// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_insert_host
func tc_insert_host(handle C.tc_core, anchor C.tc_node, key *C.tc_key, value *C.tc_slots, hashes *C.uint8_t, hashCount C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "InsertHost"
		p := tree.HostInsertParams{Anchor: tree.NodeID(anchor)}
		var err error
		if p.Key, err = c.key(op, key, &c.read, false); err != nil {
			return err
		}
		if p.Slots, err = slots(op, "slots", value); err != nil {
			return err
		}
		if p.Hashes, err = digests(op, "hashes", hashes, hashCount); err != nil {
			return err
		}
		r, err := c.tree.InsertHost(p)
		if err != nil {
			return err
		}
		w := &c.out
		w.count(r.PrefixLen)
		w.count(r.TotalLen)
		w.node(r.Node)
		w.truth(r.Dropped)
		w.actions(r.Actions)
		return nil
	})
}

//export tc_commit_prefetch
func tc_commit_prefetch(handle C.tc_core, anchor C.tc_node, inserted *C.tc_host_inserted, aux *C.tc_transfer, auxCount C.uint64_t, found *C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "CommitPrefetch"
		if inserted == nil {
			return bad(op, "inserted", "it is null")
		}
		p := tree.PrefetchCommit{Anchor: tree.NodeID(anchor), Inserted: tree.HostInsertResult{
			PrefixLen: int(inserted.prefix_len), TotalLen: int(inserted.total_len),
			Node: tree.NodeID(inserted.node), Dropped: inserted.dropped != 0,
		}}
		var err error
		if p.Aux, err = transfers(op, "aux", aux, auxCount); err != nil {
			return err
		}
		u, err := units(op, "found", found)
		if err != nil {
			return err
		}
		p.Found = u
		r, err := c.tree.CommitPrefetch(p)
		if err != nil {
			return err
		}
		c.out.truth(r.MambaExist)
		c.out.frees(&r.Frees)
		c.out.actions(r.Actions)
		return nil
	})
}

//export tc_build_storage_spec
func tc_build_storage_spec(handle C.tc_core, node C.tc_node, withPrefix C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, ok, err := c.tree.BuildStorageSpec(tree.NodeID(node), withPrefix != 0)
		if err != nil {
			return err
		}
		c.out.truth(ok)
		if ok {
			c.out.slots(s.Full)
			c.out.tokens(s.Tokens)
			c.out.digests(s.Hashes)
			c.out.digests(s.Prefix)
			c.out.transfers(s.Aux)
		}
		return nil
	})
}

//export tc_mark_stored
func tc_mark_stored(handle C.tc_core, from, until C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.tree.MarkStored(tree.NodeID(from), tree.NodeID(until)) })
}

//export tc_build_offload
func tc_build_offload(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		t, err := c.tree.BuildOffload(tree.NodeID(node))
		if err == nil {
			c.out.transfers(t)
		}
		return err
	})
}

//export tc_mark_offload_pending
func tc_mark_offload_pending(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.tree.MarkOffloadPending(tree.NodeID(node)) })
}

//export tc_finish_offload
func tc_finish_offload(handle C.tc_core, given *C.int64_t, count C.uint64_t, ack C.int64_t, success C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		ids, err := nodes("FinishOffload", "nodes", given, count)
		if err != nil {
			return err
		}
		return c.tree.FinishOffload(ids, int64(ack), success != 0)
	})
}

//export tc_snapshot_buffer_backup
func tc_snapshot_buffer_backup(handle C.tc_core, node C.tc_node, withPrefix C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, ok := c.tree.SnapshotBufferBackup(tree.NodeID(node), withPrefix != 0)
		w := &c.out
		w.truth(ok)
		if ok {
			w.node(s.Node)
			w.node(s.Parent)
			w.truth(s.ParentIsRoot)
			w.truth(s.HasParent)
			w.digest(s.ParentHash)
			w.digests(s.Hashes)
			w.tokens(s.Key.Tokens)
			w.namespace(s.Key.Namespace)
			w.truth(s.Key.Bigram)
			w.count(s.Units)
			w.digests(s.Prefix)
		}
		return nil
	})
}

//export tc_validate_buffer_backup
func tc_validate_buffer_backup(handle C.tc_core, node C.tc_node, units C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, ok := c.tree.ValidateBufferBackup(tree.NodeID(node), int(units))
		w := &c.out
		w.truth(ok)
		if ok {
			w.node(s.Parent)
			w.truth(s.ParentIsRoot)
			w.truth(s.HasParent)
			w.digest(s.ParentHash)
		}
		return nil
	})
}
