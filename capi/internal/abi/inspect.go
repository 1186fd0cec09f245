// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_evictable_leaf
func tc_evictable_leaf(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		c.out.truth(c.tree.IsDeviceEvictableLeaf(tree.NodeID(node)))
		c.out.truth(c.tree.IsHostEvictableLeaf(tree.NodeID(node)))
		return nil
	})
}

//export tc_inspect
func tc_inspect(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		n, err := c.tree.Inspect(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.info(&n)
		return nil
	})
}

func (w *writer) info(n *tree.NodeInfo) {
	w.node(n.ID)
	w.node(n.Parent)
	w.nodes(n.Children)
	w.namespace(n.Namespace)
	w.tokens(n.Tokens)
	w.count(n.Units)
	w.truth(n.Bigram)
	w.integer(n.Hits)
	w.integer(n.Priority)
	w.truth(n.DeviceLeaf)
	for i := range n.Components {
		v := &n.Components[i]
		w.slots(v.Device)
		w.slots(v.Host)
		w.count(v.Locks)
		w.count(v.HostLocks)
		w.count(v.SessionRefs)
		list(w, v.Sessions, (*writer).text)
		w.truth(v.InDeviceList)
		w.truth(v.InHostList)
		w.integer(int64(v.HostBoundary))
	}
	w.integer(int64(n.SWABoundary))
	w.integer(n.WriteThroughPending)
	w.integer(n.LoadBackPending)
	w.truth(n.Stored)
}
