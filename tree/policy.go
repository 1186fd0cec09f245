// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strings"
)

// PolicyOptions names an eviction policy. A policy only orders Full leaves;
// SWA and Mamba follow their recency lists under every policy (rule E-32).
type PolicyOptions struct {
	// Name is one of Policies(), in any case. Empty: lru.
	Name string
	// Params are the policy's parameters, all integers of 0 or more in units
	// or counts: slru takes protected_threshold (default 2), tlru takes
	// threshold and next_prompt_estimate (default 0). Others take none.
	Params map[string]int
}

// policy gives the order in which Full leaves go: the smaller rank first, and
// among equals the older access stamp (section 10.6).
type policy interface {
	rank(n *node) int64
}

type policyFunc func(n *node) int64

func (f policyFunc) rank(n *node) int64 { return f(n) }

// policyKind registers a policy: its parameters with their defaults, and how to
// build it. To add one, add a line here.
type policyKind struct {
	name   string
	params []policyParam
	build  func(values map[string]int) policy
}

type policyParam struct {
	name     string
	fallback int
}

var policyKinds = []policyKind{
	{name: "lru", build: stateless(func(*node) int64 { return 0 })},
	{name: "lfu", build: stateless(func(n *node) int64 { return n.hits })},
	{name: "fifo", build: stateless(func(n *node) int64 { return int64(n.created) })},
	{name: "mru", build: stateless(func(n *node) int64 { return -int64(n.stamp) })},
	{name: "filo", build: stateless(func(n *node) int64 { return -int64(n.created) })},
	{name: "priority", build: stateless(func(n *node) int64 { return n.priority })},
	{
		name:   "slru",
		params: []policyParam{{"protected_threshold", 2}},
		build: func(v map[string]int) policy {
			threshold := int64(v["protected_threshold"])
			return policyFunc(func(n *node) int64 {
				if n.hits >= threshold {
					return 1
				}
				return 0
			})
		},
	},
	{
		name:   "tlru",
		params: []policyParam{{"threshold", 0}, {"next_prompt_estimate", 0}},
		build: func(v map[string]int) policy {
			return &tailPolicy{threshold: v["threshold"], estimate: v["next_prompt_estimate"]}
		},
	},
}

func stateless(rank func(*node) int64) func(map[string]int) policy {
	return func(map[string]int) policy { return policyFunc(rank) }
}

// tailPolicy is tlru: leaves go first whose loss costs a follow-up prompt no
// more than the threshold (rule E-37).
type tailPolicy struct{ threshold, estimate int }

func (p *tailPolicy) rank(n *node) int64 {
	budget := max(n.ext.history+p.estimate-p.threshold, 0)
	if n.ext.depth-n.units >= budget {
		return 0
	}
	return 1
}

// Policies returns the names of the eviction policies.
func Policies() []string {
	names := make([]string, len(policyKinds))
	for i, k := range policyKinds {
		names[i] = k.name
	}
	return names
}

func (o PolicyOptions) build() (policy, error) {
	name := strings.ToLower(o.Name)
	if name == "" {
		name = "lru"
	}
	i := slices.IndexFunc(policyKinds, func(k policyKind) bool { return k.name == name })
	if i < 0 {
		return nil, &ConfigError{Field: "Policy.Name", Value: fmt.Sprintf("%q", o.Name), Allowed: strings.Join(Policies(), ", ")}
	}
	kind := policyKinds[i]
	values := map[string]int{}
	for _, p := range kind.params {
		values[p.name] = p.fallback
	}
	given := make([]string, 0, len(o.Params))
	for p := range o.Params {
		given = append(given, p)
	}
	slices.Sort(given) // so that the error names the same one each time
	for _, p := range given {
		if _, known := values[p]; !known {
			return nil, &ConfigError{Field: "Policy.Params", Value: fmt.Sprintf("%q for policy %s", p, name), Allowed: kind.allowed()}
		}
		if v := o.Params[p]; v < 0 || v > maxLength {
			return nil, &ConfigError{Field: "Policy.Params." + p, Value: fmt.Sprint(v), Allowed: fmt.Sprintf("0 to %d", maxLength)}
		}
		values[p] = o.Params[p]
	}
	return kind.build(values), nil
}

func (k policyKind) allowed() string {
	if len(k.params) == 0 {
		return "no parameters"
	}
	names := make([]string, len(k.params))
	for i, p := range k.params {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}
