// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

// The worked examples below do not fit into scripts: they need numbers, many
// calls, or a look between two steps.

func onBoth(t *testing.T, o tree.Options, test func(t *testing.T, m ops.Machine)) {
	t.Helper()
	for _, kind := range machines {
		t.Run(kind.name, func(t *testing.T) {
			m, err := kind.make(o)
			if err != nil {
				t.Fatal(err)
			}
			test(t, m)
		})
	}
}

func insertAll(t *testing.T, m ops.Machine, p tree.InsertParams) *tree.InsertResult {
	t.Helper()
	step, err := m.BeginInsert(p)
	if err != nil {
		t.Fatal(err)
	}
	for step.Result == nil {
		if step, err = m.ResumeInsert(); err != nil {
			t.Fatal(err)
		}
	}
	return step.Result
}

// X-N-4: the new root's handle is larger than every earlier one, and no handle
// is ever given out again.
func TestResetNeverReusesHandles(t *testing.T) {
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		seen := map[tree.NodeID]bool{}
		var highest tree.NodeID
		for round := range 5 {
			if m.Root() <= highest {
				t.Errorf("round %d: root %d is not above %d", round, m.Root(), highest)
			}
			for i := range tree.Token(4) {
				insertAll(t, m, tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1, i, 5}}})
			}
			for _, id := range m.Nodes() {
				if seen[id] {
					t.Errorf("round %d: handle %d was given out before", round, id)
				}
				seen[id] = true
				highest = max(highest, id)
			}
			m.Reset()
		}
	})
}

// X-V-1: between COMMIT and the execution of SWARebuild the check passes: the
// leaf is a tombstone then.
func TestCheckPassesBetweenCommitAndRebuild(t *testing.T) {
	o := tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), SlidingWindow: 4}
	onBoth(t, o, func(t *testing.T, m ops.Machine) {
		step, err := m.BeginInsert(tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1, 2, 3, 4}}})
		if err != nil || step.Result != nil || len(step.Actions) != 1 {
			t.Fatalf("step %+v, %v: want a barrier with one action", step, err)
		}
		if _, ok := step.Actions[0].(tree.SWARebuild); !ok {
			t.Fatalf("action %T, want SWARebuild", step.Actions[0])
		}
		if err := m.SanityCheck(nil, nil); err != nil {
			t.Error(err)
		}
		if left := m.EndInsert(); len(left) != 0 || m.HasOngoingInsert() {
			t.Errorf("the end handed out %v", left)
		}
		if err := m.SanityCheck(nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// X-SR-7: 8192 closed sessions are remembered. Whether the first one is, shows
// in what its release does: nothing, if it is on the list.
func TestClosedSessionsAreForgottenInOrder(t *testing.T) {
	onBoth(t, tree.Options{Sessions: true}, func(t *testing.T, m ops.Machine) {
		r := insertAll(t, m, tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1, 2, 3}}})
		refs := func() int {
			info, err := m.Inspect(r.LastDeviceNode)
			if err != nil {
				t.Fatal(err)
			}
			return info.Components[tree.Full].SessionRefs
		}
		first := m.OpenSession("first")
		if err := m.RegisterSession("first", first, r.LastDeviceNode); err != nil || refs() != 1 {
			t.Fatalf("%v, %d references", err, refs())
		}
		m.ReleaseSession("first")
		if refs() != 0 {
			t.Fatalf("%d references after the release", refs())
		}
		for i := range 8192 {
			id := fmt.Sprint("s", i)
			m.OpenSession(id)
			m.ReleaseSession(id)
		}
		if err := m.RegisterSession("first", first, r.LastDeviceNode); err != nil || refs() != 0 {
			t.Errorf("a forgotten session without a generation registered: %v, %d references", err, refs())
		}
		again := m.EnsureSession("first")
		if again <= first {
			t.Errorf("the new generation %d is not above %d", again, first)
		}
		if err := m.RegisterSession("first", again, r.LastDeviceNode); err != nil || refs() != 1 {
			t.Errorf("the session that was opened anew does not register: %v, %d references", err, refs())
		}
	})
}

// N-4: the tree keeps its own copy of what it is given.
func TestCallersBuffersAreCopied(t *testing.T) {
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		tokens := []tree.Token{1, 2, 3}
		slots := tree.SlotsOf(10, 20, 30)
		insertAll(t, m, tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: slots})
		tokens[0], slots[0].First = 9, 99
		got, err := m.Match(tree.Key{Tokens: []tree.Token{1, 2, 3}})
		if err != nil || got.DeviceSlots.String() != "10,20,30" {
			t.Errorf("%v %v", got.DeviceSlots, err)
		}
		got.DeviceSlots[0].First = 77
		if again := m.FlattenFull().String(); again != "10,20,30" {
			t.Errorf("a result shares memory with the tree: %s", again)
		}
	})
}

// each kind of error can be told apart by type.
func TestErrorsAreTyped(t *testing.T) {
	onBoth(t, tree.Options{}, func(t *testing.T, m ops.Machine) {
		var access *tree.NodeAccessError
		if _, err := m.IsRoot(99); !errors.As(err, &access) || access.Node != 99 || access.Op == "" {
			t.Errorf("stale handle: %v", err)
		}
		var argument *tree.ArgumentError
		if err := m.SetComponentDeviceValue(m.Root(), tree.Full, tree.Slots{}); !errors.As(err, &argument) {
			t.Errorf("value for Full: %v", err)
		}
		var order *tree.OrderError
		if _, err := m.ResumeInsert(); !errors.As(err, &order) {
			t.Errorf("resume without an insert: %v", err)
		}
		var receipt *tree.ReceiptError
		r := insertAll(t, m, tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1}}})
		if err := m.Unlock(r.LastDeviceNode, tree.Receipt{Node: r.LastDeviceNode}, false); !errors.As(err, &receipt) {
			t.Errorf("release without a lock: %v", err)
		}
	})
}

func TestReach(t *testing.T) {
	for i, config := range ops.Mixes() {
		t.Run(config.Name(), func(t *testing.T) {
			ops.ReachTest(t, newCore, config, uint64(i+401), ops.Operations(t, 300))
		})
	}
}
