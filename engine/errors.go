// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// ModelError says that a model could not compute a request, which has ended.
type ModelError struct {
	Request int64
	Err     error
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("request %d: the model cannot compute it: %v", e.Request, e.Err)
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// NoRoomError says that a request cannot go on even when it is alone.
type NoRoomError struct {
	Request int64
	Tokens  int // that it has
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("request %d: there is no room on the device for more than its %d tokens: make the pools larger or the request shorter", e.Request, e.Tokens)
}
