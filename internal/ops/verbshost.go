// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"slices"
	"strconv"

	"github.com/treecore/treecore/tree"
)

// unsupported is what a machine without a host tier answers.
const unsupported = "unsupported"

var (
	componentsField = field("components", func(c *Call) *tree.ComponentSet { return &c.Skip }, parseSet, tree.ComponentSet.String)

	ackField = field("ack", func(c *Call) *int64 { return &c.Ack }, parseInt64, formatInt64)
	auxField = field("aux", func(c *Call) *[]tree.Transfer { return &c.Aux }, parseTransfers, formatTransfers).
			unless(func(c *Call) bool { return len(c.Aux) == 0 }).as(transfersHandle)
	fullField = field("full", func(c *Call) *tree.Transfer { return &c.Full }, parseTransfer, formatTransfer).
			unless(func(c *Call) bool { return isNothing(&c.Full) }).as(transfersHandle)
	anchorField     = field("anchor", nodePlace, parseNode, formatNode).as(nodeHandle)
	withPrefixField = flag("with-prefix", func(c *Call) *bool { return &c.WithPrefix })

	hostInsertFields = append(append(list(anchorField), keyFields...), slotsField,
		field("hashes", func(c *Call) *[]tree.Digest { return &c.Hashes }, parseDigests, formatDigests).
			unless(func(c *Call) bool { return c.Hashes == nil }))
	prefetchFields = list(anchorField,
		field("inserted", func(c *Call) *tree.NodeID { return &c.Until }, parseNode, formatNode).as(nodeHandle),
		optionalInt("prefix-len", func(c *Call) *int { return &c.PrefixLen }),
		optionalInt("total-len", func(c *Call) *int { return &c.TotalLen }),
		flag("dropped", func(c *Call) *bool { return &c.Dropped }),
		auxField,
		field("found", func(c *Call) *tree.Units { return &c.Totals }, parseUnits, formatUnits).
			unless(func(c *Call) bool { return c.Totals == tree.Units{} }))
)

// onHost wraps the run of a verb that needs a HostMachine.
func onHost(run func(e *Executor, m HostMachine, c *Call) string) func(*Executor, *Call) string {
	return func(e *Executor, c *Call) string {
		m, ok := e.Machine.(HostMachine)
		if !ok {
			return unsupported
		}
		return run(e, m, c)
	}
}

func makeHostVerbs() []verbSpec {
	nodeOnly := list(nodeField)
	return []verbSpec{
		{"lock-host", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			r, err := m.LockHost(c.Node)
			return e.or(err, func() string { return e.hostReceipt(r) })
		})},
		{"unlock-host", list(nodeField, receiptField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.UnlockHost(c.Node, c.Receipt))
		})},

		{"build-backup", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			spec, err := m.BuildBackupSpec(c.Node)
			return e.or(err, func() string { return e.backupSpec(&spec) })
		})},
		{"commit-backup", list(nodeField, slotsField, auxField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			frees, err := m.CommitBackup(c.Node, c.Slots, c.Aux)
			if err == nil {
				e.tookHost(tree.Full, c.Slots)
				e.tookTransfers(c.Aux)
			}
			return e.evicted(tree.Evicted{Frees: frees}, err)
		})},
		{"mark-write-through-pending", list(nodesField, ackField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			marked, err := m.MarkWriteThroughPending(c.Nodes, c.Ack)
			return e.or(err, func() string { return e.nodesText(marked) })
		})},
		{"undo-backup", list(nodeField, componentsField, ackField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			frees, err := m.UndoBackup(c.Node, c.Skip, c.Ack)
			return e.evicted(tree.Evicted{Frees: frees}, err)
		})},
		{"finish-write-through", list(nodesField, ackField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.FinishWriteThrough(c.Nodes, c.Ack))
		})},

		{"build-load-back", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			spec, err := m.BuildLoadBackSpec(c.Node)
			return e.or(err, func() string { return e.loadBackSpec(&spec) })
		})},
		{"commit-load-back", list(nodeField, slotsField, fullField, auxField,
			flag("pinned", func(c *Call) *bool { return &c.Pinned })), onHost(func(e *Executor, m HostMachine, c *Call) string {
			actions, err := m.CommitLoadBack(c.Node, c.Slots, tree.LoadBackSpec{Full: c.Full, Aux: c.Aux, Pinned: c.Pinned})
			if err == nil && e.loaded != nil {
				e.loaded(c.Slots, c.Aux, actions)
			}
			return e.or(err, func() string { return e.actions(actions) })
		})},
		{"finish-load-back", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.FinishLoadBack(c.Node))
		})},

		{"evict-host", list(componentField, nField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.evicted(m.EvictHost(c.Component, c.N))
		})},
		{"reclaim-digest", nil, onHost(func(e *Executor, m HostMachine, _ *Call) string {
			return strconv.FormatUint(m.ReclaimDigest(), 10)
		})},
		{"drop-subtree", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			v, dropped, err := m.DropSubtreeNoHost(c.Node)
			return e.dropSubtree(&v, dropped, err)
		})},
		{"finish-state-eviction", list(componentField, nodeField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			step, err := m.FinishStateEviction(c.Component, c.Node)
			return e.or(err, func() string { return e.evictStep(&step) })
		})},

		{"insert-host", hostInsertFields, onHost(func(e *Executor, m HostMachine, c *Call) string {
			r, err := m.InsertHost(tree.HostInsertParams{Anchor: c.Node, Key: c.Key, Slots: c.Slots, Hashes: c.Hashes})
			if err == nil && !r.Dropped && r.PrefixLen < r.TotalLen {
				e.tookHost(tree.Full, c.Slots.Slice(r.PrefixLen, r.TotalLen))
			}
			return e.or(err, func() string { return e.hostInsert(&r) })
		})},
		{"commit-prefetch", prefetchFields, onHost(func(e *Executor, m HostMachine, c *Call) string {
			r, err := m.CommitPrefetch(c.prefetchCommit())
			if err == nil {
				e.tookTransfers(c.Aux)
			}
			return e.or(err, func() string { return e.prefetch(&r) })
		})},
		{"build-storage", list(nodeField, withPrefixField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			spec, ok, err := m.BuildStorageSpec(c.Node, c.WithPrefix)
			return e.or(err, func() string { return e.storageSpec(&spec, ok) })
		})},

		{"mark-stored", list(fromField, untilField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.MarkStored(c.Node, c.Until))
		})},

		{"build-offload", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			spec, err := m.BuildOffload(c.Node)
			return e.or(err, func() string { return e.offload(spec) })
		})},
		{"mark-offload-pending", nodeOnly, onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.MarkOffloadPending(c.Node))
		})},
		{"finish-offload", list(nodesField, ackField, flag("success", func(c *Call) *bool { return &c.Success })), onHost(func(e *Executor, m HostMachine, c *Call) string {
			return e.done(m.FinishOffload(c.Nodes, c.Ack, c.Success))
		})},

		{"snapshot-buffer", list(nodeField, withPrefixField), onHost(func(e *Executor, m HostMachine, c *Call) string {
			s, ok := m.SnapshotBufferBackup(c.Node, c.WithPrefix)
			return e.bufferSnapshot(&s, ok)
		})},
		{"validate-buffer", list(nodeField, field("units", func(c *Call) *int { return &c.N }, parseInt, strconv.Itoa)),
			onHost(func(e *Executor, m HostMachine, c *Call) string {
				s, ok := m.ValidateBufferBackup(c.Node, c.N)
				return e.bufferState(&s, ok)
			})},

		{"host-duplicates", nil, onHost(func(e *Executor, m HostMachine, _ *Call) string {
			return e.nodesText(m.HostDuplicates())
		})},
	}
}

// needsHost reports whether a verb needs a HostMachine.
func needsHost(verb string) bool {
	return slices.ContainsFunc(makeHostVerbs(), func(v verbSpec) bool { return v.name == verb })
}

// prefetchCommit returns what commit-prefetch passes.
func (c *Call) prefetchCommit() tree.PrefetchCommit {
	return tree.PrefetchCommit{
		Anchor:   c.Node,
		Inserted: tree.HostInsertResult{Node: c.Until, PrefixLen: c.PrefixLen, TotalLen: c.TotalLen, Dropped: c.Dropped},
		Aux:      c.Aux,
		Found:    c.Totals,
	}
}

// tookHost tells the story that the tree took host slots.
func (e *Executor) tookHost(c tree.Component, s tree.Slots) {
	if e.hosted != nil {
		e.hosted(c, s)
	}
}

func (e *Executor) tookTransfers(list []tree.Transfer) {
	for _, t := range list {
		e.tookHost(t.Component, t.Host)
	}
}
