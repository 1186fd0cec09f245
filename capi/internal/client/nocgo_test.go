// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package client_test

import "testing"

// TestScripts says why there is nothing to test.
func TestScripts(t *testing.T) {
	t.Skip("client: cgo is off or there is no C compiler: the scripts do not run through the C interface here")
}
