// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// State says where a request is in its life.
type State uint8

// The states of a request.
const (
	Waiting   State = iota // new, or matched but not admitted
	Running                // admitted: it holds a lock and slots
	Lost                   // it was running, or retracted, when its prefix was taken away; only its end is left
	Finished               // ended by Finish, Abort or Discard
	Retracted              // it ran, and what it has computed is saved on the host
)

var stateNames = [...]string{"waiting", "running", "lost", "finished", "retracted"}

// String returns the state's lower-case name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// OrderError reports a call that a request in its state does not allow. Nothing
// has changed.
type OrderError struct {
	Op      string
	Request int64
	State   State
	Problem string // what would be right
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%s: request %d is %v: %s", e.Op, e.Request, e.State, e.Problem)
}

// ClosedError refuses what would start something in a cache that was closed.
// Nothing has changed.
type ClosedError struct{ Op string }

func (e *ClosedError) Error() string {
	return e.Op + ": the cache is closed: make a new one with New"
}

// TooLargeError says that a request cannot fit however long it waits: even
// alone it needs more slots of a component than the pool has.
type TooLargeError struct {
	Op        string
	Component tree.Component
	Needed    int // slots that are needed at once
	Size      int // slots that the pool has
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d slots of %v are needed at once, the pool has %d: make the pool larger or the request smaller", e.Op, e.Needed, e.Component, e.Size)
}

// ArgumentError reports an argument that is wrong whatever the cache holds.
type ArgumentError struct {
	Op      string
	Field   string
	Problem string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Op, e.Field, e.Problem)
}

// UnsupportedError reports an action of the tree that this cache cannot
// execute, since it has no host tier, or no host pool of the component.
type UnsupportedError struct{ Action string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the tree asks for %s, but this cache has no host tier: leave Switches.HostTier off", e.Action)
}

// InternalError reports that the books of cache, tree and pools disagree. From
// then on every call returns it: a cache that may hand out a slot twice must
// not go on serving (rule FL-8).
type InternalError struct {
	Op  string
	Err error
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("%s: internal inconsistency, stop serving and report: %v", e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *InternalError) Unwrap() error { return e.Err }
