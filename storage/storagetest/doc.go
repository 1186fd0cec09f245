// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package storagetest is the contract of storage.Store as tests: every backend
// runs all of them (Run), and so can a backend that lives elsewhere. It also has
// the pages that tests write: their bytes follow from their key, so that a wrong
// hit shows without remembering what was written. Benchmark measures a store that
// is reached over the network.
package storagetest
