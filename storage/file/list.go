// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/treecore/treecore/storage"
)

// The list of a segment's frames, numbers little-endian:
//
//	 0  4  magic "TCPI"
//	 4  4  version, 1
//	 8  8  size of the segment
//	16     32 bytes a frame: index key 16, offset 4, length of the page 4,
//	       1 for a tombstone else 0, 7 zeros
//	       XXH64 of everything before
const (
	listHeader = 16
	listEntry  = 32
	listMagic  = "TCPI\x01\x00\x00\x00"
)

func segmentName(id uint32) string { return fmt.Sprintf("%08x.seg", id) }
func listName(id uint32) string    { return fmt.Sprintf("%08x.idx", id) }

// writeList writes a list aside and renames it, so that it is whole or absent.
func writeList(path string, size int64, entries []entry) error {
	b := make([]byte, 0, listHeader+listEntry*len(entries)+8)
	b = append(b, listMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	for _, e := range entries {
		b = append(b, e.key[:]...)
		b = binary.LittleEndian.AppendUint32(b, e.offset)
		b = binary.LittleEndian.AppendUint32(b, e.length)
		tail := uint64(0)
		if e.tombstone {
			tail = 1
		}
		b = binary.LittleEndian.AppendUint64(b, tail)
	}
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	return writeAside(path, b)
}

func writeAside(path string, b []byte) error {
	err := os.WriteFile(path+".tmp", b, 0o644)
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp")
	}
	return err
}

// decodeList reads a list that belongs to a segment of that size; ok is false
// if it is damaged or belongs to another state of the segment.
func decodeList(b []byte, size int64) (entries []entry, ok bool) {
	body := len(b) - listHeader - 8
	if body < 0 || body%listEntry != 0 || string(b[:8]) != listMagic {
		return nil, false
	}
	sum := binary.LittleEndian.Uint64(b[len(b)-8:])
	if xxhash.Sum64(b[:len(b)-8]) != sum || binary.LittleEndian.Uint64(b[8:]) != uint64(size) {
		return nil, false
	}
	entries = make([]entry, 0, body/listEntry)
	for at := listHeader; at < len(b)-8; at += listEntry {
		e := entry{
			key:       indexKey(b[at:]),
			offset:    binary.LittleEndian.Uint32(b[at+16:]),
			length:    binary.LittleEndian.Uint32(b[at+20:]),
			tombstone: b[at+24] == 1,
		}
		if int64(e.offset)+storage.FrameHeader+int64(e.length) > size {
			return nil, false
		}
		entries = append(entries, e)
	}
	return entries, true
}

// list returns the frames of a segment that is not being written: from its list,
// or else from the segment itself.
func (s *Store) list(g *segment) ([]entry, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, listName(g.id)))
	if err == nil {
		if entries, ok := decodeList(b, g.size); ok {
			return entries, nil
		}
	}
	entries, _, err := s.scan(g.f, g.size)
	return entries, err
}

// scan reads the headers of a segment one after another and returns its frames
// and where the last whole one ends. What follows is torn or damaged.
func (s *Store) scan(f *os.File, size int64) (entries []entry, end int64, err error) {
	buf := make([]byte, 64<<10)
	base, have := int64(0), 0
	for end+storage.FrameHeader <= size {
		if end < base || end+storage.FrameHeader > base+int64(have) {
			base = end
			if have, err = f.ReadAt(buf[:min(int64(len(buf)), size-end)], base); have < storage.FrameHeader {
				return entries, end, err
			}
		}
		head, _, ok := storage.DecodeHeader(buf[end-base : have])
		next := end + storage.FrameHeader + int64(head.Length)
		if !ok || next > size {
			return entries, end, nil
		}
		if head.Fingerprint == s.id {
			entries = append(entries, entry{key: indexOf(head.Key), offset: uint32(end), length: uint32(head.Length), tombstone: head.Kind == storage.TombstoneFrame})
		}
		end = next
	}
	return entries, end, nil
}
