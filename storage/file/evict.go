// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"path/filepath"

	"github.com/treecore/treecore/storage"
)

// evict drops the oldest segment. Pages in it that were asked for since they
// were written move to the newest segment, as long as they are at most half a
// segment. They count as unused there: a second eviction of the same write drops
// them, so making room ends.
func (s *Store) evict() error {
	old := s.order[0]
	if old == s.active {
		// The store is one segment. What is in it makes way as a whole.
		s.seal()
		pages, err := s.drop(old)
		s.rec.Evicted(pages)
		return err
	}
	list, err := s.list(old)
	if err != nil {
		list = nil // not readable: nothing can be carried over
	}
	budget := s.segment / 2
	for _, e := range list {
		s.mu.Lock()
		p, ok := s.index[e.key]
		s.mu.Unlock()
		if !ok || p.segment != old.id || p.offset != e.offset || !p.used {
			continue
		}
		need := storage.FrameHeader + int64(p.length)
		if need > budget {
			continue
		}
		if s.carry(old, e) != nil {
			break // for example a full disk: dropping the segment helps there
		}
		budget -= need
	}
	pages, err := s.drop(old)
	s.rec.Evicted(pages)
	return err
}

// carry copies one frame of an old segment to the newest. Its checksum goes
// along unchanged, so damage is found when the page is read.
func (s *Store) carry(old *segment, e entry) error {
	b := make([]byte, storage.FrameHeader+int(e.length))
	if _, err := s.readAt(old.f, b, int64(e.offset)); err != nil {
		return err
	}
	f := frame{key: e.key, header: [storage.FrameHeader]byte(b), page: b[storage.FrameHeader:]}
	return s.append([]frame{f}, f.bytes())
}

// drop removes a segment and all pages that lie in it, and returns how many.
// Reads that are under way in it end with os.ErrClosed and look again.
func (s *Store) drop(g *segment) (pages int, err error) {
	entries := s.entries
	if g == s.active {
		s.active, s.entries = nil, nil
	} else {
		entries, err = s.list(g)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forget := func(k indexKey) {
		if p, ok := s.index[k]; ok && p.segment == g.id {
			delete(s.index, k)
			pages++
		}
	}
	for _, e := range entries {
		forget(e.key)
	}
	if err != nil {
		// The list is gone: look at every page. Nothing depends on the order.
		for k := range s.index {
			forget(k)
		}
	}
	delete(s.all, g.id)
	for i, o := range s.order {
		if o == g {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	s.bytes -= g.size
	_ = g.f.Close()
	_ = os.Remove(filepath.Join(s.dir, listName(g.id)))
	return pages, os.Remove(filepath.Join(s.dir, segmentName(g.id)))
}
