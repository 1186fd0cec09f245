// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/treecore/treecore/storage"
)

const fingerprintName = "fingerprint.json"

// Open opens the subfolder of one fingerprint, and finds again every whole page
// that is in it. A folder that cannot be written is opened for reading if it
// holds that fingerprint. Bad options are *storage.ConfigError, as is a path that
// is no folder and cannot become one; a folder in use is *storage.LockedError,
// anything else *storage.Error.
func Open(ctx context.Context, o Options, f storage.Fingerprint) (*Store, error) {
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if err := errors.Join(o.validate(), f.Validate()); err != nil {
		return nil, err
	}
	s := &Store{
		id: f.ID(), size: o.Size, segment: o.segmentBytes(),
		rec:     storage.NewRecorder("file"),
		writeAt: (*os.File).WriteAt,
		readAt:  (*os.File).ReadAt,
		index:   map[indexKey]place{},
		all:     map[uint32]*segment{},
	}
	s.dir = filepath.Join(o.Dir, s.id.String())
	if err := s.acquire(f); err != nil {
		return nil, s.openError(err)
	}
	if err := s.load(ctx); err != nil {
		_ = s.Close()
		return nil, s.openError(err)
	}
	return s, nil
}

func (s *Store) openError(err error) error {
	var locked *storage.LockedError
	var config *storage.ConfigError
	if errors.As(err, &locked) || errors.As(err, &config) {
		return err
	}
	return s.rec.Fail("open", s.dir, err)
}

// acquire makes the folder and takes its lock.
func (s *Store) acquire(f storage.Fingerprint) error {
	err := os.MkdirAll(s.dir, 0o755)
	if err != nil && storage.KindOf(err) == storage.Other {
		// A file stands in the way, or no folder can be made there.
		return &storage.ConfigError{
			Field: "folder", Value: fmt.Sprintf("%q, which cannot be opened or made (%v)", filepath.Dir(s.dir), err),
			Allowed: "the path of a folder, or one where a folder can be made",
		}
	}
	if err == nil {
		s.lock, err = lockFolder(s.dir, true)
	}
	if err != nil && notWritable(err) {
		if _, missing := os.Stat(s.dir); missing != nil {
			return err
		}
		s.readOnly = true
		s.lock, err = lockFolder(s.dir, false)
	}
	if err != nil || s.readOnly {
		return err
	}
	path := filepath.Join(s.dir, fingerprintName)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	// It is for people only. A full disk must not keep the store from opening.
	if err := writeAside(path, f.Describe()); err != nil && storage.KindOf(err) != storage.NoSpace {
		return err
	}
	return nil
}

func notWritable(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// load fills the index from all segments, oldest first.
func (s *Store) load(ctx context.Context) error {
	files, err := os.ReadDir(s.dir) // sorted by name, and so by number
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := file.Name()
		if strings.HasSuffix(name, ".tmp") && !s.readOnly {
			_ = os.Remove(filepath.Join(s.dir, name)) // of a process that was killed
		}
		digits, ok := strings.CutSuffix(name, ".seg")
		id, err := strconv.ParseUint(digits, 16, 32)
		if !ok || err != nil || name != segmentName(uint32(id)) {
			continue
		}
		s.last = uint32(id)
		if err := s.loadSegment(uint32(id)); err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				return err // it would hit all that follow, too
			}
			// One file that cannot be read must not cost the others (case
			// C-015). It stays: the error may pass, and an opening after that
			// finds its pages.
			s.unread = append(s.unread, uint32(id))
			s.active, s.entries = nil, nil // what is written now is newer than it
			_ = s.rec.Fail("open", filepath.Join(s.dir, name), err)
		}
	}
	if s.readOnly {
		s.active, s.entries = nil, nil
		return nil
	}
	for s.bytes > s.size { // the cap was lowered
		if err := s.evict(); err != nil {
			return err
		}
	}
	if s.active != nil {
		// It will be written to, and then its list is out of date.
		_ = os.Remove(filepath.Join(s.dir, listName(s.active.id)))
	}
	return nil
}

// loadSegment opens a segment and puts its frames into the index. It becomes the
// active one; the one before, if any, is left as it is.
func (s *Store) loadSegment(id uint32) error {
	path := filepath.Join(s.dir, segmentName(id))
	mode := os.O_RDWR
	if s.readOnly {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return err
	}
	g := &segment{id: id, f: f}
	loaded := false
	defer func() {
		if !loaded {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	g.size = info.Size()
	b, err := os.ReadFile(filepath.Join(s.dir, listName(id)))
	entries, ok := []entry(nil), false
	if err == nil {
		entries, ok = decodeList(b, g.size)
	}
	if !ok {
		var end int64
		if entries, end, err = s.scan(f, g.size); err != nil {
			return err
		}
		if end < g.size {
			s.cut(g, end)
		}
	}
	for _, e := range entries {
		if e.tombstone {
			delete(s.index, e.key)
		} else {
			s.index[e.key] = place{segment: id, offset: e.offset, length: e.length}
		}
	}
	loaded = true
	s.all[id] = g
	s.order = append(s.order, g)
	s.bytes += g.size
	s.active, s.entries = g, entries
	return nil
}

// cut removes what a killed process left at a segment's end.
func (s *Store) cut(g *segment, end int64) {
	s.rec.Cut(g.f.Name(), g.size-end)
	if s.readOnly {
		return
	}
	if g.f.Truncate(end) == nil {
		g.size = end
	}
}

// Layout is one fingerprint's subfolder.
type Layout struct {
	ID          string // the fingerprint's id, and the subfolder's name
	Description []byte // its fingerprint.json; nil if there is none
	Bytes       int64  // of all its files
}

// Layouts tells which fingerprints a folder holds, sorted by id. It needs no
// lock. A subfolder that nobody has open may simply be deleted.
func Layouts(dir string) ([]Layout, error) {
	subfolders, err := os.ReadDir(dir)
	if err != nil {
		return nil, &storage.Error{Backend: "file", Op: "open", Kind: storage.KindOf(err), Where: dir, Err: err}
	}
	var out []Layout
	for _, sub := range subfolders {
		if !sub.IsDir() || len(sub.Name()) != 2*len(storage.FingerprintID{}) {
			continue
		}
		l := Layout{ID: sub.Name()}
		if b, err := os.ReadFile(filepath.Join(dir, l.ID, fingerprintName)); err == nil {
			l.Description = b
		}
		files, err := os.ReadDir(filepath.Join(dir, l.ID))
		if err != nil {
			continue // deleted meanwhile
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				l.Bytes += info.Size()
			}
		}
		out = append(out, l)
	}
	return out, nil
}
