// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// TestRandomBufferTraffic is TestRandomStorageTraffic where host memory is a
// staging area: what is fetched is put on the device at admission.
func TestRandomBufferTraffic(t *testing.T) {
	var lock sync.Mutex
	var all StorageStats
	var reused, failed int64
	t.Run("all", func(t *testing.T) {
		for _, set := range []tree.ComponentSet{components(false, false), components(true, false)} {
			t.Run(set.String(), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					policy := WritePolicy(rapid.IntRange(0, int(WriteBack)-1).Draw(t, "policy"))
					page := rapid.SampledFrom([]int{1, 4}).Draw(t, "page")
					eagle := rapid.Bool().Draw(t, "eagle")
					s := traffic(t, set, page, eagle, &HostOptions{BufferOnly: true, Policy: policy, Manual: rapid.IntRange(0, 3).Draw(t, "workers") > 0}, true)
					lock.Lock()
					defer lock.Unlock()
					reused += s.ReusedFromStorage
					failed += s.CopiesFailed
					x := s.Storage
					all.Writes += x.Writes
					all.WritesFailed += x.WritesFailed
					all.DroppedWriteTokens += x.DroppedWriteTokens
					all.BacklogOverflows += x.BacklogOverflows
					all.Parked += x.Parked
					all.RevokedNoRoom += x.RevokedNoRoom
					all.RevokedBaseGone += x.RevokedBaseGone
					all.RevokedCovered += x.RevokedCovered
					all.Splices += x.Splices
					all.DeferredSplices += x.DeferredSplices
					all.HoldsCovered += x.HoldsCovered
					all.HoldsShrunk += x.HoldsShrunk
					all.HoldsDeviceCapacity += x.HoldsDeviceCapacity
					all.HoldsDropped += x.HoldsDropped
					all.PinsGivenUp += x.PinsGivenUp
				})
			})
		}
	})
	t.Logf("%d reused, %d copies failed, %+v", reused, failed, all)
	if testing.Short() {
		return // too few runs to count on
	}
	if min(reused, failed, all.Writes, all.WritesFailed, all.DroppedWriteTokens, all.Parked, all.Splices, all.DeferredSplices, all.HoldsDropped) == 0 {
		t.Error("the test does not reach all that it is for")
	}
	if all.BacklogOverflows != 0 {
		t.Errorf("%d nodes did not fit the backlog", all.BacklogOverflows)
	}
}

// holdOne leaves a request waiting with what the store has of its prompt, of
// which the device keeps a part.
func (c *crowd) holdOne(t *rapid.T) {
	c.t = t
	if !c.cache.bufferOnly() || len(c.prompts) == 0 || len(c.live) >= 6 {
		t.Skip()
	}
	c.settle()
	_, err := c.cache.Evict(tree.Full, rapid.SampledFrom([]int{0, c.cache.page, 4 * c.cache.page, 1 << 20}).Draw(t, "evict"))
	c.ok(err)
	prompt := c.prompts[rapid.IntRange(0, len(c.prompts)-1).Draw(t, "prompt")]
	prompt = prompt[:rapid.IntRange(1, len(prompt)).Draw(t, "length")]
	if rapid.Bool().Draw(t, "based") {
		c.serveTokens(t, prompt[:rapid.IntRange(1, len(prompt)).Draw(t, "base")])
	}
	r, err := c.cache.NewRequest(RequestParams{Tokens: join(prompt, span(1, 1+c.cache.page))})
	var large *TooLargeError
	if errors.As(err, &large) {
		return
	}
	c.ok(err)
	c.live = append(c.live, r)
	c.ok(c.cache.Prefetch(r))
	if rapid.Bool().Draw(t, "answered") {
		c.ok(c.lookups())
		c.ok(c.cache.Tick())
	}
	if rapid.IntRange(0, 3).Draw(t, "read") > 0 {
		c.ok(c.cache.Sync(context.Background()))
		_, err = c.cache.Ready(r)
		c.ok(err)
	}
	switch rapid.IntRange(0, 3).Draw(t, "then") {
	case 0: // somebody else computes it, or a part
		c.serveTokens(t, r.tokens[:rapid.IntRange(1, r.prompt).Draw(t, "overtaken")])
	case 1:
		_, err := c.cache.Evict(tree.Full, 1<<20)
		c.ok(err)
	}
}

func (c *crowd) lookups() error {
	if c.cache.storage == nil {
		return nil
	}
	return c.cache.storage.queue.Wait(context.Background(), queue.Lookup)
}
