// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "strconv"

// The log lines of the host tier's calls; see oplog.go.

// transfer writes component:device:host:nodes. A list that is absent is left
// empty, one that is empty is a dash. Keys have no effect on the calls.
func (l *opLog) transfer(t Transfer) {
	l.b = append(l.b, t.Component.String()...)
	for _, s := range []Slots{t.Device, t.Host} {
		l.b = append(l.b, ':')
		if s != nil {
			l.b = append(l.b, s.String()...)
		}
	}
	l.b = append(l.b, ':')
	l.nodeIDs(t.Nodes)
}

func (l *opLog) transfers(name string, list []Transfer) {
	if len(list) == 0 {
		return
	}
	l.field(name)
	for i, t := range list {
		if i > 0 {
			l.b = append(l.b, ';')
		}
		l.transfer(t)
	}
}

func (l *opLog) nodeIDs(ids []NodeID) {
	if len(ids) == 0 {
		l.b = append(l.b, '-')
	}
	for i, id := range ids {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = strconv.AppendInt(l.b, int64(id), 10)
	}
}

func (l *opLog) digests(list []Digest) {
	if len(list) == 0 {
		l.b = append(l.b, '-')
	}
	for i, d := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = append(l.b, d.String()...)
	}
}

func (l *opLog) commitBackup(id NodeID, full Slots, aux []Transfer) {
	l.verb("commit-backup")
	l.int("node", int(id))
	l.slots("slots", full)
	l.transfers("aux", aux)
	l.end()
}

func (l *opLog) nodeAck(verb string, ids []NodeID, ack int64) {
	l.verb(verb)
	l.field("nodes")
	l.nodeIDs(ids)
	l.int("ack", int(ack))
	l.end()
}

func (l *opLog) finishOffload(ids []NodeID, ack int64, success bool) {
	l.verb("finish-offload")
	l.field("nodes")
	l.nodeIDs(ids)
	l.int("ack", int(ack))
	l.flag("success", success)
	l.end()
}

func (l *opLog) commitLoadBack(id NodeID, full Slots, spec LoadBackSpec) {
	l.verb("commit-load-back")
	l.int("node", int(id))
	l.slots("slots", full)
	if f := spec.Full; f.Component != Full || f.Device != nil || f.Host != nil || len(f.Nodes) > 0 {
		l.field("full")
		l.transfer(f)
	}
	l.transfers("aux", spec.Aux)
	l.flag("pinned", spec.Pinned)
	l.end()
}

func (l *opLog) evictHost(id Component, n int) {
	l.verb("evict-host")
	l.word("component", id.String())
	l.int("n", n)
	l.end()
}

func (l *opLog) finishStateEviction(id Component, node NodeID) {
	l.verb("finish-state-eviction")
	l.word("component", id.String())
	l.int("node", int(node))
	l.end()
}

func (l *opLog) insertHost(p HostInsertParams) {
	l.verb("insert-host")
	l.int("anchor", int(p.Anchor))
	l.key(p.Key)
	l.slots("slots", p.Slots)
	if p.Hashes != nil {
		l.field("hashes")
		l.digests(p.Hashes)
	}
	l.end()
}

func (l *opLog) commitPrefetch(p PrefetchCommit) {
	l.verb("commit-prefetch")
	l.int("anchor", int(p.Anchor))
	l.int("inserted", int(p.Inserted.Node))
	l.someInt("prefix-len", p.Inserted.PrefixLen)
	l.someInt("total-len", p.Inserted.TotalLen)
	l.flag("dropped", p.Inserted.Dropped)
	l.transfers("aux", p.Aux)
	if p.Found != [NumComponents]int{} {
		l.units("found", p.Found)
	}
	l.end()
}

func (l *opLog) storage(verb string, id NodeID, withPrefix bool) {
	l.verb(verb)
	l.int("node", int(id))
	l.flag("with-prefix", withPrefix)
	l.end()
}

func (l *opLog) validateBuffer(id NodeID, units int) {
	l.verb("validate-buffer")
	l.int("node", int(id))
	l.int("units", units)
	l.end()
}

func (l *opLog) undoBackup(id NodeID, components ComponentSet, ack int64) {
	l.verb("undo-backup")
	l.int("node", int(id))
	l.word("components", components.String())
	l.int("ack", int(ack))
	l.end()
}
