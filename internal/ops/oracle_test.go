// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
	"github.com/treecore/treecore/tree"
)

func newOracle(o tree.Options) (ops.Machine, error) { return oracle.New(o) }

func newCore(o tree.Options) (ops.Machine, error) { return tree.New(o) }

// TestScripts runs the stories of the core's own tests against the oracle.
func TestScripts(t *testing.T) { ops.RunScripts(t, "../../tree/testdata", newOracle) }
