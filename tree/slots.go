// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Slot names one place in a device or host pool. The tree never looks at what
// lies there; it stores, cuts, joins and returns slots.
type Slot uint32

// BufferID names a slot list that lives outside, for example in GPU memory,
// where reading it would stall the device. 0 means that a run is numbered.
type BufferID uint32

// Run is a row of consecutive slots. With Buffer 0 it is numbered: the slots
// First, First+1, ... First+Length-1. Otherwise it is opaque: Length entries of
// the buffer, from entry First on, whose slot numbers the tree never learns.
type Run struct {
	Buffer BufferID
	First  Slot
	Length uint32
}

// Slots is a list of slots, kept as runs. A list made by this package is
// canonical: no run is empty, and neighbours that continue each other are one.
// nil means "no data", which differs from an empty list.
type Slots []Run

// Numbered returns the list of the slots first, first+1, ... first+n-1. Slot
// numbers end at 2^32-1: a list that would go beyond is refused where it enters
// a core.
func Numbered(first Slot, n int) Slots {
	s := Slots{}
	for n > 0 {
		length := min(n, math.MaxUint32)
		s = append(s, Run{First: first, Length: uint32(length)})
		first, n = first+Slot(length), n-length
	}
	return s
}

// check reports a run that names slots beyond the last number.
func (s Slots) check(op, field string) error {
	for _, r := range s {
		if uint64(r.First)+uint64(r.Length) > 1<<32 {
			return &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf("the run of %d slots from %d goes beyond the last number, %d", r.Length, r.First, uint32(math.MaxUint32))}
		}
	}
	return nil
}

// SlotsOf returns the list of the given slot numbers, in order.
func SlotsOf(numbers ...Slot) Slots {
	s := make(Slots, 0, 1)
	for _, n := range numbers {
		s = s.AppendRun(Run{First: n, Length: 1})
	}
	return s
}

// Len returns how many slots the list has.
func (s Slots) Len() int {
	n := 0
	for _, r := range s {
		n += int(r.Length)
	}
	return n
}

// AppendRun adds a run at the end, joining it with the last one where it
// continues it. An empty run adds nothing.
func (s Slots) AppendRun(r Run) Slots {
	if r.Length == 0 {
		return s
	}
	if n := len(s); n > 0 {
		last := &s[n-1]
		if last.Buffer == r.Buffer && uint64(last.First)+uint64(last.Length) == uint64(r.First) &&
			uint64(last.Length)+uint64(r.Length) <= 1<<32-1 {
			last.Length += r.Length
			return s
		}
	}
	return append(s, r)
}

// Append adds all of t, which must be canonical, at the end.
func (s Slots) Append(t Slots) Slots {
	if len(t) == 0 {
		return s
	}
	return append(s.AppendRun(t[0]), t[1:]...)
}

// AppendSlice adds the slots [from, to) of t at the end.
// It is the caller's duty that 0 <= from <= to <= t.Len().
func (s Slots) AppendSlice(t Slots, from, to int) Slots {
	at := 0
	for _, r := range t {
		end := at + int(r.Length)
		if end > from && at < to {
			lo, hi := max(from, at), min(to, end)
			s = s.AppendRun(Run{Buffer: r.Buffer, First: r.First + Slot(lo-at), Length: uint32(hi - lo)})
		}
		if at = end; at >= to {
			break
		}
	}
	return s
}

// Slice returns a fresh list of the slots [from, to).
func (s Slots) Slice(from, to int) Slots {
	runs, at := 0, 0
	for _, r := range s {
		end := at + int(r.Length)
		if end > from && at < to {
			runs++
		}
		if at = end; at >= to {
			break
		}
	}
	return make(Slots, 0, runs).AppendSlice(s, from, to)
}

// canonical returns a copy without empty runs and with neighbours joined. That
// of nil is nil.
func (s Slots) canonical() Slots {
	if s == nil {
		return nil
	}
	c := make(Slots, 0, len(s))
	for _, r := range s {
		c = c.AppendRun(r)
	}
	return c
}

// Clone returns a copy that shares no memory. The clone of nil is nil.
func (s Slots) Clone() Slots {
	if s == nil {
		return nil
	}
	c := make(Slots, len(s))
	copy(c, s)
	return c
}

// At returns the slot at position i and the buffer it belongs to (0: numbered).
// It is the caller's duty that 0 <= i < s.Len().
func (s Slots) At(i int) (BufferID, Slot) {
	for _, r := range s {
		if i < int(r.Length) {
			return r.Buffer, r.First + Slot(i)
		}
		i -= int(r.Length)
	}
	panic("tree: slot position " + strconv.Itoa(i) + " beyond the list")
}

// Equal reports whether both lists name the same slots in the same order.
// A nil list equals an empty one.
func (s Slots) Equal(t Slots) bool {
	var i, j int
	var a, b Run
	for {
		for a.Length == 0 {
			if i == len(s) {
				a.Length = 0
				break
			}
			a = s[i]
			i++
		}
		for b.Length == 0 {
			if j == len(t) {
				break
			}
			b = t[j]
			j++
		}
		if a.Length == 0 || b.Length == 0 {
			return a.Length == b.Length
		}
		if a.Buffer != b.Buffer || a.First != b.First {
			return false
		}
		n := min(a.Length, b.Length)
		a.First, a.Length = a.First+Slot(n), a.Length-n
		b.First, b.Length = b.First+Slot(n), b.Length-n
	}
}

// Numbers returns the slot numbers one by one. Opaque runs have none; it is an
// error to ask for them.
func (s Slots) Numbers() ([]Slot, error) {
	out := make([]Slot, 0, s.Len())
	for _, r := range s {
		if r.Buffer != 0 {
			return nil, &ArgumentError{Op: "Slots.Numbers", Field: "slots", Problem: fmt.Sprintf("the run %v is opaque: its numbers are known to the buffer's owner only", r)}
		}
		for i := uint32(0); i < r.Length; i++ {
			out = append(out, r.First+Slot(i))
		}
	}
	return out, nil
}

// String draws the run: 10..13 for numbered ones, buf2[10..13] for opaque ones.
func (r Run) String() string {
	span := strconv.FormatUint(uint64(r.First), 10)
	if r.Length != 1 {
		span += ".." + strconv.FormatUint(uint64(r.First)+uint64(r.Length)-1, 10)
	}
	if r.Buffer != 0 {
		return "buf" + strconv.FormatUint(uint64(r.Buffer), 10) + "[" + span + "]"
	}
	return span
}

// String draws the list as its runs joined by commas, or "-" for none.
func (s Slots) String() string {
	if len(s) == 0 {
		return "-"
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(r.String())
	}
	return b.String()
}

// truncate cuts the list, which must be the caller's own, to its first n slots.
func (s Slots) truncate(n int) Slots {
	for i := range s {
		if n <= int(s[i].Length) {
			if n == 0 {
				return s[:i]
			}
			s[i].Length = uint32(n)
			return s[:i+1]
		}
		n -= int(s[i].Length)
	}
	return s
}
