// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

func testRoundTrip(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(6, 1, tree.Namespace{}), "full")
	r.wantAll(keys, false)
	r.put(keys[:3])
	r.put(keys[2:4])
	// One key twice in a call, also one that is new.
	r.put([]storage.Key{keys[0], keys[0], keys[5], keys[5]})
	r.wantFound(append(keys, keys[0]), true, true, true, true, false, true, true)
	if got := r.Stats(); got.Written != 5 || got.Present != 4 || got.Failed != 0 {
		t.Errorf("written %d, present %d, failed %d: wanted 5, 4, 0", got.Written, got.Present, got.Failed)
	}
	// Pages are copies: the caller may use its slices again.
	more := storage.Keys(Chain(1, 999, tree.Namespace{}), "full")
	pages := Pages(more, pageSize)
	if _, err := r.Put(r.ctx, more, pages); err != nil {
		t.Fatal(err)
	}
	clear(pages[0])
	r.wantAll(more, true)
}

func testPools(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	page := Chain(1, 1, tree.Namespace{})[0]
	full, swa, mamba := storage.KeyOf(page, tree.Full), storage.KeyOf(page, tree.SWA), storage.KeyOf(page, tree.Mamba)
	sidecar := storage.Key{Page: page, Pool: "full-indexer"}
	r.put([]storage.Key{full, mamba})
	r.wantFound([]storage.Key{full, swa, mamba, sidecar}, true, false, true, false)
	r.put([]storage.Key{sidecar})
	if err := r.Delete(r.ctx, []storage.Key{full}); err != nil {
		t.Fatal(err)
	}
	r.wantFound([]storage.Key{full, swa, mamba, sidecar}, false, false, true, true)
}

func testFingerprints(t *testing.T, p Place) {
	f := p.fingerprint()
	keys := storage.Keys(Chain(4, 1, tree.Namespace{}), "full")
	first := open(t, p, f)
	first.put(keys)
	for _, v := range Variants(f) {
		t.Run(v.Name, func(t *testing.T) {
			other := open(t, p, v.Fingerprint)
			other.wantAll(keys, false)
			other.put(keys[:1])
			if err := other.Clear(other.ctx); err != nil {
				t.Fatal(err)
			}
			other.wantAll(keys, false)
		})
	}
	first.wantAll(keys, true)
	if p.Forgets {
		return
	}
	first.close()
	again := open(t, p, f)
	again.wantAll(keys, true)
}

func testNamespaces(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	spaces := Namespaces()
	chain := func(i int) []storage.Key { return storage.Keys(Chain(4, 1, spaces[i]), "full") }
	for i := range spaces {
		r.wantAll(chain(i), false)
		r.put(chain(i))
	}
	for i := range spaces {
		r.wantAll(chain(i), true)
		for _, k := range chain(i) {
			if back, err := storage.ParseKey(k.String()); err != nil || back != k || len(k.String()) > 64+1+storage.MaxPoolName {
				t.Errorf("key %v reads back as %v, %v", k, back, err)
			}
		}
	}
	// Removing some leaves the others.
	removed := func(i int) bool { return i%5 == 3 }
	for i := range spaces {
		if removed(i) {
			if err := r.Delete(r.ctx, chain(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range spaces {
		r.wantAll(chain(i), !removed(i))
	}
}

func testDelete(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(5, 1, tree.Namespace{}), "full")
	r.put(keys)
	if err := r.Delete(r.ctx, []storage.Key{keys[1], keys[3], keys[3]}); err != nil {
		t.Fatal(err)
	}
	r.wantFound(keys, true, false, true, false, true)
	if err := r.Delete(r.ctx, []storage.Key{keys[1]}); err != nil {
		t.Errorf("deleting an absent page: %v", err)
	}
	r.put(keys[1:2])
	r.wantFound(keys, true, true, true, false, true)
	for range 2 {
		if err := r.Clear(r.ctx); err != nil {
			t.Fatal(err)
		}
		r.wantAll(keys, false)
	}
	r.put(keys[2:])
	r.wantFound(keys, false, false, true, true, true)
}

func testWarm(t *testing.T, p Place) {
	if p.Forgets {
		t.Skip("this backend keeps nothing")
	}
	f := p.fingerprint()
	keys := storage.Keys(Chain(100, 1, tree.Namespace{}), "full")
	r := open(t, p, f)
	r.put(keys[:40])
	if err := r.Delete(r.ctx, keys[10:12]); err != nil {
		t.Fatal(err)
	}
	r.close()
	r = open(t, p, f)
	r.put(keys[40:60])
	r.wantAll(keys[:10], true)
	r.wantAll(keys[10:12], false)
	r.wantAll(keys[12:60], true)
	r.close()
	r = open(t, p, f)
	r.wantAll(keys[10:12], false)
	r.wantAll(keys[12:60], true)
	r.wantAll(keys[60:], false)
}

// What a look-up promised is not what a read delivers: the leading run of true
// answers is.
func testVanish(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	pages := Chain(4, 1, tree.Namespace{})
	full, swa := storage.Keys(pages, "full"), storage.Keys(pages, "swa")
	r.put(full)
	r.put(swa)
	needs := []storage.Need{{Pool: "swa", Policy: storage.TrailingPages, Trailing: 2}}
	found, err := storage.Lookup(r.ctx, r.Store, pages, needs)
	if err != nil || found.Usable != 4 || found.Aux[0] != 2 {
		t.Fatalf("lookup: %+v, %v", found, err)
	}
	if err := r.Delete(r.ctx, []storage.Key{full[2], swa[3]}); err != nil {
		t.Fatal(err)
	}
	if n := storage.Leading(r.get(full)); n != 2 {
		t.Errorf("%d leading pages were read, wanted 2", n)
	}
	r.wantFound(swa[2:], true, false)
	found, err = storage.Lookup(r.ctx, r.Store, pages, needs)
	if err != nil || found.Usable != 2 {
		t.Errorf("lookup afterwards: %+v, %v", found, err)
	}
}

func testLongBatch(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	pages := Chain(3*storage.MaxBatch+1, 1, tree.Namespace{})
	keys := storage.Keys(pages, "full")
	r.put(keys[:len(keys)-1])
	found, err := storage.Lookup(r.ctx, r.Store, pages, nil)
	if err != nil || found.Usable != len(keys)-1 {
		t.Errorf("lookup: %+v, %v", found, err)
	}
	if n := storage.Leading(r.get(keys)); n != len(keys)-1 {
		t.Errorf("%d leading pages read, wanted %d", n, len(keys)-1)
	}
	for _, none := range [][]storage.Key{nil, {}} {
		r.put(none)
		r.wantAll(none, false)
	}
}

func testBadKeys(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	page := Chain(1, 1, tree.Namespace{})[0]
	good := storage.KeyOf(page, tree.Full)
	for _, pool := range []string{"", "Full", "a/b", "..", "a b", "swa\x00", strings.Repeat("x", storage.MaxPoolName+1), "\u00e9"} {
		keys := []storage.Key{good, {Page: page, Pool: pool}}
		check := func(op string, err error) {
			var e *storage.KeyError
			if !errors.As(err, &e) {
				t.Errorf("%s with pool %q: %v, wanted a *KeyError", op, pool, err)
			}
		}
		_, err := r.Exists(r.ctx, keys)
		check("exists", err)
		_, err = r.Get(r.ctx, keys, Buffers(2, pageSize))
		check("get", err)
		_, err = r.Put(r.ctx, keys, Pages(keys, pageSize))
		check("put", err)
		check("delete", r.Delete(r.ctx, keys))
	}
	for _, pages := range [][][]byte{nil, {{}}, {nil}, {{1}, {2}}} {
		var e *storage.KeyError
		if _, err := r.Put(r.ctx, []storage.Key{good}, pages); !errors.As(err, &e) {
			t.Errorf("put of %v: %v, wanted a *KeyError", pages, err)
		}
		if _, err := r.Get(r.ctx, []storage.Key{good}, pages); !errors.As(err, &e) {
			t.Errorf("get into %v: %v, wanted a *KeyError", pages, err)
		}
	}
	r.wantAll([]storage.Key{good}, false)
}

func testCancelled(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(3, 1, tree.Namespace{}), "full")
	r.put(keys)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	found, err := r.Store.Exists(ctx, keys)
	wantKind(t, "exists", err, storage.Cancelled)
	read, err := r.Store.Get(ctx, keys, Buffers(3, pageSize))
	wantKind(t, "get", err, storage.Cancelled)
	more := storage.Keys(Chain(3, 500, tree.Namespace{}), "full")
	written, err := r.Store.Put(ctx, more, Pages(more, pageSize))
	wantKind(t, "put", err, storage.Cancelled)
	for i := range 3 {
		if found[i] || read[i] || written[i] {
			t.Errorf("a cancelled call answers true for key %d", i)
		}
	}
	wantKind(t, "delete", r.Store.Delete(ctx, keys), storage.Cancelled)
	wantKind(t, "clear", r.Store.Clear(ctx), storage.Cancelled)
	r.wantAll(keys, true)
	r.wantAll(more, false)
}

func testClosed(t *testing.T, p Place) {
	r := open(t, p, p.fingerprint())
	keys := storage.Keys(Chain(1, 1, tree.Namespace{}), "full")
	r.put(keys)
	r.close()
	r.close()
	_, err := r.Store.Exists(r.ctx, keys)
	wantKind(t, "exists", err, storage.Closed)
	_, err = r.Store.Get(r.ctx, keys, Buffers(1, pageSize))
	wantKind(t, "get", err, storage.Closed)
	_, err = r.Store.Put(r.ctx, keys, Pages(keys, pageSize))
	wantKind(t, "put", err, storage.Closed)
	wantKind(t, "delete", r.Store.Delete(r.ctx, keys), storage.Closed)
	wantKind(t, "clear", r.Store.Clear(r.ctx), storage.Closed)
	if got := r.Stats(); got.Written != 1 {
		t.Errorf("counters are lost at close: %+v", got)
	}
}
