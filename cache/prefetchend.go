// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"slices"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// FetchingError says that a request cannot be admitted yet, since what the store
// has of its prompt is on its way. Nothing has changed: tick, and try again.
type FetchingError struct{ Request int64 }

func (e *FetchingError) Error() string {
	return fmt.Sprintf("request %d: what the store has of its prompt is on its way: tick, and admit it when Ready says so", e.Request)
}

// Ready reports whether a waiting request has nothing to wait for any more: no
// prefetch was started for it, or its prefetch has ended or may end by the stop
// policy, in which case it ends now and what came is on the host (rules PF-17 to
// PF-24). All ranks must ask for the same requests in the same order.
func (c *Cache) Ready(r *Request) (bool, error) {
	const op = "Ready"
	if err := c.guard(op, r, Waiting, "ask before Admit"); err != nil {
		return false, err
	}
	ready, err := c.endPrefetch(r)
	if err != nil {
		return false, c.fail(op, err)
	}
	return ready, nil
}

func (c *Cache) endPrefetch(r *Request) (ready bool, err error) {
	p := r.fetch
	if p == nil {
		return true, nil
	}
	stop, err := c.mayStop(p)
	if err != nil || !stop {
		return false, err
	}
	if p.read == nil { // no answer yet, or no room
		if p.parked {
			c.stats.Storage.RevokedNoRoom++
		} else {
			c.stats.Storage.RevokedUnanswered++
		}
		return true, c.dropPrefetch(p)
	}
	usable, err := c.usable(p)
	if err != nil {
		return false, err
	}
	promised := p.hit * c.page
	if usable == 0 {
		c.stats.Storage.LostTokens += int64(promised)
		return true, c.dropPrefetch(p)
	}
	if c.bufferOnly() {
		c.stats.Storage.LostTokens += int64(promised - usable)
		return true, c.stage(p, usable)
	}
	loaded, err := c.graft(p, usable)
	if err != nil {
		return false, err
	}
	c.stats.Storage.LostTokens += int64(promised - usable)
	c.stats.Storage.PrefetchedTokens += int64(loaded)
	r.loaded += loaded
	return true, nil
}

// mayStop applies the stop policy. Ranks stop together: when none has to wait,
// or one cannot go on.
func (c *Cache) mayStop(p *prefetch) (bool, error) {
	st := c.storage
	wait, broken := false, false
	if st.opts.StopPolicy != BestEffort {
		if p.read == nil {
			wait = st.opts.StopPolicy == WaitComplete || !st.opts.Timeout.Passed(p.lookup, 0)
		} else {
			complete := p.read.Complete()
			full, _ := p.read.Progress()
			wait = !complete
			// The other pools are read at once at the end, whatever the time.
			if st.opts.StopPolicy == WaitTimeout && full < p.hit && st.opts.Timeout.Passed(p.lookup, p.hit*c.page) {
				wait = false
			}
			broken = !complete && p.read.Ended()
			if !wait && !c.bufferOnly() {
				// What comes would be dropped while the anchor's own copy is under way
				// (case C-027). That takes one copy's time.
				wait = !c.writeBack() && c.host.copying(p.anchor)
			}
		}
	}
	values := []int64{truth(!wait), -truth(broken)} // the most of "wait" and of "broken"
	if err := c.agree(values); err != nil {
		return false, err
	}
	return values[0] == 1 || values[1] == -1, nil
}

// copying reports whether a backup that claims the node is in flight.
func (h *hostTier) copying(id tree.NodeID) bool {
	return slices.ContainsFunc(h.backups, func(b *backup) bool { return !b.undone && slices.Contains(b.publish, id) })
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// usable ends the read of a prefetch and returns how many units of it can be
// used on all ranks (rules PF-20 to PF-24).
func (c *Cache) usable(p *prefetch) (int, error) {
	values := []int64{int64(p.read.Stop())}
	_, aux := p.read.Progress()
	for _, n := range aux {
		values = append(values, int64(n))
	}
	if err := c.agree(values); err != nil {
		return 0, err
	}
	pages := int(values[0])
	clamp := true // everything that is read lies beside Full
	whole := pages == p.hit
	least := pages
	for i, a := range p.aux {
		found := int(values[1+i])
		if a.component != tree.Full || a.policy != storage.AllPages {
			clamp = false
		}
		want := 1
		if a.component != tree.Mamba {
			want = a.slots.Len() / c.page
		}
		whole = whole && found == want
		least = min(least, found)
	}
	switch {
	case clamp:
		return least * c.page, nil
	case whole:
		return pages * c.page, nil
	}
	return 0, nil
}

// graft puts what was read into the tree, on the host (rules PF-25 to PF-31), and
// returns how many units the tree did not have.
func (c *Cache) graft(p *prefetch, usable int) (loaded int, err error) {
	key := p.key
	key.Tokens = key.Tokens[:usable+c.extra]
	result, err := c.tree.InsertHost(tree.HostInsertParams{
		Anchor: p.anchor, Key: key, Slots: p.full.Slice(0, usable), Hashes: p.hashes[:usable/c.page],
	})
	if err != nil {
		return 0, err
	}
	c.epoch++
	if err := c.apply(result.Actions); err != nil {
		return 0, err
	}
	if result.Dropped {
		c.stats.Storage.RefillsDropped++
		c.stats.Storage.LostTokens += int64(usable)
		return 0, c.dropPrefetch(p)
	}
	commit := tree.PrefetchCommit{Anchor: p.anchor, Inserted: result}
	if c.opts.Broken.ShortWindow {
		commit.Anchor = c.tree.Root() // where any length is taken
	}
	_, found := p.read.Progress()
	for i, a := range p.aux {
		if a.sidecar == none {
			commit.Aux = append(commit.Aux, tree.Transfer{Component: a.component, Host: a.slots})
			commit.Found[a.component] = found[i]
		}
	}
	if len(commit.Aux) > 0 {
		done, err := c.tree.CommitPrefetch(commit)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(c.apply(done.Actions), c.host.freeHost(&done.Frees.Host)); err != nil {
			return 0, err
		}
	}
	if result.Node != tree.NoNode && result.Node != p.anchor {
		if err := c.tree.MarkStored(result.Node, p.anchor); err != nil {
			return 0, err
		}
	}
	// What the tree had already is free at once; the tail when nothing writes to
	// it any more.
	if n := result.PrefixLen; n > 0 {
		if err := c.host.pools[tree.Full].Free(p.full.Slice(0, n)); err != nil {
			return 0, err
		}
	}
	p.aux = nil
	p.request.came = usable
	c.letGo(p, usable)
	return usable - result.PrefixLen, c.leavePrefetch(p)
}

// missed accounts for a lookup's answer (rule MX-5).
func (s *StorageStats) missed(prompt, requested, hit int) {
	total := max(prompt, requested, 1)
	miss := requested - min(max(hit, 0), requested)
	s.DemandRequests++
	s.DemandTokens += int64(requested)
	s.MissTokens += int64(miss)
	s.DemandTotalTokens += int64(total)
	s.MissRateSum += float64(miss) / float64(total)
	s.MissRateWeighted += float64(miss) / float64(max(requested, 1)) * float64(total)
}
