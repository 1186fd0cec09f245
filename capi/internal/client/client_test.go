// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client_test

import (
	"errors"
	"testing"

	"github.com/treecore/treecore/capi/internal/client"
	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
	"github.com/treecore/treecore/tree"
)

var _ ops.HostMachine = (*client.Machine)(nil)

// newMachine returns a machine that runs through the C interface.
func newMachine(o tree.Options) (ops.Machine, error) { return client.New(o, false) }

// newNumbers is newMachine with slots that come back as numbers.
func newNumbers(o tree.Options) (ops.Machine, error) { return client.New(o, true) }

func newOracle(o tree.Options) (ops.Machine, error) { return oracle.New(o) }

// TestScripts runs the scripts of the core's own tests through the C interface.
func TestScripts(t *testing.T) { ops.RunScripts(t, "../../../tree/testdata", newMachine) }

func TestScriptsWithNumbers(t *testing.T) {
	ops.RunScripts(t, "../../../tree/testdata", newNumbers)
}

func TestRegressions(t *testing.T) {
	ops.RunRegressions(t, "../../../tree/testdata/regressions", newMachine, newOracle)
}

// TestStaleHandles passes stale nodes wherever a node can stand.
func TestStaleHandles(t *testing.T) { ops.StaleHandleTest(t, newMachine) }

// TestRandomAgainstOracle tells random stories to the C interface and to the
// oracle.
func TestRandomAgainstOracle(t *testing.T) {
	for i, config := range append(append(ops.Mixes(), ops.HostMixes()...), ops.LinkerMixes()...) {
		t.Run(config.Name(), func(t *testing.T) {
			machine := newMachine
			if i%2 == 1 {
				machine = newNumbers
			}
			ops.RandomTest(t, machine, newOracle, config, uint64(i+401), ops.Operations(t, 1000))
		})
	}
}

// TestEvictInOneCall compares the eviction in one call with the steps of which it
// is made.
func TestEvictInOneCall(t *testing.T) {
	o := tree.Options{Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba), SlidingWindow: 3}
	fill := func() *client.Machine {
		m, err := client.New(o, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		slot := 1
		for i := range 12 {
			key := keyOf(9)
			key.Tokens[i/4+2] += tree.Token(i)
			p := tree.InsertParams{Key: key, Slots: tree.Numbered(tree.Slot(slot), 9), MambaState: tree.SlotsOf(tree.Slot(i))}
			for s, err := m.BeginInsert(p); s.Result == nil; s, err = m.ResumeInsert() {
				if err != nil {
					t.Fatal(err)
				}
			}
			m.EndInsert()
			slot += 9
		}
		return m
	}
	for _, wanted := range []tree.Units{{5, 0, 0}, {0, 7, 0}, {0, 0, 3}, {20, 30, 4}, {1000, 1000, 1000}, {-1, 0, 0}} {
		a, b := fill(), fill()
		got, err := a.Evict(wanted)
		if err != nil {
			t.Fatal(err)
		}
		var want tree.Evicted
		add := func(e *tree.Evicted) {
			want.Freed.Add(e.Freed)
			for c := range e.Frees.Device {
				want.Frees.Device[c] = want.Frees.Device[c].Append(e.Frees.Device[c])
			}
		}
		for c := range tree.Component(tree.NumComponents) {
			if want.Freed[c] >= wanted[c] {
				continue
			}
			if err := b.EvictStart(c, wanted[c]); err != nil {
				t.Fatal(err)
			}
			for {
				s, err := b.EvictNext(c, want.Freed)
				if err != nil {
					t.Fatal(err)
				}
				add(&s.Evicted)
				if s.Node == tree.NoNode && !s.MadeProgress {
					break
				}
				if s.Node != tree.NoNode {
					leaf, err := b.EvictLeaf(s.Node, false)
					if err != nil {
						t.Fatal(err)
					}
					add(&leaf.Evicted)
				}
			}
			if err := b.EvictEnd(c); err != nil {
				t.Fatal(err)
			}
		}
		if got.Freed != want.Freed {
			t.Errorf("%v: freed %v, by steps %v", wanted, got.Freed, want.Freed)
		}
		for c := range want.Frees.Device {
			if !got.Frees.Device[c].Equal(want.Frees.Device[c]) {
				t.Errorf("%v: component %d: %v, by steps %v", wanted, c, got.Frees.Device[c], want.Frees.Device[c])
			}
		}
		if err := a.SanityCheck(nil, nil); err != nil {
			t.Error(err)
		}
	}
	m := fill()
	if err := m.EvictStart(tree.SWA, 1); err != nil {
		t.Fatal(err)
	}
	var order *tree.OrderError
	if _, err := m.Evict(tree.Units{5, 5, 0}); !errors.As(err, &order) {
		t.Errorf("with an open walk: %v", err)
	}
	if err := m.EvictEnd(tree.Full); !errors.As(err, &order) {
		t.Errorf("a walk was left open: %v", err)
	}
	if err := m.SetSwitches(tree.Switches{HostTier: true, WriteBack: true, WriteThroughThreshold: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Evict(tree.Units{5, 0, 0}); !errors.As(err, &order) {
		t.Errorf("under write-back: %v", err)
	}
}
