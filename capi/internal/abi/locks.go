// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_lock
func tc_lock(handle C.tc_core, node C.tc_node, skip C.uint32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s, err := set("Lock", "skip", skip)
		if err != nil {
			return err
		}
		return c.locked(c.tree.Lock(tree.NodeID(node), s))
	})
}

// locked writes the receipt of a lock.
func (c *core) locked(r tree.Receipt, err error) error {
	if err == nil {
		c.out.receipt(r)
	}
	return err
}

//export tc_unlock
func tc_unlock(handle C.tc_core, node C.tc_node, given *C.tc_receipt, skipSWA C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		r, err := receipt("Unlock", given)
		if err != nil {
			return err
		}
		return c.tree.Unlock(tree.NodeID(node), r, skipSWA != 0)
	})
}

//export tc_release_swa_lock
func tc_release_swa_lock(handle C.tc_core, node C.tc_node, given *C.tc_receipt, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		r, err := receipt("ReleaseSWALock", given)
		if err != nil {
			return err
		}
		return c.dropped(c.tree.ReleaseSWALock(tree.NodeID(node), r))
	})
}

//export tc_release_window_lock
func tc_release_window_lock(handle C.tc_core, node C.tc_node, which C.uint32_t, given *C.tc_receipt, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "ReleaseWindowLock"
		id, err := component(op, which)
		if err != nil {
			return err
		}
		r, err := receipt(op, given)
		if err != nil {
			return err
		}
		return c.dropped(c.tree.ReleaseWindowLock(tree.NodeID(node), id, r))
	})
}

//export tc_lock_host
func tc_lock_host(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.locked(c.tree.LockHost(tree.NodeID(node))) })
}

//export tc_unlock_host
func tc_unlock_host(handle C.tc_core, node C.tc_node, given *C.tc_receipt, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		r, err := receipt("UnlockHost", given)
		if err != nil {
			return err
		}
		return c.tree.UnlockHost(tree.NodeID(node), r)
	})
}

//export tc_pin_full
func tc_pin_full(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.tree.PinFull(tree.NodeID(node)) })
}

//export tc_unpin_full
func tc_unpin_full(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.tree.UnpinFull(tree.NodeID(node)) })
}
