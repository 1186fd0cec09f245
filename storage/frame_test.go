// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

// Equal in every process and on every machine (case C-037).
func TestFixedVectors(t *testing.T) {
	f := storagetest.Fingerprint()
	const id = "c547bcbb7cdb4ff6141682331f9cb25f"
	if got := f.ID().String(); got != id {
		t.Errorf("fingerprint id %s, wanted %s", got, id)
	}
	page := tree.HashPages(tree.Key{Tokens: []tree.Token{1, 2}}, 1)[0]
	key := storage.KeyOf(page, tree.SWA)
	if got, want := key.String(), "67abdd721024f0ff4e0b3f4c2fc13bc5bad42d0b7851d456d88d203d15aaa450.swa"; got != want {
		t.Errorf("key %s, wanted %s", got, want)
	}
	// Written by hand from the table in frame.go; the two checksums are those of
	// independent implementations.
	want := "54435047" + "01" + "01" + "03" + "00" + "05000000" + "d5462113" + id +
		"67abdd721024f0ff4e0b3f4c2fc13bc5bad42d0b7851d456d88d203d15aaa450" +
		"737761" + strings.Repeat("00", 21) + "a36d9f887d82c726" + hex.EncodeToString([]byte("hello"))
	if got := hex.EncodeToString(storage.EncodePage(f.ID(), key, []byte("hello"))); got != want {
		t.Errorf("frame\n%s, wanted\n%s", got, want)
	}
}

func FuzzDecodePage(f *testing.F) {
	id := storagetest.Fingerprint().ID()
	key := storage.KeyOf(storagetest.Chain(1, 1, tree.Namespace{})[0], tree.Full)
	whole := storage.EncodePage(id, key, []byte("a page"))
	for _, n := range []int{0, 4, storage.FrameHeader, len(whole) - 1, len(whole)} {
		f.Add(whole[:n])
	}
	f.Add(append(bytes.Clone(whole), 0))
	tombstone := storage.TombstoneHeader(id, key)
	f.Add(tombstone[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		into := []byte("123456")
		kind, ok := storage.DecodePage(b, id, key, into)
		if ok && !bytes.Equal(storage.EncodePage(id, key, into), b) {
			t.Errorf("decoded %q from other bytes than its own frame", into)
		}
		if !ok && (string(into) != "123456" || int(kind) >= storage.NumKinds) {
			t.Errorf("a miss of kind %v changed the buffer to %q", kind, into)
		}
	})
}

func TestParseKeyRefusesOtherText(t *testing.T) {
	good := storage.KeyOf(storagetest.Chain(1, 1, tree.Namespace{})[0], tree.Full).String()
	for _, s := range []string{"", ".", good[1:], strings.ToUpper(good), good + "/x", good[:64], good[:65], "../" + good, "zz" + good[2:]} {
		var e *storage.KeyError
		if k, err := storage.ParseKey(s); !errors.As(err, &e) {
			t.Errorf("%q was read as %v, %v: wanted a *KeyError", s, k, err)
		}
	}
}
