// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package ops

// raceEnabled says that the race detector is on, which makes random tests about
// ten times as slow.
const raceEnabled = true
