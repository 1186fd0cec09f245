// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// faultOf expects the conservation check to find what breaks the rule, and says
// it.
func (m *model) faultOf(rule, about string) {
	m.t.Helper()
	var found *ConservationError
	if err := m.cache.CheckConservation(); !errors.As(err, &found) {
		m.t.Fatalf("the check found nothing (%v)", err)
	}
	for _, f := range found.Findings {
		if f.Rule == rule && strings.Contains(f.Problem, about) {
			return
		}
	}
	m.t.Fatalf("none of these is of %s about %q: %v", rule, about, found)
}

// IN-7: host locks are those of the loads in flight, no more and no less, also
// where a node is split below its load.
func TestHostLocksAreCounted(t *testing.T) {
	m := tiered(t, components(true, true), 1, 3, PoolSizes{Full: 32, SWA: 32, Mamba: 8}, PoolSizes{Full: 32, SWA: 32, Mamba: 8}, WriteThrough)
	m.serve(span(1, 16)...)
	m.sync()
	m.evict(tree.Full, 16, 16)
	r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 17)})
	m.ok(err)
	m.ok(m.cache.Admit(r))
	if len(m.cache.host.loads) != 1 {
		t.Fatalf("%d loads are in flight", len(m.cache.host.loads))
	}
	l := m.cache.host.loads[0]
	if _, err := m.cache.tree.Match(tree.Key{Tokens: span(1, 15)}); err != nil { // splits the node
		t.Fatal(err)
	}
	m.check()

	core := m.cache.tree
	lock := func() tree.Receipt {
		receipt, err := core.LockHost(l.node)
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	unlock := func(r tree.Receipt) {
		if err := core.UnlockHost(l.node, r); err != nil {
			t.Fatal(err)
		}
	}
	extra := lock()
	for _, id := range []string{"full", "swa", "mamba"} {
		m.faultOf("IN-7", "2 "+id+" host locks, 1 are held")
	}
	unlock(extra)
	m.check()

	unlock(l.host)
	m.faultOf("IN-7", "0 swa host locks, 1 are held")
	l.host = lock()
	mark := l.host.HostBound[tree.SWA]
	l.host.HostBound[tree.SWA] = mark + 1000
	m.faultOf("IN-7", "no node from")
	l.host.HostBound[tree.SWA] = mark
	m.check()

	m.ok(m.cache.Abort(r))
	_, err = m.cache.StartLoading()
	m.ok(err)
	m.sync()
	m.nothingLocked()
}
