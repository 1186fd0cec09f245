// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// arena owns the memory of all nodes. Nodes and their component states lie in
// chunks, so that a node costs no allocation of its own, and are used again;
// ids are not (rule A-1).
type arena struct {
	width  int // component states a node
	byID   map[NodeID]*node
	free   *node // released nodes, linked by next
	nodes  []node
	states []componentState
	last   NodeID
	chunks int
}

const arenaChunk = 128 // nodes a chunk: large enough to vanish in cost, small enough to waste little

func (a *arena) clear() {
	a.byID = map[NodeID]*node{}
	a.free, a.nodes, a.states, a.chunks = nil, nil, nil, 0
}

// make returns a zeroed node with a fresh id.
func (a *arena) make() *node {
	n := a.free
	if n != nil {
		a.free = n.next
		n.next = nil
	} else {
		if len(a.nodes) == 0 {
			a.chunks++
			a.nodes = make([]node, arenaChunk)
			a.states = make([]componentState, arenaChunk*a.width)
		}
		n = &a.nodes[0]
		n.state = a.states[:a.width:a.width]
		a.nodes, a.states = a.nodes[1:], a.states[a.width:]
	}
	a.last++
	n.id = a.last
	a.byID[n.id] = n
	return n
}

// release takes a node back that nothing refers to any more.
func (a *arena) release(n *node) {
	delete(a.byID, n.id)
	state := n.state
	clear(state)
	*n = node{state: state, next: a.free}
	a.free = n
}

func (a *arena) find(id NodeID) *node { return a.byID[id] }

func (a *arena) len() int { return len(a.byID) }

// bytes returns the memory of all chunks, nodes out of use included.
func (a *arena) bytes() int {
	return a.chunks * arenaChunk * (nodeBytes + a.width*stateBytes)
}
