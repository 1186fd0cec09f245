// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
)

var _ ops.HostMachine = (*oracle.Oracle)(nil)
