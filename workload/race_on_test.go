// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package workload

// racing says that tests run many times slower than usual.
const racing = true
