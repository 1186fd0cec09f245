// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client_test

import (
	"testing"

	"github.com/treecore/treecore/capi/internal/client"
	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
	"github.com/treecore/treecore/tree"
)

var _ ops.HostMachine = (*client.Machine)(nil)

// newMachine returns a machine that runs through the C interface.
func newMachine(o tree.Options) (ops.Machine, error) { return client.New(o, false) }

// newNumbers is newMachine with slots that come back as numbers.
func newNumbers(o tree.Options) (ops.Machine, error) { return client.New(o, true) }

func newOracle(o tree.Options) (ops.Machine, error) { return oracle.New(o) }

// TestScripts runs the scripts of the core's own tests through the C interface.
func TestScripts(t *testing.T) { ops.RunScripts(t, "../../../tree/testdata", newMachine) }

func TestScriptsWithNumbers(t *testing.T) {
	ops.RunScripts(t, "../../../tree/testdata", newNumbers)
}

func TestRegressions(t *testing.T) {
	ops.RunRegressions(t, "../../../tree/testdata/regressions", newMachine, newOracle)
}

// TestStaleHandles passes stale nodes wherever a node can stand.
func TestStaleHandles(t *testing.T) { ops.StaleHandleTest(t, newMachine) }

// TestRandomAgainstOracle tells random stories to the C interface and to the
// oracle.
func TestRandomAgainstOracle(t *testing.T) {
	for i, config := range append(append(ops.Mixes(), ops.HostMixes()...), ops.LinkerMixes()...) {
		t.Run(config.Name(), func(t *testing.T) {
			machine := newMachine
			if i%2 == 1 {
				machine = newNumbers
			}
			ops.RandomTest(t, machine, newOracle, config, uint64(i+401), ops.Operations(t, 1000))
		})
	}
}
