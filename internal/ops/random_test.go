// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"testing"

	"github.com/treecore/treecore/internal/ops"
)

func TestRandomCoreAgainstOracle(t *testing.T) {
	for i, config := range ops.Mixes() {
		t.Run(config.Name(), func(t *testing.T) {
			ops.RandomTest(t, newCore, newOracle, config, uint64(i+1), ops.Operations(t, 10000))
		})
	}
}
