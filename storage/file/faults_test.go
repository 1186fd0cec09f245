// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

var ctx = context.Background()

func mustOpen(t *testing.T, dir string, size int64) *Store {
	t.Helper()
	s, err := Open(ctx, Options{Dir: dir, Size: size}, storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func keysFrom(first uint32, n int) []storage.Key {
	return storage.Keys(storagetest.Chain(n, first*16, tree.Namespace{}), "full")
}

// put writes pages and returns how many were written.
func put(s *Store, keys []storage.Key, size int) (int, error) {
	ok, err := s.Put(ctx, keys, storagetest.Pages(keys, size))
	n := 0
	for _, ok := range ok {
		if ok {
			n++
		}
	}
	return n, err
}

// hits reads keys and returns how many pages were there, all with right bytes.
func hits(t *testing.T, s *Store, keys []storage.Key, size int) int {
	t.Helper()
	into := storagetest.Buffers(len(keys), size)
	ok, err := s.Get(ctx, keys, into)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range ok {
		if !ok[i] {
			continue
		}
		n++
		if string(into[i]) != string(storagetest.Page(keys[i], size)) {
			t.Fatalf("page %d is a hit with wrong bytes", i)
		}
	}
	return n
}

func kindOf(err error) storage.Kind {
	var e *storage.Error
	if !errors.As(err, &e) {
		return storage.NumKinds
	}
	return e.Kind
}

func TestSizeCapEvictsTheOldestAndKeepsTheUsed(t *testing.T) {
	dir := t.TempDir()
	const size, page = 1 << 20, 4000
	s := mustOpen(t, dir, size)
	hot := keysFrom(0, 5)
	for i := range uint32(60) {
		if n, err := put(s, keysFrom(100*i, 20), page); n != 20 || err != nil {
			t.Fatalf("batch %d: %d written, %v", i, n, err)
		}
		if n := hits(t, s, hot, page); n != 5 {
			t.Fatalf("after batch %d %d of the 5 pages in use are left", i, n)
		}
		if got := s.Stats(); got.Bytes > size || got.Pages > size/page {
			t.Fatalf("%d bytes in %d pages are over the cap of %d", got.Bytes, got.Pages, size)
		}
	}
	got := s.Stats()
	if int64(got.Written-got.Evicted) != got.Pages || got.Evicted == 0 {
		t.Errorf("written %d - evicted %d is not the %d held", got.Written, got.Evicted, got.Pages)
	}
	if n := hits(t, s, keysFrom(5900, 20), page); n != 20 {
		t.Errorf("%d of the 20 newest pages are left", n)
	}
	if _, err := put(s, keysFrom(9000, 1), size/4); kindOf(err) != storage.TooLarge {
		t.Errorf("a page of a quarter of the cap: %v, wanted kind too-large", err)
	}
	// A lower cap holds from the next opening on.
	_ = s.Close()
	more := mustOpen(t, dir, 1<<20)
	if more.Stats().Pages != got.Pages {
		t.Errorf("%d pages found again, wanted %d", more.Stats().Pages, got.Pages)
	}
}

func TestTwoStoresOfOneFolder(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, 0)
	_, err := Open(ctx, Options{Dir: dir}, storagetest.Fingerprint())
	var locked *storage.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("a second opening: %v, wanted a *LockedError with our process id", err)
	}
	_ = s.Close()
	mustOpen(t, dir, 0)
}

// Case C-031: no space once costs one segment and the write works; no space for
// good is a refused write, and no further segment.
func TestC031NoSpace(t *testing.T) {
	s := mustOpen(t, t.TempDir(), 1<<20)
	for i := range uint32(10) {
		if _, err := put(s, keysFrom(100*i, 10), 4000); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Stats()
	failures := 1
	s.writeAt = func(f *os.File, b []byte, off int64) (int, error) {
		if failures == 0 {
			return f.WriteAt(b, off)
		}
		failures--
		n, _ := f.WriteAt(b[:len(b)/2], off)
		return n, syscall.ENOSPC
	}
	if n, err := put(s, keysFrom(5000, 5), 4000); n != 5 || err != nil {
		t.Fatalf("no space once: %d written, %v", n, err)
	}
	if n := hits(t, s, keysFrom(5000, 5), 4000); n != 5 {
		t.Errorf("no space once: %d read", n)
	}
	after := s.Stats()
	if after.Evicted == 0 || after.Evicted > 20 {
		t.Errorf("%d pages were given up, wanted one segment's", after.Evicted-before.Evicted)
	}
	failures = 1000
	for i := range uint32(10) {
		if n, err := put(s, keysFrom(6000+100*i, 5), 4000); n != 0 || kindOf(err) != storage.NoSpace {
			t.Fatalf("no space for good: %d written, %v", n, err)
		}
	}
	got := s.Stats()
	if got.Failed != 50 || got.Errors[storage.NoSpace] != 10 || got.SinceLastGood != 10 || got.Evicted > after.Evicted+20 {
		t.Errorf("no space for good: %+v", got)
	}
	// Nothing half-written is left, and serving goes on.
	if onDisk := segmentBytesOnDisk(t, s); onDisk != got.Bytes {
		t.Errorf("%d bytes of segments on disk, %d in the books", onDisk, got.Bytes)
	}
	if n := hits(t, s, keysFrom(5000, 5), 4000); n != 5 {
		t.Errorf("with a full disk %d of 5 pages are read", n)
	}
	failures = 0
	if n, err := put(s, keysFrom(8000, 5), 4000); n != 5 || err != nil {
		t.Fatalf("space again: %d written, %v", n, err)
	}
	dir := filepath.Dir(s.dir)
	_ = s.Close()
	s = mustOpen(t, dir, 1<<20)
	if n := hits(t, s, keysFrom(8000, 5), 4000); n != 5 || s.Stats().Errors[storage.Torn] != 0 {
		t.Errorf("after opening again %d of 5 are read, %d torn", n, s.Stats().Errors[storage.Torn])
	}
}

func segmentBytesOnDisk(t *testing.T, s *Store) (bytes int64) {
	t.Helper()
	files, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || filepath.Ext(f.Name()) == ".tmp" {
			t.Errorf("left on disk: %s, %v", f.Name(), err)
		} else if filepath.Ext(f.Name()) == ".seg" {
			bytes += info.Size()
		}
	}
	return bytes
}

// Case C-031: also a store of one segment, or of none, tries once more, and only
// once, however little it can give up.
func TestC031NoSpaceInASmallStore(t *testing.T) {
	for _, held := range []int{0, 1, 5} {
		s := mustOpen(t, t.TempDir(), 0)
		if n, err := put(s, keysFrom(100, held), 4000); n != held || err != nil {
			t.Fatal(n, err)
		}
		calls, failures := 0, 1
		s.writeAt = func(f *os.File, b []byte, off int64) (int, error) {
			calls++
			if calls > failures {
				return f.WriteAt(b, off)
			}
			n, _ := f.WriteAt(b[:len(b)/2], off)
			return n, syscall.ENOSPC
		}
		if n, err := put(s, keysFrom(1, 1), 4000); n != 1 || err != nil || calls != 2 {
			t.Errorf("%d held, no space once: %d written, %v, %d calls", held, n, err, calls)
		}
		if n := hits(t, s, keysFrom(1, 1), 4000); n != 1 {
			t.Errorf("%d held, no space once: the page is not read", held)
		}
		if got := s.Stats().Evicted; got != uint64(held) {
			t.Errorf("%d held, no space once: %d evicted", held, got)
		}
		calls, failures = 0, 1000
		if n, err := put(s, keysFrom(2, 1), 4000); n != 0 || kindOf(err) != storage.NoSpace || calls != 2 {
			t.Errorf("%d held, no space for good: %d written, %v, %d calls", held, n, err, calls)
		}
		if got := s.Stats(); got.Failed != 1 || got.Errors[storage.NoSpace] != 1 || segmentBytesOnDisk(t, s) != got.Bytes {
			t.Errorf("%d held, no space for good: %+v, %d bytes on disk", held, got, segmentBytesOnDisk(t, s))
		}
	}
}

// smallDisk mounts a file system of that many KiB; without the right to, the
// test is skipped.
func smallDisk(t *testing.T, kib string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+kib+"k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small disk: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

func TestRealFullDisk(t *testing.T) {
	dir := smallDisk(t, "2048")
	s := mustOpen(t, dir, 1<<30) // the cap is far beyond the disk
	s.segment = 256 << 10
	written := 0
	for i := range uint32(100) {
		n, err := put(s, keysFrom(100*i, 10), 8000)
		if err != nil && kindOf(err) != storage.NoSpace {
			t.Fatal(err)
		}
		written += n
	}
	if written < 500 {
		t.Errorf("%d of 1000 pages were written on a disk that holds 250: old ones must make way", written)
	}
	if n := hits(t, s, keysFrom(9900, 10), 8000); n != 10 {
		t.Errorf("%d of the 10 newest pages are there", n)
	}
	_ = s.Close()
	s = mustOpen(t, dir, 1<<30)
	if n := hits(t, s, keysFrom(9900, 10), 8000); n != 10 {
		t.Errorf("%d of the 10 newest pages are there after opening again", n)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	dir := smallDisk(t, "2048")
	s := mustOpen(t, dir, 1<<20)
	keys := keysFrom(1, 10)
	if _, err := put(s, keys, 1000); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot make the disk read-only: %v: %s", err, out)
	}
	s = mustOpen(t, dir, 1<<20)
	if n := hits(t, s, keys, 1000); n != 10 {
		t.Errorf("%d of 10 pages read", n)
	}
	if n, err := put(s, keysFrom(500, 2), 1000); n != 0 || kindOf(err) != storage.ReadOnly {
		t.Errorf("a write: %d, %v: wanted kind read-only", n, err)
	}
	if n, err := put(s, keys, 1000); n != 10 || err != nil {
		t.Errorf("a write of pages that are there: %d, %v", n, err)
	}
	if err := s.Delete(ctx, keys); kindOf(err) != storage.ReadOnly {
		t.Errorf("delete: %v", err)
	}
	if err := s.Clear(ctx); kindOf(err) != storage.ReadOnly {
		t.Errorf("clear: %v", err)
	}
	other := storagetest.Fingerprint()
	other.Model = "other"
	if _, err := Open(ctx, Options{Dir: dir}, other); kindOf(err) != storage.ReadOnly {
		t.Errorf("opening a fingerprint that is not there: %v", err)
	}
}
