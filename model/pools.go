// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
)

const (
	// DefaultSWARatio makes the sliding-window pool a tenth of the Full pool:
	// a window is short, but every running request and every reusable prefix
	// needs one.
	DefaultSWARatio = 0.1
	// DefaultStateRatio gives states half of the device.
	DefaultStateRatio = 0.5
	// DefaultTrackBuffers is the number of states that a running request holds
	// beside the one it runs on.
	DefaultTrackBuffers = 2
)

// Split says how a device is divided among the components. Zero values take the
// defaults.
type Split struct {
	PageSize int // tokens; 0: the profile's
	// SWARatio is the size of the SWA pool in tokens as a share of that of the
	// Full pool: above 0, at most 1.
	SWARatio float64
	// StateRatio is the share of the bytes that goes to states, between 0 and 1.
	StateRatio float64
	// TrackBuffers is 1 or 2.
	TrackBuffers int
}

// TooSmallError says that a device cannot hold what a single request needs.
type TooSmallError struct {
	Model     string
	Component tree.Component
	Bytes     int64  // of the device
	Have      int    // slots of the component
	Want      int    // slots that one request needs
	What      string // what they are for
	Needed    int64  // bytes with which the device would be large enough
}

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("model %s: %s hold %d %s slots, %s takes %d: give at least %s (%d bytes)",
		e.Model, FormatSize(e.Bytes), e.Have, e.Component, e.What, e.Want, formatSize(e.Needed, math.Ceil), e.Needed)
}

// smallestShare is the smallest part of the memory that a pool may be given.
const smallestShare = 1e-6

func (s Split) complete(p *Profile) (Split, error) {
	if s.PageSize == 0 {
		s.PageSize = p.PageSize
	}
	if s.SWARatio == 0 {
		s.SWARatio = DefaultSWARatio
	}
	if s.StateRatio == 0 {
		s.StateRatio = DefaultStateRatio
	}
	if s.TrackBuffers == 0 {
		s.TrackBuffers = DefaultTrackBuffers
	}
	var problems []error
	bad := func(what string, value any, allowed string) {
		problems = append(problems, fmt.Errorf("%s is %v, must be %s", what, value, allowed))
	}
	if s.PageSize < 1 || s.PageSize > tree.MaxPageSize {
		bad("page size", s.PageSize, fmt.Sprintf("from 1 to %d", tree.MaxPageSize))
	}
	if !(s.SWARatio >= smallestShare && s.SWARatio <= 1) {
		bad("swa ratio", s.SWARatio, fmt.Sprintf("from %v to 1", smallestShare))
	}
	if !(s.StateRatio >= smallestShare && s.StateRatio <= 1-smallestShare) {
		bad("state ratio", s.StateRatio, fmt.Sprintf("from %v to %v", smallestShare, 1-smallestShare))
	}
	if s.TrackBuffers < 1 || s.TrackBuffers > 2 {
		bad("track buffers", s.TrackBuffers, "1 or 2")
	}
	return s, errors.Join(problems...)
}

// MinSWA gives the smallest SWA pool in tokens in which a request can run, a page
// at a time: the windows that its lock holds and its own, and what rounding
// keeps.
func MinSWA(window, pageSize int) int {
	whole := (window + pageSize - 1) / pageSize * pageSize
	return (window-1)/pageSize*pageSize + 2*whole + 2*pageSize
}

// MinStates gives the smallest number of states with which a request can run:
// its own and its track buffers, the checkpoint it resumes from, and one to swap.
func MinStates(trackBuffers int) int { return trackBuffers + 3 }

// Pools gives the slots of each component that fit deviceBytes: tokens in whole
// pages for Full and SWA, states for Mamba. A *TooSmallError names the size at
// which one request could run. Unlimited bytes give the largest numbers, which
// the caller cuts down to what a workload can use.
func (p *Profile) Pools(deviceBytes int64, s Split) (cache.PoolSizes, error) {
	s, err := s.complete(p)
	if err != nil {
		return cache.PoolSizes{}, err
	}
	sizes := p.fit(deviceBytes, s)
	wants := []struct {
		component  tree.Component
		have, want int
		what       string
	}{
		{tree.Full, sizes.Full, s.PageSize, "a page"},
		{tree.SWA, sizes.SWA, 0, "a running request with its windows"},
		{tree.Mamba, sizes.Mamba, 0, "a running request with its checkpoints"},
	}
	if p.SWA != nil {
		wants[1].want = MinSWA(p.SWA.Window, s.PageSize)
	}
	if p.Mamba != nil {
		wants[2].want = MinStates(s.TrackBuffers)
	}
	for _, w := range wants {
		if w.have < w.want {
			return cache.PoolSizes{}, &TooSmallError{
				Model: p.Name, Component: w.component, Bytes: deviceBytes,
				Have: w.have, Want: w.want, What: w.what, Needed: p.needed(s, wants[1].want, wants[2].want),
			}
		}
	}
	return sizes, nil
}

// HostPools gives the slots of each component on a host tier of hostBytes, divided
// like a device: tokens in whole pages, and states. A host that does not hold a
// page and a state is a *TooSmallError; one without room for a page of SWA has
// none of it. Unlimited bytes give the largest numbers.
func (p *Profile) HostPools(hostBytes int64, s Split) (cache.PoolSizes, error) {
	s, err := s.complete(p)
	if err != nil {
		return cache.PoolSizes{}, err
	}
	sizes := p.fit(hostBytes, s)
	states := 0
	if p.Mamba != nil {
		states = 1
	}
	short := func(id tree.Component, have, want int, what string) error {
		return &TooSmallError{
			Model: p.Name, Component: id, Bytes: hostBytes, Have: have, Want: want, What: what,
			Needed: p.needed(s, 0, states),
		}
	}
	switch {
	case sizes.Full < s.PageSize:
		err = short(tree.Full, sizes.Full, s.PageSize, "a page on the host")
	case p.Mamba != nil && sizes.Mamba < 1:
		err = short(tree.Mamba, sizes.Mamba, 1, "a state on the host")
	}
	return sizes, err
}

// maxSlots is far above what slot numbers can tell apart, and far below where
// arithmetic on sizes would fail.
const maxSlots = 1 << 40

// fit divides the bytes.
func (p *Profile) fit(deviceBytes int64, s Split) cache.PoolSizes {
	var sizes cache.PoolSizes
	left := float64(max(deviceBytes, 0))
	if p.Mamba != nil {
		sizes.Mamba = int(min(left*s.StateRatio/float64(p.Mamba.BytesPerState), maxSlots))
		left -= left * s.StateRatio
	}
	perToken := float64(p.Full.BytesPerToken)
	if p.SWA != nil {
		perToken += s.SWARatio * float64(p.SWA.BytesPerToken)
	}
	page := float64(s.PageSize)
	sizes.Full = int(min(left/perToken, maxSlots)/page) * s.PageSize
	if p.SWA != nil {
		sizes.SWA = int(s.SWARatio*float64(sizes.Full)/page) * s.PageSize
	}
	return sizes
}

// needed gives the bytes that hold a page, and so many SWA tokens and states.
func (p *Profile) needed(s Split, swa, states int) int64 {
	page := float64(s.PageSize)
	tokens, bytes, share := page, 0.0, 1.0
	if p.SWA != nil {
		tokens = max(tokens, math.Ceil(float64(swa)/s.SWARatio/page)*page)
		bytes = tokens * s.SWARatio * float64(p.SWA.BytesPerToken)
	}
	bytes += tokens * float64(p.Full.BytesPerToken)
	if p.Mamba != nil {
		share = 1 - s.StateRatio
	}
	bytes /= share
	if p.Mamba != nil {
		bytes = max(bytes, float64(states)*float64(p.Mamba.BytesPerState)/s.StateRatio)
	}
	if bytes >= math.MaxInt64/2 {
		return math.MaxInt64 // more than any device has
	}
	need := int64(math.Ceil(bytes))
	// The divisions above may lose a little.
	for got := p.fit(need, s); need < math.MaxInt64/2 && (got.Full < s.PageSize || got.SWA < swa || got.Mamba < states); got = p.fit(need, s) {
		need += 1 + need/10000
	}
	return need
}
