// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest_test

import (
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storagetest.Place {
		stores := map[storage.FingerprintID]*storagetest.Memory{}
		return storagetest.Place{
			Forgets: true,
			Open: func(_ *testing.T, f storage.Fingerprint) storage.Store {
				stores[f.ID()] = storagetest.NewMemory(f)
				return stores[f.ID()]
			},
			Tamper: func(_ *testing.T, f storage.Fingerprint, k storage.Key, change func([]byte) []byte) {
				stores[f.ID()].Tamper(k, change)
			},
		}
	})
}
