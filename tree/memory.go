// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "unsafe"

// Sizes of what a node is made of. A map entry is an estimate: key, value and
// the share of the table that is empty.
const (
	nodeBytes     = int(unsafe.Sizeof(node{}))
	stateBytes    = int(unsafe.Sizeof(componentState{}))
	runBytes      = int(unsafe.Sizeof(Run{}))
	tokenBytesOne = int(unsafe.Sizeof(Token(0)))
	mapEntryBytes = 28
)

// MemoryBytes returns the memory that the tree's content takes: nodes, keys,
// slot runs, hash lists and indexes. It costs a walk over the tree. The maps are
// estimated; what sessions, namespaces and queued events take is not in it. Node
// memory is used again but not given back before Reset.
func (c *Core) MemoryBytes() int {
	total := c.nodes.bytes() + mapEntryBytes*(c.nodes.len()+len(c.edges.firstPages))
	for n := c.root; n != nil; n = n.following() {
		total += tokenBytesOne * cap(n.raw)
		for i := range n.state {
			total += runBytes * (cap(n.state[i].device) + cap(n.state[i].host))
		}
		if n.index != nil {
			total += mapEntryBytes * len(n.index.byHash)
		}
		if e := n.ext; e != nil {
			total += int(unsafe.Sizeof(*e)) + int(unsafe.Sizeof(Digest{}))*(cap(e.hashes)+cap(e.eventHashes))
		}
	}
	return total
}
