// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package client calls the C functions of libtreecore and offers them as a Go
// machine, so that whatever runs on a tree core runs through the C interface. It
// is for tests: what it reads is what a C caller would read, by the header alone.
//
// Arguments are copied to the C heap and overwritten after the call, so that a
// library that kept one would be found out.
package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <stdlib.h>
// #include <string.h>
// #include <treecore.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/treecore/treecore/tree"

	// The functions themselves. The linker joins both by name.
	_ "github.com/treecore/treecore/capi/internal/abi"
)

// Machine is a tree core behind the C interface.
type Machine struct {
	core  C.tc_core
	out   *C.tc_buffer
	given []block // arguments of the call that is being made
}

type block struct {
	p unsafe.Pointer
	n C.size_t
}

// New returns a core with options. With numbers, slots come back as numbers
// instead of runs.
func New(o tree.Options, numbers bool) (*Machine, error) {
	m := &Machine{out: (*C.tc_buffer)(C.calloc(1, C.sizeof_tc_buffer))}
	c := (*C.tc_options)(m.memory(C.sizeof_tc_options))
	c.size, c.abi_version = C.sizeof_tc_options, C.TC_ABI_VERSION
	c.components = C.uint32_t(o.Components)
	for _, f := range []struct {
		set bool
		bit C.uint32_t
	}{{o.Eagle, C.TC_EAGLE}, {o.Events, C.TC_EVENTS}, {o.Sessions, C.TC_SESSIONS}, {numbers, C.TC_NUMBERS}} {
		if f.set {
			c.flags |= f.bit
		}
	}
	c.page_size, c.sliding_window = C.int64_t(o.PageSize), C.int64_t(o.SlidingWindow)
	c.checkpoint_grid, c.max_states_per_path = C.int64_t(o.CheckpointGrid), C.int64_t(o.MaxStatesPerPath)
	c.policy, c.policy_length = m.text(o.Policy.Name)
	if n := len(o.Policy.Params); n > 0 {
		c.parameters, c.parameter_count = (*C.tc_parameter)(m.memory(C.size_t(n)*C.sizeof_tc_parameter)), C.uint64_t(n)
		list := unsafe.Slice(c.parameters, n)
		for name, value := range o.Policy.Params {
			n--
			list[n].name, list[n].name_length = m.text(name)
			list[n].value = C.int64_t(value)
		}
	}
	if err := m.done(C.tc_create(c, m.out)); err != nil {
		m.free()
		return nil, err
	}
	m.core = C.tc_core(m.answer().integer())
	return m, nil
}

// Close destroys the core and frees the buffer.
func (m *Machine) Close() error {
	err := m.done(C.tc_destroy(m.core, m.out))
	m.free()
	return err
}

func (m *Machine) free() {
	C.tc_buffer_free(m.out)
	C.free(unsafe.Pointer(m.out))
	m.out = nil
}

// answer reads the words that the last call has left.
func (m *Machine) answer() *reader {
	return &reader{words: unsafe.Slice((*int64)(m.out.words), m.out.length)}
}

// done overwrites and frees the arguments, and turns a code into an error.
func (m *Machine) done(code C.int32_t) error {
	for _, b := range m.given {
		C.memset(b.p, 0xa5, b.n)
		C.free(b.p)
	}
	m.given = m.given[:0]
	if code == C.TC_OK {
		return nil
	}
	r := m.answer()
	if written := r.integer(); written != int64(code) {
		panic(fmt.Sprintf("client: code %d has a record of code %d", code, written))
	}
	node := r.node()
	message := r.text()
	type detail struct {
		node tree.NodeID
		text [3]string
	}
	details := items(r, func(r *reader) detail {
		return detail{r.node(), [3]string{r.text(), r.text(), r.text()}}
	})
	r.end()
	var first detail
	if len(details) > 0 {
		first = details[0]
	}
	switch code {
	case C.TC_NODE_ACCESS:
		return &tree.NodeAccessError{Op: first.text[0], Node: node}
	case C.TC_CHECK_FAILED:
		e := &tree.CheckError{Nodes: int(node)}
		for _, d := range details {
			e.Violations = append(e.Violations, tree.Violation{Check: d.text[0], Node: d.node, Detail: d.text[1]})
		}
		return e
	case C.TC_ARGUMENT:
		return &tree.ArgumentError{Op: first.text[0], Field: first.text[1], Problem: first.text[2]}
	case C.TC_ORDER:
		return &tree.OrderError{Op: first.text[0], Problem: first.text[2]}
	case C.TC_RECEIPT:
		return &tree.ReceiptError{Op: first.text[0], Node: node, Problem: first.text[2]}
	case C.TC_CONFIG:
		var all []error
		for _, d := range details {
			all = append(all, &tree.ConfigError{Field: d.text[0], Value: d.text[1], Allowed: d.text[2]})
		}
		return errors.Join(all...)
	case C.TC_INTERNAL:
		return &tree.InternalError{Op: first.text[0], Problem: first.text[2]}
	}
	return fmt.Errorf("code %d: %s", code, message)
}

// must is for calls that have no errors of their own.
func (m *Machine) must(code C.int32_t) *reader {
	if err := m.done(code); err != nil {
		panic(err)
	}
	return m.answer()
}

// get reads what a call has left.
func get[T any](m *Machine, code C.int32_t, read func(*reader) T) (v T, err error) {
	if err = m.done(code); err != nil {
		return v, err
	}
	r := m.answer()
	v = read(r)
	r.end()
	return v, nil
}
