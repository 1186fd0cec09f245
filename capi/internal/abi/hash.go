// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_last_hash
func tc_last_hash(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		d, ok, err := c.tree.LastHash(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.truth(ok)
		c.out.digest(d)
		return nil
	})
}

//export tc_prefix_hashes
func tc_prefix_hashes(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		d, err := c.tree.PrefixHashes(tree.NodeID(node))
		if err == nil {
			c.out.digests(d)
		}
		return err
	})
}

//export tc_hashes
func tc_hashes(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		d, err := c.tree.Hashes(tree.NodeID(node))
		if err == nil {
			c.out.digests(d)
		}
		return err
	})
}

//export tc_backfill_hashes
func tc_backfill_hashes(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.count(c.tree.BackfillHashes())
		return nil
	})
}

//export tc_take_events
func tc_take_events(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		list(&c.out, c.tree.TakeEvents(), (*writer).event)
		return nil
	})
}

func (w *writer) event(e tree.Event) {
	w.integer(int64(e.Kind))
	w.integer(int64(e.Medium))
	w.wide(e.Blocks)
	w.truth(e.HasParent)
	w.integer(e.Parent)
	w.tokens(e.Tokens)
	w.count(e.BlockSize)
	w.text(e.CacheSalt)
	w.text(e.SessionID)
}

//export tc_record_all_cleared
func tc_record_all_cleared(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.tree.RecordAllCleared()
		return nil
	})
}
