// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// swaOffset is what the rig adds to a Full slot to name its SWA partner.
const swaOffset = 1_000_000

// rig drives an oracle as a controller would: it executes actions. After each
// of its calls the consistency check must pass (X-V-1).
type rig struct {
	*Oracle
	t *testing.T
	// transcript holds the actions of the last insert, one string a step.
	transcript []string
	// lastHost counts host slots; loads are the load backs under way.
	lastHost tree.Slot
	loads    []tree.InFlight
}

func newRig(t *testing.T, options tree.Options) *rig {
	t.Helper()
	o, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return &rig{Oracle: o, t: t}
}

func full(page int) tree.Options { return tree.Options{PageSize: page} }

func withSWA(page, window int) tree.Options {
	return tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), PageSize: page, SlidingWindow: window}
}

func withMamba(page, grid int) tree.Options {
	return tree.Options{Components: tree.SetOf(tree.Full, tree.Mamba), PageSize: page, CheckpointGrid: grid}
}

func withAll(page, window, grid int) tree.Options {
	return tree.Options{Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba), PageSize: page, SlidingWindow: window, CheckpointGrid: grid}
}

// key builds a key from single tokens and pairs "first, -last".
func key(tokens ...int) tree.Key {
	var list []tree.Token
	for _, t := range tokens {
		if t >= 0 {
			list = append(list, tree.Token(t))
			continue
		}
		for next := int(list[len(list)-1]) + 1; next <= -t; next++ {
			list = append(list, tree.Token(next))
		}
	}
	return tree.Key{Tokens: list}
}

// slots names slots as key names tokens.
func slots(numbers ...int) tree.Slots {
	var list []tree.Slot
	for _, t := range key(numbers...).Tokens {
		list = append(list, tree.Slot(t))
	}
	return tree.SlotsOf(list...)
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("unexpected error: %v", err)
	}
}

func (r *rig) sane() {
	r.t.Helper()
	r.ok(r.SanityCheck(nil, r.loads))
}

func (r *rig) equal(what string, got, want any) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.t.Fatalf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// fails checks that err is of the kind of want, a pointer to a nil error.
func fails[E error](r *rig, what string, err error) E {
	r.t.Helper()
	e, is := err.(E)
	if !is {
		r.t.Fatalf("%s: got %T %v, want %T", what, err, err, e)
	}
	return e
}

func draw(a tree.Action) string {
	switch a := a.(type) {
	case tree.FreeDeviceKV:
		return fmt.Sprintf("free(%v)", a.Slots)
	case tree.FreeDeviceKVFullOnly:
		return fmt.Sprintf("free-full(%v)", a.Slots)
	case tree.SWARebuild:
		return fmt.Sprintf("rebuild(%d,%v)", a.Node, a.Full)
	case tree.RecoverSWAWithLockedFull:
		return fmt.Sprintf("recover(%d,%v,%v)", a.Node, a.Kept, a.Incoming)
	case tree.MambaEvictExcessPathStates:
		return fmt.Sprintf("cap(%d)", a.Tail)
	case tree.BackupKV:
		return fmt.Sprintf("backup(%v,%d,%v)", a.Nodes, a.KeyLen, a.EndsAtPrompt)
	case tree.ReplaceWriteThroughOnNodeSplit:
		return fmt.Sprintf("replace(%d,%d,%d,%d)", a.Ack, a.Old, a.New, a.Child)
	}
	return fmt.Sprintf("%T", a)
}

func drawAll(actions []tree.Action) string {
	var list []string
	for _, a := range actions {
		list = append(list, draw(a))
	}
	return strings.Join(list, " ")
}

// execute does what an action asks for, as far as it concerns the tree.
func (r *rig) execute(a tree.Action) {
	r.t.Helper()
	partners := func(s tree.Slots) tree.Slots {
		numbers, err := s.Numbers()
		r.ok(err)
		for i := range numbers {
			numbers[i] += swaOffset
		}
		return tree.SlotsOf(numbers...)
	}
	switch a := a.(type) {
	case tree.SWARebuild:
		r.ok(r.SetComponentDeviceValue(a.Node, tree.SWA, partners(a.Full)))
	case tree.RecoverSWAWithLockedFull:
		r.ok(r.SetComponentDeviceValue(a.Node, tree.SWA, partners(a.Incoming)))
	case tree.MambaEvictExcessPathStates:
		_, err := r.EvictExcessPathStates(a.Tail)
		r.ok(err)
	}
}

// insert runs an insert to its end and executes all of its actions.
func (r *rig) insert(p tree.InsertParams) *tree.InsertResult {
	r.t.Helper()
	r.transcript = nil
	step, err := r.BeginInsert(p)
	for {
		r.ok(err)
		r.sane()
		r.transcript = append(r.transcript, drawAll(step.Actions))
		r.equal("suspended", r.HasOngoingInsert(), step.Result == nil)
		for _, a := range step.Actions {
			r.execute(a)
		}
		r.sane()
		if step.Result != nil {
			return step.Result
		}
		step, err = r.ResumeInsert()
	}
}

func (r *rig) match(k tree.Key) tree.MatchResult {
	r.t.Helper()
	m, err := r.Match(k)
	r.ok(err)
	r.sane()
	return m
}

func (r *rig) lock(id tree.NodeID, skip ...tree.Component) tree.Receipt {
	r.t.Helper()
	receipt, err := r.Lock(id, tree.SetOf(skip...))
	r.ok(err)
	r.sane()
	return receipt
}

func (r *rig) unlock(receipt tree.Receipt, skipSWA bool) {
	r.t.Helper()
	r.ok(r.Unlock(receipt.Node, receipt, skipSWA))
	r.sane()
}

// evict runs a whole walk and returns the totals and the ids of the leaves
// that it deleted or demoted.
func (r *rig) evict(c tree.Component, n int) (total tree.Evicted, leaves []tree.NodeID) {
	r.t.Helper()
	r.ok(r.EvictStart(c, n))
	add := func(e tree.Evicted) {
		for _, c := range allComponents {
			total.Freed[c] += e.Freed[c]
			total.Frees.Device[c] = total.Frees.Device[c].Append(e.Frees.Device[c])
			total.Frees.Host[c] = total.Frees.Host[c].Append(e.Frees.Host[c])
		}
		total.Unbacked += e.Unbacked
		r.sane()
	}
	for {
		step, err := r.EvictNext(c, total.Freed)
		r.ok(err)
		add(step.Evicted)
		if step.Node != tree.NoNode {
			leaf, err := r.EvictLeaf(step.Node, r.switches.WriteBack)
			r.ok(err)
			add(leaf.Evicted)
			leaves = append(leaves, step.Node)
		} else if !step.MadeProgress {
			break
		}
	}
	r.ok(r.EvictEnd(c))
	r.sane()
	return total, leaves
}

// node returns the id of the first node whose key spans these raw tokens.
func (r *rig) node(tokens ...int) tree.NodeID {
	r.t.Helper()
	want := key(tokens...).Tokens
	for _, n := range r.preorder() {
		if n != r.root && reflect.DeepEqual(r.rawTokens(n.key), want) {
			return n.id
		}
	}
	r.t.Fatalf("no node %v in\n%s", want, r.shape())
	return tree.NoNode
}

// at returns that node itself.
func (r *rig) at(tokens ...int) *node { r.t.Helper(); return r.nodes[r.node(tokens...)] }

// shape draws the tree, one node a line: tokens, values, and lock counts where
// there are any (full/swa/mamba).
func (r *rig) shape() string {
	var lines []string
	for _, n := range r.preorder() {
		if n == r.root {
			continue
		}
		line := strings.Repeat(".", len(r.pathUp(n))-1) + span(r.rawTokens(n.key))
		for _, c := range r.components {
			line += fmt.Sprintf(" %c=%v", "FSM"[c], runs(n.device[c]))
			if n.host[c] != nil {
				line += fmt.Sprintf("/%v", runs(n.host[c]))
			}
		}
		if n.locks != [tree.NumComponents]int{} {
			line += fmt.Sprintf(" L%d/%d/%d", n.locks[0], n.locks[1], n.locks[2])
		}
		if n.swaBoundary != 0 {
			line += fmt.Sprintf(" u%d", n.swaBoundary)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func span(tokens []tree.Token) string {
	var list []tree.Slot
	for _, t := range tokens {
		list = append(list, tree.Slot(t))
	}
	return tree.SlotsOf(list...).String()
}

func (r *rig) looks(lines ...string) {
	r.t.Helper()
	if want := strings.Join(lines, "\n"); r.shape() != want {
		r.t.Fatalf("the tree is\n%s\nbut should be\n%s", r.shape(), want)
	}
}

// sizes returns evictable/protected of a component.
func (r *rig) sizes(c tree.Component) string {
	return fmt.Sprintf("%d/%d", r.EvictableSize(c), r.ProtectedSize(c))
}

func (r *rig) order(c tree.Component) []tree.NodeID { return r.RecencyOrder(c, false) }

// dropValue drops a device value by hand.
func (r *rig) dropValue(n *node, c tree.Component) {
	var out dropped
	r.dropDevice(n, c, &out)
}
