// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// InsertHost hands data that came from storage to the host tier (rule PF-25).
func (o *Oracle) InsertHost(p tree.HostInsertParams) (tree.HostInsertResult, error) {
	const op = "InsertHost"
	bad := func(field, format string, args ...any) (tree.HostInsertResult, error) {
		return tree.HostInsertResult{}, &tree.ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	anchor, err := o.resolve(op, p.Anchor)
	if err != nil {
		return tree.HostInsertResult{}, err
	}
	if o.switches.HostBufferOnly {
		return tree.HostInsertResult{}, &tree.OrderError{Op: op, Problem: "host memory is a staging buffer, the tree keeps nothing there"}
	}
	all, namespace, err := o.units(op, p.Key)
	if err != nil {
		return tree.HostInsertResult{}, err
	}
	if anchor != o.root && namespace != anchor.namespace {
		return bad("key", "its namespace is not that of the anchor %d", anchor.id)
	}
	rest := o.align(all)
	slots, err := slotList(op, "slots", p.Slots)
	if err != nil {
		return tree.HostInsertResult{}, err
	}
	if p.Slots == nil || len(slots) < len(rest) {
		return bad("slots", "%d slots for %d units", len(slots), len(rest))
	}
	slots = slots[:len(rest)]
	if p.Hashes != nil && len(p.Hashes) != len(rest)/o.page {
		return bad("hashes", "%d hashes for %d pages", len(p.Hashes), len(rest)/o.page)
	}

	result := tree.HostInsertResult{TotalLen: len(rest)}
	at := anchor
	for len(rest) > 0 {
		child := o.childFor(at, namespace, rest)
		if child == nil {
			break
		}
		o.touch(child) // as I-14
		n := o.common(child.key, rest)
		if n < len(child.key) {
			prefix, actions := o.split(child, n)
			result.Actions = append(result.Actions, actions...)
			child = prefix
		}
		at = child
		rest = rest[n:]
	}
	result.PrefixLen = result.TotalLen - len(rest)
	switch {
	case len(rest) == 0:
		if at != o.root && at.backedUp() {
			result.Node = at.id
		}
	case at != o.root && (!at.backedUp() || at.writePending != 0) && !o.switches.WriteBack: // PF-27, C-027
		result.Dropped = true
	default:
		result.Node = o.newHostLeaf(at, namespace, rest, slots[result.PrefixLen:], p.Hashes, result.PrefixLen/o.page).id
	}
	return result, nil
}

// newHostLeaf makes the one new node of a host insert. Of the hashes, if there
// are any, the first known ones belong to nodes that existed.
func (o *Oracle) newHostLeaf(parent *node, namespace tree.Namespace, key []unit, slots []tree.Slot, hashes []tree.Digest, known int) *node {
	leaf := o.newNode()
	leaf.parent = parent
	leaf.namespace = namespace
	leaf.key = append([]unit{}, key...)
	leaf.host[tree.Full] = clone(slots)
	leaf.priority = parent.priority
	parent.children = append(parent.children, leaf)
	o.reachHistory(leaf)
	switch {
	case hashes != nil: // ST-3
		leaf.given = append([]tree.Digest{}, hashes[known:]...)
		leaf.hasHashes = true
	case o.switches.Storage:
		o.fillHashes(leaf)
	}
	return leaf
}
