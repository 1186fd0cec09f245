// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// ReachTest checks that what a well-behaved request inserts can be reused: it
// matches a key, locks the match, frees its window as far as the rules allow
// (BR-3), inserts and matches again. The second match must return every unit
// and end where the insert ended. Between requests a random story goes on.
func ReachTest(t *testing.T, newMachine NewMachine, config RandomConfig, seed uint64, requests int) {
	t.Helper()
	m, err := newMachine(config.Options)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStory(config.Options, m)
	s.quiet = true
	g := newGenerator(config, seed, m)
	var told []string
	tell := func(line string) string {
		told = append(told, line)
		text, err := s.Do(line)
		if strings.Contains(text, "PROBLEM") {
			t.Fatalf("%s\n%s", line, text)
		}
		if err != nil {
			return ""
		}
		return text
	}
	for _, line := range g.startLines() {
		tell(line)
	}
	for range requests {
		for range 8 {
			s.inspectAll()
			tell(g.next(s))
		}
		s.settle(alone)
		tokens, namespace := g.key(s)
		key := " tokens=" + formatTokens(tokens) + namespace
		units := len(tokens)
		if config.Options.Eagle && units > 0 {
			units--
		}
		aligned := units - units%g.page()
		tell("match" + key + " as=reach")
		before, err := m.Match(s.mustKey(tokens, namespace))
		if err != nil || aligned == 0 {
			continue
		}
		tell("lock reach as=reach")
		// The key that is inserted is the aligned one; measured on a longer one
		// the frontier would leave less than a window below the boundary.
		frontier := max(before.DeviceLen, aligned-1-max(config.Options.SlidingWindow, g.page()))
		frontier -= frontier % g.page()
		line := fmt.Sprintf("insert%s from=reach as=end", key)
		if config.Options.Components.Has(tree.SWA) {
			line += fmt.Sprintf(" swa-evicted=%d", max(frontier, 0))
		}
		inserted := tell(line)
		after, err := m.Match(s.mustKey(tokens, namespace))
		if err != nil || after.DeviceLen != aligned || after.LastDeviceNode != s.nodes["end"] {
			drawing, _ := s.drawVerb(nil)
			t.Fatalf("%d of %d units are reused after\n%s\n%s\n%s%s", after.DeviceLen, aligned, line, inserted, strings.Join(told[max(len(told)-12, 0):], "\n"), drawing)
		}
		tell("unlock reach")
	}
}

// mustKey reads a key that the generator wrote.
func (s *Story) mustKey(tokens []tree.Token, namespace string) tree.Key {
	c, err := ParseCall("match tokens=" + formatTokens(tokens) + namespace)
	if err != nil {
		return tree.Key{Tokens: tokens}
	}
	return c.Key
}
