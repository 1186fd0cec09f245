// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/treecore/treecore/storage"
)

// Store is a folder of pages. See storage.Store for its methods.
type Store struct {
	dir      string // of the fingerprint
	id       storage.FingerprintID
	size     int64 // cap in bytes
	segment  int64 // a segment is full from here on
	readOnly bool
	lock     *os.File
	rec      *storage.Recorder
	// The calls that touch the disk, so that tests can make them fail.
	writeAt func(f *os.File, b []byte, off int64) (int, error)
	readAt  func(f *os.File, b []byte, off int64) (int, error)

	// writing is held by whoever appends, removes or closes; it is taken before
	// mu. Readers only take mu, and not while they read.
	writing sync.Mutex
	active  *segment // where frames are appended; nil until the first write
	entries []entry  // what the active segment holds
	// gaveUp says that a segment was given up for want of disk space and no
	// write has worked since: a disk that others filled must not cost us all.
	gaveUp bool
	last   uint32   // the highest number of a segment so far
	unread []uint32 // segments that the opening could not read, and left

	mu     sync.Mutex
	index  map[indexKey]place
	all    map[uint32]*segment
	order  []*segment // oldest first; the active one is the last
	bytes  int64      // sum of the segments' sizes
	closed bool
}

var _ storage.Store = (*Store)(nil)

// segment is one file of frames.
type segment struct {
	id   uint32
	f    *os.File
	size int64
}

// indexKey stands for a key: half of a SHA-256, so that an entry is small. Reads
// compare the whole key, which is in the frame.
type indexKey [16]byte

func indexOf(k storage.Key) indexKey {
	var b [len(k.Page) + storage.MaxPoolName]byte
	n := copy(b[:], k.Page[:])
	n += copy(b[n:], k.Pool)
	sum := sha256.Sum256(b[:n])
	return indexKey(sum[:16])
}

// place is where a frame lies. It has no pointers, so that the garbage collector
// has nothing to look for in the index.
type place struct {
	segment uint32
	offset  uint32
	length  uint32 // of the page
	used    bool   // asked for since it was written here
}

// entry is a frame of a segment, in the order in which it was written.
type entry struct {
	key       indexKey
	offset    uint32
	length    uint32
	tombstone bool
}

func (s *Store) isClosed(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.rec.Fail(op, s.dir, &storage.Error{Kind: storage.Closed})
	}
	return nil
}

// Exists implements storage.Store. It reads nothing from disk.
func (s *Store) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckKeys(keys); err != nil {
		return out, err
	}
	if err := s.isClosed("exists"); err != nil {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return out, s.rec.Fail("exists", s.dir, err)
	}
	hashed := make([]indexKey, len(keys))
	for i, k := range keys {
		hashed[i] = indexOf(k)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range hashed {
		out[i] = s.touch(hashed[i])
	}
	return out, nil
}

// touch reports whether a page is there, and notes that it was asked for.
// The caller holds mu.
func (s *Store) touch(k indexKey) bool {
	p, ok := s.index[k]
	if ok && !p.used {
		p.used = true
		s.index[k] = p
	}
	return ok
}

// Delete implements storage.Store. A tombstone keeps a deleted page from coming
// back at the next opening.
func (s *Store) Delete(ctx context.Context, keys []storage.Key) error {
	if err := storage.CheckKeys(keys); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.isClosed("delete"); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return s.rec.Fail("delete", s.dir, err)
	}
	if s.readOnly {
		return s.rec.Fail("delete", s.dir, &storage.Error{Kind: storage.ReadOnly})
	}
	return s.bury("delete", keys)
}

// bury removes keys from the index and writes their tombstones, also those of
// keys that a segment may hold that could not be read. The caller holds writing.
func (s *Store) bury(op string, keys []storage.Key) error {
	var frames []frame
	for _, k := range keys {
		hashed := indexOf(k)
		s.mu.Lock()
		_, ok := s.index[hashed]
		delete(s.index, hashed)
		s.mu.Unlock()
		if (ok || len(s.unread) > 0) && !s.readOnly {
			frames = append(frames, frame{key: hashed, header: storage.TombstoneHeader(s.id, k), tombstone: true})
		}
	}
	if len(frames) == 0 {
		return nil
	}
	if err := s.write(frames); err != nil {
		return s.rec.Fail(op, s.dir, err)
	}
	return nil
}

// Clear implements storage.Store.
func (s *Store) Clear(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.isClosed("clear"); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return s.rec.Fail("clear", s.dir, err)
	}
	if s.readOnly {
		return s.rec.Fail("clear", s.dir, &storage.Error{Kind: storage.ReadOnly})
	}
	// Oldest first: a process killed half-way leaves the newer segments, whose
	// tombstones still hold.
	for len(s.order) > 0 {
		if _, err := s.drop(s.order[0]); err != nil {
			return s.rec.Fail("clear", s.dir, err)
		}
	}
	for len(s.unread) > 0 {
		id := s.unread[0]
		_ = os.Remove(filepath.Join(s.dir, listName(id)))
		if err := os.Remove(filepath.Join(s.dir, segmentName(id))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.rec.Fail("clear", s.dir, err)
		}
		s.unread = s.unread[1:]
	}
	s.rec.Good()
	return nil
}

// Stats implements storage.Store.
func (s *Store) Stats() storage.Stats {
	out := s.rec.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Pages, out.Bytes, out.CapBytes = int64(len(s.index)), s.bytes, s.size
	return out
}

// Close implements storage.Store: it leaves the list of frames of the last
// segment, closes the files and gives the folder free.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	if s.active != nil && !s.readOnly {
		s.seal()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.order {
		_ = g.f.Close() // nothing is buffered in us, so nothing can be lost here
	}
	s.index, s.all, s.order = nil, nil, nil
	if s.lock != nil {
		return s.lock.Close()
	}
	return nil
}
