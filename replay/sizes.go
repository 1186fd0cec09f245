// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// sizes says how large the pools are and what fits them.
type sizes struct {
	device cache.PoolSizes // what the device holds
	// pools is what is made: no more than the workload can use at most, which
	// gives the same run and takes less memory.
	pools cache.PoolSizes
	// hostSize is what the host holds, and host what is made of it.
	hostSize, host cache.PoolSizes
	page           int
	chunk          int  // most prompt tokens in a step
	keep           bool // SWA slots stay when they leave the window
	notes          []string
}

// Lack says what a request would have needed.
type Lack struct {
	Component tree.Component
	Needed    int // slots at once
	Size      int // slots of the pool
}

// maxPool is the largest pool: slot numbers have 32 bits.
const maxPool = 1<<32 - 1<<12

func newSizes(w *workload.Workload, o *Options) (sizes, error) {
	split := model.Split{PageSize: o.PageSize, SWARatio: o.SWARatio, StateRatio: o.StateRatio}
	device, err := o.Profile.Pools(o.DeviceBytes, split)
	if err != nil {
		return sizes{}, err
	}
	s := sizes{device: device, pools: device, page: o.PageSize, chunk: o.Chunk, keep: o.KeepOutOfWindow}
	tokens, states := 0, o.inFlight()*(model.DefaultTrackBuffers+2)
	for i := range w.Requests {
		r := &w.Requests[i]
		tokens += s.whole(r.InputLen + r.OutputLen)
		states += r.InputLen/o.Chunk + 3 // a chunk leaves one state, the end another
	}
	least := 0
	if o.Profile.SWA != nil {
		least = model.MinSWA(o.Profile.SWA.Window, o.PageSize)
	}
	if !o.uncut {
		s.pools.Full = min(device.Full, tokens)
		// Admission asks for a window and a chunk, and for a stride of each that runs.
		beside := least + s.whole(o.Chunk) + min(o.inFlight(), len(w.Requests))*s.whole(decodeStride)
		s.pools.SWA = min(device.SWA, tokens+beside)
		s.pools.Mamba = min(device.Mamba, states)
	}
	if o.HostBytes != 0 {
		if s.hostSize, err = o.Profile.HostPools(o.HostBytes, split); err != nil {
			return sizes{}, err
		}
		s.host = s.hostSize
		switch {
		case o.uncut:
		case o.bufferOnly:
			// Shares of the pools decide who waits for room: four times what may be
			// staged at most leave nobody waiting, as more would.
			most := 4 * tokens
			s.host = cache.PoolSizes{Full: min(s.host.Full, most), SWA: min(s.host.SWA, most+4*least)}
		default:
			s.host = cache.PoolSizes{Full: min(s.host.Full, tokens), SWA: min(s.host.SWA, tokens), Mamba: min(s.host.Mamba, states)}
		}
		if o.HostBytes == model.Unlimited {
			s.hostSize = s.host
		}
	}
	if o.DeviceBytes == model.Unlimited {
		s.device = s.pools
	}
	if s.pools.Full > maxPool || s.pools.SWA > maxPool {
		return sizes{}, fmt.Errorf("the pools would need %d tokens at page %d, at most %d can be numbered: give a smaller device, or limit the requests",
			max(s.pools.Full, s.pools.SWA), o.PageSize, maxPool)
	}
	s.fitChunk(o, least)
	return s, nil
}

// fitChunk makes steps small enough for the SWA pool: a chunk stands in it
// beside the windows, and where a checkpoint must keep its window, what was
// computed since as well.
func (s *sizes) fitChunk(o *Options, least int) {
	if o.Profile.SWA == nil {
		return
	}
	room := s.pools.SWA - least + s.page
	if o.Profile.Mamba != nil {
		room = (room - o.Profile.Grid(s.page)) / 2
	}
	if room = max(room-room%s.page, s.page); room < s.chunk {
		s.chunk = room
		s.notes = append(s.notes, fmt.Sprintf("a step computes at most %d tokens, not %d: no more fit the swa pool beside the windows", room, o.Chunk))
	}
}

// whole rounds up to pages.
func (s *sizes) whole(tokens int) int { return (tokens + s.page - 1) / s.page * s.page }

// lack gives what a request needs at most, and of which component it fails.
func (s *sizes) lack(input, output int) Lack {
	if l := s.tooBig(input, output); l != nil {
		return *l
	}
	l := Lack{Component: tree.Full, Needed: s.whole(input + output), Size: s.device.Full}
	if s.device.SWA > 0 {
		l = Lack{Component: tree.SWA, Needed: s.whole(input + output), Size: s.device.SWA}
	}
	return l
}

// tooBig says what a request lacks that cannot fit even alone; nil if it can.
func (s *sizes) tooBig(input, output int) *Lack {
	need := s.whole(input + output)
	switch {
	case need > s.pools.Full:
		return &Lack{Component: tree.Full, Needed: need, Size: s.device.Full}
	case s.keep && s.pools.SWA > 0 && need > s.pools.SWA:
		return &Lack{Component: tree.SWA, Needed: need, Size: s.device.SWA}
	}
	return nil
}

// roomFor says whether the cache has room for the rest of a prompt, of which the
// first chunk is n, beside what the running requests still need: the rest of
// their prompts and a share of their outputs.
func (d *driver) roomFor(j *job, n int) bool {
	prompts, outputs := d.sizes.whole(j.promptLeft()), 0
	for _, other := range d.running {
		prompts += max(0, d.sizes.whole(other.request.InputLen)-d.sizes.whole(other.live.Allocated()))
		outputs += other.outputLeft()
	}
	need := prompts + int(d.o.Reserve*float64(outputs))
	if d.cache.c.Available(tree.Full) < need {
		return false
	}
	if d.o.Profile.SWA == nil {
		return true
	}
	if !d.sizes.keep {
		// Windows slide: the chunk, and some room for each that generates.
		need = d.sizes.whole(n+d.o.Profile.SWA.Window) + len(d.running)*d.sizes.whole(decodeStride)
	}
	return d.cache.c.Available(tree.SWA) >= need
}
