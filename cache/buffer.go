// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// buffering is the books of a cache whose host memory is a staging area and no
// tier (rule CT-2, chapter 11): the tree holds no host values, and every host
// slot belongs to an operation that is on its way between device and store.
//
// What is to be written waits as an intent, is copied and then written as a
// launch. What was read is a hold until its request is admitted, when a splice
// puts it on the device.
type buffering struct {
	beliefs *beliefs

	intents []*intent            // to be written, the next first
	queued  map[place]bool       // those of them
	backlog tree.Units           // their tokens
	looked  map[tree.NodeID]bool // nodes that the present insert has asked for

	copying  []*launch        // being copied to the host, the oldest first
	flying   map[place]int    // launches that are copied or written
	launched map[pageName]int // their pages
	staged   tree.Units       // their host slots

	parked []*prefetch // found, and waiting for room to be read, the oldest first
	pinned int         // tokens that pins keep from eviction
}

func newBuffering() *buffering {
	return &buffering{
		beliefs: newBeliefs(mostBeliefs), looked: map[tree.NodeID]bool{},
		queued: map[place]bool{}, flying: map[place]int{}, launched: map[pageName]int{},
	}
}

// validateBuffer applies rules BO-2 to BO-4.
func (h *HostOptions) validateBuffer(c *Cache) error {
	if !h.BufferOnly {
		return nil
	}
	var problems []error
	bad := func(field, value, allowed string) {
		problems = append(problems, &tree.ConfigError{Field: field, Value: value, Allowed: allowed})
	}
	if c.mamba {
		bad("Tree.Components", c.tree.Options().Components.String(), "{full} or {full,swa}, with Host.BufferOnly")
	}
	if least := 2 * c.wholeWindow(); c.swa && h.Pools.SWA < least {
		bad("Host.Pools.SWA", fmt.Sprint(h.Pools.SWA), fmt.Sprintf("%d (two windows) or more, with Host.BufferOnly", least))
	}
	if h.Policy == WriteBack {
		bad("Host.Policy", h.Policy.String(), fmt.Sprintf("%v or %v, with Host.BufferOnly", WriteThrough, WriteThroughSelective))
	}
	return errors.Join(problems...)
}

// bufferOnly reports whether host memory is a staging area.
func (c *Cache) bufferOnly() bool { return c.host != nil && c.host.buffer != nil }

// windowMargin is what writes leave free of the window's staging pool: a window,
// so that reads find room, or a tenth (rule BO-9).
func (c *Cache) windowMargin() int {
	return max(c.wholeWindow(), c.host.pools[tree.SWA].Size()/10)
}

// liveCap is how many Full tokens may be staged for writes now: what reads have
// not reserved, less a tenth, but always a fifth of the pool (rule BO-10).
func (c *Cache) liveCap() int {
	size := c.host.pools[tree.Full].Size()
	return max(size/5, size-c.storage.occupancy-size/10)
}

// stagingRoom allocates staging slots of a component; nil if there are none to be
// had now. Nothing can be evicted for them.
func (c *Cache) stagingRoom(id tree.Component, n int) (tree.Slots, error) {
	if err := c.injected(id, true); err != nil {
		return nil, nil
	}
	s, err := c.host.pools[id].Alloc(n)
	if momentary(err) {
		return nil, nil
	}
	return s, err
}

// stagedSlots are host slots that an operation in flight has.
type stagedSlots struct {
	owner     string
	component tree.Component
	slots     tree.Slots
}

// staging lists who has which host slots, but for prefetches.
func (c *Cache) staging() []stagedSlots {
	if !c.bufferOnly() {
		return nil
	}
	var out []stagedSlots
	for _, l := range c.launches() {
		out = append(out, stagedSlots{fmt.Sprintf("the write of node %d", l.node), l.component, l.host})
	}
	hold := func(owner string, h *hold) {
		out = append(out, stagedSlots{owner, tree.Full, h.full}, stagedSlots{owner, tree.SWA, h.swa})
	}
	for r := c.live.first; r != nil; r = r.next {
		if r.hold != nil {
			hold(fmt.Sprintf("the hold of request %d", r.id), r.hold)
		}
	}
	for _, l := range c.host.loads {
		if l.spliced != nil {
			hold(fmt.Sprintf("the splice of load %d", l.seq), l.spliced.hold)
		}
	}
	return out
}

// launches lists what is copied or written, the copies first.
func (c *Cache) launches() []*launch {
	out := append([]*launch(nil), c.host.buffer.copying...)
	if c.storage != nil {
		for _, w := range c.storage.writes {
			out = append(out, w.launch)
		}
	}
	return out
}

// superfluous lists the SWA slots on the device that wait for the end of a copy
// to be freed (rule BO-21).
func (c *Cache) superfluous() tree.Slots {
	var out tree.Slots
	if c.bufferOnly() {
		for _, l := range c.host.loads {
			if l.spliced != nil {
				out = out.Append(l.spliced.superfluous)
			}
		}
	}
	return out
}

// startsWork reports whether something is in flight that an end of something else
// has started: an acknowledged copy starts a write, and a write that has ended
// makes room for the next copy.
func (c *Cache) startsWork() bool {
	if !c.bufferOnly() {
		return false
	}
	e := c.host.engine
	n := e.InFlight(pool.ToHost)
	if c.storage != nil {
		for k := range queue.Kind(queue.NumKinds) {
			n += c.storage.queue.InFlight(k)
		}
	}
	return n > 0
}

// endBuffer drops what waits for the store at the store's end, or a reset's: the
// intents, and the holds of requests that wait.
func (c *Cache) endBuffer() error {
	if !c.bufferOnly() {
		return nil
	}
	b := c.host.buffer
	b.intents, b.backlog = nil, tree.Units{}
	clear(b.queued)
	var err error
	for r := c.live.first; r != nil; r = r.next {
		if r.hold != nil {
			c.stats.Storage.HoldsDropped++
			err = errors.Join(err, c.dropHold(r))
		}
	}
	return err
}

// resetBuffer forgets the launches and splices of a reset, whose copies have
// ended. Host slots come back with their pools.
func (c *Cache) resetBuffer() error {
	if !c.bufferOnly() {
		return nil
	}
	b := c.host.buffer
	b.copying, b.staged = nil, tree.Units{}
	clear(b.flying)
	clear(b.launched)
	if c.storage != nil {
		c.storage.occupancy = 0
	}
	if s := c.superfluous(); len(s) > 0 {
		return c.dual.SWA().Free(s)
	}
	return nil
}
