// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
)

// maxSamples bounds the samples of occupancy: when there are as many, every
// second one is dropped and the distance doubles.
const maxSamples = 240

// Sample is the use of the pools at a moment in virtual time.
type Sample struct {
	Seconds float64     `json:"seconds"`
	Full    Use         `json:"full"`
	SWA     *Use        `json:"swa,omitempty"`
	Mamba   *Use        `json:"mamba,omitempty"`
	Host    *HostSample `json:"host,omitempty"`
}

// Use counts the slots of a component: tokens, or states. They add up to the
// size of the pool.
type Use struct {
	Free      int `json:"free"`
	Evictable int `json:"evictable"` // cached, used by no request
	Protected int `json:"protected"` // cached, in use
	Held      int `json:"held"`      // of requests, not cached yet
}

// timeline collects samples.
type timeline struct {
	samples []Sample
	every   time.Duration
	next    time.Duration
}

const firstInterval = 10 * time.Millisecond

// sample takes the use of the pools if it is time to.
func (t *timeline) sample(now time.Duration, c *cache.Cache, s *sizes) {
	if now < t.next {
		return
	}
	if t.every == 0 {
		t.every = firstInterval
	}
	t.samples = append(t.samples, sampleOf(now, c, s))
	if len(t.samples) == maxSamples {
		for i := range maxSamples / 2 {
			t.samples[i] = t.samples[2*i]
		}
		t.samples = t.samples[:maxSamples/2]
		t.every *= 2
	}
	t.next = (now/t.every + 1) * t.every
}

// close takes a last sample at the end.
func (t *timeline) close(now time.Duration, c *cache.Cache, s *sizes) {
	t.samples = append(t.samples, sampleOf(now, c, s))
}

func sampleOf(now time.Duration, c *cache.Cache, s *sizes) Sample {
	x := Sample{Seconds: now.Seconds(), Full: useOf(c, tree.Full, s.device.Full)}
	set := c.Tree().Options().Components
	if set.Has(tree.SWA) {
		u := useOf(c, tree.SWA, s.device.SWA)
		x.SWA = &u
	}
	if set.Has(tree.Mamba) {
		u := useOf(c, tree.Mamba, s.device.Mamba)
		x.Mamba = &u
	}
	x.Host = hostSample(c, s)
	return x
}

// useOf counts against the size on the device, of which the pool may be a part.
func useOf(c *cache.Cache, id tree.Component, device int) Use {
	u := c.Usage(id)
	return Use{Free: u.Free + device - u.Size, Evictable: u.Evictable, Protected: u.Protected, Held: u.Held}
}

// of gives the use of a component, with false if it has none.
func (x *Sample) of(id tree.Component) (Use, bool) {
	switch {
	case id == tree.Full:
		return x.Full, true
	case id == tree.SWA && x.SWA != nil:
		return *x.SWA, true
	case id == tree.Mamba && x.Mamba != nil:
		return *x.Mamba, true
	}
	return Use{}, false
}

// treeSize follows the memory of a tree to its peak. Measuring costs a walk, so
// it is done when the tree has grown by a part of 1/growth since the last time.
type treeSize struct {
	nodes, tokens int // at the last measurement
	peakBytes     int
	peakTokens    int // cached at the peak
	peakNodes     int
}

const growth = 32

func (t *treeSize) follow(c *tree.Core) {
	nodes, tokens := c.NodeCount(), c.EvictableSize(tree.Full)+c.ProtectedSize(tree.Full)
	if nodes > t.nodes+t.nodes/growth || tokens > t.tokens+t.tokens/growth {
		t.measure(c)
	}
}

func (t *treeSize) measure(c *tree.Core) {
	nodes, tokens := c.NodeCount(), c.EvictableSize(tree.Full)+c.ProtectedSize(tree.Full)
	t.nodes, t.tokens = max(t.nodes, nodes), max(t.tokens, tokens)
	if bytes := c.MemoryBytes(); bytes > t.peakBytes {
		t.peakBytes, t.peakTokens, t.peakNodes = bytes, tokens, nodes
	}
}
