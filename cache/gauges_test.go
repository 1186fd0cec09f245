// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/treecore/treecore/tree"
)

// gauges checks what Usage and HostUsage say (rule MX-8) against what the nodes
// and the requests have, each counted by itself.
func (m *model) gauges() {
	m.t.Helper()
	c := m.cache
	var device, host [tree.NumComponents]struct{ open, locked, held int }
	for _, id := range c.tree.Nodes() {
		n, err := c.tree.Inspect(id)
		if err != nil {
			m.t.Fatalf("%v", err)
		}
		if n.Parent == tree.NoNode {
			continue
		}
		for i, x := range n.Components {
			if x.Locks > 0 {
				device[i].locked += x.Device.Len()
			} else {
				device[i].open += x.Device.Len()
			}
			host[i].open += x.Host.Len()
		}
	}
	for r := c.live.first; r != nil; r = r.next {
		row := wholePages(r.own.runs, c.page)
		device[tree.Full].held += row.Len()
		if c.swa {
			list, err := row.Numbers()
			if err != nil {
				m.t.Fatalf("%v", err)
			}
			for _, slot := range list {
				if twin, _ := c.dual.TwinOf(int64(slot)); twin > 0 {
					device[tree.SWA].held++
				}
			}
		}
		if r.checkpoint.state != 0 {
			device[tree.Mamba].held += 1 + c.opts.TrackBuffers
		}
		if r.saved != nil {
			for i, list := range r.saved.host {
				host[i].held += list.Len()
			}
		}
	}
	if c.host != nil {
		for _, p := range c.fetches() {
			for i := range host {
				host[i].held += p.held(tree.Component(i)).Len()
			}
		}
		for _, x := range c.staging() {
			host[x.component].held += x.slots.Len()
		}
		for i, list := range c.host.released {
			host[i].held += list.Len()
		}
		for _, b := range c.host.backups {
			for i, list := range b.orphans {
				host[i].held += list.Len()
			}
		}
	}
	device[tree.SWA].held += c.superfluous().Len()
	for id := range tree.Component(tree.NumComponents) {
		if p := c.pool(id); p != nil {
			d := device[id]
			if u, want := c.Usage(id), (Usage{p.Size(), p.Available(), d.open, d.locked, d.held}); u != want || u.Size != u.Free+u.Evictable+u.Protected+u.Held {
				m.t.Fatalf("%v: %+v, counted were %+v", id, u, want)
			}
		}
		if c.host != nil && c.host.pools[id] != nil {
			p, h := c.host.pools[id], host[id]
			if u, want := c.HostUsage(id), (HostUsage{Size: p.Size(), Free: p.Available(), Cached: h.open, Held: h.held}); u != want || u.Size != u.Free+u.Cached+u.Held {
				m.t.Fatalf("host %v: %+v, counted were %+v", id, u, want)
			}
		}
	}
}

// What has no pool counts nothing.
func TestGaugesWithoutPool(t *testing.T) {
	m := newModel(t, Options{Pools: PoolSizes{Full: 8}})
	m.gauges()
	for id := range tree.Component(tree.NumComponents) {
		if u := m.cache.HostUsage(id); u != (HostUsage{}) {
			t.Errorf("host %v: %+v", id, u)
		}
		if u := m.cache.Usage(id); id != tree.Full && u != (Usage{}) {
			t.Errorf("%v: %+v", id, u)
		}
	}
}
