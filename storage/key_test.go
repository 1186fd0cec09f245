// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// spaceOf is a namespace as the tree tells them apart: an empty extra key that is
// there is not the same as none, an empty salt is.
func spaceOf(n tree.Namespace) tree.Namespace {
	n.HasExtraKey = n.HasExtraKey || n.ExtraKey != ""
	return n
}

// Case C-069: salts and extra keys are bytes, also where they are no UTF-8. No
// two namespaces have a page in common, and none has a key that is not bounded
// text.
func TestC069NamespacesShareNoKey(t *testing.T) {
	owner := map[string]tree.Namespace{}
	add := func(t interface{ Errorf(string, ...any) }, ns tree.Namespace) {
		for _, page := range storagetest.Chain(2, 1, ns) {
			key := storage.KeyOf(page, tree.Full)
			if back, err := storage.ParseKey(key.String()); err != nil || back != key || len(key.String()) > 64+1+storage.MaxPoolName {
				t.Errorf("%#v: key %v reads back as %v, %v", ns, key, back, err)
			}
			if other, taken := owner[key.String()]; taken && other != spaceOf(ns) {
				t.Errorf("%#v and %#v share a page", ns, other)
			}
			owner[key.String()] = spaceOf(ns)
		}
	}
	for _, ns := range storagetest.Namespaces() {
		add(t, ns)
	}
	if want := 2 * len(storagetest.Namespaces()); len(owner) != want {
		t.Errorf("%d keys, wanted %d: two of the namespaces are the same", len(owner), want)
	}
	// Few letters, among them those that lengths and marks are written with.
	text := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff, 0xed}), 0, 12).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		add(t, tree.Namespace{ExtraKey: text.Draw(t, "extra key"), HasExtraKey: rapid.Bool().Draw(t, "present"), Salt: text.Draw(t, "salt")})
	})
}
