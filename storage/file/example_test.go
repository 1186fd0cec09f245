// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"os"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/tree"
)

func exampleFingerprint() storage.Fingerprint {
	return storage.Fingerprint{
		Model: "llama-3.1-8b", Revision: "0e9e39f", DType: "bf16", PageSize: 4,
		Components: tree.SetOf(tree.Full), Ranks: 1,
	}
}

// A folder outlives the process: what was put is found at the next opening.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	pages := tree.HashPages(tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6, 7, 8}}, 4)
	keys := storage.Keys(pages, tree.Full.String())
	s, err := file.Open(ctx, file.Options{Dir: dir, Size: 64 << 20}, exampleFingerprint())
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err := s.Put(ctx, keys, [][]byte{[]byte("one"), []byte("two")})
	fmt.Println("stored", stored, err)
	_ = s.Close()

	s, err = file.Open(ctx, file.Options{Dir: dir, Size: 64 << 20}, exampleFingerprint())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	found, err := storage.Lookup(ctx, s, pages, nil)
	fmt.Println("usable pages", found.Usable, err)
	into := [][]byte{make([]byte, 3), make([]byte, 3)}
	read, err := s.Get(ctx, keys, into)
	fmt.Printf("read %v %s %v\n", read, into, err)
	fmt.Println("pages held", s.Stats().Pages)
	// Output:
	// stored [true true] <nil>
	// usable pages 2 <nil>
	// read [true true] [one two] <nil>
	// pages held 2
}

// A folder tells which models and layouts it holds pages of.
func ExampleLayouts() {
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := file.Open(context.Background(), file.Options{Dir: dir}, exampleFingerprint())
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = s.Close()
	layouts, err := file.Layouts(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range layouts {
		fmt.Printf("%s", l.Description)
	}
	// Output:
	// {
	//   "model": "llama-3.1-8b",
	//   "revision": "0e9e39f",
	//   "dtype": "bf16",
	//   "page-size": "4",
	//   "components": "full",
	//   "window": "0",
	//   "ranks": "1",
	//   "rank": "0",
	//   "layout": "",
	//   "id": "3f6606bad89760ba9f135c9df93df536"
	// }
}
