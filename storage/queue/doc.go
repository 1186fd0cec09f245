// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue runs operations on a store beside a scheduler: lookups of a
// prefix, reads of pages into host memory, and writes. Goroutines do the I/O;
// the scheduler starts operations, looks at their progress, and takes the ended
// ones in the order in which they were started (sections 9.3, 10.2 of the
// behaviour specification). Nothing that a store does, an error, a hang or a
// panic, reaches the scheduler but as an answer.
package queue
