// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario runs experiments whose right answers are known: each has arms
// that measure something on the reference engine and say what it must be.
// Features and guards can be left out, so that one sees what goes wrong without
// them.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// A Feature is something that an experiment can be run without.
type Feature string

// The features.
const (
	Branching   Feature = "branching"     // branch points are published
	Freeing     Feature = "freeing"       // SWA slots that left the window are freed
	HybridGuard Feature = "hybrid-guard"  // a state is attached to its own key only
	WindowCheck Feature = "window-check"  // a match ends where all components can go on
	CopyOnWrite Feature = "copy-on-write" // a request runs on a copy of the tree's state
	ShortWindow Feature = "short-window"  // a window from storage that is too short is rejected
	HostTier    Feature = "host"          // there is a host tier
)

// Features lists all features.
func Features() []Feature {
	return []Feature{Branching, Freeing, HybridGuard, WindowCheck, CopyOnWrite, ShortWindow, HostTier}
}

// Options of a run. The zero value runs at full size on the symbolic model.
type Options struct {
	// Tiny runs on the tiny network, at a size that fits it.
	Tiny bool
	// Without leaves features out of the arms that have them.
	Without []Feature
	// Requests is the number of requests of cold-warm. Zero: 1000.
	Requests int
	// Seed makes other random traffic.
	Seed uint64
	// Progress is told how much is done; nil: nobody is.
	Progress func(done, of int)
}

func (o *Options) has(f Feature) bool { return !slices.Contains(o.Without, f) }

// Arm is one measurement of a scenario.
type Arm struct {
	Name string `json:"name"`
	// CachedTokens has what each request reused, where that is what is measured.
	CachedTokens []int `json:"cached_tokens,omitempty"`
	Expected     any   `json:"expected"`
	// TokenHitRate is the share of prompt tokens that were reused, where that is
	// what is measured.
	TokenHitRate *float64 `json:"token_hit_rate,omitempty"`
	// Measured has what else is measured, by name.
	Measured map[string]any `json:"measured,omitempty"`
	OK       bool           `json:"ok"`
	Problem  string         `json:"problem,omitempty"`
}

// Result is the outcome of a scenario.
type Result struct {
	Name    string    `json:"name"`
	Model   string    `json:"model"`
	Without []Feature `json:"without,omitempty"`
	Arms    []Arm     `json:"arms"`
	OK      bool      `json:"ok"`
}

// Scenario is an experiment.
type Scenario struct {
	Name    string
	Summary string
	arms    func(ctx context.Context, o *Options) ([]Arm, error)
}

var scenarios = []Scenario{
	{"branching", "a shared prefix that ends inside a chunk, over a sliding window", branching},
	{"shared-prefix", "groups of prompts with a system prompt in common, with a small SWA pool", sharedPrefix},
	{"hybrid-checkpoint", "a branch between two states of a hybrid model", hybridCheckpoint},
	{"shortened-prefetch", "a window that comes back from storage shorter than it must be", shortenedPrefetch},
	{"cold-warm", "random traffic; every answer is compared with that of an empty cache", coldWarm},
}

// List returns all scenarios.
func List() []Scenario { return slices.Clone(scenarios) }

// UnknownError says that there is no scenario, or no feature, of a name.
type UnknownError struct{ What, Name, Known string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s %q is not known: give one of %s", e.What, e.Name, e.Known)
}

// NeedsError says that a scenario cannot be run without a feature.
type NeedsError struct {
	Scenario string
	Feature  Feature
}

func (e *NeedsError) Error() string {
	return fmt.Sprintf("scenario %s needs %s: leave out something else", e.Scenario, e.Feature)
}

// Find returns a scenario by its name; another one is an *UnknownError.
func Find(name string) (Scenario, error) {
	var known []string
	for _, s := range scenarios {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Scenario{}, &UnknownError{"scenario", name, strings.Join(known, ", ")}
}

// ParseFeature reads the name of a feature; another one is an *UnknownError.
func ParseFeature(name string) (Feature, error) {
	var known []string
	for _, f := range Features() {
		if string(f) == name {
			return f, nil
		}
		known = append(known, string(f))
	}
	return "", &UnknownError{"feature", name, strings.Join(known, ", ")}
}

// Run runs the scenario. An error means that it could not be run; a verdict that
// fails is in the result.
func (s Scenario) Run(ctx context.Context, o Options) (*Result, error) {
	if s.arms == nil {
		return nil, errors.New("this is no scenario of List or Find")
	}
	if o.Requests == 0 {
		o.Requests = 1000
	}
	if o.Requests < 0 {
		return nil, &tree.ConfigError{Field: "Requests", Value: fmt.Sprint(o.Requests), Allowed: "1 or more, or 0 for 1000"}
	}
	arms, err := s.arms(ctx, &o)
	if err != nil {
		return nil, err
	}
	r := &Result{Name: s.Name, Model: "symbolic", Without: o.Without, Arms: arms, OK: true}
	if o.Tiny {
		r.Model = "tiny"
	}
	for _, a := range arms {
		r.OK = r.OK && a.OK
	}
	return r, nil
}
