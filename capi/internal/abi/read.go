// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/treecore/treecore/tree"
)

func bad(op, field, format string, args ...any) error {
	return &tree.ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
}

// mostItems bounds the lengths of lists, so that a length that was never set is
// an error more often than a fault.
const mostItems = 1 << 40

// items views an array of the caller for the length of a call.
func items[T any](op, field string, data unsafe.Pointer, n C.uint64_t) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	if data == nil {
		return nil, bad(op, field, "it is null and has %d items", uint64(n))
	}
	var item T
	if n > mostItems {
		return nil, bad(op, field, "it has %d items: allowed are %d", uint64(n), uint64(mostItems))
	}
	if uintptr(data)%unsafe.Alignof(item) != 0 {
		return nil, bad(op, field, "its address is not a multiple of %d", unsafe.Alignof(item))
	}
	return unsafe.Slice((*T)(data), int(n)), nil
}

func text(op, field string, data *C.char, n C.uint64_t) (string, error) {
	b, err := items[byte](op, field, unsafe.Pointer(data), n)
	return string(b), err
}

// same returns last if it has the bytes, so that calls in one namespace do not
// allocate, and remembers new ones.
func same(op, field string, last *string, data *C.char, n C.uint64_t) (string, error) {
	b, err := items[byte](op, field, unsafe.Pointer(data), n)
	if err == nil && string(b) != *last {
		*last = string(b)
	}
	if err != nil {
		return "", err
	}
	return *last, nil
}

// key reads a key. Narrow tokens are read in place, wide ones converted into
// scratch; keep copies narrow ones there, too.
func (c *core) key(op string, k *C.tc_key, scratch *[]tree.Token, keep bool) (out tree.Key, err error) {
	if k == nil {
		return out, bad(op, "key", "it is null")
	}
	if k.flags&^C.TC_KEY_BIGRAM != 0 {
		return out, bad(op, "key.flags", "%#x has unknown bits", uint32(k.flags))
	}
	out.Bigram = k.flags&C.TC_KEY_BIGRAM != 0
	if out.Namespace.ExtraKey, err = same(op, "key.extra_key", &c.spaces[0], k.extra_key, k.extra_key_length); err != nil {
		return out, err
	}
	out.Namespace.HasExtraKey = k.extra_key != nil
	if out.Namespace.Salt, err = same(op, "key.salt", &c.spaces[1], k.salt, k.salt_length); err != nil {
		return out, err
	}
	switch {
	case k.length == 0:
	case k.token_bytes == 4:
		if out.Tokens, err = items[tree.Token](op, "key.tokens", k.tokens, k.length); err == nil && keep {
			*scratch = append((*scratch)[:0], out.Tokens...)
			out.Tokens = *scratch
		}
	case k.token_bytes == 8:
		var wide []int64
		if wide, err = items[int64](op, "key.tokens", k.tokens, k.length); err != nil {
			return out, err
		}
		if cap(*scratch) < len(wide) {
			*scratch = make([]tree.Token, len(wide), len(wide)+len(wide)/4)
		}
		*scratch = (*scratch)[:len(wide)]
		out.Tokens = *scratch
		err = narrow(op, out.Tokens, wide)
	default:
		err = bad(op, "key.token_bytes", "it is %d: allowed is 4 or 8", uint32(k.token_bytes))
	}
	return out, err
}

// narrow converts tokens. One test at the end tells whether all fitted.
func narrow(op string, out []tree.Token, wide []int64) error {
	var high int64
	out = out[:len(wide)]
	for i, v := range wide {
		out[i] = tree.Token(v)
		high |= v
	}
	if high < 0 || high > math.MaxUint32 {
		for i, v := range wide {
			if v < 0 || v > math.MaxUint32 {
				return bad(op, "key.tokens", "position %d holds %d, which does not fit in uint32: allowed is 0 to %d", i, v, uint32(math.MaxUint32))
			}
		}
	}
	return nil
}

// slots reads a list of slots; what it returns is Go memory.
func slots(op, field string, s *C.tc_slots) (tree.Slots, error) {
	if s == nil || s.form == C.TC_SLOTS_ABSENT {
		return nil, nil
	}
	switch s.form {
	case C.TC_SLOTS_RUNS:
		runs, err := items[C.tc_run](op, field, s.data, s.count)
		if err != nil {
			return nil, err
		}
		out := make(tree.Slots, 0, len(runs))
		for i, r := range runs {
			if (r.buffer|r.first|r.length)>>32 != 0 {
				return nil, bad(op, field, "run %d is %d, %d, %d: each must be 0 to %d", i, int64(r.buffer), int64(r.first), int64(r.length), uint32(math.MaxUint32))
			}
			out = append(out, tree.Run{Buffer: tree.BufferID(r.buffer), First: tree.Slot(r.first), Length: uint32(r.length)})
		}
		return out, nil
	case C.TC_SLOTS_NUMBERS:
		numbers, err := items[int64](op, field, s.data, s.count)
		if err != nil {
			return nil, err
		}
		return join(op, field, numbers)
	}
	return nil, bad(op, field, "its form is %d: allowed is 0 to 2", uint32(s.form))
}

// join makes runs of slot numbers.
func join(op, field string, numbers []int64) (tree.Slots, error) {
	out := tree.Slots{}
	for i := 0; i < len(numbers); {
		first := numbers[i]
		if first < 0 || first > math.MaxUint32 {
			return nil, bad(op, field, "position %d holds slot %d: allowed is 0 to %d", i, first, uint32(math.MaxUint32))
		}
		n := 1
		for i+n < len(numbers) && numbers[i+n] == first+int64(n) && first+int64(n) <= math.MaxUint32 {
			n++
		}
		out = append(out, tree.Run{First: tree.Slot(first), Length: uint32(n)})
		i += n
	}
	return out, nil
}

func nodes(op, field string, data *C.int64_t, n C.uint64_t) ([]tree.NodeID, error) {
	ids, err := items[tree.NodeID](op, field, unsafe.Pointer(data), n)
	return append([]tree.NodeID{}, ids...), err
}

func component(op string, c C.uint32_t) (tree.Component, error) {
	if c >= tree.NumComponents {
		return 0, bad(op, "component", "%d is none: allowed is 0 to %d", uint32(c), tree.NumComponents-1)
	}
	return tree.Component(c), nil
}

func set(op, field string, s C.uint32_t) (tree.ComponentSet, error) {
	if s > math.MaxUint8 {
		return 0, bad(op, field, "%#x has bits that name no component", uint32(s))
	}
	return tree.ComponentSet(s), nil
}

func units(op, field string, u *C.int64_t) (out tree.Units, err error) {
	v, err := items[int64](op, field, unsafe.Pointer(u), tree.NumComponents)
	for i := range v {
		out[i] = int(v[i])
	}
	return out, err
}

func receipt(op string, r *C.tc_receipt) (out tree.Receipt, err error) {
	if r == nil {
		return out, bad(op, "receipt", "it is null")
	}
	if r.skipped < 0 || r.skipped > math.MaxUint8 {
		return out, bad(op, "receipt", "skipped is %d, which is no set of components", int64(r.skipped))
	}
	out = tree.Receipt{Node: tree.NodeID(r.node), Skipped: tree.ComponentSet(r.skipped), Delta: int(r.delta)}
	for c := range out.Boundary {
		out.Boundary[c], out.HostBound[c] = uint64(r.boundary[c]), uint64(r.host_boundary[c])
	}
	return out, nil
}

func transfer(op, field string, t *C.tc_transfer) (out tree.Transfer, err error) {
	if out.Component, err = component(op, t.component); err != nil {
		return out, err
	}
	if out.Device, err = slots(op, field, &t.device); err != nil {
		return out, err
	}
	if out.Host, err = slots(op, field, &t.host); err != nil {
		return out, err
	}
	out.Nodes, err = nodes(op, field, t.nodes, t.node_count)
	return out, err
}

func transfers(op, field string, t *C.tc_transfer, n C.uint64_t) ([]tree.Transfer, error) {
	given, err := items[C.tc_transfer](op, field, unsafe.Pointer(t), n)
	if err != nil {
		return nil, err
	}
	out := make([]tree.Transfer, len(given))
	for i := range given {
		if out[i], err = transfer(op, field, &given[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// digests returns nil for a null pointer: none were computed.
func digests(op, field string, d *C.uint8_t, n C.uint64_t) ([]tree.Digest, error) {
	if d == nil && n == 0 {
		return nil, nil
	}
	v, err := items[tree.Digest](op, field, unsafe.Pointer(d), n)
	return append([]tree.Digest{}, v...), err
}

func inFlight(op, field string, f *C.tc_in_flight, n C.uint64_t) ([]tree.InFlight, error) {
	v, err := items[C.tc_in_flight](op, field, unsafe.Pointer(f), n)
	out := make([]tree.InFlight, len(v))
	for i := range v {
		out[i] = tree.InFlight{ID: int64(v[i].id), Node: tree.NodeID(v[i].node)}
	}
	return out, err
}
