// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/tree"
)

const (
	defaultPageSize = 16
	// With states nothing between two checkpoints can be reused, so finer pages
	// than the grid gain nothing.
	defaultStatePageSize = 64
	defaultGrid          = 64

	maxBytes  = 1 << 50
	maxWindow = 1 << 30
	maxGrid   = 1 << 30
	maxRate   = 1e12
)

// Profile is what a cache planner needs to know about a model. The zero value is
// not valid.
type Profile struct {
	Name  string `yaml:"name" json:"name"`
	Full  Full   `yaml:"full" json:"full"`
	SWA   *SWA   `yaml:"swa" json:"swa,omitempty"`     // nil: no sliding-window layers
	Mamba *Mamba `yaml:"mamba" json:"mamba,omitempty"` // nil: no recurrent layers
	// PageSize is the default number of tokens in a page.
	PageSize int `yaml:"page_size" json:"page_size"`
	// PrefillRate is the number of prompt tokens computed in a second on one
	// rank; 0: not known.
	PrefillRate float64 `yaml:"prefill_tokens_per_second" json:"prefill_tokens_per_second,omitempty"`
	// DecodeRate is the number of tokens that one request generates in a
	// second; 0: not known.
	DecodeRate float64 `yaml:"decode_tokens_per_second" json:"decode_tokens_per_second,omitempty"`
}

// Full describes the full-attention layers together.
type Full struct {
	BytesPerToken int64 `yaml:"bytes_per_token" json:"bytes_per_token"`
}

// SWA describes the sliding-window layers together.
type SWA struct {
	BytesPerToken int64 `yaml:"bytes_per_token" json:"bytes_per_token"`
	Window        int   `yaml:"window" json:"window"` // tokens
}

// Mamba describes the recurrent layers together: state space, linear attention,
// short convolution.
type Mamba struct {
	BytesPerState int64 `yaml:"bytes_per_state" json:"bytes_per_state"`
	// CheckpointGrid is the spacing in tokens at which the kernels can leave a
	// state.
	CheckpointGrid int `yaml:"checkpoint_grid" json:"checkpoint_grid"`
}

// Components gives the components that the model has state of.
func (p *Profile) Components() tree.ComponentSet {
	set := tree.SetOf(tree.Full)
	if p.SWA != nil {
		set |= tree.SetOf(tree.SWA)
	}
	if p.Mamba != nil {
		set |= tree.SetOf(tree.Mamba)
	}
	return set
}

// Window gives the sliding window in tokens; 0 without one.
func (p *Profile) Window() int {
	if p.SWA == nil {
		return 0
	}
	return p.SWA.Window
}

// Grid gives the distance in tokens between states that a tree with this page
// size may keep: the smallest common multiple of CheckpointGrid and the page
// (rule CF-3). 0 without states.
func (p *Profile) Grid(pageSize int) int {
	if p.Mamba == nil || pageSize < 1 {
		return 0
	}
	a, b := p.Mamba.CheckpointGrid, pageSize
	for b != 0 {
		a, b = b, a%b
	}
	return p.Mamba.CheckpointGrid / a * pageSize
}

// FieldError says which field of a profile has a wrong value.
type FieldError struct {
	Profile string // file or name
	Field   string // path of the field, as in the file
	Value   string // what stands there
	Allowed string // what would be right
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: field %q is %s, must be %s", e.Profile, e.Field, e.Value, e.Allowed)
}

// complete fills in defaults and joins a *FieldError for each wrong field.
func (p *Profile) complete(from string) error {
	var problems []error
	bad := func(field string, value any, allowed string) {
		problems = append(problems, &FieldError{Profile: from, Field: field, Value: fmt.Sprint(value), Allowed: allowed})
	}
	number := func(field string, value, most int64) {
		if value < 1 || value > most {
			bad(field, value, fmt.Sprintf("from 1 to %d", most))
		}
	}
	rate := func(field string, value float64) {
		if !(value >= 0 && value <= maxRate) {
			bad(field, value, fmt.Sprintf("from 0 (not known) to %g", maxRate))
		}
	}
	if p.Name == "" {
		bad("name", `""`, "the model's name")
	}
	number("full.bytes_per_token", p.Full.BytesPerToken, maxBytes)
	if p.SWA != nil {
		number("swa.bytes_per_token", p.SWA.BytesPerToken, maxBytes)
		number("swa.window", int64(p.SWA.Window), maxWindow)
	}
	if p.PageSize == 0 {
		p.PageSize = defaultPageSize
		if p.Mamba != nil {
			p.PageSize = defaultStatePageSize
		}
	}
	if p.Mamba != nil {
		number("mamba.bytes_per_state", p.Mamba.BytesPerState, maxBytes)
		if p.Mamba.CheckpointGrid == 0 {
			p.Mamba.CheckpointGrid = defaultGrid
		}
		number("mamba.checkpoint_grid", int64(p.Mamba.CheckpointGrid), maxGrid)
	}
	number("page_size", int64(p.PageSize), tree.MaxPageSize)
	rate("prefill_tokens_per_second", p.PrefillRate)
	rate("decode_tokens_per_second", p.DecodeRate)
	return errors.Join(problems...)
}
