// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/treecore/treecore/tree"
)

// StampBytes is the least size of a slot's memory: room for one content stamp.
const StampBytes = 8

// Memory is what slots stand for: real bytes, equally many for each slot. An
// engine gives a slot as many as its model needs; for planning a content stamp
// of 8 bytes is enough to tell a wrong slot by its content. The memory of a slot
// may be used by one goroutine at a time; different slots are independent.
type Memory struct {
	bytes []byte
	each  int
}

// maxMemory bounds the bytes of one Memory.
const maxMemory = 1 << 46

// NewMemory returns memory for the slots 0 .. slots-1 of each bytes. Numbers
// below 0, fewer bytes than a stamp, or more than a machine has are an
// *ArgumentError.
func NewMemory(slots, each int) (*Memory, error) {
	if each < StampBytes {
		return nil, &ArgumentError{Op: "NewMemory", Field: "each", Problem: fmt.Sprintf("%d bytes a slot: give %d or more", each, StampBytes)}
	}
	if slots < 0 || slots > maxMemory/each {
		return nil, &ArgumentError{Op: "NewMemory", Field: "slots", Problem: fmt.Sprintf("%d slots of %d bytes: give 0 to %d", slots, each, maxMemory/each)}
	}
	return &Memory{bytes: make([]byte, slots*each), each: each}, nil
}

// SlotBytes returns the number of bytes that each slot has.
func (m *Memory) SlotBytes() int { return m.each }

// Slots returns the number of slots: they are 0 to Slots()-1.
func (m *Memory) Slots() int { return len(m.bytes) / m.each }

// At returns the bytes of a slot, which must be one of this memory. They stay
// the memory's own.
func (m *Memory) At(s tree.Slot) []byte {
	at := int(s) * m.each
	return m.bytes[at : at+m.each : at+m.each]
}

// Run returns the bytes of n slots from first on, which must be of this memory.
// They stay the memory's own.
func (m *Memory) Run(first tree.Slot, n int) []byte {
	at, end := int(first)*m.each, (int(first)+n)*m.each
	return m.bytes[at:end:end]
}

// Stamp returns the content stamp of a slot: its first 8 bytes.
func (m *Memory) Stamp(s tree.Slot) uint64 { return binary.LittleEndian.Uint64(m.At(s)) }

// SetStamp writes the content stamp of a slot.
func (m *Memory) SetStamp(s tree.Slot, stamp uint64) {
	binary.LittleEndian.PutUint64(m.At(s), stamp)
}

// holds reports whether all slots of a run are slots of this memory.
func (m *Memory) holds(r tree.Run) bool {
	return r.Buffer == 0 && (int(r.First)+int(r.Length))*m.each <= len(m.bytes)
}

// copyPiece is how many bytes are copied between two looks at the context.
const copyPiece = 1 << 20

// copySlots copies slot by slot from one list to another of the same length.
func copySlots(ctx context.Context, dst *Memory, to tree.Slots, src *Memory, from tree.Slots) error {
	if dst.each != src.each || to.Len() != from.Len() {
		return &ArgumentError{Op: "copy", Field: "slots", Problem: fmt.Sprintf("%d slots of %d bytes to %d of %d: both must be equal", from.Len(), src.each, to.Len(), dst.each)}
	}
	piece := uint32(max(copyPiece/dst.each, 1))
	i, done := 0, uint32(0) // place in to
	for _, f := range from {
		for f.Length > 0 {
			for done == to[i].Length {
				i, done = i+1, 0
			}
			n := min(f.Length, to[i].Length-done, piece)
			t := tree.Run{Buffer: to[i].Buffer, First: to[i].First + tree.Slot(done), Length: n}
			f0 := tree.Run{Buffer: f.Buffer, First: f.First, Length: n}
			if !dst.holds(t) || !src.holds(f0) {
				return &ArgumentError{Op: "copy", Field: "slots", Problem: fmt.Sprintf("slots %v to %v: beyond the memory", f0, t)}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			copy(dst.bytes[int(t.First)*dst.each:], src.bytes[int(f0.First)*src.each:(int(f0.First)+int(n))*src.each])
			f.First, f.Length, done = f.First+tree.Slot(n), f.Length-n, done+n
		}
	}
	return nil
}

// Memories is the memory of both tiers by component; nil where a component has
// none.
type Memories struct {
	Device, Host [tree.NumComponents]*Memory
	Sidecars     []SidecarMemory
}

// SidecarMemory is memory beside that of a component, at the same slots: an
// indexer's, or a draft model's.
type SidecarMemory struct {
	Name         string
	Source       tree.Component
	Device, Host *Memory
}

// Copy moves the content of a copy's slots, and what lies beside them in
// sidecars, page-wise, and looks at the context in between. It is what an Engine
// needs.
func (m *Memories) Copy(ctx context.Context, c Copy) error {
	for _, p := range c.Parts {
		if p.Component >= tree.NumComponents || m.Device[p.Component] == nil || m.Host[p.Component] == nil {
			return &ArgumentError{Op: "Copy", Field: "component", Problem: p.Component.String() + " has no memory on both tiers"}
		}
		if err := copyPart(ctx, c.Direction, p, m.Device[p.Component], m.Host[p.Component]); err != nil {
			return err
		}
		for _, s := range m.Sidecars {
			if s.Source != p.Component {
				continue
			}
			if err := copyPart(ctx, c.Direction, p, s.Device, s.Host); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyPart(ctx context.Context, d Direction, p Part, device, host *Memory) error {
	if d == ToHost {
		return copySlots(ctx, host, p.Host, device, p.Device)
	}
	return copySlots(ctx, device, p.Device, host, p.Host)
}
