// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/treecore/treecore/storage"
)

// gather is how many bytes of small frames are collected for one write call.
const gather = 1 << 20

// frame is a frame that is to be written. page may be nil (a tombstone).
type frame struct {
	key       indexKey
	header    [storage.FrameHeader]byte
	page      []byte
	tombstone bool
	used      bool
}

func (f *frame) bytes() int64 { return storage.FrameHeader + int64(len(f.page)) }

// Put implements storage.Store.
func (s *Store) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckPages(keys, pages); err != nil {
		return out, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.isClosed("put"); err != nil {
		s.rec.Puts(0, 0, 0, len(keys))
		return out, err
	}
	var first error
	fail := func(err error) {
		if first == nil {
			first = s.rec.Fail("put", s.dir, err)
		}
	}
	written, bytes, present := 0, 0, 0
	var waiting []frame // frames that go into one write, and
	var which []int     // their indexes
	var waitingBytes int64
	inWaiting := map[indexKey]bool{}
	flush := func() {
		if len(waiting) == 0 {
			return
		}
		if err := s.write(waiting); err != nil {
			fail(err)
		} else {
			for i, at := range which {
				out[at] = true
				written++
				bytes += len(waiting[i].page)
			}
		}
		waiting, which, waitingBytes = waiting[:0], which[:0], 0
		clear(inWaiting)
	}
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			fail(err)
			break
		}
		hashed := indexOf(k)
		if inWaiting[hashed] {
			flush()
		}
		s.mu.Lock()
		there := s.touch(hashed)
		s.mu.Unlock()
		if there {
			out[i] = true
			present++
			continue
		}
		if s.readOnly {
			fail(&storage.Error{Kind: storage.ReadOnly})
			continue
		}
		f := frame{key: hashed, page: pages[i]}
		if f.bytes() > s.size/4 {
			fail(&storage.Error{Kind: storage.TooLarge, Err: fmt.Errorf("a page of %d bytes is more than a quarter of the size cap %d", len(f.page), s.size)})
			continue
		}
		f.header = storage.PageHeader(s.id, k, pages[i])
		if len(waiting) > 0 && waitingBytes+f.bytes() > min(gather, s.segment) {
			flush()
		}
		waiting, which = append(waiting, f), append(which, i)
		waitingBytes += f.bytes()
		inWaiting[hashed] = true
	}
	flush()
	s.rec.Puts(written, bytes, present, len(keys)-written-present)
	if first == nil {
		s.rec.Good()
	}
	return out, first
}

// write makes room and appends frames, which become visible all at once, or
// none of them if there is an error. On a full disk the oldest segment is given
// up, also if it is the only one, and the write tried once more (case C-031).
// The caller holds writing.
func (s *Store) write(frames []frame) error {
	var need int64
	for i := range frames {
		need += frames[i].bytes()
	}
	for s.bytes+need > s.size && len(s.order) > 0 && !frames[0].tombstone {
		if err := s.evict(); err != nil {
			return err
		}
	}
	err := s.append(frames, need)
	if storage.KindOf(err) == storage.NoSpace && !s.gaveUp {
		s.gaveUp = true
		s.giveUpOldest()
		err = s.append(frames, need)
	}
	if err == nil {
		s.gaveUp = false
	}
	return err
}

// giveUpOldest drops the oldest segment, if there is one. Whether that helped
// shows when the write is tried again.
func (s *Store) giveUpOldest() {
	if len(s.order) == 0 {
		return
	}
	pages, _ := s.drop(s.order[0])
	s.rec.Evicted(pages)
}

// append writes frames to the end of the active segment, or of a new one if
// they do not fit. After an error the segment is as long as before.
func (s *Store) append(frames []frame, need int64) error {
	if s.active != nil && s.active.size > 0 && s.active.size+need > s.segment {
		s.seal()
	}
	if s.active == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	g := s.active
	if err := s.writeFrames(g, frames); err != nil {
		// Nothing half-written is left. If even that fails, the next opening
		// cuts it off; until then the next write goes over it.
		_ = g.f.Truncate(g.size)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		e := entry{key: f.key, offset: uint32(g.size), length: uint32(len(f.page)), tombstone: f.tombstone}
		s.entries = append(s.entries, e)
		if !f.tombstone {
			s.index[f.key] = place{segment: g.id, offset: e.offset, length: e.length, used: f.used}
		}
		g.size += f.bytes()
	}
	s.bytes += need
	return nil
}

// writeFrames puts frames at the end of g: small ones in one call, so that a
// million of them is not a million calls; large pages without copying them.
func (s *Store) writeFrames(g *segment, frames []frame) error {
	var buf []byte
	at := g.size
	flush := func(b []byte) error {
		n, err := s.writeAt(g.f, b, at)
		at += int64(n)
		return err
	}
	for i := range frames {
		f := &frames[i]
		buf = append(buf, f.header[:]...)
		if len(f.page) <= smallPage {
			buf = append(buf, f.page...)
			continue
		}
		if err := flush(buf); err != nil {
			return err
		}
		buf = buf[:0]
		if err := flush(f.page); err != nil {
			return err
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return flush(buf)
}

// begin makes a new active segment.
func (s *Store) begin() error {
	id := s.last + 1
	f, err := os.OpenFile(filepath.Join(s.dir, segmentName(id)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	s.last = id
	g := &segment{id: id, f: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.entries = g, nil
	s.all[id] = g
	s.order = append(s.order, g)
	return nil
}

// seal ends the active segment. Its list of frames only makes the next opening
// quicker: one that cannot be written is no failure.
func (s *Store) seal() {
	_ = writeList(filepath.Join(s.dir, listName(s.active.id)), s.active.size, s.entries)
	s.active, s.entries = nil, nil
}
