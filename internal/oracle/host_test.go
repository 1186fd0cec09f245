// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestIncrementalBackup(t *testing.T) { // I-34, BK-4
	for _, c := range []struct {
		name      string
		switches  tree.Switches
		pending   int64
		host      []tree.Component // what is on the host before the insert
		wantAsked bool
	}{
		{"no host tier", tree.Switches{}, 0, []tree.Component{tree.Full}, false},
		{"X-BK-17: state on the device only", tree.Switches{HostTier: true}, 0, []tree.Component{tree.Full}, true},
		{"not backed up", tree.Switches{HostTier: true}, 0, nil, false},
		{"X-BK-14: pending", tree.Switches{HostTier: true}, 9, []tree.Component{tree.Full}, false},
		{"X-BK-15: write-back, no SWA host pool", tree.Switches{HostTier: true, WriteBack: true}, 0, []tree.Component{tree.Full}, false},
		{"X-BK-16: write-back, window on the device only", tree.Switches{HostTier: true, WriteBack: true, SWAHostPool: true}, 0, []tree.Component{tree.Full}, true},
		{"everything on the host", tree.Switches{HostTier: true, SWAHostPool: true}, 0, allComponents, false},
		{"buffer only", tree.Switches{HostTier: true, HostBufferOnly: true}, 0, []tree.Component{tree.Full}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, withAll(1, 4, 1))
			c.switches.WriteThroughThreshold = 99
			r.ok(r.SetSwitches(c.switches))
			id := r.insert(tree.InsertParams{Key: key(1, 2), MambaState: slots(70)}).LastDeviceNode
			for _, component := range c.host {
				length := 2
				if component == tree.Mamba {
					length = 1
				}
				r.ok(r.SetHostValue(id, component, tree.Numbered(100, length)))
			}
			r.ok(r.SetPending(id, c.pending))
			r.insert(tree.InsertParams{Key: key(1, 2), MambaState: slots(71), PrevPrefixLen: 2})
			want := []string{""}
			if c.wantAsked {
				want = []string{"backup([2],2,true)"}
			}
			r.equal("steps", r.transcript, want)
		})
	}
}

func TestBackupChain(t *testing.T) { // I-26, I-28
	r := newRig(t, full(1))
	r.ok(r.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 2}))
	r.insert(tree.InsertParams{Key: key(1, 2)})
	r.ok(r.SetHostValue(r.node(1, 2), tree.Full, slots(101, 102)))
	r.insert(tree.InsertParams{Key: key(1, -3), PrevPrefixLen: 2})
	r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 3, Chunked: true})
	r.at(3).hits = 0
	r.at(4).hits = 1
	r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 4})
	r.equal("steps", r.transcript, []string{"backup([3 4],4,true)", ""})
}

func TestDropWithHostValues(t *testing.T) {
	r := newRig(t, withSWA(1, 4))
	a := r.insert(tree.InsertParams{Key: key(1, 2)}).LastDeviceNode
	b := r.insert(tree.InsertParams{Key: key(1, -4), PrevPrefixLen: 2}).LastDeviceNode
	r.ok(r.SetHostValue(b, tree.SWA, slots(31, 32)))
	r.ok(r.SetHostValue(b, tree.Full, slots(41, 42)))
	_, err := r.Demote(b)
	r.ok(err)
	before := r.shape()
	_, err = r.EvictLeaf(a, false) // E-20: its child is on the host
	fails[*tree.OrderError](r, "children on the host", err)
	r.equal("tree", r.shape(), before)

	r = newRig(t, withSWA(1, 4)) // E-22: device units count, host slots go along
	a = r.insert(tree.InsertParams{Key: key(1, 2), Slots: slots(11, 12)}).LastDeviceNode
	r.ok(r.SetHostValue(a, tree.SWA, slots(31, 32)))
	result, err := r.EvictLeaf(a, false)
	r.ok(err)
	r.sane()
	r.equal("evicted", result.Evicted, tree.Evicted{
		Frees:    tree.Frees{Device: [3]tree.Slots{slots(11, 12), slots(11, 12)}, Host: [3]tree.Slots{tree.SWA: slots(31, 32)}},
		Freed:    tree.Units{2, 2, 0},
		Unbacked: 2,
	})
}

func TestReleaseWindowLock(t *testing.T) { // L-21
	r, _, _, c := abc(t)
	receipt := r.lock(c)
	_, err := r.ReleaseWindowLock(c, tree.SWA, receipt)
	r.ok(err)
	r.sane()
	r.equal("locks", r.nodes[c].locks, [3]int{1, 0, 0})
	_, err = r.ReleaseWindowLock(c, tree.SWA, receipt)
	fails[*tree.ReceiptError](r, "twice", err)
	got, err := r.ReleaseWindowLock(r.Root(), tree.SWA, tree.Receipt{Node: r.Root()})
	r.ok(err)
	r.equal("root", got, tree.Evicted{})
	r.unlock(receipt, true)
}

func TestDroppedCandidate(t *testing.T) { // E-13: a leaf found locked is dropped for good
	r := newRig(t, full(1))
	r.add(1)
	leaf := r.node(1)
	r.ok(r.EvictStart(tree.Full, 1))
	r.ok(r.PinFull(leaf))
	step, err := r.EvictNext(tree.Full, tree.Units{})
	r.ok(err)
	r.equal("locked", step, tree.EvictStep{})
	r.ok(r.UnpinFull(leaf))
	step, err = r.EvictNext(tree.Full, tree.Units{})
	r.ok(err)
	r.equal("unlocked again", step, tree.EvictStep{})
	r.ok(r.EvictEnd(tree.Full))
}
