// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// NoRoomError says that a request cannot go on even when it is alone.
type NoRoomError struct {
	Request int64
	Tokens  int // that it has
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("request %d: there is no room on the device for more than its %d tokens: make the pools larger or the request shorter", e.Request, e.Tokens)
}
