// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"

	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// retractOne takes a running request off the device, where that is supported.
// What is short, or fails, leaves it running.
func (c *crowd) retractOne(t *rapid.T) {
	r := c.pick(t, Running)
	if c.cache.SupportsRetraction() != nil {
		t.Skip()
	}
	allocated := r.Allocated()
	_, err := c.cache.Retract(context.Background(), r)
	c.check()
	var failed *RetractionError
	var lost *LoadError
	switch {
	case errors.As(err, &lost) && r.state == Lost:
	case errors.As(err, &failed), momentary(err):
		if r.Allocated() != allocated {
			t.Fatalf("request %d had %d positions, and %d after %v", r.id, allocated, r.Allocated(), err)
		}
		c.read(r, r.Len())
	case err != nil || r.state != Retracted:
		t.Fatalf("request %d is %v: %v", r.id, r.state, err)
	}
}

// restoreOne lets a retracted request run on, or ends it.
func (c *crowd) restoreOne(t *rapid.T) {
	r := c.pick(t, Retracted)
	if rapid.IntRange(0, 7).Draw(t, "discard") == 0 {
		c.ok(c.cache.Discard(r.saved))
		c.gone(t, r)
		return
	}
	s := r.saved
	units := s.Units()
	err := c.cache.Restore(context.Background(), s)
	c.check()
	var failed *RetractionError
	switch {
	case errors.As(err, &failed), momentary(err):
		if r.state != Retracted || s.Units() != units {
			t.Fatalf("request %d is %v, with %v of %v: %v", r.id, r.state, s.Units(), units, err)
		}
	case err != nil:
		t.Fatalf("%v", err)
	default:
		c.read(r, r.Len())
	}
}

// detour retracts a request and restores it, sometimes. It reports whether the
// request can go on.
func (c *crowd) detour(t *rapid.T, r *Request) bool {
	if c.cache.SupportsRetraction() != nil || rapid.IntRange(0, 2).Draw(t, "detour") > 0 {
		return true
	}
	s, err := c.cache.Retract(context.Background(), r)
	c.check()
	if err != nil {
		return r.state == Running
	}
	if rapid.Bool().Draw(t, "evict") {
		_, err := c.cache.Evict(tree.Full, 1<<20)
		c.ok(err)
	}
	if err = c.cache.Restore(context.Background(), s); err == nil {
		c.read(r, r.Len())
	}
	c.check()
	return err == nil && r.state == Running
}
