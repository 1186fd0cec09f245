// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
	"github.com/treecore/treecore/tree"
)

func newMachine(o tree.Options) (ops.Machine, error) { return tree.New(o) }

func newOracle(o tree.Options) (ops.Machine, error) { return oracle.New(o) }

// TestScripts runs every worked example of the behaviour specification and the
// reported cases on the core.
func TestScripts(t *testing.T) { ops.RunScripts(t, "testdata", newMachine) }

// TestRegressions runs what random tests once found.
func TestRegressions(t *testing.T) {
	ops.RunRegressions(t, "testdata/regressions", newMachine, newOracle)
}

// TestRandomAgainstOracle makes up stories with a host tier and compares the
// core with the oracle after every line. (Stories without one are run by the
// tests of package ops.)
func TestRandomAgainstOracle(t *testing.T) {
	for i, config := range append(ops.HostMixes(), ops.LinkerMixes()...) {
		t.Run(config.Name(), func(t *testing.T) {
			ops.RandomTest(t, newMachine, newOracle, config, uint64(i+101), ops.Operations(t, 2000))
		})
	}
}
