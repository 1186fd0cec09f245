// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

func newMachine(o tree.Options) (ops.Machine, error) { return tree.New(o) }

// TestScripts runs every worked example of the behaviour specification and the
// reported cases on the core.
func TestScripts(t *testing.T) { ops.RunScripts(t, "testdata", newMachine) }
