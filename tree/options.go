// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"maps"
)

// MaxPageSize is the largest page that Options accepts, in units.
const MaxPageSize = 1024

// Options configures a Core. The zero value is a core for Full attention with
// pages of one token and least-recently-used eviction.
type Options struct {
	// Components is the set of cached states: {Full}, {Full, SWA},
	// {Full, Mamba} or {Full, SWA, Mamba}. Zero: {Full}.
	Components ComponentSet
	// PageSize is the number of units in a page: 1 to MaxPageSize. Zero: 1.
	// Keys are cut to whole pages.
	PageSize int
	// SlidingWindow is the window of the SWA component in units, at least 1.
	// Required with SWA, not looked at without.
	SlidingWindow int
	// CheckpointGrid is the distance in units between the positions at which
	// a Mamba state may be kept: at least 1 and a multiple of PageSize.
	// Zero: PageSize. Not looked at without Mamba.
	CheckpointGrid int
	// MaxStatesPerPath caps the Mamba states on the path of an insert; the
	// shallowest go first. Zero or -1: no cap. (Values below -1 are errors.)
	MaxStatesPerPath int
	// Eagle shows every key as bigrams. Ignored with Mamba (rule CF-5).
	Eagle bool
	// Policy picks the Full leaf to evict next. Zero: lru.
	Policy PolicyOptions
	// Events records KV placement events for TakeEvents.
	Events bool
	// Sessions turns session references on.
	Sessions bool
}

// Switches may change during a core's life (rule CF-8). Their zero value but
// for WriteThroughThreshold, which starts as 256, is what a new core has.
type Switches struct {
	HostTier              bool // a host tier is present
	Storage               bool // nodes need storage hashes from their creation on
	WriteThroughThreshold int  // counted inserts that make a node ask for a backup
	WriteBack             bool // back up at eviction instead of at insert
	SWAHostPool           bool // the host tier has room for SWA
	HostBufferOnly        bool // host memory is a staging buffer, not a tier
	ExternalLinker        bool // nodes ask for offloads to an external store; no host tier, no Mamba, threshold 1
	SWARingLayout         bool // SWA lives with the requests, never in the tree (rule M-12)
}

const defaultWriteThroughThreshold = 256

// complete validates o and fills in defaults; it returns all problems joined.
func (o Options) complete() (Options, policy, error) {
	var problems []error
	bad := func(field string, value any, allowed string) {
		problems = append(problems, &ConfigError{Field: field, Value: fmt.Sprint(value), Allowed: allowed})
	}
	if o.Components == 0 {
		o.Components = SetOf(Full)
	}
	if !o.Components.Has(Full) || o.Components>>NumComponents != 0 {
		bad("Components", o.Components, "{full}, {full,swa}, {full,mamba} or {full,swa,mamba}")
	}
	if o.PageSize == 0 {
		o.PageSize = 1
	}
	if o.PageSize < 1 || o.PageSize > MaxPageSize {
		bad("PageSize", o.PageSize, fmt.Sprintf("1 to %d", MaxPageSize))
		o.PageSize = 1
	}
	if o.Components.Has(SWA) && (o.SlidingWindow < 1 || o.SlidingWindow > maxLength) {
		bad("SlidingWindow", o.SlidingWindow, fmt.Sprintf("1 to %d with the swa component", maxLength))
	}
	if o.Components.Has(Mamba) {
		if o.CheckpointGrid == 0 {
			o.CheckpointGrid = o.PageSize
		}
		if o.CheckpointGrid < 1 || o.CheckpointGrid%o.PageSize != 0 {
			bad("CheckpointGrid", o.CheckpointGrid, fmt.Sprintf("a multiple of PageSize %d", o.PageSize))
		}
		if o.MaxStatesPerPath < -1 {
			bad("MaxStatesPerPath", o.MaxStatesPerPath, "-1 or 0 (no cap), or 1 and more")
		}
		o.Eagle = false
	}
	if o.MaxStatesPerPath <= 0 {
		o.MaxStatesPerPath = -1
	}
	o.Policy.Params = maps.Clone(o.Policy.Params)
	p, err := o.Policy.build()
	if err != nil {
		problems = append(problems, err)
	}
	return o, p, errors.Join(problems...)
}

// maxLength bounds lengths and windows, so that sums of a few of them can not
// leave the range of int on any platform with 64-bit integers.
const maxLength = 1 << 40
