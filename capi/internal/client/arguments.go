// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <stdlib.h>
// #include <treecore.h>
import "C"

import (
	"unsafe"

	"github.com/treecore/treecore/tree"
)

// memory returns n bytes, zero, that live until the end of the next call.
func (m *Machine) memory(n C.size_t) unsafe.Pointer {
	p := C.calloc(1, max(n, 1))
	m.given = append(m.given, block{p, n})
	return p
}

// array copies items to the C heap; null for nil.
func array[T any](m *Machine, v []T) (unsafe.Pointer, C.uint64_t) {
	if v == nil {
		return nil, 0
	}
	if len(v) == 0 {
		return m.memory(1), 0
	}
	p := m.memory(C.size_t(uintptr(len(v)) * unsafe.Sizeof(v[0])))
	copy(unsafe.Slice((*T)(p), len(v)), v)
	return p, C.uint64_t(len(v))
}

func (m *Machine) text(s string) (*C.char, C.uint64_t) {
	if s == "" {
		return nil, 0
	}
	p, n := array(m, []byte(s))
	return (*C.char)(p), n
}

// key passes every other key with wide tokens.
func (m *Machine) key(k tree.Key) *C.tc_key {
	c := (*C.tc_key)(m.memory(C.sizeof_tc_key))
	m.fill(c, k)
	return c
}

func (m *Machine) fill(c *C.tc_key, k tree.Key) {
	c.token_bytes = 4
	if len(k.Tokens)%2 == 0 {
		c.token_bytes = 8
		wide := make([]int64, len(k.Tokens))
		for i, t := range k.Tokens {
			wide[i] = int64(t)
		}
		c.tokens, c.length = array(m, wide)
	} else {
		c.tokens, c.length = array(m, k.Tokens)
	}
	if k.Bigram {
		c.flags = C.TC_KEY_BIGRAM
	}
	if k.Namespace.HasExtraKey || k.Namespace.ExtraKey != "" {
		c.extra_key, c.extra_key_length = m.text(k.Namespace.ExtraKey)
		if c.extra_key == nil {
			c.extra_key = (*C.char)(m.memory(1))
		}
	}
	c.salt, c.salt_length = m.text(k.Namespace.Salt)
}

func (m *Machine) slots(s tree.Slots) *C.tc_slots {
	c := (*C.tc_slots)(m.memory(C.sizeof_tc_slots))
	m.fillSlots(c, s)
	return c
}

// fillSlots passes numbers where no run is opaque and the count is odd, else
// runs.
func (m *Machine) fillSlots(c *C.tc_slots, s tree.Slots) {
	if s == nil {
		return
	}
	if s.Len()%2 == 1 && s.Len() < 1<<16 {
		if numbers, err := s.Numbers(); err == nil {
			wide := make([]int64, len(numbers))
			for i, n := range numbers {
				wide[i] = int64(n)
			}
			c.form = C.TC_SLOTS_NUMBERS
			c.data, c.count = array(m, wide)
			return
		}
	}
	c.form = C.TC_SLOTS_RUNS
	runs := make([]C.tc_run, len(s))
	for i, r := range s {
		runs[i] = C.tc_run{buffer: C.int64_t(r.Buffer), first: C.int64_t(r.First), length: C.int64_t(r.Length)}
	}
	c.data, c.count = array(m, runs)
}

func (m *Machine) nodes(ids []tree.NodeID) (*C.int64_t, C.uint64_t) {
	p, n := array(m, ids)
	return (*C.int64_t)(p), n
}

func (m *Machine) receipt(r tree.Receipt) *C.tc_receipt {
	c := (*C.tc_receipt)(m.memory(C.sizeof_tc_receipt))
	c.node, c.skipped, c.delta = C.int64_t(r.Node), C.int64_t(r.Skipped), C.int64_t(r.Delta)
	for i := range r.Boundary {
		c.boundary[i], c.host_boundary[i] = C.int64_t(r.Boundary[i]), C.int64_t(r.HostBound[i])
	}
	return c
}

func (m *Machine) transfers(t []tree.Transfer) (*C.tc_transfer, C.uint64_t) {
	if len(t) == 0 {
		return nil, 0
	}
	p := (*C.tc_transfer)(m.memory(C.size_t(len(t)) * C.sizeof_tc_transfer))
	list := unsafe.Slice(p, len(t))
	for i := range t {
		list[i].component = C.uint32_t(t[i].Component)
		m.fillSlots(&list[i].device, t[i].Device)
		m.fillSlots(&list[i].host, t[i].Host)
		list[i].nodes, list[i].node_count = m.nodes(t[i].Nodes)
	}
	return p, C.uint64_t(len(t))
}

func (m *Machine) units(u tree.Units) *C.int64_t {
	p, _ := array(m, []int64{int64(u[0]), int64(u[1]), int64(u[2])})
	return (*C.int64_t)(p)
}

func (m *Machine) inFlight(f []tree.InFlight) (*C.tc_in_flight, C.uint64_t) {
	list := make([]C.tc_in_flight, len(f))
	for i := range f {
		list[i] = C.tc_in_flight{id: C.int64_t(f[i].ID), node: C.tc_node(f[i].Node)}
	}
	p, n := array(m, list)
	return (*C.tc_in_flight)(p), n
}

func flag(v bool) C.int32_t {
	if v {
		return 1
	}
	return 0
}
