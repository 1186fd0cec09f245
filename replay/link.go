// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// link is the way between device and host in virtual time. Each direction is a
// line of its own: a copy starts when the one before it has ended, and takes a
// latency and its bytes at the bandwidth. The copy's bytes move, and the cache
// hears of it, when virtual time has passed its end.
type link struct {
	bytes     [tree.NumComponents]float64 // of a slot
	bandwidth float64                     // bytes a second
	latency   time.Duration
	now       time.Duration

	free    [2]time.Duration // end of the last copy of each direction
	flights [2][]flight      // the oldest first
	moved   [2]float64       // bytes
	// stall is the moment until which the engine waits for copies that evictions
	// under write-back need.
	stall   time.Duration
	stalled time.Duration // sum of waits
	// wake asks for a moment at which a copy ends, since somebody may wait for it;
	// nil: whoever does asks himself.
	wake func(time.Duration)
}

type flight struct {
	id  int64
	end time.Duration
}

func newLink(o *Options) *link {
	l := &link{bandwidth: o.HostBandwidth, latency: o.HostLatency}
	l.bytes[tree.Full] = float64(o.Profile.Full.BytesPerToken)
	if p := o.Profile.SWA; p != nil {
		l.bytes[tree.SWA] = float64(p.BytesPerToken)
	}
	if p := o.Profile.Mamba; p != nil {
		l.bytes[tree.Mamba] = float64(p.BytesPerState)
	}
	return l
}

// started books a copy.
func (l *link) started(id int64, c pool.Copy) {
	bytes := 0.0
	for component, n := range c.Slots() {
		bytes += float64(n) * l.bytes[component]
	}
	d := c.Direction
	end := max(l.now, l.free[d]) + l.latency + time.Duration(bytes/l.bandwidth*float64(time.Second))
	l.free[d], l.moved[d] = end, l.moved[d]+bytes
	l.flights[d] = append(l.flights[d], flight{id, end})
	if l.wake != nil {
		l.wake(end)
	}
}

// waited notes that a call could not go on before a copy had ended.
func (l *link) waited(id int64) {
	for _, line := range l.flights {
		for _, f := range line {
			if f.id == id {
				l.standStill(f.end)
			}
		}
	}
}

// standStill notes that everything waits until a moment.
func (l *link) standStill(until time.Duration) {
	if from := max(l.now, l.stall); until > from {
		l.stalled += until - from
		l.stall = until
	}
}

// advance moves virtual time on: copies that have ended by then end now, and it
// reports whether there were such.
func (l *link) advance(now time.Duration, c *cache.Cache) (ended bool, err error) {
	if l == nil {
		return false, nil
	}
	l.now = now
	for d := range l.flights {
		n := 0
		for n < len(l.flights[d]) && l.flights[d][n].end <= now {
			c.Engine().Complete(l.flights[d][n].id)
			n++
		}
		if n > 0 {
			l.flights[d] = append(l.flights[d][:0], l.flights[d][n:]...)
			ended = true
		}
	}
	if !ended {
		return false, nil
	}
	return true, c.Tick()
}

// next gives the moment at which the next backup ends; false if none is on its
// way.
func (l *link) next() (time.Duration, bool) {
	if l == nil || len(l.flights[pool.ToHost]) == 0 {
		return 0, false
	}
	return l.flights[pool.ToHost][0].end, true
}

// busy reports whether a copy is on its way.
func (l *link) busy() bool {
	return l != nil && len(l.flights[pool.ToHost])+len(l.flights[pool.ToDevice]) > 0
}

// begin gives the moment at which work may begin: now, or when what the calls so
// far had to wait for is there.
func (l *link) begin(now time.Duration) time.Duration {
	if l == nil {
		return now
	}
	return max(now, l.stall)
}

// loaded gives the moment at which everything is there that is being loaded.
func (l *link) loaded() time.Duration {
	if l == nil || len(l.flights[pool.ToDevice]) == 0 {
		return 0
	}
	return l.free[pool.ToDevice]
}
