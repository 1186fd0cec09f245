// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// abc builds A[1..3] > B[4..6] > C[7..8], all with SWA, W=4.
func abc(t *testing.T) (r *rig, a, b, c tree.NodeID) {
	r = newRig(t, withSWA(1, 4))
	for _, end := range []int{3, 6, 8} {
		r.insert(tree.InsertParams{Key: key(1, -end), Slots: slots(0, -(end - 1)), PrevPrefixLen: end})
	}
	r.looks("1..3 F=0..2 S=1000000..1000002", ".4..6 F=3..5 S=1000003..1000005", "..7..8 F=6..7 S=1000006..1000007")
	return r, r.node(1, -3), r.node(4, -6), r.node(7, 8)
}

// lockCounts returns the locks of a component on the path down to id.
func (r *rig) lockCounts(c tree.Component, id tree.NodeID) []int {
	var counts []int
	for _, n := range r.pathUp(r.nodes[id]) {
		counts = append([]int{n.locks[c]}, counts...)
	}
	return counts
}

func TestLockSegments(t *testing.T) {
	r, _, b, c := abc(t)
	first := r.lock(c) // X-L-1
	r.equal("receipt", first, tree.Receipt{Node: c, Boundary: [3]uint64{tree.SWA: 1}, Delta: 8})
	r.equal("locks", [][]int{r.lockCounts(tree.Full, c), r.lockCounts(tree.SWA, c)}, [][]int{{1, 1, 1}, {0, 1, 1}})
	r.equal("boundary", r.nodes[b].swaBoundary, uint64(1))
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"0/8", "3/5"})

	second := r.lock(c) // X-L-2
	r.equal("receipt", second, tree.Receipt{Node: c, Boundary: [3]uint64{tree.SWA: 1}})
	r.equal("locks", [][]int{r.lockCounts(tree.Full, c), r.lockCounts(tree.SWA, c)}, [][]int{{2, 2, 2}, {0, 2, 2}})
	r.unlock(second, false)
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"0/8", "3/5"})

	before := r.shape()
	fails[*tree.ReceiptError](r, "X-L-7", r.Unlock(b, first, false))
	r.equal("X-L-7", r.shape(), before)

	r.match(key(1, -5)) // X-L-5
	r.equal("boundary", []uint64{r.at(4, 5).swaBoundary, r.at(6).swaBoundary}, []uint64{1, 0})
	r.equal("locks", r.lockCounts(tree.SWA, c), []int{0, 1, 1, 1})
	r.unlock(first, false)
	r.equal("locks", [][]int{r.lockCounts(tree.Full, c), r.lockCounts(tree.SWA, c)}, [][]int{{0, 0, 0, 0}, {0, 0, 0, 0}})

	before = r.shape()
	fails[*tree.ReceiptError](r, "released twice", r.Unlock(c, first, false)) // L-14
	r.equal("released twice", r.shape(), before)
}

func TestLockTombstone(t *testing.T) { // X-L-3
	r, _, b, c := abc(t)
	r.dropValue(r.nodes[b], tree.SWA)
	receipt := r.lock(c)
	r.equal("locks", r.lockCounts(tree.SWA, c), []int{0, 1, 1})
	r.equal("sizes", r.sizes(tree.SWA), "3/2")
	r.ok(r.SetComponentDeviceValue(b, tree.SWA, slots(3, -5)))
	r.equal("sizes", r.sizes(tree.SWA), "3/5")
	r.unlock(receipt, false)
	r.equal("sizes", r.sizes(tree.SWA), "8/0")
}

func TestLockToTheRoot(t *testing.T) { // X-L-4
	r, a, _, _ := abc(t)
	receipt := r.lock(a)
	r.equal("receipt", receipt, tree.Receipt{Node: a, Delta: 3})
	r.equal("locks", r.lockCounts(tree.SWA, a), []int{1})
	r.unlock(receipt, false)
	r.equal("locks", r.lockCounts(tree.SWA, a), []int{0})
}

func TestEarlyRelease(t *testing.T) { // X-L-6
	r, _, b, c := abc(t)
	receipt := r.lock(c)
	got, err := r.ReleaseSWALock(c, receipt)
	r.ok(err)
	r.sane()
	r.equal("frees", got, tree.Evicted{})
	r.equal("locks", [][]int{r.lockCounts(tree.Full, c), r.lockCounts(tree.SWA, c)}, [][]int{{1, 1, 1}, {0, 0, 0}})
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"0/8", "8/0"})
	r.equal("list", []bool{r.device[tree.SWA].contains(r.nodes[b]), r.device[tree.SWA].contains(r.nodes[c])}, []bool{true, true})
	_, err = r.ReleaseSWALock(c, receipt)
	fails[*tree.ReceiptError](r, "twice", err)
	r.unlock(receipt, true)
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"8/0", "8/0"})

	// L-18: a node that is a D-leaf at that moment loses its window.
	r.ok(r.UnpinFull(r.lock(c).Node)) // no regular sequence of calls does this
	receipt = tree.Receipt{Node: c, Boundary: [3]uint64{tree.SWA: 1}}
	got, err = r.ReleaseSWALock(c, receipt)
	r.ok(err)
	r.sane()
	r.equal("frees", got.Frees.Device[tree.SWA], slots(6, 7))
	r.equal("freed", got.Freed, tree.Units{tree.SWA: 2})
}

func TestEarlyReleaseWithMamba(t *testing.T) {
	build := func() (*rig, tree.NodeID) {
		r := newRig(t, withAll(1, 8, 1))
		r.insert(tree.InsertParams{Key: key(1, -8), MambaState: slots(70)})
		return r, r.node(1, -8)
	}
	r, a := build() // X-L-8
	receipt := r.lock(a)
	r.equal("locks", r.nodes[a].locks, [3]int{1, 1, 1})
	_, err := r.ReleaseSWALock(a, receipt)
	r.ok(err)
	r.equal("X-L-8", r.nodes[a].locks, [3]int{1, 0, 0})

	r, a = build() // X-L-9
	other := r.lock(a)
	receipt = r.lock(a, tree.Mamba)
	_, err = r.ReleaseSWALock(a, receipt)
	r.ok(err)
	r.equal("X-L-9", r.nodes[a].locks, [3]int{2, 1, 1})
	_, err = r.ReleaseWindowLock(a, tree.SWA, other)
	fails[*tree.ArgumentError](r, "mamba was taken (L-21)", err)
	_, err = r.ReleaseWindowLock(a, tree.Mamba, other)
	fails[*tree.ArgumentError](r, "no window lock (L-21)", err)

	// L-2.
	for _, skip := range []tree.ComponentSet{tree.SetOf(tree.Full), tree.SetOf(tree.SWA), tree.SetOf(tree.Full, tree.Mamba)} {
		_, err = r.Lock(a, skip)
		fails[*tree.ArgumentError](r, "skip", err)
	}
}

func TestPins(t *testing.T) { // X-L-10
	r, _, _, c := abc(t)
	r.ok(r.PinFull(c))
	receipt := r.lock(c)
	r.equal("locks", r.nodes[c].locks, [3]int{2, 1, 0})
	r.ok(r.UnpinFull(c))
	r.equal("locks", r.nodes[c].locks, [3]int{1, 1, 0})
	r.unlock(receipt, false)
	fails[*tree.ReceiptError](r, "unpaired", r.UnpinFull(c))
}

func TestLockPages(t *testing.T) {
	r := newRig(t, withSWA(4, 6)) // X-L-11
	r.insert(tree.InsertParams{Key: key(1, -16)})
	l := r.node(9, -16)
	receipt := r.lock(l)
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"0/16", "8/8"})
	r.equal("boundary", r.nodes[l].swaBoundary, receipt.Boundary[tree.SWA])
	r.match(key(1, -12))
	r.equal("boundary", r.at(9, -12).swaBoundary, receipt.Boundary[tree.SWA])
	r.equal("locks", r.lockCounts(tree.SWA, l), []int{0, 1, 1})
	r.unlock(receipt, false)
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"16/0", "16/0"})

	r = newRig(t, withSWA(4, 6)) // X-L-12
	r.insert(tree.InsertParams{Key: key(1, -4)})
	r.equal("boundary", r.lock(r.node(1, -4)).Boundary[tree.SWA], uint64(0))
}

func TestLockedRecovery(t *testing.T) { // X-L-13
	r := newRig(t, withSWA(4, 4))
	r.insert(tree.InsertParams{Key: key(1, -12), Slots: slots(0, -11), SWAEvictedLen: 8})
	a := r.node(1, -8)
	receipt := r.lock(a)
	r.equal("boundary", r.nodes[a].swaBoundary, receipt.Boundary[tree.SWA])
	r.equal("sizes", []string{r.sizes(tree.Full), r.sizes(tree.SWA)}, []string{"4/8", "4/0"})
	r.insert(tree.InsertParams{Key: key(1, -8), Slots: slots(100, -107), SWAEvictedLen: 4})
	r.equal("steps", r.transcript, []string{"recover(3,4..7,104..107) free-full(100..103)", ""})
	r.looks("1..4 F=0..3 S=- L1/1/0 u1", ".5..8 F=4..7 S=1000104..1000107 L1/1/0", "..9..12 F=8..11 S=1000008..1000011")
	r.equal("sizes", r.sizes(tree.SWA), "4/4")
	r.unlock(receipt, false)
	r.equal("sizes", r.sizes(tree.SWA), "8/0")
}

func TestLockAllComponents(t *testing.T) { // X-L-14
	r := newRig(t, withAll(1, 4, 1))
	r.insert(tree.InsertParams{Key: key(1, -8), MambaState: slots(70)})
	l := r.node(5, -8)
	sizes := func() []string { return []string{r.sizes(tree.Full), r.sizes(tree.SWA), r.sizes(tree.Mamba)} }
	receipt := r.lock(l)
	r.equal("locked", sizes(), []string{"0/8", "4/4", "0/1"})
	_, err := r.ReleaseSWALock(l, receipt)
	r.ok(err)
	r.equal("early", sizes(), []string{"0/8", "8/0", "1/0"})
	r.unlock(receipt, true)
	r.equal("released", sizes(), []string{"8/0", "8/0", "1/0"})
	r.lock(l, tree.Mamba)
	r.equal("mamba skipped", sizes(), []string{"0/8", "4/4", "1/0"})
}

func TestLockRoot(t *testing.T) { // L-3, L-12
	r, _, _, _ := abc(t)
	before := r.shape()
	receipt := r.lock(r.Root())
	r.equal("receipt", receipt, tree.Receipt{Node: r.Root()})
	r.unlock(receipt, false)
	r.ok(r.UnpinFull(r.Root()))
	r.equal("tree", r.shape(), before)
}

func TestReceiptMissingBoundary(t *testing.T) { // L-14
	r, _, _, c := abc(t)
	receipt := r.lock(c)
	before := r.shape()
	receipt.Boundary[tree.SWA] = 77
	fails[*tree.ReceiptError](r, "unknown boundary", r.Unlock(c, receipt, false))
	receipt.Boundary[tree.SWA] = 0 // to the root, but A has no SWA lock
	fails[*tree.ReceiptError](r, "no boundary", r.Unlock(c, receipt, false))
	r.equal("tree", r.shape(), before)
}

func TestSplit(t *testing.T) {
	r := newRig(t, withSWA(1, 4)) // X-S-1
	r.insert(tree.InsertParams{Key: key(1, -6), Slots: slots(0, -5), SWAEvictedLen: 6})
	r.ok(r.SetComponentDeviceValue(r.node(1, -6), tree.SWA, slots(50, -55)))
	r.ok(r.PinFull(r.node(1, -6)))
	r.lock(r.node(1, -6))
	r.match(key(1, 2))
	r.sane()
	r.looks("1..2 F=0..1 S=50..51 L2/1/0 u1", ".3..6 F=2..5 S=52..55 L2/1/0")

	r = newRig(t, withMamba(1, 1)) // X-S-2
	r.insert(tree.InsertParams{Key: key(1, -6), Slots: slots(0, -5), MambaState: slots(70)})
	r.lock(r.node(1, -6))
	r.match(key(1, -3))
	r.looks("1..3 F=0..2 M=- L1/0/0", ".4..6 F=3..5 M=70 L1/0/1")

	r = newRig(t, withSWA(1, 4)) // X-S-3
	for _, tokens := range [][]int{{31}, {11, -14}, {21}} {
		r.insert(tree.InsertParams{Key: key(tokens...)})
	}
	x, n, y := r.node(21), r.node(11, -14), r.node(31)
	r.equal("before", r.order(tree.SWA), []tree.NodeID{x, n, y})
	r.match(key(11, 12, 99)) // refuses nothing: the path has no gap
	prefix := r.node(11, 12)
	r.equal("prefix moved by the match", r.order(tree.SWA), []tree.NodeID{prefix, x, n, y})
	r.split(r.nodes[n], 1)
	r.equal("X-S-3", r.order(tree.SWA), []tree.NodeID{prefix, x, n, r.node(13), y})

	r = newRig(t, full(4)) // X-S-4
	r.ok(r.SetSwitches(tree.Switches{Storage: true, WriteThroughThreshold: 1}))
	r.insert(tree.InsertParams{Key: key(1, -12)})
	whole, err := r.Hashes(r.node(1, -12))
	r.ok(err)
	r.match(key(1, -8))
	head, err := r.Hashes(r.node(1, -8))
	r.ok(err)
	tail, err := r.Hashes(r.node(9, -12))
	r.ok(err)
	r.equal("X-S-4", [][]tree.Digest{head, tail}, [][]tree.Digest{whole[:2], whole[2:]})
}
