// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import (
	"os"

	"github.com/treecore/treecore/tree"
)

// logFile is the file to which a core writes its calls.
type logFile struct{ *os.File }

func (c *core) closeLog() error {
	if c.log == nil {
		return nil
	}
	f := c.log
	c.log = nil
	return f.Close()
}

//export tc_set_log
func tc_set_log(handle C.tc_core, path *C.char, pathLength C.uint64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "tc_set_log"
		name, err := text(op, "path", path, pathLength)
		if err != nil {
			return err
		}
		var next *os.File
		if path != nil {
			if next, err = os.Create(name); err != nil {
				return bad(op, "path", "%v", err)
			}
		}
		err = c.tree.SetLog(nil) // what was buffered belongs to the old file
		if e := c.closeLog(); err == nil {
			err = e
		}
		if next != nil {
			c.log = &logFile{next}
			if e := c.tree.SetLog(next); err == nil {
				err = e
			}
		}
		if err != nil {
			return bad(op, "path", "the log before could not be written: %v", err)
		}
		return nil
	})
}

var switchBits = []struct {
	bit   C.uint32_t
	field func(*tree.Switches) *bool
}{
	{C.TC_HOST_TIER, func(s *tree.Switches) *bool { return &s.HostTier }},
	{C.TC_STORAGE, func(s *tree.Switches) *bool { return &s.Storage }},
	{C.TC_WRITE_BACK, func(s *tree.Switches) *bool { return &s.WriteBack }},
	{C.TC_SWA_HOST_POOL, func(s *tree.Switches) *bool { return &s.SWAHostPool }},
	{C.TC_HOST_BUFFER_ONLY, func(s *tree.Switches) *bool { return &s.HostBufferOnly }},
	{C.TC_EXTERNAL_LINKER, func(s *tree.Switches) *bool { return &s.ExternalLinker }},
	{C.TC_SWA_RING_LAYOUT, func(s *tree.Switches) *bool { return &s.SWARingLayout }},
}

//export tc_set_switches
func tc_set_switches(handle C.tc_core, set C.uint32_t, threshold C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s := tree.Switches{WriteThroughThreshold: int(threshold)}
		for _, b := range switchBits {
			*b.field(&s) = set&b.bit != 0
			set &^= b.bit
		}
		if set != 0 {
			return bad("tc_set_switches", "set", "%#x names no switches", uint32(set))
		}
		return c.tree.SetSwitches(s)
	})
}

//export tc_switches
func tc_switches(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		s := c.tree.Switches()
		var set C.uint32_t
		for _, b := range switchBits {
			if *b.field(&s) {
				set |= b.bit
			}
		}
		c.out.integer(int64(set))
		c.out.count(s.WriteThroughThreshold)
		return nil
	})
}
