// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"

	"github.com/treecore/treecore/tree"
)

// Every stored page is a frame: a header of FrameHeader bytes and the page.
// Numbers are little-endian.
//
//	 0  4  magic "TCPG"
//	 4  1  version, 1
//	 5  1  kind: 1 page, 2 tombstone (no page follows; storage/file only)
//	 6  1  length of the pool's name
//	 7  1  zero
//	 8  4  length of the page in bytes
//	12  4  CRC-32C of the header with these four bytes zero
//	16 16  fingerprint id
//	32 32  page hash
//	64 24  pool's name, filled up with zeros
//	88  8  XXH64 of the page, seed 0
//	96     the page
const (
	FrameHeader  = 96
	frameVersion = 1
	// MaxPage is the longest page in bytes.
	MaxPage = 1 << 30
)

// FrameKind says what a header announces.
type FrameKind uint8

// The kinds of frames.
const (
	PageFrame      FrameKind = 1
	TombstoneFrame FrameKind = 2
)

// Frame is the header of a stored page: what it is, and for whom.
type Frame struct {
	Kind        FrameKind
	Fingerprint FingerprintID
	Key         Key
	Length      int    // of the page, in bytes
	Sum         uint64 // of the page
}

var (
	frameMagic = []byte("TCPG")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// PageHeader returns the header that goes before a page. The key and the page
// must have passed CheckPages.
func PageHeader(id FingerprintID, key Key, page []byte) [FrameHeader]byte {
	return encodeHeader(Frame{Kind: PageFrame, Fingerprint: id, Key: key, Length: len(page), Sum: xxhash.Sum64(page)})
}

// TombstoneHeader returns a frame that says that a key was removed.
func TombstoneHeader(id FingerprintID, key Key) [FrameHeader]byte {
	return encodeHeader(Frame{Kind: TombstoneFrame, Fingerprint: id, Key: key})
}

func encodeHeader(f Frame) (h [FrameHeader]byte) {
	copy(h[:], frameMagic)
	h[4], h[5], h[6] = frameVersion, byte(f.Kind), byte(len(f.Key.Pool))
	binary.LittleEndian.PutUint32(h[8:], uint32(f.Length))
	copy(h[16:32], f.Fingerprint[:])
	copy(h[32:64], f.Key.Page[:])
	copy(h[64:64+MaxPoolName], f.Key.Pool)
	binary.LittleEndian.PutUint64(h[88:], f.Sum)
	binary.LittleEndian.PutUint32(h[12:], crc32.Checksum(h[:], castagnoli))
	return h
}

// EncodePage returns the whole frame in one slice.
func EncodePage(id FingerprintID, key Key, page []byte) []byte {
	h := PageHeader(id, key, page)
	return append(append(make([]byte, 0, len(h)+len(page)), h[:]...), page...)
}

// DecodeHeader reads a header. If it is not whole and right, ok is false and
// kind says why.
func DecodeHeader(b []byte) (f Frame, kind Kind, ok bool) {
	if len(b) < FrameHeader {
		return f, Torn, false
	}
	var h [FrameHeader]byte
	copy(h[:], b)
	sum := binary.LittleEndian.Uint32(h[12:])
	clear(h[12:16])
	if !bytes.Equal(h[:4], frameMagic) {
		return f, Torn, false
	}
	if crc32.Checksum(h[:], castagnoli) != sum {
		return f, Checksum, false
	}
	pool := int(h[6])
	length := binary.LittleEndian.Uint32(h[8:])
	f = Frame{Kind: FrameKind(h[5]), Length: int(length), Sum: binary.LittleEndian.Uint64(h[88:])}
	if h[4] != frameVersion || f.Kind != PageFrame && f.Kind != TombstoneFrame || pool > MaxPoolName || length > MaxPage || h[7] != 0 {
		return Frame{}, Unreadable, false
	}
	copy(f.Fingerprint[:], h[16:32])
	f.Key = Key{Page: tree.Digest(h[32:64]), Pool: string(h[64 : 64+pool])}
	if f.Key.check() != nil {
		return Frame{}, Unreadable, false
	}
	return f, 0, true
}

// Fits reports whether the frame announces the page that was asked for, with the
// wanted length in bytes; if not, kind says why.
func (f Frame) Fits(id FingerprintID, key Key, length int) (kind Kind, ok bool) {
	switch {
	case f.Kind != PageFrame || f.Fingerprint != id || f.Key != key:
		return Foreign, false
	case f.Length != length:
		return WrongLength, false
	}
	return 0, true
}

// Holds reports whether page is the one that the frame announces.
func (f Frame) Holds(page []byte) bool {
	return len(page) == f.Length && xxhash.Sum64(page) == f.Sum
}

// DecodePage checks a whole frame and copies its page into the buffer, which has
// the length that the page must have. If the frame is damaged, for something
// else, or of another length, ok is false, kind says why, and the buffer is as
// it was.
func DecodePage(frame []byte, id FingerprintID, key Key, into []byte) (kind Kind, ok bool) {
	f, kind, ok := DecodeHeader(frame)
	if !ok {
		return kind, false
	}
	if kind, ok = f.Fits(id, key, len(into)); !ok {
		return kind, false
	}
	page := frame[FrameHeader:]
	if len(page) != f.Length {
		return Torn, false
	}
	if !f.Holds(page) {
		return Checksum, false
	}
	copy(into, page)
	return 0, true
}
