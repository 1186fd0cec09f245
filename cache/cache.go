// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// PoolSizes are the sizes of the device pools. Sizes of components that the
// tree does not have are not looked at.
type PoolSizes struct {
	Full  int // tokens
	SWA   int // tokens
	Mamba int // states
}

// Options configures a Cache. Tree and Pools.Full are required.
type Options struct {
	// Tree configures the tree. A CheckpointGrid of 0 is the page; Grid gives
	// the one for a state kernel with a chunk of its own.
	Tree  tree.Options
	Pools PoolSizes
	// Disabled turns reuse off: matches are empty, nothing is kept.
	Disabled bool
	// KeepOutOfWindow keeps SWA slots of a request that left its window.
	KeepOutOfWindow bool
	// NoBranching ignores branch points of both kinds.
	NoBranching bool
	// TrackBuffers is the number of Mamba states that a request holds besides
	// the one it runs on, to save checkpoints in: 1 or 2. Zero: 2. One is
	// enough where a step ends before the next begins.
	TrackBuffers int
	// TrackInterval makes decode save checkpoints at multiples of the smallest
	// common multiple of the grid and this. Zero: of the grid.
	TrackInterval int
	// CopyState is called when a request that reuses a prefix starts from the
	// tree's state: from is the tree's, to is the request's. The copy must be
	// complete, or ordered before the request's first forward pass. nil: there
	// is nothing to copy.
	CopyState func(from, to tree.Slot)
	// Host adds a host tier below the device; nil: there is none. A cache with
	// one has goroutines: end it with Close.
	Host *HostOptions
	// Now gives the nanoseconds of a steady clock, for the durations in Stats and
	// for nothing else; nil: they stay 0. It is called by several goroutines.
	Now func() int64
	// Broken are rules that are broken on purpose.
	Broken Broken
	// Collective lets this cache agree with those of the model's other ranks; nil:
	// it is alone. All ranks get the same calls in the same order.
	Collective Collective
}

// Broken are rules that a cache breaks, so that tests and scenarios can show what
// they are good for. What it then answers is wrong; never set one elsewhere.
type Broken struct {
	// HybridGuard lets SWA cut a hybrid's insert short, so that a state is attached
	// to a key that it is ahead of (against rules BP-3 and MC-1).
	HybridGuard bool
	// WindowCheck lets a match take all that Full has on the device, whatever the
	// other components lack there.
	WindowCheck bool
	// ShortWindow takes a window from storage that is shorter than it must be also
	// below a node (against rule PF-29).
	ShortWindow bool
}

// Bounds of what a cache starts at once: more is a slip, and could take all memory.
const (
	maxWorkers = 1 << 10 // goroutines of the host tier, or of one kind of storage operation
	maxQueue   = 1 << 20 // copies of one direction
)

// Grid returns the checkpoint grid for a state kernel that yields states every
// chunk tokens and a tree with the given page: their smallest common multiple.
// It is 0 if one of them is below 1, and at most the largest int.
func Grid(chunk, page int) int {
	if chunk < 1 || page < 1 {
		return 0
	}
	a, b := chunk, page
	for b > 0 {
		a, b = b, a%b
	}
	if chunk/a > math.MaxInt/page {
		return math.MaxInt
	}
	return chunk / a * page
}

// Cache owns pools and a tree; see the package's documentation.
type Cache struct {
	opts Options
	tree *tree.Core

	page   int // P
	window int // W; 0 without SWA
	extra  int // tokens a key has beyond its units: 1 with bigrams
	grid   int // G; 0 without Mamba
	swa    bool
	mamba  bool

	full   *pool.Paged  // the Full pool, also where it is a side of dual
	dual   *pool.Dual   // nil without SWA
	states *pool.States // nil without Mamba
	host   *hostTier    // nil without a host tier

	storage *storageTier // nil without a storage tier

	live    requestList
	running int    // requests that are running or lost
	lastID  int64  // id of the latest request
	epoch   uint64 // raised by whatever may make an earlier match wrong
	stats   Stats
	broken  error
	closed  bool // by Close

	joined tree.Slots // a row put together for the tree; reused
}

// New returns an empty cache. A field that is wrong is a *tree.ConfigError that
// names it; several are joined.
func New(o Options) (*Cache, error) {
	core, err := tree.New(o.Tree)
	if err != nil {
		return nil, err
	}
	t := core.Options()
	c := &Cache{
		opts: o, tree: core, page: t.PageSize,
		swa: t.Components.Has(tree.SWA), mamba: t.Components.Has(tree.Mamba),
	}
	if t.Eagle {
		c.extra = 1
	}
	if c.swa {
		c.window = t.SlidingWindow
	}
	if c.mamba {
		c.grid = t.CheckpointGrid
	}
	if c.opts.TrackBuffers == 0 {
		c.opts.TrackBuffers = 2
	}
	if c.opts.TrackInterval == 0 {
		c.opts.TrackInterval = 1
	}
	if o.Disabled {
		c.opts.TrackBuffers = 0
	}
	if err := c.validate(o); err != nil {
		return nil, err
	}
	if c.swa {
		c.dual, err = pool.NewDual(o.Pools.Full, o.Pools.SWA, c.page)
		if err == nil {
			c.full = c.dual.Full()
		}
	} else {
		c.full, err = pool.NewPaged("full", o.Pools.Full, c.page)
	}
	if err == nil && c.mamba {
		c.states, err = pool.NewStates("mamba", o.Pools.Mamba)
	}
	if err == nil && o.Host != nil && !o.Disabled {
		err = c.openHost(*o.Host)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cache) validate(o Options) error {
	var problems []error
	check := func(ok bool, field string, value int, allowed string) {
		if !ok {
			problems = append(problems, &tree.ConfigError{Field: field, Value: strconv.Itoa(value), Allowed: allowed})
		}
	}
	const most = 1<<32 - 1<<12
	onePage := fmt.Sprintf("%d (one page) to %d", c.page, most)
	check(o.Pools.Full >= c.page && o.Pools.Full <= most, "Pools.Full", o.Pools.Full, onePage)
	if c.swa {
		check(o.Pools.SWA >= c.page && o.Pools.SWA <= most, "Pools.SWA", o.Pools.SWA, onePage)
	}
	if c.mamba {
		check(o.TrackBuffers >= 0 && o.TrackBuffers <= 2, "TrackBuffers", o.TrackBuffers, "1 or 2, or 0 for 2")
		check(o.TrackInterval >= 0, "TrackInterval", o.TrackInterval, "1 or more, or 0 for the grid")
		least := 1 + c.opts.TrackBuffers
		check(o.Pools.Mamba >= least && o.Pools.Mamba <= most, "Pools.Mamba", o.Pools.Mamba,
			fmt.Sprintf("%d (what one request holds) to %d", least, most))
	}
	return errors.Join(problems...)
}

// Tree returns the tree, for questions. Changing it bypasses the cache's books.
func (c *Cache) Tree() *tree.Core { return c.tree }

// Options returns the options with defaults filled in.
func (c *Cache) Options() Options { return c.opts }

// PageSize returns the tree's page in units.
func (c *Cache) PageSize() int { return c.page }

// isUsable tells errors after which the cache can be used on.
func isUsable(err error) bool {
	var backup *BackupError
	var store *StorageError
	return errors.As(err, &backup) || errors.As(err, &store)
}

// fail notes an inconsistency: the cache serves no more. Errors after which it
// does are passed on.
func (c *Cache) fail(op string, err error) error {
	if c.broken == nil && isUsable(err) {
		return err
	}
	if c.broken == nil {
		c.broken = &InternalError{Op: op, Err: err}
	}
	return c.broken
}

// guard is the beginning of every call on a request.
func (c *Cache) guard(op string, r *Request, want State, remedy string) error {
	if c.broken != nil {
		return c.broken
	}
	if r == nil || r.cache != c {
		return &ArgumentError{Op: op, Field: "request", Problem: "it is not one of this cache: pass what NewRequest returned"}
	}
	if r.state == Retracted {
		remedy = "restore it first, or end it with Discard or Abort"
	}
	if r.state != want {
		return &OrderError{Op: op, Request: r.id, State: r.state, Problem: remedy}
	}
	return nil
}

// Reset drops everything that is cached. Slots that requests hold stay theirs;
// running requests lose their prefix and can only be finished or aborted, after
// which their slots come back. So are retracted ones, whose saved copies go with
// the host tier. Waiting requests match anew.
func (c *Cache) Reset() error {
	if c.broken != nil {
		return c.broken
	}
	if c.host != nil {
		if err := c.resetHost(); err != nil {
			return c.fail("Reset", err)
		}
	}
	slots, states := c.tree.FlattenFull(), c.tree.FlattenMamba()
	c.tree.Reset()
	c.epoch++
	err := c.freeKV(slots)
	if c.mamba {
		err = errors.Join(err, c.states.Free(states))
	}
	if err != nil {
		return c.fail("Reset", err)
	}
	for r := c.live.first; r != nil; r = r.next {
		if r.state == Running {
			r.state, r.locked = Lost, false
		} else if r.state == Retracted {
			c.loseRetracted(r)
		}
	}
	if c.tree.Options().Events {
		c.tree.RecordAllCleared()
	}
	return nil
}
