// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// The list of closed sessions, with its blanks and places, must hold what a
// plain list that deletes from its middle holds.
func TestClosedSessionsAgainstAPlainList(t *testing.T) {
	var b sessionBook
	b.clear()
	var plain []string
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60000 {
		id := strconv.Itoa(r.IntN(maxClosedSessions + 2000))
		if b.isClosed[id] == 0 {
			b.close(id)
			if plain = append(plain, id); len(plain) > maxClosedSessions {
				plain = plain[1:]
			}
		} else {
			b.forgetClosed(id)
			plain = slices.Delete(plain, slices.Index(plain, id), slices.Index(plain, id)+1)
		}
		if len(b.isClosed) != len(plain) {
			t.Fatalf("step %d: %d closed, want %d", i, len(b.isClosed), len(plain))
		}
		if i%5000 != 0 {
			continue
		}
		var kept []string
		for _, id := range b.closed {
			if id != "" {
				kept = append(kept, id)
			}
		}
		if !slices.Equal(kept, plain) {
			t.Fatalf("step %d: the lists differ", i)
		}
	}
}
