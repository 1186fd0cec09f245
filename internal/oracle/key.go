// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// unit is what a key counts: one token (second is 0), or in bigram mode a pair
// of neighbouring tokens (rule K-5).
type unit struct{ first, second tree.Token }

// units brings a key into the form that the oracle sees (rule K-8): all its
// units, unaligned, and its namespace.
func (o *Oracle) units(op string, key tree.Key) ([]unit, tree.Namespace, error) {
	if key.Bigram && !o.eagle {
		return nil, tree.Namespace{}, &tree.ArgumentError{Op: op, Field: "key", Problem: "it is marked as bigrams, but keys are plain here: pass a plain key"}
	}
	namespace := key.Namespace
	if namespace.ExtraKey != "" {
		namespace.HasExtraKey = true
	}
	var list []unit
	if o.eagle {
		for i := 0; i+1 < len(key.Tokens); i++ {
			list = append(list, unit{key.Tokens[i], key.Tokens[i+1]})
		}
	} else {
		for _, t := range key.Tokens {
			list = append(list, unit{first: t})
		}
	}
	return list, namespace, nil
}

// align cuts to whole pages (rule K-7).
func (o *Oracle) align(list []unit) []unit { return list[:len(list)/o.page*o.page] }

// common returns the number of equal leading units, rounded down to whole
// pages (rule K-11).
func (o *Oracle) common(a, b []unit) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n / o.page * o.page
}

// rawTokens returns the raw tokens that the units span (rule K-6).
func (o *Oracle) rawTokens(list []unit) []tree.Token {
	var raw []tree.Token
	for _, u := range list {
		raw = append(raw, u.first)
	}
	if o.eagle && len(list) > 0 {
		raw = append(raw, list[len(list)-1].second)
	}
	return raw
}

// childFor returns the child behind the edge for the next page of rest, or nil
// (rule K-10).
func (o *Oracle) childFor(n *node, namespace tree.Namespace, rest []unit) *node {
	if len(rest) < o.page {
		return nil
	}
	for _, child := range n.children {
		if child.namespace == namespace && o.samePage(child.key, rest) {
			return child
		}
	}
	return nil
}

// samePage reports whether the first pages of a and b are equal.
func (o *Oracle) samePage(a, b []unit) bool {
	for i := 0; i < o.page; i++ {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// slotList returns the slots as a plain list of our own; nil stays nil.
func slotList(op, field string, slots tree.Slots) ([]tree.Slot, error) {
	if slots == nil {
		return nil, nil
	}
	numbers, err := slots.Numbers()
	if err != nil {
		return nil, &tree.ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf("opaque runs are not supported here: %v", slots)}
	}
	return append([]tree.Slot{}, numbers...), nil
}

// runs returns a list as the interface's type. nil stays nil: no data.
func runs(list []tree.Slot) tree.Slots {
	if list == nil {
		return nil
	}
	return tree.SlotsOf(list...)
}

// clone copies a list; the copy is never nil.
func clone(list []tree.Slot) []tree.Slot { return append([]tree.Slot{}, list...) }
