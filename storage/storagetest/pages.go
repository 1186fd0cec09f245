// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// Fingerprint returns a valid fingerprint for tests.
func Fingerprint() storage.Fingerprint {
	return storage.Fingerprint{
		Model: "contract", Revision: "r1", DType: "bf16", PageSize: 16,
		Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba), Window: 32, Ranks: 2,
	}
}

// Variants returns fingerprints that differ from f in one field each, by the
// name of the field.
func Variants(f storage.Fingerprint) []Variant {
	out := []Variant{}
	add := func(name string, change func(*storage.Fingerprint)) {
		g := f
		change(&g)
		out = append(out, Variant{name, g})
	}
	add("model", func(g *storage.Fingerprint) { g.Model += "x" })
	add("revision", func(g *storage.Fingerprint) { g.Revision += "x" })
	add("dtype", func(g *storage.Fingerprint) { g.DType = "fp8" })
	add("page size", func(g *storage.Fingerprint) { g.PageSize *= 2 })
	add("components", func(g *storage.Fingerprint) { g.Components = tree.SetOf(tree.Full, tree.SWA) })
	add("window", func(g *storage.Fingerprint) { g.Window *= 2 })
	add("ranks", func(g *storage.Fingerprint) { g.Ranks *= 2 })
	add("rank", func(g *storage.Fingerprint) { g.Rank++ })
	add("layout", func(g *storage.Fingerprint) { g.Layout += "layers-first" })
	add("text moved to the next field", func(g *storage.Fingerprint) { g.Model, g.Revision = f.Model+f.Revision[:1], f.Revision[1:] })
	return out
}

// Variant is a named fingerprint.
type Variant struct {
	Name        string
	Fingerprint storage.Fingerprint
}

// Namespaces returns namespaces that must not be mixed up, in pairs that a store
// could take for each other: texts with separators, path parts, letters that
// look or sort alike, the same text as salt and as extra key, and bytes that are
// no text, among them a lone surrogate (case C-069).
func Namespaces() []tree.Namespace {
	out := []tree.Namespace{
		{}, {HasExtraKey: true}, {ExtraKey: "a", Salt: "b"}, {ExtraKey: "a", Salt: "a"}, {ExtraKey: "ab"}, {Salt: "ab"}, {ExtraKey: "ab", Salt: "c"}, {ExtraKey: "a", Salt: "bc"},
		{ExtraKey: "a", Salt: "b\x00"}, {ExtraKey: "a\x01b"}, {ExtraKey: "a\x01\x01\x00\x00\x00\x00\x00\x00\x00b"}, // as the seed puts them together
	}
	for _, text := range []string{
		"a", "a@b", "a/b", "a\\b", "..", ".", "/", "a\x00b", "\x00", strings.Repeat("s", 300), strings.Repeat("s", 301), "\U0001F333",
		"\u00e9", "e\u0301", "Word", "word", "WORD", " ", "\n", "default", "0",
		"\xff", "\xfe", "\xed\xa0\x80", "\xed\xa0\x81", "\ufffd", "\ufffd\ufffd\ufffd",
	} {
		out = append(out, tree.Namespace{Salt: text}, tree.Namespace{ExtraKey: text})
	}
	return out
}

// Chain returns the page hashes of n pages of 16 tokens from first on.
func Chain(n int, first uint32, ns tree.Namespace) []tree.Digest {
	tokens := make([]tree.Token, 16*n)
	for i := range tokens {
		tokens[i] = first + uint32(i)
	}
	return tree.HashPages(tree.Key{Tokens: tokens, Namespace: ns}, 16)
}

// Page returns the bytes that tests store under a key: they follow from it.
func Page(k storage.Key, size int) []byte {
	seed := [32]byte(k.Page)
	seed[0] ^= byte(len(k.Pool))
	r := rand.NewChaCha8(seed)
	b := make([]byte, size)
	for at := 0; at < size; at += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[at:], word[:])
	}
	return b
}

// Pages returns the page of each key.
func Pages(keys []storage.Key, size int) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = Page(k, size)
	}
	return out
}

// Buffers returns n buffers filled with junk.
func Buffers(n, size int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = make([]byte, size)
		for j := range out[i] {
			out[i][j] = 0xA5
		}
	}
	return out
}
