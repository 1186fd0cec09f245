// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <stdlib.h>
// #include <treecore.h>
import "C"

import (
	"unsafe"

	"github.com/treecore/treecore/tree"
)

// writer writes words into the memory of a caller's buffer.
type writer struct {
	out     *C.tc_buffer
	words   []int64 // C memory: length is what is written, capacity what there is
	numbers bool
}

func (w *writer) begin(out *C.tc_buffer) {
	w.out = out
	w.words = nil
	if out.words != nil {
		w.words = unsafe.Slice((*int64)(out.words), out.capacity)[:0]
	}
}

// end publishes the length and lets go of the caller's memory.
func (w *writer) end() {
	w.out.length = C.uint64_t(len(w.words))
	w.out, w.words = nil, nil
}

// room returns the next n words, to be filled in by the caller.
func (w *writer) room(n int) []int64 {
	used := len(w.words)
	if used+n > cap(w.words) {
		w.grow(used + n)
	}
	w.words = w.words[:used+n]
	return w.words[used:]
}

func (w *writer) grow(least int) {
	size := max(2*cap(w.words), least, 64)
	p := C.realloc(unsafe.Pointer(w.out.words), C.size_t(size)*8)
	if p == nil {
		panic("no memory for a result")
	}
	w.out.words, w.out.capacity = (*C.int64_t)(p), C.uint64_t(size)
	w.words = unsafe.Slice((*int64)(p), size)[:len(w.words)]
}

func (w *writer) integer(v int64) {
	if len(w.words) == cap(w.words) {
		w.grow(len(w.words) + 1)
	}
	w.words = append(w.words, v)
}

func (w *writer) count(v int)         { w.integer(int64(v)) }
func (w *writer) node(id tree.NodeID) { w.integer(int64(id)) }

func (w *writer) truth(v bool) {
	if v {
		w.integer(1)
	} else {
		w.integer(0)
	}
}

func (w *writer) text(s string) {
	w.count(len(s))
	if len(s) == 0 {
		return
	}
	words := w.room((len(s) + 7) / 8)
	words[len(words)-1] = 0
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(s)), s)
}

// list writes the count of a list, -1 for one that is absent, and its items.
func list[T any](w *writer, items []T, item func(*writer, T)) {
	if items == nil {
		w.integer(-1)
		return
	}
	w.count(len(items))
	for _, i := range items {
		item(w, i)
	}
}

func (w *writer) nodes(ids []tree.NodeID) { list(w, ids, (*writer).node) }
func (w *writer) ints(v []int)            { list(w, v, (*writer).count) }
func (w *writer) wide(v []int64)          { list(w, v, (*writer).integer) }

func (w *writer) tokens(tokens []tree.Token) {
	list(w, tokens, func(w *writer, t tree.Token) { w.integer(int64(t)) })
}

func (w *writer) digest(d tree.Digest) {
	words := w.room(len(d) / 8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(d)), d[:])
}

func (w *writer) digests(d []tree.Digest) { list(w, d, (*writer).digest) }

func (w *writer) ranges(r []tree.Range) {
	list(w, r, func(w *writer, r tree.Range) { w.count(r.Start); w.count(r.End) })
}

func (w *writer) slots(s tree.Slots) {
	switch {
	case s == nil:
		w.integer(C.TC_SLOTS_ABSENT)
		w.integer(0)
	case w.numbers && !opaque(s):
		w.integer(C.TC_SLOTS_NUMBERS)
		n := s.Len()
		w.count(n)
		words := w.room(n)
		expand(s, words)
	default:
		w.integer(C.TC_SLOTS_RUNS)
		w.count(len(s))
		words := w.room(3 * len(s))
		for i, r := range s {
			words[3*i], words[3*i+1], words[3*i+2] = int64(r.Buffer), int64(r.First), int64(r.Length)
		}
	}
}

func opaque(s tree.Slots) bool {
	for _, r := range s {
		if r.Buffer != 0 {
			return true
		}
	}
	return false
}

// expand writes the numbers of s one by one into words, which has room.
func expand(s tree.Slots, words []int64) {
	for _, r := range s {
		run := words[:r.Length]
		for i := range run {
			run[i] = int64(r.First) + int64(i)
		}
		words = words[r.Length:]
	}
}

func (w *writer) units(u tree.Units) {
	for _, v := range u {
		w.count(v)
	}
}

func (w *writer) frees(f *tree.Frees) {
	for _, s := range f.Device {
		w.slots(s)
	}
	for _, s := range f.Host {
		w.slots(s)
	}
}

func (w *writer) evicted(e *tree.Evicted) {
	w.units(e.Freed)
	w.count(e.Unbacked)
	w.frees(&e.Frees)
}

func (w *writer) receipt(r tree.Receipt) {
	w.node(r.Node)
	w.integer(int64(r.Skipped))
	for _, b := range r.Boundary {
		w.integer(int64(b))
	}
	for _, b := range r.HostBound {
		w.integer(int64(b))
	}
	w.count(r.Delta)
}

func (w *writer) transfer(t tree.Transfer) {
	w.integer(int64(t.Component))
	w.slots(t.Device)
	w.slots(t.Host)
	w.nodes(t.Nodes)
	w.digests(t.Keys)
}

func (w *writer) transfers(t []tree.Transfer) { list(w, t, (*writer).transfer) }

func (w *writer) namespace(n tree.Namespace) {
	w.truth(n.HasExtraKey)
	w.text(n.ExtraKey)
	w.text(n.Salt)
}

func (w *writer) actions(actions []tree.Action) { list(w, actions, (*writer).action) }

// action writes kind, number of words, and these words.
func (w *writer) action(a tree.Action) {
	at := len(w.words)
	w.integer(0)
	w.integer(0)
	var kind int64
	switch a := a.(type) {
	case tree.FreeDeviceKV:
		kind = C.TC_FREE_DEVICE_KV
		w.slots(a.Slots)
	case tree.FreeDeviceKVFullOnly:
		kind = C.TC_FREE_DEVICE_KV_FULL_ONLY
		w.slots(a.Slots)
	case tree.ReplaceWriteThroughOnNodeSplit:
		kind = C.TC_REPLACE_WRITE_THROUGH
		w.integer(a.Ack)
		w.node(a.Old)
		w.node(a.New)
		w.node(a.Child)
	case tree.BackupKV:
		kind = C.TC_BACKUP_KV
		w.backup(&a)
	case tree.SWARebuild:
		kind = C.TC_SWA_REBUILD
		w.node(a.Node)
		w.slots(a.Full)
	case tree.RecoverSWAWithLockedFull:
		kind = C.TC_RECOVER_SWA
		w.node(a.Node)
		w.slots(a.Kept)
		w.slots(a.Incoming)
	case tree.MambaEvictExcessPathStates:
		kind = C.TC_MAMBA_EVICT_EXCESS
		w.node(a.Tail)
	case tree.FreeComponentDeviceSlot:
		kind = C.TC_FREE_COMPONENT_DEVICE
		w.integer(int64(a.Component))
		w.slots(a.Slots)
	case tree.FreeComponentHostSlot:
		kind = C.TC_FREE_COMPONENT_HOST
		w.integer(int64(a.Component))
		w.slots(a.Slots)
	case tree.RebuildFullToSWAMapping:
		kind = C.TC_REBUILD_FULL_TO_SWA
		w.slots(a.Full)
		w.slots(a.SWA)
	default:
		panic("an action that the interface does not know")
	}
	w.words[at], w.words[at+1] = kind, int64(len(w.words)-at-2)
}

func (w *writer) backup(b *tree.BackupKV) {
	w.count(b.KeyLen)
	w.truth(b.EndsAtPrompt)
	w.nodes(b.Nodes)
}
