// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

var components = []tree.Component{tree.Full, tree.SWA, tree.Mamba}

// backup is a backup in flight, loadBack a load back.
type backup struct {
	ack     int64
	publish []tree.NodeID
	receipt tree.Receipt
}

type loadBack struct {
	best         tree.NodeID
	device, host tree.Receipt
}

// twins tells the same to two machines, as a controller of the host tier
// would, and fails if they answer differently, find themselves inconsistent, or
// lose host slots.
type twins struct {
	t        *testing.T
	random   *rand.Rand
	machines [2]ops.HostMachine
	options  tree.Options
	switches tree.Switches
	log      []string

	next      tree.Slot
	held      [tree.NumComponents]int // host slots that the tree holds
	writes    []*backup
	loads     []*loadBack
	locks     []tree.Receipt
	hostLocks []tree.Receipt
}

func (w *twins) has(c tree.Component) bool { return w.options.Components.Has(c) }

func (w *twins) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter\n%v", fmt.Sprintf(format, args...), w.log[max(0, len(w.log)-25):])
}

// ask asks both machines; errors are compared by their kind.
func ask[R any](w *twins, what string, question func(m ops.HostMachine) (R, error)) (R, error) {
	w.t.Helper()
	var answers [2]R
	var errs [2]error
	var texts [2]string
	for i, m := range w.machines {
		answers[i], errs[i] = question(m)
		texts[i] = fmt.Sprintf("%s %T", draw(answers[i]), errs[i])
	}
	w.log = append(w.log, what+": "+texts[0]+"\n")
	if texts[0] != texts[1] {
		w.fail("%s:\n%s %v\n%s %v", what, texts[0], errs[0], texts[1], errs[1])
	}
	return answers[0], errs[0]
}

// must asks a question that has to be answered.
func must[R any](w *twins, what string, question func(m ops.HostMachine) (R, error)) R {
	w.t.Helper()
	answer, err := ask(w, what, question)
	if err != nil {
		w.fail("%s: %v", what, err)
	}
	return answer
}

// done makes an error an answer for ask and must.
func done(err error) (struct{}, error) { return struct{}{}, err }

// draw prints what pointers point at, and an absent list like an empty one.
func draw(v any) string {
	switch v := v.(type) {
	case tree.EvictLeafResult:
		if v.Backup != nil {
			return fmt.Sprintf("%+v %+v", v.Evicted, *v.Backup)
		}
		return fmt.Sprintf("%+v", v.Evicted)
	case tree.InsertStep:
		text := ""
		for _, a := range v.Actions {
			text += fmt.Sprintf("%T%+v ", a, a)
		}
		if v.Result != nil {
			text += fmt.Sprintf("%+v", *v.Result)
		}
		return text
	case []tree.Action:
		text := ""
		for _, a := range v {
			text += fmt.Sprintf("%T%+v ", a, a)
		}
		return text
	}
	return fmt.Sprintf("%+v", v)
}

// check compares what can be seen of the machines.
func (w *twins) check() {
	w.t.Helper()
	var writing, loading []tree.InFlight
	for _, b := range w.writes {
		writing = append(writing, tree.InFlight{ID: b.ack, Node: tree.NodeID(b.ack)})
	}
	for _, l := range w.loads {
		loading = append(loading, tree.InFlight{ID: int64(l.best), Node: l.best})
	}
	var texts [2]string
	for i, m := range w.machines {
		if err := m.SanityCheck(writing, loading); err != nil {
			w.fail("machine %d: %v", i, err)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%v %v %v\n", m.HostDuplicates(), m.ReclaimDigest(), m.TakeEvents())
		held := [tree.NumComponents]int{}
		for _, id := range m.Nodes() {
			info, err := m.Inspect(id)
			if err != nil {
				w.fail("%v", err)
			}
			last, hashed, _ := m.LastHash(id)
			fmt.Fprintf(&text, "%+v %v%x %v\n", info, hashed, last[:2], m.IsHostEvictableLeaf(id))
			for c := range held {
				held[c] += info.Components[c].Host.Len()
			}
		}
		if held != w.held {
			w.fail("machine %d holds %v host slots, not %v", i, held, w.held)
		}
		for _, c := range components {
			fmt.Fprintf(&text, "%v %v %d %d\n", m.RecencyOrder(c, false), m.RecencyOrder(c, true), m.EvictableSize(c), m.ProtectedSize(c))
		}
		texts[i] = text.String()
	}
	if texts[0] != texts[1] {
		first, second := strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")
		for i := range min(len(first), len(second)) {
			if first[i] != second[i] {
				w.fail("the machines differ:\n%s\n%s", first[i], second[i])
			}
		}
		w.fail("the machines have %d and %d lines to show", len(first), len(second))
	}
}

func (w *twins) slots(n int) tree.Slots {
	w.next += tree.Slot(n)
	return tree.Numbered(w.next-tree.Slot(n), n)
}

func (w *twins) freed(f tree.Frees) {
	for c := range w.held {
		w.held[c] -= f.Host[c].Len()
	}
}

func (w *twins) key() tree.Key {
	var k tree.Key
	length := w.random.Intn(24)
	for len(k.Tokens) < length {
		token := tree.Token(w.random.Intn(2))
		for range w.options.PageSize {
			k.Tokens = append(k.Tokens, token)
		}
	}
	if w.random.Intn(5) == 0 {
		k.Namespace.Salt = "x"
	}
	return k
}

func (w *twins) node() tree.NodeID {
	nodes := w.machines[0].Nodes()
	return nodes[w.random.Intn(len(nodes))]
}

func (w *twins) info(id tree.NodeID) tree.NodeInfo {
	info, err := w.machines[0].Inspect(id)
	if err != nil {
		w.fail("%v", err)
	}
	return info
}

// execute does what actions ask for.
func (w *twins) execute(actions []tree.Action) {
	w.t.Helper()
	for _, a := range actions {
		switch a := a.(type) {
		case tree.SWARebuild:
			w.rebuild(a.Node, a.Full.Len())
		case tree.RecoverSWAWithLockedFull:
			w.rebuild(a.Node, a.Kept.Len())
		case tree.MambaEvictExcessPathStates:
			must(w, "cap", func(m ops.HostMachine) (tree.Evicted, error) { return m.EvictExcessPathStates(a.Tail) })
		case tree.ReplaceWriteThroughOnNodeSplit:
			for _, b := range w.writes {
				if b.ack != a.Ack {
					continue
				}
				var list []tree.NodeID
				for _, id := range b.publish {
					if id == a.Old {
						list = append(list, a.New, a.Child)
					} else {
						list = append(list, id)
					}
				}
				b.publish = list
			}
		case tree.BackupKV:
			for _, id := range a.Nodes {
				if w.random.Intn(6) == 0 || !w.backup(id, true) {
					break
				}
			}
		}
	}
}

func (w *twins) rebuild(id tree.NodeID, n int) {
	swa := w.slots(n)
	must(w, "rebuild", func(m ops.HostMachine) (struct{}, error) {
		return done(m.SetComponentDeviceValue(id, tree.SWA, swa))
	})
}

// backup starts a backup; without a lock it finishes it, too.
func (w *twins) backup(id tree.NodeID, locked bool) bool {
	w.t.Helper()
	spec, err := ask(w, fmt.Sprint("backup spec ", id), func(m ops.HostMachine) (tree.BackupSpec, error) { return m.BuildBackupSpec(id) })
	if err != nil || (spec.Full.Len() == 0 && len(spec.Aux) == 0) {
		return err == nil
	}
	nodes := []tree.NodeID{id}
	for i := range spec.Aux {
		n := spec.Aux[i].Device.Len()
		spec.Aux[i].Host = w.slots(n)
		w.held[spec.Aux[i].Component] += n
		nodes = append(nodes, spec.Aux[i].Nodes...)
	}
	full := w.slots(spec.Full.Len())
	w.held[tree.Full] += full.Len()
	w.freed(must(w, fmt.Sprint("commit backup ", id), func(m ops.HostMachine) (tree.Frees, error) { return m.CommitBackup(id, full, spec.Aux) }))
	b := &backup{ack: int64(id)}
	if locked {
		b.receipt = must(w, "lock", func(m ops.HostMachine) (tree.Receipt, error) { return m.Lock(id, 0) })
	}
	b.publish = must(w, "mark", func(m ops.HostMachine) ([]tree.NodeID, error) { return m.MarkWriteThroughPending(nodes, b.ack) })
	if !locked {
		w.written(b)
		return true
	}
	w.writes = append(w.writes, b)
	return true
}

func (w *twins) written(b *backup) {
	w.t.Helper()
	must(w, fmt.Sprint("written ", b.publish), func(m ops.HostMachine) (struct{}, error) {
		return done(m.FinishWriteThrough(b.publish, b.ack))
	})
	if b.receipt.Node != tree.NoNode {
		must(w, "unlock", func(m ops.HostMachine) (struct{}, error) { return done(m.Unlock(b.receipt.Node, b.receipt, false)) })
	}
}

func (w *twins) finishWrite() {
	if len(w.writes) == 0 {
		return
	}
	b := w.writes[0]
	w.writes = w.writes[1:]
	w.written(b)
}
