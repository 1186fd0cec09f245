// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// RequestParams describe a new request.
type RequestParams struct {
	// Tokens is the prompt: one token or more. It is kept, not copied, and must
	// not change while the request lives.
	Tokens    []tree.Token
	Namespace tree.Namespace
	Priority  int64
	// Session names the conversation whose next turn this is; "": none. It has
	// an effect only where the tree's Sessions are on.
	Session string
}

// Request is one request's record. Only the Cache that made it changes it.
type Request struct {
	cache      *Cache
	id         int64
	state      State
	next, prev *Request // live requests

	namespace    tree.Namespace
	priority     int64
	session      string
	generation   int64
	prompt       int
	promptCached bool         // an insert of the whole prompt was counted as a hit
	tokens       []tree.Token // the prompt, and what was generated

	match   tree.MatchResult
	matched bool
	epoch   uint64 // of the match

	// The row: the tree owns the slots of the positions below protected, the
	// request those of protected and up.
	prefix    tree.Slots
	protected int
	own       row
	committed int
	frontier  int // below it the request has no SWA slots

	node        tree.NodeID // holds the lock
	receipt     tree.Receipt
	locked      bool
	swaReleased bool // the SWA part of the lock was given back early
	decoded     int  // tokens decoded since the lock was taken

	swaBranch, mambaBranch int // branch points still to be published; 0: none

	checkpoint checkpoint

	fetch   *prefetch   // nil: nothing is being fetched for it
	hold    *hold       // nil: nothing is staged for it
	offered int         // tokens that the last lookup in the store found
	came    int         // those of them that came, or that the tree had meanwhile
	loaded  int         // tokens that prefetches brought to the host for it
	saved   *Retraction // while it is retracted

	waits    int64 // loads from the host up to this one must end before it computes
	hostFrom int   // position from which on its prefix was loaded from the host; none: nothing was
}

// ID returns the request's number: 1 for a cache's first one.
func (r *Request) ID() int64 { return r.id }

// State returns where the request is in its life.
func (r *Request) State() State { return r.state }

// PromptLen returns the number of tokens of the prompt.
func (r *Request) PromptLen() int { return r.prompt }

// Tokens returns the prompt and the tokens generated so far. It belongs to the
// request.
func (r *Request) Tokens() []tree.Token { return r.tokens }

// Matched returns how many tokens the last match found for reuse.
func (r *Request) Matched() int { return r.match.DeviceLen }

// Match returns the last match. Its lists belong to the request.
func (r *Request) Match() tree.MatchResult { return r.match }

// Explanation says what limited the last match.
func (r *Request) Explanation() tree.Explanation { return r.match.Explanation }

// Protected returns how many leading positions the tree owns and the request
// has locked: a multiple of the page.
func (r *Request) Protected() int { return r.protected }

// Origin says where the positions came from that a request reused at its
// admission (rule MX-7), and what the lower tiers could have given besides.
type Origin struct {
	Device  int // were there
	Host    int // were loaded from the host for it; none where it is a staging area
	Storage int // were fetched from the store for it
	// HostMissed were on the host and were not loaded: too few to be worth it, or
	// there was no room on the device, or not within the quota.
	HostMissed int
	// StorageMissed were found in the store and did not come: the request did not
	// wait for them, there was no room on the host, or a read failed.
	StorageMissed int
}

// Origin returns where the positions came from that the request reused at its
// admission.
func (r *Request) Origin() Origin {
	o := Origin{Device: r.match.DeviceLen, HostMissed: r.match.HostHitLen}
	if r.hostFrom != none {
		below := max(0, r.match.DeviceLen-r.hostFrom)
		o.Storage = min(r.loaded, below)
		o.Host = below - o.Storage
		o.Device -= below
		if r.cache != nil && r.cache.bufferOnly() { // what was spliced has gone, and others have computed more
			o.Host, o.Device = 0, o.Device+o.Host
		}
	}
	o.StorageMissed = max(0, r.offered-r.came)
	return o
}

// Reading returns the read from the store that was begun for a waiting request;
// nil before and after it, and without one. parked says that something was found
// and waits for room on the host to be read, as with HostOptions.BufferOnly it
// may. It is for driving a manual queue.
func (r *Request) Reading() (read *queue.Operation, parked bool) {
	if r.fetch == nil {
		return nil, false
	}
	return r.fetch.read, r.fetch.parked
}

// Len returns the number of positions that are computed.
func (r *Request) Len() int { return r.committed }

// Allocated returns the number of positions that have Full slots.
func (r *Request) Allocated() int { return r.protected + r.own.length }

// Frontier returns the position below which the request has no SWA slots of its
// own: a multiple of the page.
func (r *Request) Frontier() int { return r.frontier }

// Row returns a copy of the request's Full slots, one a position.
func (r *Request) Row() tree.Slots {
	return r.own.appendTo(append(tree.Slots{}, r.prefix...), 0, r.own.length)
}

// AppendSlots appends the slots of a component to dst, one for each allocated
// position: those of Full, or those of SWA, where 0 says that the position has
// none any more. Other components have no row, which is an *ArgumentError, as is a
// request that no cache has made.
func (r *Request) AppendSlots(dst []tree.Slot, id tree.Component) ([]tree.Slot, error) {
	c := r.cache
	if c == nil {
		return dst, &ArgumentError{Op: "AppendSlots", Field: "request", Problem: "it is of no cache: use what NewRequest returned"}
	}
	if id == tree.Mamba || c.pool(id) == nil {
		return dst, &ArgumentError{Op: "AppendSlots", Field: "component", Problem: id.String() + " has no slot for each position"}
	}
	c.joined = r.own.appendTo(append(c.joined[:0], r.prefix...), 0, r.own.length)
	if id == tree.SWA {
		return c.dual.AppendTwins(dst, c.joined)
	}
	for _, run := range c.joined {
		for i := range run.Length {
			dst = append(dst, run.First+tree.Slot(i))
		}
	}
	return dst, nil
}

// SWASlot returns the SWA slot beside a Full slot of a request's row; ok is false
// where there is none: without SWA, and where the window has moved on.
func (c *Cache) SWASlot(full tree.Slot) (s tree.Slot, ok bool) {
	if !c.swa {
		return 0, false
	}
	twin, err := c.dual.TwinOf(int64(full))
	return tree.Slot(twin), err == nil && twin > 0
}

// Branches returns the branch points that the request still wants to publish,
// in positions; 0: none.
func (r *Request) Branches() (swa, mamba int) { return r.swaBranch, r.mambaBranch }

// lastSlot returns the slot of the last allocated position, or pool.NoSlot.
func (r *Request) lastSlot() int64 {
	list := r.own.runs
	if r.own.length == 0 {
		list = r.prefix
	}
	if len(list) == 0 {
		return pool.NoSlot
	}
	run := list[len(list)-1]
	return int64(run.First) + int64(run.Length) - 1
}

// NewRequest makes a request that waits. A prompt that can never fit is a
// *TooLargeError, an empty one an *ArgumentError.
func (c *Cache) NewRequest(p RequestParams) (*Request, error) {
	const op = "NewRequest"
	if c.broken != nil {
		return nil, c.broken
	}
	n := len(p.Tokens)
	if n == 0 {
		return nil, &ArgumentError{Op: op, Field: "Tokens", Problem: "the prompt is empty: a request has one token or more"}
	}
	whole := pool.PagesFor(n, c.page) * c.page
	if whole > c.full.Size() {
		return nil, &TooLargeError{Op: op, Component: tree.Full, Needed: whole, Size: c.full.Size()}
	}
	if c.swa {
		if need := min(whole, c.windowNeed()); need > c.dual.SWA().Size() {
			return nil, &TooLargeError{Op: op, Component: tree.SWA, Needed: need, Size: c.dual.SWA().Size()}
		}
	}
	c.lastID++
	r := &Request{
		cache: c, id: c.lastID, namespace: p.Namespace, priority: p.Priority,
		session: p.Session, prompt: n, tokens: p.Tokens[:n:n],
		checkpoint: checkpoint{length: none}, hostFrom: none,
	}
	if r.session != "" && c.tree.Options().Sessions && !c.opts.Disabled {
		r.generation = c.tree.EnsureSession(r.session)
	}
	c.live.add(r)
	c.stats.Requests++
	return r, nil
}

// CloseSession ends a session: what is cached for its next turn is no longer
// preferred. Requests of it that still run keep all they hold.
func (c *Cache) CloseSession(id string) error {
	if c.broken != nil {
		return c.broken
	}
	c.tree.ReleaseSession(id)
	return nil
}

// requestList is the list of live requests, oldest first.
type requestList struct{ first, last *Request }

func (l *requestList) add(r *Request) {
	r.prev = l.last
	if l.last != nil {
		l.last.next = r
	} else {
		l.first = r
	}
	l.last = r
}

func (l *requestList) remove(r *Request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.last = r.prev
	}
	r.prev, r.next = nil, nil
}
