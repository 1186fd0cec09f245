// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/treecore/treecore/tree"
)

// chain computes the digests of the node's own pages (rules H-1, H-2), from
// the root down. seed is the digest before the first page; nil: none. With
// stored, lists that came with a host insert are what they say (PF-25, H-8).
func (o *Oracle) chain(n *node, seed []byte, stored bool) []tree.Digest {
	if n == o.root {
		return nil
	}
	if stored && n.given != nil {
		return append([]tree.Digest{}, n.given...)
	}
	previous := seed
	if above := o.chain(n.parent, seed, stored); len(above) > 0 {
		previous = above[len(above)-1][:]
	}
	var digests []tree.Digest
	for path := n.key; len(path) > 0; path = path[o.page:] {
		message := append([]byte{}, previous...)
		for _, u := range path[:o.page] {
			message = binary.LittleEndian.AppendUint32(message, u.first)
			if o.eagle {
				message = binary.LittleEndian.AppendUint32(message, u.second)
			}
		}
		digest := sha256.Sum256(message)
		digests = append(digests, digest)
		previous = digest[:]
	}
	return digests
}

// storageSeed is the seed of rule H-3.
func storageSeed(namespace tree.Namespace) []byte {
	if !namespace.HasExtraKey && namespace.Salt == "" {
		return nil
	}
	message := []byte("sglang-cache-namespace-v1")
	add := func(text string, present bool) {
		if !present {
			message = append(message, 0)
			return
		}
		message = append(message, 1)
		message = binary.LittleEndian.AppendUint64(message, uint64(len(text)))
		message = append(message, text...)
	}
	add(namespace.ExtraKey, namespace.HasExtraKey)
	add(namespace.Salt, namespace.Salt != "")
	seed := sha256.Sum256(message)
	return seed[:]
}

// eventSeed is the seed of rule H-4.
func eventSeed(namespace tree.Namespace) []byte {
	if namespace.Salt == "" {
		return nil
	}
	seed := sha256.Sum256([]byte("sglang-cache-salt-v1\x00" + namespace.Salt))
	return seed[:]
}

// fillHashes fills the storage lists of the node and, since a chain must not
// start in its middle, of its ancestors (rule H-6).
func (o *Oracle) fillHashes(n *node) {
	for ; !n.hasHashes; n = n.parent { // the root has one
		n.hasHashes = true
	}
}

// BackfillHashes fills absent storage lists and returns how many (rule H-6).
func (o *Oracle) BackfillHashes() int {
	filled := 0
	for _, n := range o.preorder() {
		if !n.hasHashes {
			n.hasHashes = true
			filled++
		}
	}
	return filled
}

// Hashes returns the node's storage digests; none if absent (rule A-8).
func (o *Oracle) Hashes(id tree.NodeID) ([]tree.Digest, error) {
	n, err := o.resolve("Hashes", id)
	if err != nil {
		return nil, err
	}
	return o.hashes(n), nil
}

func (o *Oracle) hashes(n *node) []tree.Digest {
	if !n.hasHashes || n == o.root {
		return nil
	}
	return o.chain(n, storageSeed(n.namespace), true)
}

// LastHash returns the last storage digest of the node (rule A-8).
func (o *Oracle) LastHash(id tree.NodeID) (h tree.Digest, ok bool, err error) {
	n, err := o.resolve("LastHash", id)
	if err != nil {
		return tree.Digest{}, false, err
	}
	h, ok = o.lastHash(n)
	return h, ok, nil
}

func (o *Oracle) lastHash(n *node) (h tree.Digest, ok bool) {
	list := o.hashes(n)
	if len(list) == 0 {
		return tree.Digest{}, false
	}
	return list[len(list)-1], true
}

// PrefixHashes joins the lists of the proper ancestors, root-first, down from
// the nearest ancestor above which all have one (rule A-8).
func (o *Oracle) PrefixHashes(id tree.NodeID) ([]tree.Digest, error) {
	n, err := o.resolve("PrefixHashes", id)
	if err != nil {
		return nil, err
	}
	return o.prefixHashes(n), nil
}

func (o *Oracle) prefixHashes(n *node) []tree.Digest {
	var joined []tree.Digest
	for up := n.parent; up != nil && up.hasHashes; up = up.parent {
		joined = append(append([]tree.Digest{}, o.hashes(up)...), joined...)
	}
	return joined
}
