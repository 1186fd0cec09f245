// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// audit checks that every slot that was ever handed out is in exactly one
// place: free, with the request at hand, or on one node of the tree (and that
// SWA slots on a node are the twins of its Full slots). infos are all nodes.
// staged
// lists the host slots of a component that are in flight. It returns what is
// wrong, in the order of the nodes.
func (l *ledger) audit(infos []tree.NodeInfo, staged func(tree.Component) []tree.Slots) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	l.full.begin()
	l.swas.begin()
	l.mamba.begin()
	for c := range l.host {
		l.host[c].begin()
	}
	var inTree, swaInTree, mambaInTree int
	var hostInTree [tree.NumComponents]int
	place := func(what string, p *pool, s tree.Slots, base uint32, count *int, n *tree.NodeInfo) []uint32 {
		numbers, err := numbersOf(s, base)
		if err != nil {
			bad("%s of node %s: %v", what, keyText(n), err)
		}
		for _, f := range numbers {
			*count++
			if !p.has(f) {
				bad("%s slot %d is on node %s and is free", what, f, keyText(n))
			} else if !p.mark(f) {
				bad("%s slot %d is on node %s and on another one", what, f, keyText(n))
			}
		}
		return numbers
	}
	for i := range infos {
		n := &infos[i]
		full := place("Full", &l.full, n.Components[tree.Full].Device, 0, &inTree, n)
		swa := place("SWA", &l.swas, n.Components[tree.SWA].Device, swaBase, &swaInTree, n)
		place("state", &l.mamba, n.Components[tree.Mamba].Device, 0, &mambaInTree, n)
		for i, s := range swa {
			if i >= len(full) {
				break
			}
			if twin, ok := l.twin(full[i]); !ok || twin != s {
				bad("SWA slot s%d on node %s is not the twin of Full slot %d", s, keyText(n), full[i])
			}
		}
		for c := range l.host {
			place("host "+tree.Component(c).String(), &l.host[c], n.Components[c].Host, 0, &hostInTree[c], n)
		}
	}
	for c := range l.host {
		for _, slots := range staged(tree.Component(c)) {
			for _, h := range l.numbers(slots, 0) {
				hostInTree[c]++
				if !l.host[c].has(h) || !l.host[c].mark(h) {
					bad("host %s slot %d is in flight and somewhere else, too", tree.Component(c), h)
				}
			}
		}
	}
	for _, f := range l.mine {
		if !l.full.has(f) || !l.full.mark(f) {
			continue // freed, or adopted by the tree
		}
		inTree++
	}
	for _, f := range l.mine {
		if twin, ok := l.twin(f); ok && l.full.has(f) && l.swas.mark(twin) {
			swaInTree++
		}
	}
	for _, s := range l.mineState {
		if l.mamba.has(s) && l.mamba.mark(s) {
			mambaInTree++
		}
	}
	balance := func(what string, used, found int) {
		if used > found {
			bad("%d %s slots are in use and nowhere to be found", used-found, what)
		}
	}
	balance("Full", l.full.count, inTree)
	balance("SWA", l.swas.count, swaInTree)
	balance("state", l.mamba.count, mambaInTree)
	for c := range l.host {
		balance("host "+tree.Component(c).String(), l.host[c].count, hostInTree[c])
	}
	return problems
}
