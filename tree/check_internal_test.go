// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"slices"
	"testing"
)

// A lock count that nobody took is found under every rule that it breaks
// (example X-V-2). No call can make such a state, so it is made by hand.
func TestCheckFindsALockRaisedByHand(t *testing.T) {
	for _, withWindow := range []bool{true, false} {
		c, err := New(Options{Components: SetOf(Full, SWA), SlidingWindow: 4})
		if err != nil {
			t.Fatal(err)
		}
		tokens := []Token{1, 2, 3, 4}
		step, err := c.BeginInsert(InsertParams{Key: Key{Tokens: tokens}, Slots: Numbered(1, 4)})
		if err != nil {
			t.Fatal(err)
		}
		leaf := c.root.firstChild
		if withWindow {
			for _, a := range step.Actions {
				if r, ok := a.(SWARebuild); ok {
					if err := c.SetComponentDeviceValue(r.Node, SWA, r.Full); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		c.EndInsert()
		if err := c.SanityCheck(nil, nil); err != nil {
			t.Fatal(err)
		}
		leaf.state[SWA].locks++
		var found *CheckError
		if err := c.SanityCheck(nil, nil); !errors.As(err, &found) {
			t.Fatalf("nothing found: %v", err)
		}
		var checks []string
		for _, v := range found.Violations {
			checks = append(checks, v.Check)
		}
		slices.Sort(checks)
		want := []string{"V-11", "V-15"}
		if withWindow {
			want = []string{"V-11", "V-15", "V-26", "V-27"}
		}
		if !slices.Equal(checks, want) {
			t.Errorf("window %v: found %v, want %v", withWindow, checks, want)
		}
	}
}
