// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// ExhaustedError says that a pool has fewer free slots than were asked for.
// Nothing was taken. It is a momentary state: freeing or evicting helps.
type ExhaustedError struct {
	Pool string // the pool's name: full, swa, mamba
	Want int    // slots that were asked for
	Free int    // slots that were free
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("pool %s: %d slots wanted, %d free: free or evict %d", e.Pool, e.Want, e.Free, e.Want-e.Free)
}

// FreeError says that a list names slots that cannot be freed. Nothing was
// freed. Whoever called has wrong books and should stop serving (rule FL-8).
type FreeError struct {
	Pool   string
	Slots  tree.Slots // the offending slots
	Reason string     // what is wrong with the first of them
}

func (e *FreeError) Error() string {
	noun, verb := "slots", "are"
	if e.Slots.Len() == 1 {
		noun, verb = "slot", "is"
	}
	return fmt.Sprintf("pool %s: %s %v %s %s: nothing was freed", e.Pool, noun, e.Slots, verb, e.Reason)
}

// ArgumentError reports an argument that is wrong whatever the pool holds.
// Nothing has changed.
type ArgumentError struct {
	Op      string // the operation
	Field   string // the argument
	Problem string // what is wrong and what would be right
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Op, e.Field, e.Problem)
}

// OrderError reports a call that is out of order: a group inside a group, or
// the end of a group that was not begun.
type OrderError struct {
	Op      string
	Problem string
}

func (e *OrderError) Error() string { return e.Op + ": " + e.Problem }

// CheckError is what Check methods return: the pool's own books disagree.
type CheckError struct {
	Pool    string
	Problem string
}

func (e *CheckError) Error() string {
	return fmt.Sprintf("pool %s: %s", e.Pool, e.Problem)
}

// maxSlots bounds pools so that slot numbers fit tree.Slot.
const maxSlots = 1<<32 - 1<<12
