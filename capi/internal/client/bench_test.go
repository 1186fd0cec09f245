// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client_test

import (
	"fmt"
	"testing"

	"github.com/treecore/treecore/capi/internal/client"
	"github.com/treecore/treecore/tree"
)

// insert puts a key into the tree, with slots 1, 2, ...
func insert(tb testing.TB, m interface {
	BeginInsert(tree.InsertParams) (tree.InsertStep, error)
	EndInsert() []tree.Action
}, key tree.Key) {
	tb.Helper()
	s, err := m.BeginInsert(tree.InsertParams{Key: key, Slots: tree.Numbered(1, len(key.Tokens))})
	if err != nil || s.Result == nil {
		tb.Fatal(s, err)
	}
	m.EndInsert()
}

func keyOf(n int) tree.Key {
	tokens := make([]tree.Token, n)
	for i := range tokens {
		tokens[i] = tree.Token(i)*2654435761 + 7
	}
	return tree.Key{Tokens: tokens}
}

// BenchmarkCrossing compares a call from C with the same call from Go: the
// difference is what the border costs. Keys of an even length cross as 64-bit
// tokens, others as 32-bit ones.
func BenchmarkCrossing(b *testing.B) {
	small := keyOf(127)
	core, err := tree.New(tree.Options{})
	if err != nil {
		b.Fatal(err)
	}
	insert(b, core, small)
	m, err := client.New(tree.Options{}, false)
	if err != nil {
		b.Fatal(err)
	}
	numbers, err := client.New(tree.Options{}, true)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	defer numbers.Close()
	insert(b, m, small)
	insert(b, numbers, small)
	loop := func(m *client.Machine, what int, key tree.Key) func(*testing.B) {
		return func(b *testing.B) {
			if err := m.Loop(what, key, b.N); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("empty/c", loop(m, client.LoopVersion, small))
	b.Run("ongoing/c", loop(m, client.LoopOngoing, small))
	b.Run("ongoing/go", func(b *testing.B) {
		for b.Loop() {
			core.HasOngoingInsert()
		}
	})
	b.Run("sizes/c", loop(m, client.LoopSizes, small))
	b.Run("lock+unlock/c", loop(m, client.LoopLock, small))
	node, err := core.Match(small)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("lock+unlock/go", func(b *testing.B) {
		for b.Loop() {
			r, err := core.Lock(node.LastDeviceNode, 0)
			if err == nil {
				err = core.Unlock(node.LastDeviceNode, r, false)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{128, 2048, 32768} {
		key := keyOf(n + 1)
		insert(b, core, key)
		insert(b, m, key)
		insert(b, numbers, key)
		b.Run(fmt.Sprintf("match/%d/go", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := core.Match(key); err != nil {
					b.Fatal(err)
				}
			}
		})
		wide := tree.Key{Tokens: key.Tokens[:n]}
		b.Run(fmt.Sprintf("match/%d/c", n), loop(m, client.LoopMatch, key))
		b.Run(fmt.Sprintf("match/%d/c-wide", n), loop(m, client.LoopMatch, wide))
		b.Run(fmt.Sprintf("match/%d/c-wide-numbers", n), loop(numbers, client.LoopMatch, wide))
	}
}
