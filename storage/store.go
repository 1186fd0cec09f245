// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	"github.com/treecore/treecore/tree"
)

// MaxBatch is the most keys that a controller puts into one call (rule ST-9).
// Stores take longer ones too.
const MaxBatch = 128

// Store keeps pages of one fingerprint. It may be used by many goroutines at
// once, also during Close, after which every call answers with an *Error of
// kind Closed.
//
// Calls with a key that is not well formed return a *KeyError and do nothing. A
// failure of the backend is an *Error; the answers that came before it are valid
// and those that are missing are false. A missing or damaged page is an answer,
// not an error. The slices given and returned belong to the caller.
type Store interface {
	// Exists answers for each key whether a page is there. It looks at no page's
	// content: a page may turn out as a miss when it is read.
	Exists(ctx context.Context, keys []Key) ([]bool, error)
	// Get reads the page of each key into the buffer with the same index, which
	// has the length that the page must have. An answer of true says that the
	// buffer holds the whole page and that its checksum is right; after false it
	// may hold anything.
	Get(ctx context.Context, keys []Key, into [][]byte) ([]bool, error)
	// Put writes pages and answers for each key whether it is stored now. A page
	// is seen by others only when it is complete. Pages that are there already
	// are not written again: equal keys mean equal pages (rule ST-8).
	Put(ctx context.Context, keys []Key, pages [][]byte) ([]bool, error)
	// Delete removes pages; absent ones are no error.
	Delete(ctx context.Context, keys []Key) error
	// Clear removes every page of this fingerprint and of no other.
	Clear(ctx context.Context) error
	// Stats returns what the store has counted since it was opened.
	Stats() Stats
	// Close ends the store's work and its goroutines. A second call returns nil.
	Close() error
}

// Stats counts since a store was opened. A key that was asked for is counted in
// exactly one of Hits and Misses; one that was to be written in exactly one of
// Written, Present and Failed.
type Stats struct {
	Pages         int64 // pages held; -1 if the backend cannot tell
	Bytes         int64 // bytes held, frames included; -1 if it cannot tell
	CapBytes      int64 // size cap in bytes; 0 if there is none
	Hits, Misses  uint64
	Written       uint64           // pages that were written
	Present       uint64           // pages that were there already
	Failed        uint64           // pages that could not be written
	Evicted       uint64           // pages that the size cap removed
	BytesRead     uint64           // bytes of the pages that were hits
	BytesWritten  uint64           // bytes of the pages that were written
	Errors        [NumKinds]uint64 // by Kind: damaged pages one by one, failed calls one by one
	SinceLastGood uint64           // failed calls since the last one that worked
}

// Lookup asks for the pages of a prefix, the Full pool and the auxiliary pools
// that needs name, and answers how many leading pages can be used (Usable). Aux
// keys that decide nothing are not asked for. A failure of the backend means no
// page (rule FL-15) and is returned.
func Lookup(ctx context.Context, s Store, pages []tree.Digest, needs []Need) (Found, error) {
	none := Found{Aux: make([]int, len(needs))}
	full, err := existing(ctx, s, Keys(pages, tree.Full.String()))
	if err != nil {
		return none, err
	}
	n := Leading(full)
	aux := make([]Presence, len(needs))
	for i, need := range needs {
		found, err := existing(ctx, s, Keys(pages[:n], need.Pool))
		if err != nil {
			return none, err
		}
		aux[i] = Presence{Need: need, Pages: found}
	}
	return Usable(full, aux), nil
}

func existing(ctx context.Context, s Store, keys []Key) ([]bool, error) {
	out := make([]bool, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), MaxBatch)
		found, err := s.Exists(ctx, keys[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		keys = keys[n:]
	}
	return out, nil
}
