// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "encoding/hex"

// Digest is one link of a page hash chain: SHA-256 (rule H-1).
type Digest [32]byte

// String returns the 64 lower-case hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// EventKind tells the kinds of placement events apart.
type EventKind uint8

// The kinds of events (chapter 16 of the behaviour specification).
const (
	BlockStored EventKind = iota
	BlockRemoved
	AllBlocksCleared
)

// Medium is the tier that an event speaks of.
type Medium uint8

// The media. Their text on the wire belongs to the wire format.
const (
	MediumDevice Medium = iota
	MediumHost
)

// Event says where blocks of Full KV are now. A block is one page of a node.
type Event struct {
	Kind   EventKind
	Medium Medium
	Blocks []int64 // event id of each block: first 8 bytes of its digest, big-endian
	// For BlockStored only:
	Parent    int64 // event id of the block before the first
	HasParent bool
	Tokens    []Token // the blocks' units in order; bigram units are two tokens each
	BlockSize int     // units in one block
	CacheSalt string  // "": none
	SessionID string  // "": none
}
