// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

func testCounters(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(10, 1, tree.Namespace{}), "full")
	r.put(keys[:6])
	r.put(keys[4:8])
	r.get(keys)
	r.get(keys[7:])
	got := r.Stats()
	want := storage.Stats{Pages: got.Pages, Bytes: got.Bytes, CapBytes: got.CapBytes,
		Hits: 9, Misses: 4, Written: 8, Present: 2, BytesRead: 9 * pageSize, BytesWritten: 8 * pageSize}
	if got != want {
		t.Errorf("counted %+v, wanted %+v", got, want)
	}
	if got.Pages != -1 && got.Pages != 8 || got.Bytes != -1 && got.Bytes < 8*pageSize {
		t.Errorf("holds %d pages, %d bytes: wanted 8 pages (or -1 each)", got.Pages, got.Bytes)
	}
}

// The slow twin is a set of keys: what a page holds follows from its key.
func testModel(t *testing.T, p Place) {
	f := p.fingerprint()
	r := open(t, p, f)
	rnd := rand.New(rand.NewPCG(1, 2))
	pages := Chain(30, 1, tree.Namespace{Salt: "model"})
	has := map[storage.Key]bool{}
	batch := func() []storage.Key {
		keys := make([]storage.Key, rnd.IntN(8))
		for i := range keys {
			keys[i] = storage.KeyOf(pages[rnd.IntN(len(pages))], tree.Component(rnd.IntN(tree.NumComponents)))
		}
		return keys
	}
	steps := 400
	if testing.Short() {
		steps = 100
	}
	for range steps {
		keys := batch()
		switch n := rnd.IntN(100); {
		case n < 40:
			r.put(keys)
			for _, k := range keys {
				has[k] = true
			}
		case n < 80:
			want := make([]bool, len(keys))
			for i, k := range keys {
				want[i] = has[k]
			}
			r.wantFound(keys, want...)
		case n < 95:
			if err := r.Delete(r.ctx, keys); err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				delete(has, k)
			}
		case n < 98:
			if p.Forgets {
				continue
			}
			r.close()
			r = open(t, p, f)
		default:
			if err := r.Clear(r.ctx); err != nil {
				t.Fatal(err)
			}
			clear(has)
		}
	}
}

// Three properties: a hit has its page's bytes whatever runs beside it, no call
// fails, and what nobody deletes is there in the end.
func testConcurrent(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(40, 1, tree.Namespace{}), "full")
	kept, shaky := keys[:20], keys[20:]
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var wait sync.WaitGroup
	for worker := range 6 {
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 3))
			for range rounds {
				set := kept
				if rnd.IntN(2) == 0 {
					set = shaky
				}
				from := rnd.IntN(len(set))
				part := set[from : from+1+rnd.IntN(len(set)-from)]
				switch n := rnd.IntN(4); {
				case n == 0:
					if _, err := r.Put(r.ctx, part, Pages(part, pageSize)); err != nil {
						t.Errorf("put: %v", err)
					}
				case n == 1 && &set[0] == &shaky[0]:
					if err := r.Delete(r.ctx, part); err != nil {
						t.Errorf("delete: %v", err)
					}
				default:
					into := Buffers(len(part), pageSize)
					ok, err := r.Get(r.ctx, part, into)
					if err != nil {
						t.Errorf("get: %v", err)
					}
					for i := range ok {
						if ok[i] && !bytes.Equal(into[i], Page(part[i], pageSize)) {
							t.Errorf("a hit with wrong bytes")
						}
					}
				}
			}
		})
	}
	wait.Wait()
	r.put(kept)
	r.wantAll(kept, true)
}
