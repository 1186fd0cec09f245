// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// recency is the recency list of one component on one tier (rule N-8). Nodes
// that a session refers to stand in front of those that none does (rule SR-16);
// the two partitions are lists of their own.
type recency struct {
	component  Component
	partitions [2]partition // unreferenced, referenced
}

type partition struct {
	newest, oldest *node
	owner          *recency
	count          int // nodes, without marks
}

func (l *recency) clear() {
	for i := range l.partitions {
		l.partitions[i] = partition{owner: l}
	}
}

func (l *recency) of(n *node) *partition {
	if n.state[l.component].refs > 0 {
		return &l.partitions[1]
	}
	return &l.partitions[0]
}

// contains reports whether n is in this list.
func (l *recency) contains(n *node) bool {
	p := n.state[l.component].list
	return p != nil && p.owner == l
}

func (l *recency) len() int { return l.partitions[0].count + l.partitions[1].count }

// link puts n into p, directly on the older side of newer; nil: at the newest
// end.
func (p *partition) link(n, newer *node) {
	id := p.owner.component
	s := &n.state[id]
	s.list, s.newer = p, newer
	if newer == nil {
		s.older = p.newest
		p.newest = n
	} else {
		s.older = newer.state[id].older
		newer.state[id].older = n
	}
	if s.older != nil {
		s.older.state[id].newer = n
	} else {
		p.oldest = n
	}
	if !n.mark {
		p.count++
	}
}

func (p *partition) unlink(n *node) {
	id := p.owner.component
	s := &n.state[id]
	if s.newer != nil {
		s.newer.state[id].older = s.older
	} else {
		p.newest = s.older
	}
	if s.older != nil {
		s.older.state[id].newer = s.newer
	} else {
		p.oldest = s.newer
	}
	s.list, s.newer, s.older = nil, nil, nil
	if !n.mark {
		p.count--
	}
}

// moveToOldest moves n, which is in p, to the oldest end.
func (p *partition) moveToOldest(n *node) {
	p.unlink(n)
	id := p.owner.component
	s := &n.state[id]
	s.list, s.newer = p, p.oldest
	if p.oldest != nil {
		p.oldest.state[id].older = n
	} else {
		p.newest = n
	}
	p.oldest = n
	if !n.mark {
		p.count++
	}
}

// add puts n, which is in no list, at the newest end of its partition.
func (l *recency) add(n *node) { l.of(n).link(n, nil) }

// remove takes n out if it is in this list.
func (l *recency) remove(n *node) {
	if l.contains(n) {
		n.state[l.component].list.unlink(n)
	}
}

// renew moves n to the newest end of its partition, out of whichever partition
// of this list it is in.
func (l *recency) renew(n *node) {
	l.remove(n)
	l.add(n)
}

// addBehind puts n, which is in no list, directly on the older side of ref, or
// at the newest end of n's partition if ref is not in this list.
func (l *recency) addBehind(n, ref *node) {
	if p := l.of(n); ref.state[l.component].list == p {
		p.link(n, ref)
		return
	}
	l.add(n)
}

// newerThan returns the next node towards the newest end, or nil. Marks are
// passed over.
func (l *recency) newerThan(n *node) *node {
	id := l.component
	p := n.state[id].list
	for {
		n = n.state[id].newer
		if n == nil {
			if p != &l.partitions[0] {
				return nil
			}
			p = &l.partitions[1]
			n = p.oldest
			if n == nil {
				return nil
			}
		}
		if !n.mark {
			return n
		}
	}
}

// oldest returns the oldest node, or nil.
func (l *recency) oldest() *node {
	for i := range l.partitions {
		for n := l.partitions[i].oldest; n != nil; n = n.state[l.component].newer {
			if !n.mark {
				return n
			}
		}
	}
	return nil
}

// order returns the ids from the most recent on.
func (l *recency) order() []NodeID {
	ids := make([]NodeID, 0, l.len())
	for i := 1; i >= 0; i-- {
		for n := l.partitions[i].newest; n != nil; n = n.state[l.component].older {
			if !n.mark {
				ids = append(ids, n.id)
			}
		}
	}
	return ids
}

// chainMover moves the nodes of a path, deepest first: the first one of each
// partition to its newest end, each later one directly behind the one before
// (rule M-13).
type chainMover struct {
	list *recency
	last [2]*node
}

func (m *chainMover) move(n *node) {
	l := m.list
	p := l.of(n)
	i := 0
	if p == &l.partitions[1] {
		i = 1
	}
	if p.newest == n && m.last[i] == nil { // already there
		m.last[i] = n
		return
	}
	l.remove(n)
	p.link(n, m.last[i])
	m.last[i] = n
}
