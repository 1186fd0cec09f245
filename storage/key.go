// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

// MaxPoolName is the longest name of a pool, in bytes.
const MaxPoolName = 24

// Key names one pool's part of one page within a store.
type Key struct {
	// Page is the page's hash from the storage chain (tree.HashPages). The
	// chain starts with a seed made of the namespace, so that keys of two
	// namespaces differ (rules ST-1, ST-2, H-3).
	Page tree.Digest
	// Pool is the name of the pool: the component's name (full, swa, mamba) or
	// that of a sidecar. 1 to MaxPoolName of a-z, 0-9, '-' and '_'.
	Pool string
}

// KeyOf returns the key of a component's part of a page.
func KeyOf(page tree.Digest, c tree.Component) Key { return Key{Page: page, Pool: c.String()} }

// Keys returns the keys of one pool for a list of pages, in their order.
func Keys(pages []tree.Digest, pool string) []Key {
	out := make([]Key, len(pages))
	for i, p := range pages {
		out[i] = Key{Page: p, Pool: pool}
	}
	return out
}

// String returns the key as text of bounded length: 64 lower-case hex digits, a
// dot, and the pool. ParseKey reads it back. Nothing a user wrote is in it.
func (k Key) String() string { return hex.EncodeToString(k.Page[:]) + "." + k.Pool }

// ParseKey reads the text of Key.String. Other text is a *KeyError.
func ParseKey(s string) (Key, error) {
	var k Key
	digits, pool, ok := strings.Cut(s, ".")
	if !ok || len(digits) != 2*len(k.Page) || strings.ToLower(digits) != digits {
		return Key{}, &KeyError{Key: s, Problem: "wanted 64 lower-case hex digits, a dot and a pool"}
	}
	if _, err := hex.Decode(k.Page[:], []byte(digits)); err != nil {
		return Key{}, &KeyError{Key: s, Problem: "wanted 64 lower-case hex digits, a dot and a pool"}
	}
	k.Pool = pool
	return k, k.check()
}

func (k Key) check() error {
	if k.Pool == "" || len(k.Pool) > MaxPoolName {
		return &KeyError{Key: k.String(), Problem: fmt.Sprintf("the pool's name has %d bytes: allowed are 1 to %d", len(k.Pool), MaxPoolName)}
	}
	for i := range len(k.Pool) {
		if c := k.Pool[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return &KeyError{Key: k.String(), Problem: fmt.Sprintf("the pool's name is %q: allowed are a-z, 0-9, - and _", k.Pool)}
		}
	}
	return nil
}

// CheckKeys reports the first key that is not well formed, as a *KeyError.
// Backends call it before they do anything.
func CheckKeys(keys []Key) error {
	for _, k := range keys {
		if err := k.check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckPages is CheckKeys, and that there is one page or buffer a key, none of
// them empty or longer than MaxPage.
func CheckPages(keys []Key, pages [][]byte) error {
	if len(keys) != len(pages) {
		return &KeyError{Problem: fmt.Sprintf("%d keys and %d pages: give one page a key", len(keys), len(pages))}
	}
	for i, p := range pages {
		if len(p) == 0 || int64(len(p)) > MaxPage {
			return &KeyError{Key: keys[i].String(), Problem: fmt.Sprintf("the page has %d bytes: allowed are 1 to %d", len(p), MaxPage)}
		}
	}
	return CheckKeys(keys)
}
