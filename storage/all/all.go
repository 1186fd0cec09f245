// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package all makes storage.Open know every backend: import it for its effect.
package all

import (
	_ "github.com/treecore/treecore/storage/file"  // file:
	_ "github.com/treecore/treecore/storage/redis" // redis: and rediss:
	_ "github.com/treecore/treecore/storage/s3"    // s3:
)
