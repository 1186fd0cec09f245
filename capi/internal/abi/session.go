// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import "github.com/treecore/treecore/tree"

//export tc_open_session
func tc_open_session(handle C.tc_core, id *C.char, idLength C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		name, err := text("OpenSession", "id", id, idLength)
		if err != nil {
			return err
		}
		c.out.integer(c.tree.OpenSession(name))
		return nil
	})
}

//export tc_ensure_session
func tc_ensure_session(handle C.tc_core, id *C.char, idLength C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		name, err := text("EnsureSession", "id", id, idLength)
		if err != nil {
			return err
		}
		c.out.integer(c.tree.EnsureSession(name))
		return nil
	})
}

//export tc_register_session
func tc_register_session(handle C.tc_core, id *C.char, idLength C.uint64_t, generation C.int64_t, last C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		name, err := text("RegisterSession", "id", id, idLength)
		if err != nil {
			return err
		}
		return c.tree.RegisterSession(name, int64(generation), tree.NodeID(last))
	})
}

//export tc_release_session
func tc_release_session(handle C.tc_core, id *C.char, idLength C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		name, err := text("ReleaseSession", "id", id, idLength)
		if err != nil {
			return err
		}
		c.tree.ReleaseSession(name)
		return nil
	})
}
