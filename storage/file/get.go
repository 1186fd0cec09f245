// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/treecore/treecore/storage"
)

// smallPage is the length up to which header and page are read in one call and
// the page is copied; longer ones are read straight into the caller's buffer.
const smallPage = 64 << 10

var scratch = sync.Pool{New: func() any { b := make([]byte, storage.FrameHeader+smallPage); return &b }}

// damage is a page that was found unusable.
type damage struct {
	key storage.Key
	at  place
}

// Get implements storage.Store.
func (s *Store) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckPages(keys, into); err != nil {
		return out, err
	}
	hits, bytes := 0, 0
	var damaged []damage
	var first error
	for i, k := range keys {
		err := ctx.Err()
		if err == nil {
			out[i], err = s.read(k, into[i], &damaged)
		}
		if out[i] {
			hits++
			bytes += len(into[i])
		}
		if err == nil {
			continue
		}
		if first == nil {
			first = s.rec.Fail("get", s.dir, err)
		}
		if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
			break
		}
	}
	s.rec.Hits(hits, bytes)
	s.rec.Misses(len(keys) - hits)
	if first == nil {
		s.rec.Good()
	}
	s.discard(damaged)
	return out, first
}

// read reads one page. An absent or damaged page is false without an error.
func (s *Store) read(k storage.Key, into []byte, damaged *[]damage) (bool, error) {
	hashed := indexOf(k)
	// A segment may be dropped between the look-up and the read. The page may
	// have moved to another one, so look again: as often as there are segments.
	for tries := 0; ; tries++ {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return false, &storage.Error{Kind: storage.Closed, Err: os.ErrClosed}
		}
		if !s.touch(hashed) {
			s.mu.Unlock()
			return false, nil
		}
		p := s.index[hashed]
		g := s.all[p.segment]
		if g == nil { // dropped while its list of frames could not be read
			delete(s.index, hashed)
			s.mu.Unlock()
			return false, nil
		}
		s.mu.Unlock()
		kind, ok, err := s.readFrame(g.f, p, k, into)
		switch {
		case ok:
			return true, nil
		case errors.Is(err, os.ErrClosed) && tries < segments:
			continue
		case err != nil:
			// The page may be fine: it stays, and a later read may get it.
			return false, &storage.Error{Kind: readKind(err), Where: g.f.Name(), Err: err}
		}
		s.rec.Damaged(k, kind, fmt.Sprintf("%s offset %d", g.f.Name(), p.offset))
		*damaged = append(*damaged, damage{k, p})
		return false, nil
	}
}

func readKind(err error) storage.Kind {
	if kind := storage.KindOf(err); kind != storage.Other {
		return kind
	}
	return storage.Unreachable
}

// readFrame reads and checks one frame. An error is one of the disk; otherwise
// ok says whether into holds the page, and kind why not.
func (s *Store) readFrame(f *os.File, p place, k storage.Key, into []byte) (kind storage.Kind, ok bool, err error) {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	small := len(into) <= smallPage
	want := storage.FrameHeader
	if small {
		want += min(len(into), int(p.length))
	}
	n, err := s.readAt(f, (*buf)[:want], int64(p.offset))
	if err != nil && err != io.EOF {
		return 0, false, err
	}
	head, kind, ok := storage.DecodeHeader((*buf)[:min(n, storage.FrameHeader)])
	if !ok {
		return kind, false, nil
	}
	if kind, ok = head.Fits(s.id, k, len(into)); !ok {
		return kind, false, nil
	}
	if small {
		if n < want {
			return storage.Torn, false, nil
		}
		kind, ok = storage.DecodePage((*buf)[:want], s.id, k, into)
		return kind, ok, nil
	}
	n, err = s.readAt(f, into, int64(p.offset)+storage.FrameHeader)
	switch {
	case n < len(into) && (err == nil || err == io.EOF):
		return storage.Torn, false, nil
	case n < len(into):
		return 0, false, err
	case !head.Holds(into):
		return storage.Checksum, false, nil
	}
	return 0, true, nil
}

// discard removes damaged pages, unless they have been written anew meanwhile.
func (s *Store) discard(damaged []damage) {
	if len(damaged) == 0 {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	var keys []storage.Key
	s.mu.Lock()
	for _, d := range damaged {
		if p, ok := s.index[indexOf(d.key)]; ok && p.segment == d.at.segment && p.offset == d.at.offset {
			keys = append(keys, d.key)
		}
	}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return
	}
	if s.active != nil && !s.readOnly {
		// Somebody may have cut the file: what is appended now must not lie
		// behind a hole.
		s.seal()
	}
	// A tombstone that cannot be written is counted; the page is out of the
	// index in any case, and after a restart it is found damaged again.
	_ = s.bury("get", keys)
}
