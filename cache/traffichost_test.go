// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRandomHostTraffic is TestRandomTraffic over a host tier with each write
// policy, with pools that are too small, copies that end at any time and in any
// order, and allocations and copies that fail. The stand-in model checks every
// value that is read, which a load back may have brought from the host.
func TestRandomHostTraffic(t *testing.T) {
	var lock sync.Mutex
	var all Stats
	t.Run("all", func(t *testing.T) {
		for _, set := range []tree.ComponentSet{components(false, false), components(true, false), components(false, true), components(true, true)} {
			t.Run(set.String(), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					policy := WritePolicy(rapid.IntRange(0, numWritePolicies-1).Draw(t, "policy"))
					page := rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "page")
					eagle := !set.Has(tree.Mamba) && rapid.Bool().Draw(t, "eagle")
					s := traffic(t, set, page, eagle, &HostOptions{Policy: policy, Manual: rapid.IntRange(0, 3).Draw(t, "workers") > 0}, false)
					lock.Lock()
					defer lock.Unlock()
					all.Backups, all.LoadBacks, all.CopiesFailed = all.Backups+s.Backups, all.LoadBacks+s.LoadBacks, all.CopiesFailed+s.CopiesFailed
					all.BackupsRefused, all.LoadBacksGivenUp = all.BackupsRefused+s.BackupsRefused, all.LoadBacksGivenUp+s.LoadBacksGivenUp
					all.ReusedFromHost += s.ReusedFromHost
					all.Retractions, all.Restores, all.RetractionsRefused = all.Retractions+s.Retractions, all.Restores+s.Restores, all.RetractionsRefused+s.RetractionsRefused
					all.BackedUp.Add(s.BackedUp)
					all.LoadedBack.Add(s.LoadedBack)
					all.HostEvicted.Add(s.HostEvicted)
					all.DroppedHostPressure.Add(s.DroppedHostPressure)
				})
			})
		}
	})
	if testing.Short() {
		return // too few runs to count on
	}
	for id := range tree.Component(tree.NumComponents) {
		if min(all.BackedUp[id], all.LoadedBack[id], all.HostEvicted[id], all.DroppedHostPressure[id]) == 0 {
			t.Errorf("%v: %d backed up, %d loaded back, %d evicted on the host, %d dropped: the test does not reach what it is for",
				id, all.BackedUp[id], all.LoadedBack[id], all.HostEvicted[id], all.DroppedHostPressure[id])
		}
	}
	if min(all.CopiesFailed, all.BackupsRefused, all.LoadBacksGivenUp, all.ReusedFromHost, all.Retractions, all.Restores, all.RetractionsRefused) == 0 {
		t.Errorf("not reached: %+v", all)
	}
	t.Logf("%+v", all)
}

// inject makes some allocations and copies fail, as drawn.
func (c *crowd) inject(t *rapid.T) {
	if c.cache.host == nil || rapid.Bool().Draw(t, "sound") {
		return
	}
	every := rapid.IntRange(2, 9).Draw(t, "every")
	calls := 0
	f := &faults{alloc: func(tree.Component, bool) bool {
		calls++
		return calls%every == 0
	}}
	if c.cache.host.opts.Manual { // else it would be called by several at once
		copies, often := 0, rapid.IntRange(2, 9).Draw(t, "often")
		f.copy = func(pool.Copy) error {
			if copies++; copies%often == 0 {
				return errors.New("injected")
			}
			return nil
		}
	}
	c.cache.host.faults = f
}

// tick lets some copies end, in any order, and takes note.
func (c *crowd) tick(t *rapid.T) {
	c.t = t
	h := c.cache.host
	if h == nil {
		t.Skip()
	}
	if h.opts.Manual {
		var ids []int64
		for _, b := range h.backups {
			ids = append(ids, b.copy)
		}
		if h.buffer != nil {
			for _, l := range h.buffer.copying {
				ids = append(ids, l.copy)
			}
		}
		for _, l := range h.loads {
			ids = append(ids, l.copy)
		}
		for range rapid.IntRange(0, 3).Draw(t, "copies") {
			if len(ids) > 0 {
				c.cache.Engine().Complete(ids[rapid.IntRange(0, len(ids)-1).Draw(t, "copy")])
			}
		}
	}
	c.someStorage(t)
	c.ok(c.cache.Tick())
}

func (c *crowd) launch(t *rapid.T) {
	c.t = t
	if c.cache.host == nil {
		t.Skip()
	}
	_, err := c.cache.StartLoading()
	c.ok(err)
}

// settle ends everything that is in flight.
func (c *crowd) settle() {
	if c.cache.host == nil {
		return
	}
	_, err := c.cache.StartLoading()
	c.ok(err)
	c.ok(c.cache.Sync(context.Background()))
	c.endFetches()
	if n := len(c.cache.host.backups) + len(c.cache.host.loads); n > 0 {
		c.t.Fatalf("%d copies are in flight after everything ended", n)
	}
	for _, id := range c.cache.tree.Nodes() {
		n, err := c.cache.tree.Inspect(id)
		if err != nil {
			c.t.Fatalf("%v", err)
		}
		for i, s := range n.Components {
			if s.HostLocks != 0 || n.WriteThroughPending != 0 || n.LoadBackPending != 0 {
				c.t.Fatalf("node %d: %d %v host locks, marks %d and %d with nothing in flight", id, s.HostLocks, tree.Component(i), n.WriteThroughPending, n.LoadBackPending)
			}
		}
	}
}

// emptyHost evicts everything on the host, after the device is empty.
func (c *crowd) emptyHost() {
	if c.cache.host == nil {
		return
	}
	if _, err := c.cache.evictHost(tree.Full, 1<<20); err != nil {
		c.t.Fatalf("%v", err)
	}
	c.check()
	for id := range tree.Component(tree.NumComponents) {
		if u := c.cache.HostUsage(id); u.Free != u.Size {
			c.t.Fatalf("host %v: %+v after everything was evicted", id, u)
		}
	}
	if n := c.cache.tree.NodeCount(); n != 1 {
		c.t.Fatalf("%d nodes are left", n)
	}
}

// revisit serves a prompt again after the device was emptied.
func (c *crowd) revisit(t *rapid.T) {
	c.t = t
	if c.cache.host == nil || len(c.prompts) == 0 {
		t.Skip()
	}
	if rapid.Bool().Draw(t, "settled") {
		c.settle()
	}
	_, err := c.cache.Evict(tree.Full, 1<<20)
	c.ok(err)
	c.serveTokens(t, c.prompts[rapid.IntRange(0, len(c.prompts)-1).Draw(t, "prompt")])
}
