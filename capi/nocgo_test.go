// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package main

import "testing"

// TestLibrary says why there is nothing to test.
func TestLibrary(t *testing.T) {
	t.Skip("capi: cgo is off or there is no C compiler: the library cannot be built here")
}
