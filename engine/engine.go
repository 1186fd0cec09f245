// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strconv"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Order says which waiting request is admitted next, among those of the highest
// priority.
type Order uint8

// The orders.
const (
	// FirstCome admits in the order of arrival.
	FirstCome Order = iota
	// LongestPrefix admits first what would reuse most.
	LongestPrefix
	// DepthFirst admits requests of one branch of the tree one after the other,
	// the branch that most of them wait for first.
	DepthFirst

	numOrders = 3
)

var orderNames = [numOrders]string{"first-come", "longest-prefix", "depth-first"}

// String returns the order's name.
func (o Order) String() string {
	if o < numOrders {
		return orderNames[o]
	}
	return "unknown"
}

// ParseOrder reads the name of an order. Another one is a *tree.ConfigError.
func ParseOrder(name string) (Order, error) {
	for o, n := range orderNames {
		if n == name {
			return Order(o), nil
		}
	}
	return 0, &tree.ConfigError{Field: "order", Value: strconv.Quote(name), Allowed: "first-come, longest-prefix or depth-first"}
}

// Options configures an Engine. Model and Cache.Pools.Full are required.
type Options struct {
	Model Model
	// Cache configures the cache. The components, the window, the grid, the memory
	// and the copies are the model's.
	Cache cache.Options
	// ChunkTokens is the most prompt tokens computed in one step. Zero: 8192.
	ChunkTokens int
	// MaxRunning is the most requests that run at once. Zero: 256.
	MaxRunning int
	Order      Order
	// SaveRetracted keeps what a request has computed on the host when it has to
	// make room for others; else it is computed again. It needs a host tier, and a
	// model without recurrent states.
	SaveRetracted bool
	// ShareStates breaks copy-on-write on purpose: a request that resumes from a
	// state of the tree runs on that state itself. It is there to show that this is
	// found; see also cache.Broken.
	ShareStates bool
	// Drafts is the number of tokens that each decode step proposes and checks at
	// once (speculative decoding), 0 for none. How many of them are right is drawn
	// from the request's seed, as a stand-in for a draft model.
	Drafts int
}

// Engine serves requests; see the package's documentation.
type Engine struct {
	opts   Options
	spec   Spec
	model  Model
	cache  *cache.Cache
	memory *pool.Memories

	waiting   []*Task
	running   []*Task // by admission, the latest last
	retracted []*Task
	lastID    int64
	steps     int64
	stats     Stats
	failed    error
	// blocked: a request had to make way, and none has ended since. Nobody is let in
	// then, or two could take each other's room for ever.
	blocked bool

	sequence Sequence                // reused
	shared   map[tree.Slot]tree.Slot // with ShareStates: the tree's state by that of the request; looked up only
}

// Stats counts what an engine did.
type Stats struct {
	Steps       int64
	Finished    int64
	Aborted     int64
	Retractions int64
	// Mismatched counts values that a model read and that were not what they
	// should be, by component.
	Mismatched [tree.NumComponents]int64
}

// New returns an engine with an empty cache. Options that are wrong are one or
// more *tree.ConfigError, joined.
func New(o Options) (*Engine, error) {
	var problems []error
	bad := func(field, value, allowed string) {
		problems = append(problems, &tree.ConfigError{Field: field, Value: value, Allowed: allowed})
	}
	if o.Model == nil {
		return nil, &tree.ConfigError{Field: "Model", Value: "nil", Allowed: "a model"}
	}
	if o.ChunkTokens < 0 {
		bad("ChunkTokens", strconv.Itoa(o.ChunkTokens), "1 or more, or 0 for 8192")
	}
	if o.MaxRunning < 0 {
		bad("MaxRunning", strconv.Itoa(o.MaxRunning), "1 or more, or 0 for 256")
	}
	if o.Drafts < 0 || o.Drafts > 64 {
		bad("Drafts", strconv.Itoa(o.Drafts), "0 (none) to 64")
	}
	if o.Drafts > 0 && o.Model.Spec().Components.Has(tree.Mamba) {
		bad("Drafts", strconv.Itoa(o.Drafts), "0 for a model with recurrent states: what wrong drafts did to a state cannot be taken back")
	}
	if o.Order >= numOrders {
		bad("Order", strconv.Itoa(int(o.Order)), "FirstCome, LongestPrefix or DepthFirst")
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if o.ChunkTokens == 0 {
		o.ChunkTokens = 8192
	}
	if o.MaxRunning == 0 {
		o.MaxRunning = 256
	}
	e := &Engine{opts: o, spec: o.Model.Spec(), model: o.Model, shared: map[tree.Slot]tree.Slot{}}
	if err := e.openCache(); err != nil {
		return nil, err
	}
	if o.SaveRetracted {
		if err := e.cache.SupportsRetraction(); err != nil {
			e.cache.Close()
			return nil, err
		}
	}
	return e, nil
}

// openCache makes the cache over memory that fits the model.
func (e *Engine) openCache() error {
	o := e.opts.Cache
	page := max(o.Tree.PageSize, 1)
	o.Tree.Components, o.Tree.SlidingWindow = e.spec.Components, e.spec.Window
	o.Tree.CheckpointGrid = 0
	if e.spec.Chunk > 0 {
		o.Tree.CheckpointGrid = cache.Grid(e.spec.Chunk, page)
	}
	device, host := unitsOf(o.Pools, e.spec), tree.Units{}
	if o.Host != nil {
		h := *o.Host
		host = unitsOf(h.Pools, e.spec)
		h.Copy = func(ctx context.Context, c pool.Copy) error { return e.memory.Copy(ctx, c) }
		h.Page = func(name string, first tree.Slot) []byte { return e.hostPage(name, first, page) }
		o.Host = &h
	}
	for id := range device {
		device[id] = max(device[id], 0)
		host[id] = max(host[id], 0)
	}
	o.CopyState = func(from, to tree.Slot) {
		if e.opts.ShareStates {
			e.shared[to] = from
			return
		}
		m := e.memory.Device[tree.Mamba]
		copy(m.At(to), m.At(from))
	}
	var err error
	if e.cache, err = cache.New(o); err != nil {
		return err
	}
	if e.memory, err = NewMemory(e.spec, page, device, host); err != nil {
		e.cache.Close()
	}
	return err
}

// unitsOf returns the pool sizes of the components that the model has.
func unitsOf(p cache.PoolSizes, s Spec) tree.Units {
	u := tree.Units{p.Full, p.SWA, p.Mamba}
	for id := range u {
		if !s.Components.Has(tree.Component(id)) {
			u[id] = 0
		}
	}
	return u
}

func (e *Engine) hostPage(name string, first tree.Slot, page int) []byte {
	for id := range tree.Component(tree.NumComponents) {
		if id.String() == name && e.memory.Host[id] != nil {
			if id == tree.Mamba {
				page = 1
			}
			return e.memory.Host[id].Run(first, page)
		}
	}
	return nil
}

// Cache returns the cache, for questions, and for attaching storage between
// steps.
func (e *Engine) Cache() *cache.Cache { return e.cache }

// Spec returns what the model keeps of each token.
func (e *Engine) Spec() Spec { return e.spec }

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Steps = e.steps
	return s
}

// Queued returns how many requests wait and how many run.
func (e *Engine) Queued() (waiting, running int) {
	return len(e.waiting) + len(e.retracted), len(e.running)
}

// errClosed answers what comes after Close.
var errClosed = errors.New("the engine is closed: open another one")

// Close ends the cache's goroutines. Requests that have not ended are aborted,
// and no more are taken.
func (e *Engine) Close() {
	if e.failed == nil {
		e.failed = errClosed
	}
	for _, list := range []*[]*Task{&e.waiting, &e.running, &e.retracted} {
		for len(*list) > 0 { // OnEnd may abort others
			t := (*list)[0]
			e.remove(t)
			t.end(FinishAborted, nil)
		}
	}
	e.cache.Close()
}
