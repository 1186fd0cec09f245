// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "testing"

// TwinTest makes up a story and tells it to two machines of the same kind. They
// must answer byte for byte alike, node and boundary numbers included: ranks of
// one model that are told the same must not part.
func TwinTest(t *testing.T, newMachine NewMachine, config RandomConfig, seed uint64, operations int) {
	t.Helper()
	p, err := newPair(config.Options, newMachine, newMachine)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Story{p.a, p.b} {
		s.run.nameNode, s.run.showSlots = nil, nil
	}
	g := newGenerator(config, seed, p.a.m, p.b.m)
	lines := g.startLines()
	for i := 0; i < operations; i++ {
		var line string
		if i < len(lines) {
			line = lines[i]
		} else {
			p.a.inspectAll()
			line = g.next(p.a)
		}
		textA, errA := p.a.Do(line)
		textB, errB := p.b.Do(line)
		if (errA == nil) != (errB == nil) || textA != textB {
			t.Fatalf("operation %d, %s:\n%s %v\n%s %v", i, line, textA, errA, textB, errB)
		}
	}
	if a, b := p.a.dump(), p.b.dump(); a != b {
		t.Fatalf("after %d operations:\n%s\n%s", operations, a, b)
	}
}
