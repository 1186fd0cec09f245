// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"crypto/sha256"
	"encoding/binary"
)

// Seeds of the hash chains of namespaced keys (rules H-3, H-4). The texts are
// part of the published convention.
const (
	storageSeedText = "sglang-cache-namespace-v1"
	eventSeedText   = "sglang-cache-salt-v1"
)

// storageSeed returns the digest before the first page of the storage chain;
// ok is false for the default namespace, whose chain has none.
func (n Namespace) storageSeed() (d Digest, ok bool) {
	n = n.canonical()
	if !n.HasExtraKey && n.Salt == "" {
		return d, false
	}
	b := []byte(storageSeedText)
	add := func(s string, present bool) {
		if !present {
			b = append(b, 0)
			return
		}
		b = append(b, 1)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	add(n.ExtraKey, n.HasExtraKey)
	add(n.Salt, n.Salt != "")
	return sha256.Sum256(b), true
}

// eventSeed is the same for the event chain.
func (n Namespace) eventSeed() (d Digest, ok bool) {
	if n.Salt == "" {
		return d, false
	}
	return sha256.Sum256(append(append([]byte(eventSeedText), 0), n.Salt...)), true
}

func (n Namespace) isDefault() bool { return n.canonical() == Namespace{} }

// HashPages returns the storage chain of a key: one digest a whole page (rules
// H-1 to H-3). It is what the nodes of a tree with that page size hold. A page
// size below 1 has no pages.
func HashPages(key Key, pageSize int) []Digest {
	if pageSize < 1 {
		return nil
	}
	extra := 0
	if key.Bigram {
		extra = 1
	}
	units := key.Units() / pageSize * pageSize
	prev, ok := key.Namespace.storageSeed()
	return appendPageHashes(nil, view{raw: key.Tokens, units: units, extra: extra}, pageSize, prev, ok)
}

// HashPagesAfter is HashPages for a key that goes on where the page with the
// digest prev ends.
func HashPagesAfter(prev Digest, key Key, pageSize int) []Digest {
	if pageSize < 1 {
		return nil
	}
	extra := 0
	if key.Bigram {
		extra = 1
	}
	units := key.Units() / pageSize * pageSize
	return appendPageHashes(nil, view{raw: key.Tokens, units: units, extra: extra}, pageSize, prev, true)
}

// appendPageHashes adds the digests of v's pages to list, going on from prev.
func appendPageHashes(list []Digest, v view, page int, prev Digest, chained bool) []Digest {
	b := make([]byte, 0, len(prev)+4*page*(1+v.extra))
	for at := 0; at < v.units; at += page {
		b = b[:0]
		if chained {
			b = append(b, prev[:]...)
		}
		for i := at; i < at+page; i++ {
			for _, t := range v.raw[i : i+1+v.extra] {
				b = binary.LittleEndian.AppendUint32(b, t)
			}
		}
		prev, chained = sha256.Sum256(b), true
		list = append(list, prev)
	}
	return list
}

// hashChain is one of the two chains, as a field of a node's extension.
type hashChain struct {
	get  func(*node) []Digest
	set  func(*node, []Digest)
	seed func(Namespace) (Digest, bool)
}

var storageChain = hashChain{
	get: func(n *node) []Digest {
		if n.ext == nil {
			return nil
		}
		return n.ext.hashes
	},
	set:  func(n *node, l []Digest) { n.extend().hashes = l },
	seed: Namespace.storageSeed,
}

var eventChain = hashChain{
	get: func(n *node) []Digest {
		if n.ext == nil {
			return nil
		}
		return n.ext.eventHashes
	},
	set:  func(n *node, l []Digest) { n.extend().eventHashes = l },
	seed: Namespace.eventSeed,
}

// fill computes the chain's part of n, and of all ancestors that lack theirs
// first: a chain must not start again in the middle (rule H-6).
func (c *Core) fill(chain hashChain, n *node) int {
	var missing []*node
	for at := n; at.parent != nil && chain.get(at) == nil; at = at.parent {
		missing = append(missing, at)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		at := missing[i]
		var prev Digest
		var chained bool
		if at.parent.parent == nil {
			prev, chained = chain.seed(at.ns.name)
		} else {
			list := chain.get(at.parent)
			prev, chained = list[len(list)-1], true
		}
		list := make([]Digest, 0, at.units/c.opts.PageSize)
		chain.set(at, appendPageHashes(list, at.key(c.extra), c.opts.PageSize, prev, chained))
	}
	return len(missing)
}

// BackfillHashes gives every node that lacks it its storage hash list and
// returns how many it filled.
func (c *Core) BackfillHashes() int {
	if c.log != nil {
		c.log.plain("backfill-hashes")
	}
	filled := 0
	for n := c.root.following(); n != nil; n = n.following() {
		filled += c.fill(storageChain, n)
	}
	return filled
}

// Hashes returns a copy of the node's own storage hash list: one digest a page,
// or none if it was not computed.
func (c *Core) Hashes(id NodeID) ([]Digest, error) {
	if c.log != nil {
		c.log.nodes("hashes", id)
	}
	n, err := c.resolve("Hashes", id)
	if err != nil {
		return nil, err
	}
	return append([]Digest{}, storageChain.get(n)...), nil
}

// LastHash returns the last digest of the node's own list; ok is false if there
// is none.
func (c *Core) LastHash(id NodeID) (d Digest, ok bool, err error) {
	if c.log != nil {
		c.log.nodes("last-hash", id)
	}
	n, err := c.resolve("LastHash", id)
	if err != nil {
		return d, false, err
	}
	if list := storageChain.get(n); len(list) > 0 {
		return list[len(list)-1], true, nil
	}
	return d, false, nil
}

// PrefixHashes returns the lists of the node's proper ancestors, joined, the
// root side first. It reaches up to the first ancestor without a list.
func (c *Core) PrefixHashes(id NodeID) ([]Digest, error) {
	if c.log != nil {
		c.log.nodes("prefix-hashes", id)
	}
	n, err := c.resolve("PrefixHashes", id)
	if err != nil {
		return nil, err
	}
	return c.prefixHashes(n), nil
}

func (c *Core) prefixHashes(n *node) []Digest {
	var path []*node
	for at := n.parent; at != nil && storageChain.get(at) != nil; at = at.parent {
		path = append(path, at)
	}
	out := []Digest{}
	for i := len(path) - 1; i >= 0; i-- {
		out = append(out, storageChain.get(path[i])...)
	}
	return out
}
