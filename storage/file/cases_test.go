// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// Reported cases, each as a test of its whole kind.

// largePage is so long that a store with the least cap has a file for each page.
const largePage = 40_000

// threeFiles stores three pages of one prefix in a file each, and an unrelated
// prefix after them. It returns the path of the second page's file.
func threeFiles(t *testing.T, s *Store) (keys, unrelated []storage.Key, second string) {
	t.Helper()
	keys, unrelated = keysFrom(1, 3), keysFrom(1000, 3)
	for _, k := range append(slices.Clone(keys), unrelated...) {
		if n, err := put(s, []storage.Key{k}, largePage); n != 1 || err != nil {
			t.Fatalf("put: %d, %v", n, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.seg"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files for 6 pages, %v", len(files), err)
	}
	return keys, unrelated, files[1]
}

// flip changes one bit of a file. Counted from the end if at is negative.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 4
	overwrite(t, path, b)
}

// overwrite changes the file that an open store has, not its name only.
func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// Case C-015: whatever became of one page's file, a read ends with an answer for
// each page, the pages before and after it are read, and so is everything else.
// The same is so for a store that finds the damage when it opens.
func TestC015DamagedFiles(t *testing.T) {
	const frame = storage.FrameHeader + largePage
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		kind   storage.Kind // counted once; NumKinds: nothing is
	}{
		{"cut to half", func(t *testing.T, p string) { truncate(t, p, frame/2) }, storage.Torn},
		{"last byte missing", func(t *testing.T, p string) { truncate(t, p, frame-1) }, storage.Torn},
		{"cut in the header", func(t *testing.T, p string) { truncate(t, p, storage.FrameHeader/2) }, storage.Torn},
		{"empty", func(t *testing.T, p string) { truncate(t, p, 0) }, storage.Torn},
		{"first byte of the page flipped", func(t *testing.T, p string) { flip(t, p, storage.FrameHeader) }, storage.Checksum},
		{"last byte flipped", func(t *testing.T, p string) { flip(t, p, -1) }, storage.Checksum},
		{"byte of the header flipped", func(t *testing.T, p string) { flip(t, p, 40) }, storage.Checksum},
		{"all zeros", func(t *testing.T, p string) { overwrite(t, p, make([]byte, frame)) }, storage.Torn},
	} {
		for _, when := range []string{"while it is open", "before it opens", "before it opens, and the list of frames is lost"} {
			t.Run(c.name+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				s := mustOpen(t, dir, 1<<20)
				keys, unrelated, second := threeFiles(t, s)
				if when != "while it is open" {
					_ = s.Close()
				}
				c.damage(t, second)
				if when == "before it opens, and the list of frames is lost" {
					if err := os.Remove(second[:len(second)-len(".seg")] + ".idx"); err != nil {
						t.Fatal(err)
					}
				}
				if when != "while it is open" {
					s = mustOpen(t, dir, 1<<20)
				}
				kind := c.kind
				if when == "before it opens, and the list of frames is lost" {
					kind = storage.Torn // where one frame ends the next begins, if it is whole
				}
				if c.name == "first byte of the page flipped" || c.name == "last byte flipped" {
					kind = storage.Checksum // only a read sees it
				}
				for range 2 {
					ok, err := s.Get(ctx, keys, storagetest.Buffers(3, largePage))
					if err != nil || !slices.Equal(ok, []bool{true, false, true}) {
						t.Fatalf("answers %v, %v: wanted all but the second page", ok, err)
					}
				}
				if n := hits(t, s, unrelated, largePage); n != 3 {
					t.Errorf("%d of 3 unrelated pages read", n)
				}
				// An empty file holds no torn frame when it is opened.
				want := [storage.NumKinds]uint64{}
				if c.name != "empty" || when == "while it is open" {
					want[kind] = 1
				}
				if got := s.Stats(); got.Errors != want || got.Misses != 2 || got.Hits != 7 {
					t.Errorf("counted %v, %d misses, %d hits: wanted %v, 2, 7", got.Errors, got.Misses, got.Hits, want)
				}
				if found, err := storage.Lookup(ctx, s, storagetest.Chain(3, 16, tree.Namespace{}), nil); err != nil || found.Usable != 1 {
					t.Errorf("afterwards %d pages can be used, %v: wanted 1", found.Usable, err)
				}
				// A new write heals it, for the next opening too.
				if n, err := put(s, keys, largePage); n != 3 || err != nil {
					t.Errorf("written anew: %d, %v", n, err)
				}
				_ = s.Close()
				s = mustOpen(t, dir, 1<<20)
				if n := hits(t, s, append(keys, unrelated...), largePage); n != 6 {
					t.Errorf("%d of 6 pages read in the end", n)
				}
			})
		}
	}
}

// Case C-015: an error that may pass deletes nothing, and hits no other page.
func TestC015PassingReadErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind storage.Kind
	}{{syscall.EIO, storage.Unreachable}, {syscall.EACCES, storage.Denied}, {syscall.ETIMEDOUT, storage.TimedOut}, {syscall.ENOMEM, storage.Unreachable}} {
		t.Run(c.err.Error(), func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir, 1<<20)
			keys, unrelated, second := threeFiles(t, s)
			s.readAt = func(f *os.File, b []byte, off int64) (int, error) {
				if f.Name() == second {
					return 0, c.err
				}
				return f.ReadAt(b, off)
			}
			ok, err := s.Get(ctx, keys, storagetest.Buffers(3, largePage))
			if kindOf(err) != c.kind || !slices.Equal(ok, []bool{true, false, true}) {
				t.Errorf("answers %v, %v: wanted all but the second page, and kind %v", ok, err, c.kind)
			}
			if n := hits(t, s, unrelated, largePage); n != 3 {
				t.Errorf("%d of 3 unrelated pages read", n)
			}
			want := [storage.NumKinds]uint64{}
			want[c.kind] = 1
			if got := s.Stats(); got.Errors != want || got.Misses != 1 || got.Pages != 6 {
				t.Errorf("counted %v, %d misses, %d pages held: wanted %v, 1, 6", got.Errors, got.Misses, got.Pages, want)
			}
			s.readAt = (*os.File).ReadAt
			if n := hits(t, s, keys, largePage); n != 3 {
				t.Errorf("afterwards %d of 3 pages are read", n)
			}
		})
	}
}

// Case C-015: a file that cannot be opened costs its own pages and no others,
// and is there again when it can be.
func TestC015UnreadableFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, 1<<20)
	keys, unrelated, second := threeFiles(t, s)
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.seg"))
	newest := files[len(files)-1]
	_ = s.Close()
	// A folder in a file's place cannot be read by anybody, root included.
	for _, path := range []string{second, newest} {
		if err := os.Rename(path, path+".aside"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, dir, 1<<20)
	ok, err := s.Get(ctx, keys, storagetest.Buffers(3, largePage))
	if err != nil || !slices.Equal(ok, []bool{true, false, true}) {
		t.Errorf("answers %v, %v: wanted all but the second page", ok, err)
	}
	if n := hits(t, s, unrelated, largePage); n != 2 {
		t.Errorf("%d of the 2 unrelated pages that can be read are", n)
	}
	if got := s.Stats().Errors[storage.Other]; got != 2 {
		t.Errorf("%d counted, wanted 2", got)
	}
	more := keysFrom(2000, 1)
	if n, err := put(s, more, largePage); n != 1 || err != nil {
		t.Errorf("a write: %d, %v", n, err)
	}
	// Removed means removed, also when its file can be read again.
	if err := s.Delete(ctx, unrelated[2:]); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	for _, path := range []string{second, newest} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".aside", path); err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, dir, 1<<20)
	if n := hits(t, s, append(append(keys, unrelated[:2]...), more...), largePage); n != 6 {
		t.Errorf("when the files can be read again %d of 6 pages are", n)
	}
	if n := hits(t, s, unrelated[2:], largePage); n != 0 {
		t.Error("a removed page came back with its file")
	}
}

// Clear removes what an opening could not read, too.
func TestClearRemovesUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, 1<<20)
	_, _, second := threeFiles(t, s)
	_ = s.Close()
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, 1<<20)
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "*.*")); len(files) != 1 || filepath.Base(files[0]) != fingerprintName {
		t.Errorf("left after Clear: %v", files)
	}
}

// Case C-017: the folder tells which fingerprints it holds, and one of them can
// be removed by hand without touching the others.
func TestC017FolderOfManyFingerprints(t *testing.T) {
	dir := t.TempDir()
	keys := keysFrom(1, 4)
	f := storagetest.Fingerprint()
	all := []storage.Fingerprint{f}
	for _, v := range storagetest.Variants(f) {
		all = append(all, v.Fingerprint)
	}
	for _, f := range all {
		s, err := Open(ctx, Options{Dir: dir}, f)
		if err != nil {
			t.Fatal(err)
		}
		if n := hits(t, s, keys, 100); n != 0 {
			t.Errorf("%s finds %d pages of others", f.Describe(), n)
		}
		if n, err := put(s, keys, 100); n != 4 || err != nil {
			t.Fatalf("put: %d, %v", n, err)
		}
		_ = s.Close()
	}
	told := func() map[string]string {
		layouts, err := Layouts(dir)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, l := range layouts {
			var fields map[string]string
			if err := json.Unmarshal(l.Description, &fields); err != nil || fields["id"] != l.ID || l.Bytes < 4*(storage.FrameHeader+100) {
				t.Errorf("layout %s of %d bytes says %s, %v", l.ID, l.Bytes, l.Description, err)
			}
			out[l.ID] = string(l.Description)
		}
		return out
	}
	before := told()
	for _, f := range all {
		if before[f.ID().String()] != string(f.Describe()) || len(before) != len(all) {
			t.Errorf("the folder does not tell of %s", f.Describe())
		}
	}
	// One is open while another is removed.
	first := mustOpen(t, dir, 0)
	for i, gone := range all[1:] {
		if err := os.RemoveAll(filepath.Join(dir, gone.ID().String())); err != nil {
			t.Fatal(err)
		}
		after := told()
		if _, there := after[gone.ID().String()]; there || len(after) != len(all)-1-i {
			t.Errorf("%d fingerprints are left, wanted %d", len(after), len(all)-1-i)
		}
		if n := hits(t, first, keys, 100); n != 4 {
			t.Fatalf("the open store reads %d of 4 pages", n)
		}
		for _, f := range all[i+2:] {
			s, err := Open(ctx, Options{Dir: dir}, f)
			if err != nil {
				t.Fatal(err)
			}
			if n := hits(t, s, keys, 100); n != 4 {
				t.Errorf("%s reads %d of 4 pages after another was removed", f.Describe(), n)
			}
			_ = s.Close()
		}
	}
	s, err := Open(ctx, Options{Dir: dir}, all[1])
	if err != nil {
		t.Fatal(err)
	}
	if n := hits(t, s, keys, 100); n != 0 {
		t.Errorf("a removed fingerprint still finds %d pages", n)
	}
	_ = s.Close()
}

// Case C-031: many small pages are few files, however many there are, and an
// existence check opens, lists and reads nothing: it works with the folder gone
// and all files closed, and costs the same allocations at every size.
func TestC031ManySmallPages(t *testing.T) {
	const size = 64
	check := func(t *testing.T, pages int) (allocations float64) {
		dir := t.TempDir()
		s := mustOpen(t, dir, 64<<20)
		batches := storagetest.BenchKeys(pages)
		page := bytes.Repeat([]byte{7}, size)
		same := make([][]byte, storage.MaxBatch)
		for i := range same {
			same[i] = page
		}
		for _, keys := range batches {
			if ok, err := s.Put(ctx, keys, same[:len(keys)]); err != nil || storage.Leading(ok) != len(keys) {
				t.Fatalf("put: %v, %v", ok, err)
			}
		}
		if got := s.Stats(); got.Pages != int64(pages) || got.Evicted != 0 {
			t.Fatalf("%d pages held, %d evicted: wanted %d, 0", got.Pages, got.Evicted, pages)
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			entries, err := os.ReadDir(path)
			if len(entries) > 200 {
				t.Errorf("%s has %d entries", path, len(entries))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		s = mustOpen(t, dir, 64<<20)
		for _, g := range s.order {
			_ = g.f.Close()
		}
		if err := os.Rename(dir, dir+"-gone"); err != nil {
			t.Fatal(err)
		}
		keys := slices.Clone(batches[len(batches)-1][:63])
		keys = append(keys, keysFrom(1, 1)...) // 63 that are there and one that is not
		allocations = testing.AllocsPerRun(10, func() {
			ok, err := s.Exists(ctx, keys)
			if err != nil || storage.Leading(ok) != 63 || ok[63] {
				t.Fatalf("without files: %v, %v", ok, err)
			}
		})
		if err := os.Rename(dir+"-gone", dir); err != nil {
			t.Fatal(err)
		}
		return allocations
	}
	few, many := check(t, 1000), check(t, 200_000)
	if many > few {
		t.Errorf("an existence check allocates %v times at 200,000 pages, and %v times at 1,000", many, few)
	}
}

// Case C-069: whatever a salt is, names in the folder are of a few known forms
// and bounded length, nothing is made outside of it, and every page parses back
// to its key.
func TestC069NamesOnDisk(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "pages")
	f := storagetest.Fingerprint()
	f.Model, f.Layout = "../..", "a/b\x00c" // texts of users as well
	s, err := Open(ctx, Options{Dir: dir}, f)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	wanted := map[storage.Key]bool{}
	for _, ns := range storagetest.Namespaces() {
		keys := storage.Keys(storagetest.Chain(1, 1, ns), "full")
		if n, err := put(s, keys, 100); n != 1 || err != nil {
			t.Fatalf("%#v: %d, %v", ns, n, err)
		}
		wanted[keys[0]] = true
	}
	_ = s.Close()
	known := regexp.MustCompile(`^pages(/[0-9a-f]{32}(/(fingerprint\.json|lock|[0-9a-f]{8}\.(seg|idx)))?)?$`)
	err = filepath.WalkDir(outside, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(outside, path)
		if name != "." && !known.MatchString(filepath.ToSlash(name)) {
			t.Errorf("a name of another form: %q", name)
		}
		if err != nil || filepath.Ext(path) != ".seg" {
			return err
		}
		b, err := os.ReadFile(path)
		for len(b) > 0 {
			head, kind, ok := storage.DecodeHeader(b)
			if !ok {
				return fmt.Errorf("a frame of %s cannot be read: %v", path, kind)
			}
			if back, err := storage.ParseKey(head.Key.String()); err != nil || !wanted[back] {
				t.Errorf("a page of %v, %v", back, err)
			}
			delete(wanted, head.Key)
			b = b[storage.FrameHeader+head.Length:]
		}
		return err
	})
	if err != nil || len(wanted) != 0 {
		t.Errorf("%d keys were not found on disk, %v", len(wanted), err)
	}
}
