// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #define TC_API extern __attribute__((weak))
// #include <treecore.h>
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/treecore/treecore/tree"
)

// reader reads the words of a result as the header describes them.
type reader struct{ words []int64 }

func (r *reader) take(n int) []int64 {
	v := r.words[:n]
	r.words = r.words[n:]
	return v
}

// end complains of words that nobody has read.
func (r *reader) end() {
	if len(r.words) != 0 {
		panic(fmt.Sprintf("client: %d words of a result are left", len(r.words)))
	}
}

func (r *reader) integer() int64    { return r.take(1)[0] }
func (r *reader) count() int        { return int(r.integer()) }
func (r *reader) node() tree.NodeID { return tree.NodeID(r.integer()) }

func (r *reader) truth() bool {
	v := r.integer()
	if v != 0 && v != 1 {
		panic(fmt.Sprintf("client: %d is no truth value", v))
	}
	return v == 1
}

func (r *reader) text() string {
	n := r.count()
	if n == 0 {
		return ""
	}
	words := r.take((n + 7) / 8)
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n))
}

func (r *reader) digest() (d tree.Digest) {
	words := r.take(len(d) / 8)
	copy(d[:], unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(d)))
	return d
}

// items reads a list; nil if it is absent.
func items[T any](r *reader, item func(*reader) T) []T {
	n := r.count()
	if n < 0 {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		out[i] = item(r)
	}
	return out
}

func (r *reader) nodes() []tree.NodeID       { return items(r, (*reader).node) }
func (r *reader) ints() []int                { return items(r, (*reader).count) }
func (r *reader) digests() []tree.Digest     { return items(r, (*reader).digest) }
func (r *reader) transfers() []tree.Transfer { return items(r, (*reader).transfer) }
func (r *reader) actions() []tree.Action     { return items(r, (*reader).action) }

func (r *reader) tokens() []tree.Token {
	return items(r, func(r *reader) tree.Token { return tree.Token(r.integer()) })
}

func (r *reader) ranges() []tree.Range {
	return items(r, func(r *reader) tree.Range { return tree.Range{Start: r.count(), End: r.count()} })
}

func (r *reader) slots() tree.Slots {
	form, n := r.integer(), r.count()
	switch form {
	case C.TC_SLOTS_ABSENT:
		return nil
	case C.TC_SLOTS_RUNS:
		out := make(tree.Slots, n)
		for i := range out {
			v := r.take(3)
			out[i] = tree.Run{Buffer: tree.BufferID(v[0]), First: tree.Slot(v[1]), Length: uint32(v[2])}
		}
		return out
	case C.TC_SLOTS_NUMBERS:
		out := tree.Slots{}
		for _, v := range r.take(n) {
			out = out.AppendRun(tree.Run{First: tree.Slot(v), Length: 1})
		}
		return out
	}
	panic(fmt.Sprintf("client: slots of form %d", form))
}

func (r *reader) units() (u tree.Units) {
	for i := range u {
		u[i] = r.count()
	}
	return u
}

func (r *reader) frees() (f tree.Frees) {
	for i := range f.Device {
		f.Device[i] = r.slots()
	}
	for i := range f.Host {
		f.Host[i] = r.slots()
	}
	return f
}

func (r *reader) evicted() tree.Evicted {
	return tree.Evicted{Freed: r.units(), Unbacked: r.count(), Frees: r.frees()}
}

func (r *reader) receipt() (v tree.Receipt) {
	v.Node, v.Skipped = r.node(), tree.ComponentSet(r.integer())
	for i := range v.Boundary {
		v.Boundary[i] = uint64(r.integer())
	}
	for i := range v.HostBound {
		v.HostBound[i] = uint64(r.integer())
	}
	v.Delta = r.count()
	return v
}

func (r *reader) transfer() tree.Transfer {
	return tree.Transfer{Component: tree.Component(r.integer()), Device: r.slots(), Host: r.slots(), Nodes: r.nodes(), Keys: r.digests()}
}

func (r *reader) namespace() tree.Namespace {
	return tree.Namespace{HasExtraKey: r.truth(), ExtraKey: r.text(), Salt: r.text()}
}

func (r *reader) backup() *tree.BackupKV {
	return &tree.BackupKV{KeyLen: r.count(), EndsAtPrompt: r.truth(), Nodes: r.nodes()}
}

func (r *reader) action() (a tree.Action) {
	kind := r.integer()
	own := &reader{r.take(r.count())}
	switch kind {
	case C.TC_FREE_DEVICE_KV:
		a = tree.FreeDeviceKV{Slots: own.slots()}
	case C.TC_FREE_DEVICE_KV_FULL_ONLY:
		a = tree.FreeDeviceKVFullOnly{Slots: own.slots()}
	case C.TC_REPLACE_WRITE_THROUGH:
		a = tree.ReplaceWriteThroughOnNodeSplit{Ack: own.integer(), Old: own.node(), New: own.node(), Child: own.node()}
	case C.TC_BACKUP_KV:
		a = *own.backup()
	case C.TC_SWA_REBUILD:
		a = tree.SWARebuild{Node: own.node(), Full: own.slots()}
	case C.TC_RECOVER_SWA:
		a = tree.RecoverSWAWithLockedFull{Node: own.node(), Kept: own.slots(), Incoming: own.slots()}
	case C.TC_MAMBA_EVICT_EXCESS:
		a = tree.MambaEvictExcessPathStates{Tail: own.node()}
	case C.TC_FREE_COMPONENT_DEVICE:
		a = tree.FreeComponentDeviceSlot{Component: tree.Component(own.integer()), Slots: own.slots()}
	case C.TC_FREE_COMPONENT_HOST:
		a = tree.FreeComponentHostSlot{Component: tree.Component(own.integer()), Slots: own.slots()}
	case C.TC_REBUILD_FULL_TO_SWA:
		a = tree.RebuildFullToSWAMapping{Full: own.slots(), SWA: own.slots()}
	default:
		panic(fmt.Sprintf("client: action of kind %d", kind))
	}
	own.end()
	return a
}
