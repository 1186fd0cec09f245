// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// TestRandomTraffic runs random requests over every component set, page and key
// form in pools that are too small, checks conservation after every call, and
// has the stand-in model check every value that is read.
func TestRandomTraffic(t *testing.T) {
	for _, set := range []tree.ComponentSet{components(false, false), components(true, false), components(false, true), components(true, true)} {
		for _, page := range []int{1, 4, 16} {
			for _, eagle := range []bool{false, true} {
				if eagle && set.Has(tree.Mamba) {
					continue
				}
				t.Run(fmt.Sprintf("%v/page%d/eagle=%v", set, page, eagle), func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) { traffic(t, set, page, eagle, nil, false) })
				})
			}
		}
	}
}

type crowd struct {
	*model
	live    []*Request
	prompts [][]tree.Token // that were served

	store  *storagetest.Memory // nil without a storage tier
	faulty *storage.Faulty
}

func traffic(t *rapid.T, set tree.ComponentSet, page int, eagle bool, host *HostOptions, stored bool) Stats {
	o := Options{
		Tree: tree.Options{
			Components: set, PageSize: page, Eagle: eagle,
			SlidingWindow:    rapid.IntRange(1, 2*page+3).Draw(t, "window"),
			CheckpointGrid:   page * rapid.IntRange(1, 3).Draw(t, "grid"),
			MaxStatesPerPath: rapid.SampledFrom([]int{-1, 1, 2}).Draw(t, "cap"),
			Policy:           tree.PolicyOptions{Name: rapid.SampledFrom([]string{"lru", "lfu", "fifo", "priority"}).Draw(t, "policy")},
			Sessions:         rapid.Bool().Draw(t, "sessions"),
			Events:           !stored || rapid.Bool().Draw(t, "events"),
		},
		Pools: PoolSizes{
			Full:  page * rapid.IntRange(4, 40).Draw(t, "full"),
			SWA:   page * rapid.IntRange(3, 30).Draw(t, "swa"),
			Mamba: rapid.IntRange(3, 12).Draw(t, "states"),
		},
		Disabled:        rapid.IntRange(0, 9).Draw(t, "disabled") == 0,
		KeepOutOfWindow: rapid.IntRange(0, 4).Draw(t, "keep") == 0,
		NoBranching:     rapid.IntRange(0, 4).Draw(t, "nobranching") == 0,
		TrackBuffers:    rapid.IntRange(1, 2).Draw(t, "buffers"),
		Host:            host,
	}
	if host != nil {
		host.Pools = PoolSizes{
			Full:  page * rapid.IntRange(1, 40).Draw(t, "host full"),
			SWA:   page * rapid.IntRange(0, 30).Draw(t, "host swa"),
			Mamba: rapid.IntRange(1, 12).Draw(t, "host states"),
		}
		if window := (o.Tree.SlidingWindow + page - 1) / page * page; host.BufferOnly {
			host.Pools.SWA += 2 * window
		}
		host.LoadBackThreshold = rapid.SampledFrom([]int{0, 1, page}).Draw(t, "threshold")
		host.Queue = rapid.IntRange(1, 8).Draw(t, "queue")
		o.Disabled = false
	}
	c := &crowd{model: newModel(t, o)}
	defer c.cache.Close()
	if stored {
		c.shelve(t)
	}
	c.inject(t)
	actions := map[string]func(*rapid.T){
		"new":     c.arrive,
		"match":   c.rematch,
		"admit":   c.tryAdmit,
		"chunk":   c.chunk,
		"chunk2":  c.chunk,
		"decode":  c.generate,
		"bulk":    c.bulk,
		"ahead":   c.ahead,
		"again":   c.again,
		"serve":   c.serve,
		"serve2":  c.serve,
		"finish":  c.end,
		"abort":   c.abort,
		"evict":   c.evictSome,
		"reset":   c.flush,
		"session": func(t *rapid.T) { c.ok(c.cache.CloseSession(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id"))) },
	}
	// Actions that would only be skipped are left out.
	add := func(name string, times int, f func(*rapid.T)) {
		for i := range times {
			actions[fmt.Sprint(name, i)] = f
		}
	}
	if host != nil {
		add("tick", 2, c.tick)
		add("launch", 1, c.launch)
		add("retract", 1, c.retractOne)
		add("restore", 1, c.restoreOne)
		add("revisit", 2, c.revisit)
	}
	if stored {
		add("fetch", 2, c.prefetch)
		add("ready", 1, c.askReady)
		add("attach", 1, c.reattach)
		add("forget", 2, c.forget)
		add("hold", 2, c.holdOne)
	}
	t.Repeat(actions)
	c.t = t
	// A retracted request comes back with a window before its last position, which
	// an insert that ends before that may lack a part of.
	if s := c.cache.Stats(); s.ShortRematches > 0 && s.EarlyReleases+s.Restores == 0 {
		t.Fatalf("%d inserts left no window or state where they ended", s.ShortRematches)
	}
	for _, r := range slices.Clone(c.live) {
		c.ok(c.cache.Abort(r))
	}
	c.settle()
	for id := range tree.Component(tree.NumComponents) {
		if c.cache.tree.ProtectedSize(id) != 0 {
			t.Fatalf("%v is protected with nothing running", id)
		}
		if set.Has(id) {
			_, err := c.cache.Evict(id, 1<<20)
			c.ok(err)
		}
	}
	c.evictUnderWrites()
	for id := range tree.Component(tree.NumComponents) {
		if u := c.cache.Usage(id); u.Free != u.Size {
			t.Fatalf("%v: %+v after everything was evicted", id, u)
		}
	}
	s := c.cache.Stats()
	c.emptyHost()
	return s
}

func (c *crowd) pick(t *rapid.T, state State) *Request {
	c.t = t
	var fit []*Request
	for _, r := range c.live {
		if r.state == state {
			fit = append(fit, r)
		}
	}
	if len(fit) == 0 {
		t.Skip()
	}
	return fit[rapid.IntRange(0, len(fit)-1).Draw(t, "request")]
}

// tokens are drawn as a few repeated blocks, so that prompts share beginnings.
func tokens(t *rapid.T, page int) []tree.Token {
	var out []tree.Token
	for range rapid.IntRange(1, 6).Draw(t, "blocks") {
		first := rapid.IntRange(0, 1).Draw(t, "block") * 100
		out = append(out, span(first, first+rapid.IntRange(0, 2*page+1).Draw(t, "length"))...)
	}
	return out
}

func (c *crowd) arrive(t *rapid.T) {
	c.t = t
	if len(c.live) >= 6 {
		t.Skip()
	}
	p := RequestParams{
		Tokens:   tokens(t, c.cache.page),
		Priority: int64(rapid.IntRange(0, 2).Draw(t, "priority")),
		Session:  rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session"),
	}
	if rapid.IntRange(0, 4).Draw(t, "salted") == 0 {
		p.Namespace.Salt = "s"
	}
	r, err := c.cache.NewRequest(p)
	var large *TooLargeError
	if errors.As(err, &large) {
		if large.Needed <= large.Size {
			t.Fatalf("%v", err)
		}
		return
	}
	c.ok(err)
	c.live = append(c.live, r)
}

// serve leads one more prompt through its life, as far as there is room.
func (c *crowd) serve(t *rapid.T) {
	c.serveTokens(t, tokens(t, c.cache.page))
}

func (c *crowd) serveTokens(t *rapid.T, prompt []tree.Token) {
	c.t = t
	r, err := c.cache.NewRequest(RequestParams{Tokens: prompt})
	var large *TooLargeError
	if errors.As(err, &large) {
		return
	}
	c.ok(err)
	defer func() {
		if r.state != Finished {
			c.ok(c.cache.Abort(r))
		}
	}()
	if c.store != nil {
		c.ok(c.cache.Prefetch(r))
		if rapid.IntRange(0, 3).Draw(t, "wait") > 0 {
			c.ok(c.cache.Sync(context.Background()))
		}
	}
	if err := c.cache.Admit(r); later(err) {
		return
	} else {
		c.ok(err)
	}
	c.admitted(r)
	size := rapid.IntRange(1, 4*c.cache.page).Draw(t, "chunk")
	for r.Len() < r.PromptLen() {
		n := c.cache.MaxExtend(r, min(size, r.PromptLen()-r.Len()))
		if n == 0 {
			return
		}
		if c.compute(r, n); r.state == Lost {
			return
		}
		c.ok(c.cache.CacheUnfinished(r))
		if c.read(r, r.Len()); r.state == Lost || !c.detour(t, r) {
			return
		}
	}
	for range rapid.IntRange(0, c.cache.window+2).Draw(t, "output") {
		if c.decodeOne(r, tree.Token(rapid.IntRange(0, 1).Draw(t, "token")*100)) != nil {
			return
		}
	}
	if !c.detour(t, r) {
		return
	}
	c.prompts = append(c.prompts, prompt)
	c.finish(r)
}

func (c *crowd) rematch(t *rapid.T) {
	_, err := c.cache.Match(c.pick(t, Waiting))
	c.ok(err)
}

func (c *crowd) tryAdmit(t *rapid.T) {
	r := c.pick(t, Waiting)
	err := c.cache.Admit(r)
	if later(err) {
		c.check()
		return
	}
	c.ok(err)
	if r.Len() > 0 && c.cache.Loading(r) && rapid.Bool().Draw(t, "leave") {
		return // it reads what it reuses when it computes
	}
	c.admitted(r)
}

func (c *crowd) chunk(t *rapid.T) {
	r := c.pick(t, Running)
	want := r.PromptLen() - r.Len()
	if want > 0 {
		want = rapid.IntRange(1, want).Draw(t, "n")
	}
	ready := r.Allocated() - r.Len()
	if n := min(ready+c.cache.MaxExtend(r, want), want); n > 0 {
		if c.compute(r, n); r.state == Lost {
			return
		}
	} else if want > 0 {
		// A copy in flight, which Extend waits for, keeps a lock.
		if c.cache.Extend(r, 1) == nil && c.cache.host == nil {
			t.Fatalf("MaxExtend said 0, yet one position was to be had")
		}
		c.check()
	}
	if rapid.IntRange(0, 3).Draw(t, "cache") > 0 {
		c.ok(c.cache.CacheUnfinished(r))
		if c.cache.opts.Disabled && r.Protected() != 0 {
			t.Fatalf("a disabled cache owns %d positions", r.Protected())
		}
	}
	c.read(r, r.Len())
}

func (c *crowd) generate(t *rapid.T) {
	r := c.pick(t, Running)
	if !c.ready(r) {
		return
	}
	if r.Len() < len(r.Tokens()) {
		wantInt(t, "decoded before the prompt", c.tooEarly(t, r), 0)
		return
	}
	for range rapid.IntRange(1, 6).Draw(t, "n") {
		if err := c.decodeOne(r, tree.Token(rapid.IntRange(0, 1).Draw(t, "token")*100)); err != nil {
			return
		}
	}
}

func (c *crowd) tooEarly(t *rapid.T, r *Request) int {
	n, err := c.cache.Decode(r, span(1, 2))
	var order *OrderError
	if !errors.As(err, &order) {
		t.Fatalf("%v", err)
	}
	return n
}

// bulk decodes many tokens with one call; it leaves the states alone, which the
// model could fill one by one only.
func (c *crowd) bulk(t *rapid.T) {
	r := c.pick(t, Running)
	if c.cache.mamba || r.Len() < len(r.Tokens()) {
		t.Skip()
	}
	if !c.ready(r) {
		return
	}
	at := r.Len()
	n, err := c.cache.Decode(r, tokens(t, c.cache.page))
	var large *TooLargeError
	if err != nil && !momentary(err) && !errors.As(err, &large) {
		t.Fatalf("%v", err)
	}
	c.write(r, at, at+n)
	c.check()
	c.read(r, r.Len())
}

// ahead allocates more than is computed.
func (c *crowd) ahead(t *rapid.T) {
	r := c.pick(t, Running)
	n := rapid.IntRange(0, c.cache.page+1).Draw(t, "n")
	err := c.cache.Extend(r, n)
	writing := c.cache.storage != nil && len(c.cache.storage.writes) > 0
	if err != nil && c.cache.MaxExtend(r, n) >= n && !writing {
		t.Fatalf("MaxExtend promised %d: %v", n, err)
	}
	if err == nil {
		c.read(r, r.Len())
	}
	c.check()
}

func (c *crowd) again(t *rapid.T) {
	r := c.pick(t, Running)
	c.ok(c.cache.CacheUnfinished(r))
	c.read(r, r.Len())
}

func (c *crowd) end(t *rapid.T) {
	r := c.pick(t, Running)
	if rapid.Bool().Draw(t, "cut") {
		c.ok(c.cache.FinishAt(r, rapid.IntRange(0, r.Len()).Draw(t, "at"), true))
	} else {
		c.ok(c.cache.Finish(r, rapid.IntRange(0, 3).Draw(t, "insert") > 0))
	}
	c.gone(t, r)
}

func (c *crowd) gone(t *rapid.T, r *Request) {
	c.live = slices.DeleteFunc(c.live, func(x *Request) bool { return x == r })
	var order *OrderError
	for _, err := range []error{c.cache.Finish(r, true), c.cache.Abort(r), c.cache.Extend(r, 1), c.cache.CacheUnfinished(r)} {
		if !errors.As(err, &order) || order.State != Finished {
			t.Fatalf("a finished request: %v", err)
		}
	}
	c.check()
}

func (c *crowd) abort(t *rapid.T) {
	c.t = t
	if len(c.live) == 0 {
		t.Skip()
	}
	r := c.live[rapid.IntRange(0, len(c.live)-1).Draw(t, "request")]
	c.ok(c.cache.Abort(r))
	c.gone(t, r)
}

func (c *crowd) evictSome(t *rapid.T) {
	c.t = t
	id := tree.Component(rapid.IntRange(0, 2).Draw(t, "component"))
	if !c.cache.tree.Options().Components.Has(id) {
		t.Skip()
	}
	n := rapid.IntRange(0, 20).Draw(t, "n")
	had, before := c.cache.tree.EvictableSize(id), c.free(id)
	freed, err := c.cache.Evict(id, n)
	c.ok(err)
	// Locks on the host may keep a victim of write-back.
	if freed[id] < min(n, had) && !c.cache.writeBack() || c.free(id) != before+freed[id] {
		t.Fatalf("evicted %v of %d %v, free %d then %d", freed, n, id, before, c.free(id))
	}
}

func (c *crowd) flush(t *rapid.T) {
	c.t = t
	if rapid.IntRange(0, 5).Draw(t, "really") > 0 {
		t.Skip()
	}
	c.ok(c.cache.Reset())
	for _, r := range c.live {
		if r.state == Running {
			t.Fatalf("request %d runs on a prefix that is gone", r.id)
		}
	}
	for _, r := range slices.Clone(c.live) {
		if r.state == Lost {
			c.ok(c.cache.Finish(r, true))
			c.gone(t, r)
		}
	}
	if full, aux := c.cache.tree.TotalSize(); full+aux != 0 {
		t.Fatalf("the tree holds %d and %d after a reset", full, aux)
	}
}
