// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

// deviceOnly hides all of a machine but its device tier.
type deviceOnly struct{ ops.Machine }

// TestVerbsWithoutHostTier runs every verb of the host tier on a machine that
// has none.
func TestVerbsWithoutHostTier(t *testing.T) {
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		e := ops.Executor{Machine: deviceOnly{m}}
		verbs := ops.Verbs()
		from, until := slices.Index(verbs, "lock-host"), slices.Index(verbs, "host-duplicates")
		if from < 0 || until < from {
			t.Fatalf("the verbs of the host tier are not in the table: %v", verbs)
		}
		for _, verb := range verbs[from : until+1] {
			if got := e.Run(&ops.Call{Verb: verb, Node: 1}); got != "unsupported" {
				t.Errorf("%s answered %q", verb, got)
			}
		}
		for _, verb := range append(verbs[:from:from], verbs[until+1:]...) {
			if got := e.Run(&ops.Call{Verb: verb, Node: 1}); got == "unsupported" {
				t.Errorf("%s is no verb of the host tier and was not answered", verb)
			}
		}
	})
}

// TestStoryWithoutHostTier tells a story of the host tier to such a machine: the
// lines are answered, and nothing is lost.
func TestStoryWithoutHostTier(t *testing.T) {
	m, err := tree.New(tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := ops.NewStory(tree.Options{}, deviceOnly{m})
	for _, line := range []string{
		"switches host-tier write-through-threshold=1", "host-pools full=8", "insert tokens=1..4 as=A",
		"backup A", "ack", "load-back A", "ack-load", "lock-host A", "host-insert under=A tokens=5..8", "prefetch under=A tokens=5..8 as=p", "draw",
	} {
		text, err := s.Do(line)
		if err != nil || strings.Contains(text, "PROBLEM") {
			t.Errorf("%s: %v %s", line, err, text)
		}
	}
}

// TestHostSlotsAreCounted shows that a story notices host slots that are in two
// places, or in none.
func TestHostSlotsAreCounted(t *testing.T) {
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		s := ops.NewStory(tree.Options{}, m)
		tell := func(line string) string {
			t.Helper()
			text, err := s.Do(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return text
		}
		tell("switches host-tier")
		tell("host-pools")
		tell("prefetch under=root tokens=1..4 as=p") // owns host slots 0..3
		tell("insert tokens=11..14 as=A")
		if text := tell("commit-backup node=A slots=0..3"); !strings.Contains(text, "PROBLEM: host full slot 0 is in flight and somewhere else, too") {
			t.Errorf("a slot in two places was not noticed: %s", text)
		}
	})
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		s := ops.NewStory(tree.Options{}, leaky{m.(ops.HostMachine)})
		var text string
		for _, line := range []string{"switches host-tier", "insert tokens=1..4 as=A", "backup A", "ack", "demote A", "evict-host full n=4"} {
			var err error
			if text, err = s.Do(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if !strings.Contains(text, "PROBLEM: 4 host full slots are in use and nowhere to be found") {
			t.Errorf("lost slots were not noticed: %s", text)
		}
	})
}

// leaky forgets what a host eviction freed.
type leaky struct{ ops.HostMachine }

func (l leaky) EvictHost(c tree.Component, n int) (tree.Evicted, error) {
	v, err := l.HostMachine.EvictHost(c, n)
	v.Frees = tree.Frees{}
	return v, err
}
