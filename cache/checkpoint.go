// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"

	"github.com/treecore/treecore/tree"
)

// none is the length of a checkpoint that does not exist.
const none = -1

// checkpoint is a request's Mamba part: the state it runs on, and the track
// buffers that take copies of it at positions where a state may be kept.
type checkpoint struct {
	state   tree.Slot
	buffers [2]tree.Slot
	lengths [2]int // prefix that the buffer's state summarises; none: nothing
	next    int    // buffer that the next checkpoint goes to
	last    int    // buffer of the latest checkpoint
	length  int    // prefix of the latest checkpoint, none: absent
}

// errPrefixGone says that what a request was about to reuse went while room was
// made for it: the load that was to bring it has failed.
var errPrefixGone = errors.New("the prefix is gone")

// takeStates allocates the state that a request runs on and its track buffers,
// and has the state copied from the tree where the request continues there. On
// an error nothing is taken.
func (c *Cache) takeStates(r *Request) error {
	n := 1 + c.opts.TrackBuffers
	k := checkpoint{lengths: [2]int{none, none}, length: none, state: r.checkpoint.state}
	first := 0
	if k.state != 0 {
		first = 1 // a load back has taken it
	}
	locked := r.locked
	if err := c.makeRoom(tree.Units{tree.Mamba: n - first}); err != nil {
		return err
	}
	if locked && !r.locked {
		return errPrefixGone
	}
	for i := first; i < n; i++ {
		s, err := c.states.AllocOne()
		if err != nil {
			return err // cannot be: there is room
		}
		if i == 0 {
			k.state = s
		} else {
			k.buffers[i-1] = s
		}
	}
	r.checkpoint = k
	if r.match.DeviceLen > 0 {
		return c.copyState(r)
	}
	return nil
}

// freeStates frees the states of a request except the one in buffer given.
func (c *Cache) freeStates(r *Request, given int) error {
	if !c.mamba || r.checkpoint.state == 0 {
		return nil
	}
	if c.host != nil {
		c.host.dropCopies(r)
	}
	k := &r.checkpoint
	list := append(c.joined[:0], tree.Run{First: k.state, Length: 1})
	for i := range c.opts.TrackBuffers {
		if i != given {
			list = list.AppendRun(tree.Run{First: k.buffers[i], Length: 1})
		}
	}
	*k = checkpoint{length: none}
	c.joined = list
	return c.states.Free(list)
}

// StateSlot returns the Mamba state that the request runs on; 0 without Mamba.
func (r *Request) StateSlot() tree.Slot { return r.checkpoint.state }

// Tracked returns the latest checkpoint that is not cached yet: the length of
// the prefix that it summarises and the state slot that holds it. Whoever runs
// the model must have saved the state there before the next call that caches
// the request. ok is false if there is none.
func (r *Request) Tracked() (length int, slot tree.Slot, ok bool) {
	k := &r.checkpoint
	if k.length == none {
		return 0, 0, false
	}
	return k.length, k.buffers[k.last], true
}

// PlanTrack tells where the Mamba state must be saved while the next n
// positions of a prompt are computed, as Commit(r, n) will take it for done:
// the state after the first length tokens belongs into slot. ok is false if no
// state is to be saved.
func (c *Cache) PlanTrack(r *Request, n int) (length int, slot tree.Slot, ok bool) {
	if !c.mamba || c.opts.Disabled || r == nil || r.cache != c || r.state != Running || n < 0 {
		return 0, 0, false
	}
	length = c.trackPoint(r, r.committed, r.committed+n)
	return length, r.checkpoint.buffers[r.checkpoint.next], length > 0
}

// trackPoint returns the prefix length at which to save a state while the
// positions s .. e-1 are computed, 0 for none: the branch point, else the
// deepest point of the grid (rule MC-2).
func (c *Cache) trackPoint(r *Request, s, e int) int {
	if b := r.mambaBranch; s < b && b <= e {
		return b
	}
	if deepest := e - e%c.grid; deepest > s {
		return deepest
	}
	return 0
}

// track notes that the state at length is in the next buffer.
func (c *Cache) track(r *Request, length int) {
	k := &r.checkpoint
	k.last, k.next = k.next, (k.next+1)%c.opts.TrackBuffers
	k.length, k.lengths[k.last] = length, length
}

// untrack forgets the checkpoints of a request.
func (r *Request) untrack() {
	r.checkpoint.length, r.checkpoint.lengths = none, [2]int{none, none}
}

// decodeGrid returns the distance of checkpoints in decode (rule MC-3).
func (c *Cache) decodeGrid() int { return Grid(c.grid, c.opts.TrackInterval) }

// handOver is a state on its way to the tree.
type handOver struct {
	buffer int       // track buffer that holds it; none: no state goes
	state  tree.Slot // the slot in it
}

// donate takes the state out of a track buffer for an insert and puts a fresh
// slot there (rule MC-6). On an error nothing has changed.
func (c *Cache) donate(r *Request, buffer int) (handOver, error) {
	if buffer == none {
		return handOver{buffer: none}, nil
	}
	if err := c.makeRoom(tree.Units{tree.Mamba: 1}); err != nil {
		return handOver{}, err
	}
	fresh, err := c.states.AllocOne()
	if err != nil {
		return handOver{}, err
	}
	h := handOver{buffer: buffer, state: r.checkpoint.buffers[buffer]}
	r.checkpoint.buffers[buffer] = fresh
	return h, nil
}

// value returns the state as the tree wants it; nil if none goes.
func (h handOver) value() tree.Slots {
	if h.buffer == none {
		return nil
	}
	return tree.Numbered(h.state, 1)
}

// settle counts the state, and frees it if the tree did not take it.
func (c *Cache) settle(h handOver, result *tree.InsertResult) error {
	switch {
	case h.buffer == none:
		return nil
	case result.MambaExist:
		c.stats.StatesExisting++
		return c.states.FreeOne(h.state)
	}
	c.stats.StatesCached++
	return nil
}
