// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"

	"github.com/treecore/treecore/tree"
)

// bufferHolders lists the device locks of writes that are copied, and pins.
func (a *audit) bufferHolders() []held {
	c := a.cache
	if !c.bufferOnly() {
		return nil
	}
	var list []held
	for _, l := range c.host.buffer.copying {
		list = append(list, held{fmt.Sprintf("the write of node %d", l.node), l.node, l.receipt, false})
	}
	for r := c.live.first; r != nil; r = r.next {
		for _, p := range r.pins() {
			if p.node != tree.NoNode {
				list = append(list, held{fmt.Sprintf("the pin of request %d", r.id), p.node, tree.Receipt{}, true})
			}
		}
	}
	return list
}

// buffer checks IN-9 and IN-13: the counts of a cache whose host memory is a
// staging area are those of its operations.
func (a *audit) buffer() {
	c, b := a.cache, a.cache.host.buffer
	for _, id := range a.order {
		for component, x := range a.nodes[id].Components {
			if x.Host != nil {
				a.fault("IN-13", "node %d has %d host slots of %v", id, x.Host.Len(), tree.Component(component))
			}
		}
	}
	var backlog, staged tree.Units
	queued, flying := map[place]bool{}, map[place]int{}
	for _, x := range b.intents {
		backlog[x.component] += x.units()
		if queued[x.place] {
			a.fault("IN-13", "%v of node %d is queued twice", x.component, x.node)
		}
		queued[x.place] = true
	}
	if backlog != b.backlog || !maps.Equal(queued, b.queued) {
		a.fault("IN-13", "the backlog is %v, intents account for %v", b.backlog, backlog)
	}
	launched := map[pageName]int{}
	for _, l := range c.launches() {
		staged[l.component] += l.host.Len()
		flying[l.place]++
		for _, x := range c.poolsOf(l.component) {
			for _, page := range l.pages {
				launched[pageName{x.name, page}]++
			}
		}
	}
	if staged != b.staged || !maps.Equal(flying, b.flying) || !maps.Equal(launched, b.launched) {
		a.fault("IN-13", "%v are staged for writes, launches account for %v", b.staged, staged)
	}
	reserved, pinned, parked := 0, 0, 0
	for r := c.live.first; r != nil; r = r.next {
		if r.fetch != nil {
			reserved += r.fetch.reserved
			if r.fetch.parked {
				parked++
			}
		}
		if r.hold != nil {
			reserved += r.hold.reserved
		}
		for _, p := range r.pins() {
			pinned += p.units
		}
	}
	for _, l := range c.host.loads {
		if l.spliced != nil {
			reserved += l.spliced.hold.reserved
		}
	}
	if st := c.storage; st != nil && (st.occupancy != reserved || st.occupancy < 0) {
		a.fault("IN-9", "%d tokens are reserved, fetches account for %d", st.occupancy, reserved)
	}
	if pinned != b.pinned || parked != len(b.parked) {
		a.fault("IN-13", "%d tokens are pinned and %d fetches parked, requests account for %d and %d", b.pinned, len(b.parked), pinned, parked)
	}
}
