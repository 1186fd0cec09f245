// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// lockedPath is the path of X-HL-1: A(4) S on the host, B(2) without, C(3) S on
// the host.
func lockedPath(t *testing.T) (r *rig, a, b, c tree.NodeID) {
	r = hostRig(t, withAll(1, 4, 1), false)
	n := r.chain(4, 2, 3)
	r.setHost(n[0], tree.Full, tree.SWA)
	r.setHost(n[1], tree.Full)
	r.setHost(n[2], tree.Full, tree.SWA)
	r.demote(n[2], n[1], n[0])
	return r, n[0], n[1], n[2]
}

func (r *rig) lockHostOf(id tree.NodeID) tree.Receipt {
	r.t.Helper()
	receipt, err := r.LockHost(id)
	r.ok(err)
	r.sane()
	return receipt
}

func (r *rig) hostLocksOf(nodes ...tree.NodeID) [][3]int {
	var counts [][3]int
	for _, id := range nodes {
		counts = append(counts, r.nodes[id].hostLocks)
	}
	return counts
}

func TestLockHost(t *testing.T) {
	r, a, b, c := lockedPath(t)
	r.equal("before", r.hostOrder(tree.SWA), ids(a, c))
	receipt := r.lockHostOf(c)
	r.equal("X-HL-1", receipt, tree.Receipt{Node: c, HostBound: [3]uint64{1, 2, 0}})
	r.equal("X-HL-1", r.hostLocksOf(a, b, c), [][3]int{{0, 0, 0}, {0, 1, 0}, {1, 1, 1}})
	r.equal("X-HL-1", r.nodes[b].hostBoundary[tree.SWA], uint64(2))
	r.equal("HL-2", r.hostOrder(tree.SWA), ids(a))
	r.equal("HL-4", r.IsHostEvictableLeaf(c), false)

	r.setHost(b, tree.SWA)
	r.sane()
	r.equal("X-HL-2", r.hostOrder(tree.SWA), ids(a))
	r.ok(r.UnlockHost(c, receipt))
	r.sane()
	r.equal("X-HL-2", r.hostLocksOf(a, b, c), make([][3]int, 3))
	r.equal("X-HL-2: the topmost ends most recent", r.hostOrder(tree.SWA), ids(b, c, a))
	fails[*tree.ReceiptError](r, "twice", r.UnlockHost(c, receipt))

	again := r.lockHostOf(c)
	r.equal("marks are kept", again.HostBound, receipt.HostBound)
	fails[*tree.ReceiptError](r, "another node", r.UnlockHost(b, again))
	wrong := again
	wrong.HostBound[tree.SWA] = 99
	fails[*tree.ReceiptError](r, "unknown mark", r.UnlockHost(c, wrong))
	wrong = again
	wrong.HostBound[tree.Full] = 99
	fails[*tree.ReceiptError](r, "unknown mark", r.UnlockHost(c, wrong))
	again.Node = tree.NoNode
	r.ok(r.UnlockHost(c, again))

	root := r.lockHostOf(r.Root())
	r.equal("root", root, tree.Receipt{Node: r.Root()})
	r.ok(r.UnlockHost(r.Root(), root))
	_, err := r.LockHost(999)
	fails[*tree.NodeAccessError](r, "stale", err)
	r.equal("up to the root", r.lockHostOf(r.chain(2)[0]).HostBound[tree.SWA], uint64(0))
}

func TestLockHostOfDeviceOnly(t *testing.T) {
	r := hostRig(t, withSWA(1, 4), false)
	a := r.chain(2)[0]
	receipt := r.lockHostOf(a)
	r.equal("X-HL-3", receipt, tree.Receipt{Node: a, Skipped: tree.SetOf(tree.Full)})
	r.backup(a)
	r.ok(r.UnlockHost(a, receipt))
	r.equal("X-HL-3", r.nodes[a].hostLocks, [3]int{})

	r = hostRig(t, withSWA(1, 4), true)
	a = r.chain(2)[0]
	receipt = r.lockHostOf(a)
	r.equal("X-HL-4", receipt, tree.Receipt{Node: a, HostBound: [3]uint64{1, 0, 0}})
	r.equal("X-HL-4", r.nodes[a].hostLocks, [3]int{1, 1, 0})
}

func TestSplitUnderHostLock(t *testing.T) { // ND-16
	r := hostRig(t, withAll(1, 4, 1), false)
	n := r.chain(4)[0]
	r.setHost(n, tree.Full, tree.SWA, tree.Mamba)
	r.demote(n)
	receipt := r.lockHostOf(n)
	r.match(key(1, 2, 99))
	prefix := r.node(1, 2)
	r.equal("locks", r.hostLocksOf(prefix, n), [][3]int{{1, 1, 0}, {1, 1, 1}})
	r.equal("marks", [][3]uint64{r.nodes[prefix].hostBoundary, r.nodes[n].hostBoundary}, [][3]uint64{receipt.HostBound, {}})
	second := r.lockHostOf(n)
	r.equal("full has a new mark, the window ends where it did", second.HostBound, [3]uint64{3, 2, 0})
	r.ok(r.UnlockHost(n, receipt))
	r.sane()
	r.equal("locks", r.hostLocksOf(prefix, n), [][3]int{{0, 1, 0}, {1, 1, 1}})
	r.ok(r.UnlockHost(n, second))
	r.sane()
	r.equal("list", r.hostOrder(tree.SWA), ids(prefix, n))
}
