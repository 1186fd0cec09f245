// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// logged catches what stores that are opened from now on write to the log.
func logged(t *testing.T) func() string {
	var w lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&w, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return w.String
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *lockedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *lockedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func testDamage(t *testing.T, p Place) {
	f := p.fingerprint()
	other := f
	other.Revision = "other"
	key := func(first uint32) storage.Key { return storage.Keys(Chain(1, first, tree.Namespace{}), "full")[0] }
	flip := func(at int) func([]byte) []byte {
		return func(frame []byte) []byte { frame[at] ^= 0x10; return frame }
	}
	for i, c := range []struct {
		name   string
		kind   storage.Kind
		change func(frame []byte) []byte
	}{
		{"cut to half", storage.Torn, func(b []byte) []byte { return b[:len(b)/2] }},
		{"last byte missing", storage.Torn, func(b []byte) []byte { return b[:len(b)-1] }},
		{"cut in the header", storage.Torn, func(b []byte) []byte { return b[:storage.FrameHeader/2] }},
		{"empty", storage.Torn, func([]byte) []byte { return []byte{} }},
		{"zeros", storage.Torn, func(b []byte) []byte { clear(b); return b }},
		{"first byte of the page flipped", storage.Checksum, flip(storage.FrameHeader)},
		{"last byte of the page flipped", storage.Checksum, flip(storage.FrameHeader + pageSize - 1)},
		{"length flipped", storage.Checksum, flip(8)},
		{"hash flipped", storage.Checksum, flip(40)},
		{"of another fingerprint", storage.Foreign, func(b []byte) []byte {
			return storage.EncodePage(other.ID(), key(1000), b[storage.FrameHeader:])
		}},
		{"of another key", storage.Foreign, func(b []byte) []byte {
			return storage.EncodePage(f.ID(), key(77), b[storage.FrameHeader:])
		}},
		{"shorter, and whole", storage.WrongLength, func(b []byte) []byte {
			return storage.EncodePage(f.ID(), key(1000), b[storage.FrameHeader:len(b)-8])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := logged(t)
			f := f
			f.Layout += c.name // a place of its own
			if c.kind == storage.WrongLength || strings.HasPrefix(c.name, "of another") {
				change := c.change
				c.change = func(b []byte) []byte {
					b = change(b)
					if c.name != "of another fingerprint" {
						head, _, _ := storage.DecodeHeader(b)
						b = storage.EncodePage(f.ID(), head.Key, b[storage.FrameHeader:])
					}
					return b
				}
			}
			r := open(t, p, f)
			good, bad := key(uint32(i)), key(1000)
			r.put([]storage.Key{good})
			r.put([]storage.Key{bad})
			p.Tamper(t, f, bad, c.change)
			both := []storage.Key{good, bad}
			for range 2 {
				if got := r.get(both); !got[0] || got[1] {
					t.Fatalf("answers %v, wanted the good page only", got)
				}
			}
			stats := r.Stats()
			if stats.Errors[c.kind] != 1 || stats.Misses != 2 || stats.Hits != 2 {
				t.Errorf("%d of kind %v, %d misses, %d hits: wanted 1, 2, 2 (all kinds: %v)", stats.Errors[c.kind], c.kind, stats.Misses, stats.Hits, stats.Errors)
			}
			if n := strings.Count(log(), bad.String()); n != 1 {
				t.Errorf("logged %d times, wanted once:\n%s", n, log())
			}
			// It was removed, and a new write heals it.
			r.wantFound(both, true, false)
			r.put(both)
			r.wantFound(both, true, true)
		})
	}
}

func testLength(t *testing.T, p Place) {
	f := p.fingerprint()
	for _, size := range []int{1, pageSize - 1, pageSize + 1, 10 * pageSize} {
		r := open(t, p, f)
		keys := storage.Keys(Chain(1, 1, tree.Namespace{}), "full")
		r.put(keys)
		ok, err := r.Get(r.ctx, keys, Buffers(1, size))
		if err != nil || ok[0] {
			t.Errorf("a page of %d bytes was read as one of %d: %v, %v", pageSize, size, ok, err)
		}
		if got := r.Stats(); got.Errors[storage.WrongLength] != 1 || got.Misses != 1 {
			t.Errorf("counted %d of a wrong length and %d misses, wanted 1 and 1", got.Errors[storage.WrongLength], got.Misses)
		}
		r.close()
	}
}
