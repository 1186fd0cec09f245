// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

// settle waits until the disk has what was written before, so that one
// measurement does not pay for another.
func settle(b *testing.B) {
	b.Helper()
	if err := exec.Command("sync").Run(); err != nil {
		b.Skipf("cannot flush the disk: %v", err)
	}
}

// One operation is the whole set of pages. The floor writes the same bytes to a
// file, in pieces of 4 MiB.
func BenchmarkStore(b *testing.B) {
	for _, c := range []struct {
		pages, size int
	}{{1_000_000, 1 << 10}, {200_000, 64}, {1000, 4 << 20}} {
		total := int64(c.pages) * int64(c.size)
		name := func(what string) string { return fmt.Sprintf("%s/pages=%d/bytes=%d", what, c.pages, c.size) }
		b.Run(name("floor"), func(b *testing.B) {
			b.SetBytes(total)
			piece := make([]byte, 4<<20)
			settle(b)
			for b.Loop() {
				f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
				if err != nil {
					b.Fatal(err)
				}
				for left := total; left > 0; left -= int64(len(piece)) {
					if _, err := f.Write(piece[:min(left, int64(len(piece)))]); err != nil {
						b.Fatal(err)
					}
				}
				_ = f.Close()
				_ = os.Remove(f.Name())
			}
		})
		batches := storagetest.BenchKeys(c.pages)
		page := make([]byte, c.size)
		pages := make([][]byte, storage.MaxBatch)
		for i := range pages {
			pages[i] = page
		}
		dir := b.TempDir()
		open := func(b *testing.B) *Store {
			s, err := Open(ctx, Options{Dir: dir}, storagetest.Fingerprint())
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
		rate := func(b *testing.B) {
			b.ReportMetric(float64(c.pages)*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		}
		b.Run(name("put"), func(b *testing.B) {
			b.SetBytes(total)
			settle(b)
			for b.Loop() {
				s := open(b)
				if err := s.Clear(ctx); err != nil {
					b.Fatal(err)
				}
				for _, keys := range batches {
					if _, err := s.Put(ctx, keys, pages[:len(keys)]); err != nil {
						b.Fatal(err)
					}
				}
				_ = s.Close()
			}
			rate(b)
		})
		b.Run(name("open"), func(b *testing.B) {
			for b.Loop() {
				_ = open(b).Close()
			}
			rate(b)
		})
		s := open(b)
		b.Run(name("exists"), func(b *testing.B) {
			for b.Loop() {
				for _, keys := range batches {
					if ok, err := s.Exists(ctx, keys); err != nil || !ok[0] {
						b.Fatal(ok[0], err)
					}
				}
			}
			rate(b)
		})
		b.Run(name("get"), func(b *testing.B) {
			b.SetBytes(total)
			into := storagetest.Buffers(storage.MaxBatch, c.size)
			for b.Loop() {
				for _, keys := range batches {
					if ok, err := s.Get(ctx, keys, into[:len(keys)]); err != nil || storage.Leading(ok) != len(keys) {
						b.Fatal(ok, err)
					}
				}
			}
			rate(b)
		})
		_ = s.Close()
	}
}
