// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <stdlib.h>
// #include <treecore.h>
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/treecore/treecore/tree"
)

// Fingerprint names the build; whoever builds the library sets it by a flag of
// the linker. Empty: none.
var Fingerprint string

//export tc_abi_version
func tc_abi_version() C.uint32_t { return C.TC_ABI_VERSION }

//export tc_build
func tc_build(out *C.tc_buffer) C.int32_t {
	return plain(out, func(w *writer) error {
		w.text(Fingerprint)
		w.text(runtime.Version())
		return nil
	})
}

//export tc_buffer_free
func tc_buffer_free(buffer *C.tc_buffer) {
	if buffer != nil {
		C.free(unsafe.Pointer(buffer.words))
		*buffer = C.tc_buffer{}
	}
}

//export tc_policies
func tc_policies(out *C.tc_buffer) C.int32_t {
	return plain(out, func(w *writer) error {
		list(w, tree.Policies(), (*writer).text)
		return nil
	})
}

//export tc_expand_runs
func tc_expand_runs(runs *C.tc_run, runCount C.uint64_t, numbers *C.int64_t, capacity C.uint64_t, out *C.tc_buffer) C.int32_t {
	return plain(out, func(w *writer) error {
		const op = "tc_expand_runs"
		s, err := slots(op, "runs", &C.tc_slots{data: unsafe.Pointer(runs), count: runCount, form: C.TC_SLOTS_RUNS})
		if err != nil {
			return err
		}
		if opaque(s) {
			return bad(op, "runs", "one is opaque: its numbers are known to the buffer's owner only")
		}
		n := s.Len()
		if uint64(n) > uint64(capacity) {
			return bad(op, "numbers", "they have room for %d: %d are needed", uint64(capacity), n)
		}
		words, err := items[int64](op, "numbers", unsafe.Pointer(numbers), C.uint64_t(n))
		if err != nil {
			return err
		}
		expand(s, words)
		w.count(n)
		return nil
	})
}

//export tc_hash_pages
func tc_hash_pages(key *C.tc_key, pageSize C.int64_t, previous *C.uint8_t, out *C.tc_buffer) C.int32_t {
	return plain(out, func(w *writer) error {
		const op = "tc_hash_pages"
		var c core
		k, err := c.key(op, key, &c.read, false)
		if err != nil {
			return err
		}
		if pageSize < 1 || pageSize > tree.MaxPageSize {
			return bad(op, "page_size", "%d: page_size must be positive, and %d at most", int64(pageSize), tree.MaxPageSize)
		}
		if previous == nil {
			w.digests(tree.HashPages(k, int(pageSize)))
			return nil
		}
		w.digests(tree.HashPagesAfter(tree.Digest(unsafe.Slice((*byte)(previous), len(tree.Digest{}))), k, int(pageSize)))
		return nil
	})
}

//export tc_create
func tc_create(options *C.tc_options, out *C.tc_buffer) C.int32_t {
	return plain(out, func(w *writer) error {
		o, flags, err := readOptions(options)
		if err != nil {
			return err
		}
		t, err := tree.New(o)
		if err != nil {
			return err
		}
		w.integer(int64(add(&core{tree: t, numbers: flags&C.TC_NUMBERS != 0})))
		return nil
	})
}

func readOptions(o *C.tc_options) (out tree.Options, flags C.uint32_t, err error) {
	const op = "tc_create"
	if o == nil {
		return out, 0, bad(op, "options", "they are null")
	}
	if o.abi_version != C.TC_ABI_VERSION {
		return out, 0, fmt.Errorf("%w: the caller was built for version %d, this library has %d: use the header that came with it", errVersion, uint32(o.abi_version), uint32(C.TC_ABI_VERSION))
	}
	const known = C.sizeof_tc_options
	if o.size < known || o.size > 4096 {
		return out, 0, bad(op, "options.size", "it is %d: set it to sizeof(tc_options), here %d", uint32(o.size), known)
	}
	for _, b := range unsafe.Slice((*byte)(unsafe.Pointer(o)), o.size)[known:] {
		if b != 0 {
			return out, 0, bad(op, "options.size", "fields that this library does not know are set")
		}
	}
	const all = C.TC_EAGLE | C.TC_EVENTS | C.TC_SESSIONS | C.TC_NUMBERS
	if o.flags&^all != 0 {
		return out, 0, bad(op, "options.flags", "%#x has unknown bits", uint32(o.flags))
	}
	out = tree.Options{
		PageSize: int(o.page_size), SlidingWindow: int(o.sliding_window),
		CheckpointGrid: int(o.checkpoint_grid), MaxStatesPerPath: int(o.max_states_per_path),
		Eagle: o.flags&C.TC_EAGLE != 0, Events: o.flags&C.TC_EVENTS != 0, Sessions: o.flags&C.TC_SESSIONS != 0,
	}
	if out.Components, err = set(op, "options.components", o.components); err != nil {
		return out, 0, err
	}
	if out.Policy.Name, err = text(op, "options.policy", o.policy, o.policy_length); err != nil {
		return out, 0, err
	}
	parameters, err := items[C.tc_parameter](op, "options.parameters", unsafe.Pointer(o.parameters), o.parameter_count)
	if err != nil {
		return out, 0, err
	}
	for _, p := range parameters {
		name, err := text(op, "options.parameters", p.name, p.name_length)
		if err != nil {
			return out, 0, err
		}
		if out.Policy.Params == nil {
			out.Policy.Params = map[string]int{}
		}
		if _, twice := out.Policy.Params[name]; twice {
			return out, 0, bad(op, "options.parameters", "%q is given twice", name)
		}
		out.Policy.Params[name] = int(p.value)
	}
	return out, o.flags, nil
}

//export tc_destroy
func tc_destroy(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return enter(handle, out, true, func(c *core) error {
		change(func(m map[C.tc_core]*core) { delete(m, handle) })
		c.tree = nil
		return c.closeLog()
	})
}

//export tc_reset
func tc_reset(handle C.tc_core, out *C.tc_buffer) C.int32_t {
	return enter(handle, out, true, func(c *core) error {
		c.tree.Reset()
		c.broken = ""
		return nil
	})
}
