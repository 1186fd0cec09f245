// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// A manual read that is advanced has read so many pages, once; its end reads the
// rest. A page that is missing ends it where it is.
func TestAdvance(t *testing.T) {
	ctx := context.Background()
	store := storagetest.NewMemory(storagetest.Fingerprint())
	pages := tree.HashPages(tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6}}, 1)
	batch := func() Batch {
		b := Batch{Pool: tree.Full.String(), Pages: pages}
		for range pages {
			b.Bytes = append(b.Bytes, make([]byte, 8))
		}
		return b
	}
	write := batch()
	for i := range write.Bytes {
		write.Bytes[i][0] = byte(i + 1)
	}
	q := New(Options{Store: store, Manual: true})
	q.Write(write, nil)
	if err := q.Wait(ctx, Write); err != nil {
		t.Fatal(err)
	}
	progress := func(o *Operation, want int, ended bool) {
		t.Helper()
		if n, _ := o.Progress(); n != want || o.Ended() != ended {
			t.Fatalf("%d pages, ended %v; want %d, %v", n, o.Ended(), want, ended)
		}
	}
	into := batch()
	o := q.Read(into, nil)
	for _, x := range []struct{ to, want int }{{2, 2}, {1, 2}, {0, 2}, {-1, 2}, {4, 4}} {
		if !q.Advance(o.ID(), x.to) {
			t.Fatal("there is no such read")
		}
		progress(o, x.want, false)
	}
	if hits := store.Stats().Hits; hits != 4 {
		t.Errorf("%d pages were read, want 4", hits)
	}
	q.Complete(o.ID())
	progress(o, 6, true)
	for i, b := range into.Bytes {
		if b[0] != byte(i+1) {
			t.Errorf("page %d holds %v", i, b)
		}
	}
	if q.Advance(o.ID(), 3) || store.Stats().Hits != 6 {
		t.Errorf("after its end: %+v", store.Stats())
	}

	if err := store.Delete(ctx, storage.Keys(pages[3:4], tree.Full.String())); err != nil {
		t.Fatal(err)
	}
	o = q.Read(batch(), nil)
	q.Advance(o.ID(), 100)
	progress(o, 3, false)
	q.Complete(o.ID())
	progress(o, 3, true)
	if o.Complete() {
		t.Error("a read without a page is complete")
	}
	o = q.Read(batch(), nil)
	o.Stop()
	q.Advance(o.ID(), 2)
	progress(o, 0, false)
	if err := q.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
