// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/internal/oracle"
	"github.com/treecore/treecore/tree"
)

// newTwin makes the second machine.
var newTwin = func(options tree.Options) (ops.HostMachine, error) { return oracle.New(options) }

// TestRandomHost drives two machines through random calls of a correct
// controller with a host tier, and through some calls that are wrong.
func TestRandomHost(t *testing.T) {
	seed := int64(0)
	for _, set := range []tree.ComponentSet{
		tree.SetOf(tree.Full), tree.SetOf(tree.Full, tree.SWA),
		tree.SetOf(tree.Full, tree.Mamba), tree.SetOf(tree.Full, tree.SWA, tree.Mamba),
	} {
		for _, page := range []int{1, 2} {
			for _, window := range []int{1, 4, 7} {
				if window > 1 && !set.Has(tree.SWA) {
					continue
				}
				for _, writeBack := range []bool{false, true} {
					for _, sessions := range []bool{false, true} {
						seed++
						options := tree.Options{
							Components: set, PageSize: page, SlidingWindow: window, Sessions: sessions,
							Eagle: seed%5 == 0, Events: seed%3 != 0,
							Policy: tree.PolicyOptions{Name: []string{"lru", "tlru", "priority", "slru"}[seed/7%4]},
						}
						switches := tree.Switches{
							HostTier: true, WriteThroughThreshold: 1 + int(seed%2), WriteBack: writeBack,
							SWAHostPool: seed%4 != 0, Storage: seed%2 == 0,
						}
						t.Run(fmt.Sprintf("%v/page%d/window%d/writeback=%v/sessions=%v", set, page, window, writeBack, sessions), func(t *testing.T) {
							hostWalk(t, options, switches, seed, 50)
						})
					}
				}
			}
		}
	}
}

func hostWalk(t *testing.T, options tree.Options, switches tree.Switches, seed int64, calls int) {
	first, err := oracle.New(options)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newTwin(options)
	if err != nil {
		t.Fatal(err)
	}
	w := &twins{t: t, random: rand.New(rand.NewSource(seed)), machines: [2]ops.HostMachine{first, second}, options: options, switches: switches, next: 1}
	must(w, "switches", func(m ops.HostMachine) (struct{}, error) { return done(m.SetSwitches(switches)) })
	for range calls {
		w.step()
		if w.random.Intn(2) == 0 {
			w.check()
		}
	}
	for len(w.writes) > 0 {
		w.finishWrite()
	}
	for len(w.loads) > 0 {
		w.finishLoad()
	}
	for len(w.locks) > 0 {
		w.unlock()
	}
	for len(w.hostLocks) > 0 {
		w.unlockHost()
	}
	w.check()
	for _, c := range components {
		if size := first.ProtectedSize(c); size != 0 {
			w.fail("%v: %d units are protected without a lock", c, size)
		}
	}
	w.evict(tree.Full, 1<<30)
	w.evictHost(tree.Full, 1<<30)
	w.check()
	if len(first.Nodes()) != 1 {
		w.fail("%d nodes outlived a full eviction", len(first.Nodes()))
	}
}

func (w *twins) step() {
	switch w.random.Intn(20) {
	case 0, 1, 2, 3, 4:
		w.insert()
	case 5:
		w.match()
	case 6:
		id := w.node()
		w.locks = append(w.locks, must(w, fmt.Sprint("lock ", id), func(m ops.HostMachine) (tree.Receipt, error) { return m.Lock(id, 0) }))
	case 7:
		w.unlock()
	case 8:
		id := w.node()
		if !w.switches.WriteBack && w.info(id).Components[tree.Full].Host == nil {
			return // eviction may delete it, whatever host locks are on it
		}
		w.hostLocks = append(w.hostLocks, must(w, fmt.Sprint("lock host ", id), func(m ops.HostMachine) (tree.Receipt, error) { return m.LockHost(id) }))
	case 9:
		w.unlockHost()
	case 10, 11:
		w.evict(components[w.random.Intn(3)], w.random.Intn(12))
	case 12:
		w.evictHost(components[w.random.Intn(3)], w.random.Intn(10))
	case 13, 14:
		w.load()
	case 15:
		w.finishWrite()
	case 16:
		w.finishLoad()
	case 17:
		w.prefetch()
	case 18:
		w.questions()
	case 19:
		id, session := w.node(), fmt.Sprint("s", w.random.Intn(3))
		release := w.random.Intn(3) == 0
		must(w, fmt.Sprint("session ", session, id, release), func(m ops.HostMachine) (struct{}, error) {
			if release {
				m.ReleaseSession(session)
				return done(nil)
			}
			return done(m.RegisterSession(session, m.EnsureSession(session), id))
		})
	}
}

func (w *twins) match() tree.MatchResult {
	k := w.key()
	m := must(w, fmt.Sprint("match ", k), func(m ops.HostMachine) (tree.MatchResult, error) { return m.Match(k) })
	w.execute(m.Actions)
	return m
}

func (w *twins) insert() {
	k := w.key()
	m := must(w, fmt.Sprint("match ", k), func(m ops.HostMachine) (tree.MatchResult, error) { return m.Match(k) })
	w.execute(m.Actions)
	receipt := must(w, "lock", func(t ops.HostMachine) (tree.Receipt, error) { return t.Lock(m.LastDeviceNode, 0) })
	p := tree.InsertParams{
		Key: k, PrevPrefixLen: m.DeviceLen, Chunked: w.random.Intn(4) == 0,
		Slots:    m.DeviceSlots.Clone().Append(w.slots(len(k.Tokens) - m.DeviceLen)),
		Priority: int64(w.random.Intn(3)),
	}
	if w.has(tree.Mamba) {
		p.MambaState = w.slots(1)
	}
	if w.random.Intn(3) == 0 {
		p.SWAEvictedLen = w.random.Intn(24) / w.options.PageSize * w.options.PageSize
	}
	step := must(w, "insert", func(m ops.HostMachine) (tree.InsertStep, error) { return m.BeginInsert(p) })
	w.execute(step.Actions)
	for step.Result == nil {
		step = must(w, "resume", func(m ops.HostMachine) (tree.InsertStep, error) { return m.ResumeInsert() })
		w.execute(step.Actions)
	}
	must(w, "unlock", func(m ops.HostMachine) (struct{}, error) { return done(m.Unlock(receipt.Node, receipt, false)) })
}

func (w *twins) unlock() {
	if len(w.locks) == 0 {
		return
	}
	r := w.locks[0]
	w.locks = w.locks[1:]
	must(w, fmt.Sprint("unlock ", r.Node), func(m ops.HostMachine) (struct{}, error) { return done(m.Unlock(r.Node, r, false)) })
}

func (w *twins) unlockHost() {
	if len(w.hostLocks) == 0 {
		return
	}
	i := w.random.Intn(len(w.hostLocks))
	r := w.hostLocks[i]
	w.hostLocks = append(w.hostLocks[:i:i], w.hostLocks[i+1:]...)
	must(w, fmt.Sprint("unlock host ", r.Node), func(m ops.HostMachine) (struct{}, error) { return done(m.UnlockHost(r.Node, r)) })
}

// evict drives a device walk of either write policy.
func (w *twins) evict(c tree.Component, n int) {
	if _, err := ask(w, fmt.Sprint("evict ", c, n), func(m ops.HostMachine) (struct{}, error) { return done(m.EvictStart(c, n)) }); err != nil {
		return
	}
	var total tree.Units
	take := func(e tree.Evicted) {
		w.freed(e.Frees)
		total.Add(e.Freed)
	}
	for {
		step := must(w, "next", func(m ops.HostMachine) (tree.EvictStep, error) { return m.EvictNext(c, total) })
		take(step.Evicted)
		id := step.Node
		switch {
		case step.Paused != tree.NoNode:
			if w.random.Intn(2) == 0 {
				w.backup(step.Paused, false)
			}
			step = must(w, "finish", func(m ops.HostMachine) (tree.EvictStep, error) { return m.FinishStateEviction(c, step.Paused) })
			take(step.Evicted)
		case id != tree.NoNode:
			leaf, err := ask(w, fmt.Sprint("leaf ", id), func(m ops.HostMachine) (tree.EvictLeafResult, error) {
				return m.EvictLeaf(id, w.switches.WriteBack)
			})
			if err != nil {
				w.fail("%v", err)
			}
			take(leaf.Evicted)
			if leaf.Backup == nil {
				break
			}
			// An eviction waits for the ack of the backup that it asked for.
			if w.random.Intn(3) > 0 {
				w.backup(id, false)
				take(must(w, "demote", func(m ops.HostMachine) (tree.Evicted, error) { return m.Demote(id) }))
			} else {
				take(must(w, "drop", func(m ops.HostMachine) (tree.Evicted, error) {
					e, _, err := m.DropSubtreeNoHost(id)
					return e, err
				}))
			}
		case !step.MadeProgress:
			must(w, "end", func(m ops.HostMachine) (struct{}, error) { return done(m.EvictEnd(c)) })
			return
		}
		if w.random.Intn(4) == 0 {
			w.check()
		}
	}
}

func (w *twins) evictHost(c tree.Component, n int) {
	evicted, err := ask(w, fmt.Sprint("evict host ", c, n), func(m ops.HostMachine) (tree.Evicted, error) { return m.EvictHost(c, n) })
	if err == nil {
		w.freed(evicted.Frees)
	}
}

func (w *twins) load() {
	m := w.match()
	best := m.BestNode
	if m.HostHitLen == 0 && m.SWAHostHitLen == 0 && m.MambaHostHitLen == 0 {
		return
	}
	l := &loadBack{best: best}
	l.host = must(w, "lock host", func(m ops.HostMachine) (tree.Receipt, error) { return m.LockHost(best) })
	l.device = must(w, "lock", func(m ops.HostMachine) (tree.Receipt, error) { return m.Lock(best, 0) })
	spec := must(w, fmt.Sprint("load spec ", best), func(m ops.HostMachine) (tree.LoadBackSpec, error) { return m.BuildLoadBackSpec(best) })
	must(w, "unlock", func(m ops.HostMachine) (struct{}, error) { return done(m.Unlock(best, l.device, false)) })
	underWay := false
	for _, other := range w.loads {
		underWay = underWay || other.best == best
	}
	if underWay || spec.Pinned || (spec.Full.Host.Len() == 0 && len(spec.Aux) == 0) || w.random.Intn(5) == 0 {
		must(w, "give up", func(m ops.HostMachine) (struct{}, error) { return done(m.UnlockHost(best, l.host)) })
		return
	}
	full := w.slots(spec.Full.Host.Len())
	for i := range spec.Aux {
		spec.Aux[i].Device = w.slots(spec.Aux[i].Host.Len())
	}
	must(w, "load", func(m ops.HostMachine) ([]tree.Action, error) { return m.CommitLoadBack(best, full, spec) })
	l.device = must(w, "lock", func(m ops.HostMachine) (tree.Receipt, error) { return m.Lock(best, 0) })
	w.loads = append(w.loads, l)
}

func (w *twins) finishLoad() {
	if len(w.loads) == 0 {
		return
	}
	l := w.loads[0]
	w.loads = w.loads[1:]
	must(w, fmt.Sprint("loaded ", l.best), func(m ops.HostMachine) (struct{}, error) {
		if err := m.Unlock(l.best, l.device, false); err != nil {
			return done(err)
		}
		if err := m.UnlockHost(l.best, l.host); err != nil {
			return done(err)
		}
		return done(m.FinishLoadBack(l.best))
	})
}

// prefetch grafts pages below some node.
func (w *twins) prefetch() {
	anchor := w.node()
	k := w.key()
	if info := w.info(anchor); info.Parent != tree.NoNode {
		k.Namespace = info.Namespace
	}
	p := tree.HostInsertParams{Anchor: anchor, Key: k, Slots: w.slots(len(k.Tokens))}
	if w.random.Intn(3) == 0 { // nobody checks that they are right
		units := len(k.Tokens)
		if w.options.Eagle && !w.has(tree.Mamba) && units > 0 {
			units--
		}
		p.Hashes = make([]tree.Digest, units/w.options.PageSize)
		for i := range p.Hashes {
			p.Hashes[i] = tree.Digest{byte(w.random.Intn(256)), byte(i)}
		}
	}
	inserted := must(w, fmt.Sprint("insert host ", anchor, k), func(m ops.HostMachine) (tree.HostInsertResult, error) { return m.InsertHost(p) })
	w.execute(inserted.Actions)
	if !inserted.Dropped {
		w.held[tree.Full] += inserted.TotalLen - inserted.PrefixLen
	}
	commit := tree.PrefetchCommit{Anchor: anchor, Inserted: inserted}
	if w.has(tree.SWA) && w.random.Intn(4) > 0 {
		pages := w.random.Intn(inserted.TotalLen/w.options.PageSize + 1)
		commit.Aux = append(commit.Aux, tree.Transfer{Component: tree.SWA, Host: w.slots(pages * w.options.PageSize)})
		commit.Found[tree.SWA] = pages - w.random.Intn(8)/7
		w.held[tree.SWA] += pages * w.options.PageSize
	}
	if w.has(tree.Mamba) && w.random.Intn(4) > 0 {
		commit.Aux = append(commit.Aux, tree.Transfer{Component: tree.Mamba, Host: w.slots(1)})
		commit.Found[tree.Mamba] = w.random.Intn(2)
		w.held[tree.Mamba]++
	}
	result := must(w, "commit prefetch", func(m ops.HostMachine) (tree.PrefetchResult, error) { return m.CommitPrefetch(commit) })
	w.freed(result.Frees)
	w.execute(result.Actions)
}

// questions asks what changes nothing, and what is wrong.
func (w *twins) questions() {
	id, prefix := w.node(), w.random.Intn(2) == 0
	if w.random.Intn(4) == 0 {
		id = tree.NodeID(w.random.Intn(60)) // it may be gone
	}
	ask(w, fmt.Sprint("storage spec ", id), func(m ops.HostMachine) (string, error) {
		spec, ok, err := m.BuildStorageSpec(id, prefix)
		return fmt.Sprintf("%+v %v", spec, ok), err
	})
	ask(w, fmt.Sprint("snapshot ", id), func(m ops.HostMachine) (string, error) {
		snapshot, ok := m.SnapshotBufferBackup(id, prefix)
		state, valid := m.ValidateBufferBackup(id, 2)
		return fmt.Sprintf("%+v %v %+v %v", snapshot, ok, state, valid), nil
	})
	ask(w, fmt.Sprint("backup spec ", id), func(m ops.HostMachine) (tree.BackupSpec, error) { return m.BuildBackupSpec(id) })
	ask(w, fmt.Sprint("commit too much to ", id), func(m ops.HostMachine) (tree.Frees, error) {
		return m.CommitBackup(id, tree.Numbered(1, 999), nil)
	})
	ask(w, fmt.Sprint("load too little to ", id), func(m ops.HostMachine) ([]tree.Action, error) {
		return m.CommitLoadBack(id, nil, tree.LoadBackSpec{Full: tree.Transfer{Nodes: []tree.NodeID{id}}})
	})
	ask(w, fmt.Sprint("finish no eviction of ", id), func(m ops.HostMachine) (tree.EvictStep, error) {
		return m.FinishStateEviction(tree.SWA, id)
	})
	ask(w, fmt.Sprint("unlock the host of ", id), func(m ops.HostMachine) (struct{}, error) {
		return done(m.UnlockHost(id, tree.Receipt{HostBound: [tree.NumComponents]uint64{999, 999, 0}}))
	})
	ask(w, fmt.Sprint("mark nothing on ", id), func(m ops.HostMachine) ([]tree.NodeID, error) {
		return m.MarkWriteThroughPending([]tree.NodeID{id}, 0)
	})
	ask(w, fmt.Sprint("namespace below ", id), func(m ops.HostMachine) (tree.HostInsertResult, error) {
		return m.InsertHost(tree.HostInsertParams{Anchor: id, Key: tree.Key{Namespace: tree.Namespace{Salt: "other"}}, Slots: tree.Slots{}})
	})
}
