// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import (
	"strings"

	"github.com/treecore/treecore/tree"
)

//export tc_sizes
func tc_sizes(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		w := &c.out
		for id := tree.Full; id < tree.NumComponents; id++ {
			w.count(c.tree.EvictableSize(id))
		}
		for id := tree.Full; id < tree.NumComponents; id++ {
			w.count(c.tree.ProtectedSize(id))
		}
		w.integer(int64(c.tree.ReclaimDigest()))
		w.truth(c.tree.HasOngoingInsert())
		w.node(c.tree.Root())
		w.count(c.tree.NodeCount())
		return nil
	})
}

//export tc_total_size
func tc_total_size(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		full, aux := c.tree.TotalSize()
		c.out.count(full)
		c.out.count(aux)
		return nil
	})
}

//export tc_memory_bytes
func tc_memory_bytes(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.count(c.tree.MemoryBytes())
		return nil
	})
}

//export tc_root
func tc_root(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.node(c.tree.Root())
		return nil
	})
}

//export tc_contains
func tc_contains(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.truth(c.tree.Contains(tree.NodeID(node)))
		return nil
	})
}

//export tc_is_root
func tc_is_root(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.answer(c.tree.IsRoot(tree.NodeID(node))) })
}

//export tc_is_backed_up
func tc_is_backed_up(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.answer(c.tree.IsBackedUp(tree.NodeID(node))) })
}

//export tc_is_full_device_evicted
func tc_is_full_device_evicted(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.answer(c.tree.IsFullDeviceEvicted(tree.NodeID(node))) })
}

//export tc_place
func tc_place(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		parent, units, err := c.tree.Place(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.node(parent)
		c.out.count(units)
		return nil
	})
}

//export tc_prefetch_anchor
func tc_prefetch_anchor(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		n, err := c.tree.PrefetchAnchor(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.namespace(n)
		return nil
	})
}

//export tc_flatten_full
func tc_flatten_full(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.slots(c.tree.FlattenFull())
		return nil
	})
}

//export tc_flatten_mamba
func tc_flatten_mamba(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.slots(c.tree.FlattenMamba())
		return nil
	})
}

//export tc_walk_canary
func tc_walk_canary(handle C.tc_core, unlockedOnly, swaResidentOnly C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		list(&c.out, c.tree.WalkCanary(unlockedOnly != 0, swaResidentOnly != 0), func(w *writer, r tree.CanaryRow) {
			w.integer(r.Slot)
			w.count(r.Position)
			w.integer(r.Previous)
		})
		return nil
	})
}

//export tc_dfs_weight_order
func tc_dfs_weight_order(handle C.tc_core, waiting *C.int64_t, count C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		ids, err := nodes("DFSWeightOrder", "nodes", waiting, count)
		if err != nil {
			return err
		}
		order, err := c.tree.DFSWeightOrder(ids)
		if err == nil {
			c.out.ints(order)
		}
		return err
	})
}

//export tc_sanity_check
func tc_sanity_check(handle C.tc_core, writeThrough *C.tc_in_flight, writeThroughCount C.uint64_t, loadBack *C.tc_in_flight, loadBackCount C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "SanityCheck"
		through, err := inFlight(op, "write_through", writeThrough, writeThroughCount)
		if err != nil {
			return err
		}
		back, err := inFlight(op, "load_back", loadBack, loadBackCount)
		if err != nil {
			return err
		}
		return c.tree.SanityCheck(through, back)
	})
}

//export tc_draw
func tc_draw(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		var text strings.Builder
		if err := c.tree.Draw(&text); err != nil {
			return err
		}
		c.out.text(text.String())
		return nil
	})
}

//export tc_take_dead_buffers
func tc_take_dead_buffers(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		list(&c.out, c.tree.TakeDeadBuffers(), func(w *writer, b tree.BufferID) { w.integer(int64(b)) })
		return nil
	})
}

//export tc_nodes
func tc_nodes(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.nodes(c.tree.Nodes())
		return nil
	})
}

//export tc_recency_order
func tc_recency_order(handle C.tc_core, which C.uint32_t, host C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("RecencyOrder", which)
		if err != nil {
			return err
		}
		c.out.nodes(c.tree.RecencyOrder(id, host != 0))
		return nil
	})
}

//export tc_eviction_order
func tc_eviction_order(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.nodes(c.tree.EvictionOrder())
		return nil
	})
}

//export tc_host_duplicates
func tc_host_duplicates(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.nodes(c.tree.HostDuplicates())
		return nil
	})
}
