// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/treecore/treecore/storage"
	_ "github.com/treecore/treecore/storage/file" // storage/all for every backend
	"github.com/treecore/treecore/tree"
)

// What the bytes of a model's pages mean: stores of another meaning see none of
// them.
func exampleFingerprint() storage.Fingerprint {
	return storage.Fingerprint{
		Model: "llama-3.1-8b", Revision: "0e9e39f", DType: "bf16", PageSize: 4,
		Components: tree.SetOf(tree.Full), Ranks: 1,
	}
}

// Pages of a prompt are stored under the hashes of its prefixes, and found by
// another prompt that begins the same.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := storage.Open(ctx, "file:"+dir+"?size=64MiB", exampleFingerprint())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	// Three pages of four tokens; a page's state is two bytes here.
	pages := tree.HashPages(tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, 4)
	keys := storage.Keys(pages, tree.Full.String())
	stored, err := s.Put(ctx, keys, [][]byte{{1, 1}, {2, 2}, {3, 3}})
	fmt.Println("stored", stored, err)

	// The next prompt shares two of them.
	pages = tree.HashPages(tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6, 7, 8, 90, 91, 92, 93}}, 4)
	found, err := storage.Lookup(ctx, s, pages, nil)
	fmt.Println("usable pages", found.Usable, err)

	keys = storage.Keys(pages[:found.Usable], tree.Full.String())
	into := [][]byte{make([]byte, 2), make([]byte, 2)}
	read, err := s.Get(ctx, keys, into)
	fmt.Println("read", storage.Leading(read), into, err)
	// Output:
	// stored [true true true] <nil>
	// usable pages 2 <nil>
	// read 2 [[1 1] [2 2]] <nil>
}

// A lookup asks all pools at once: with a sliding window of two pages, a prefix
// can be used up to where two window pages in a row are there.
func ExampleLookup() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := exampleFingerprint()
	f.Components, f.Window = tree.SetOf(tree.Full, tree.SWA), 8
	s, err := storage.Open(ctx, "file:"+dir, f)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	pages := tree.HashPages(tree.Key{Tokens: make([]tree.Token, 24)}, 4)
	full, window := storage.Keys(pages, tree.Full.String()), storage.Keys(pages[1:4], tree.SWA.String())
	for _, k := range append(full, window...) {
		if _, err := s.Put(ctx, []storage.Key{k}, [][]byte{{1}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	needs := []storage.Need{{Pool: tree.SWA.String(), Policy: storage.TrailingPages, Trailing: 2}}
	found, err := storage.Lookup(ctx, s, pages, needs)
	fmt.Printf("%d of %d pages, %d of them from the window's pool, %v\n", found.Usable, len(pages), found.Aux[0], err)
	// Output: 4 of 6 pages, 2 of them from the window's pool, <nil>
}

// A bad setting names the field, what was given, and what is allowed.
func ExampleOpen_badSetting() {
	_, err := storage.Open(context.Background(), "file:/var/cache/treecore?size=10", exampleFingerprint())
	var bad *storage.ConfigError
	fmt.Println(errors.As(err, &bad), bad.Field, bad.Value)
	fmt.Println(bad.Allowed)
	// Output:
	// true size "10"
	// a size of at least 1048576 bytes, such as 16GiB, 500MB or 4096
}
