// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

// longestWindow keeps sums of a window and a few lengths inside an int.
const longestWindow = 1 << 40

// configure checks the options (chapter 2) and takes them over.
func (o *Oracle) configure(options tree.Options) error {
	var problems []error
	bad := func(field string, value any, allowed string) {
		problems = append(problems, &tree.ConfigError{Field: field, Value: fmt.Sprint(value), Allowed: allowed})
	}

	// CF-1.
	set := options.Components
	if set == 0 {
		set = tree.SetOf(tree.Full)
	}
	switch set {
	case tree.SetOf(tree.Full),
		tree.SetOf(tree.Full, tree.SWA),
		tree.SetOf(tree.Full, tree.Mamba),
		tree.SetOf(tree.Full, tree.SWA, tree.Mamba):
	default:
		bad("Components", set, "{full}, {full,swa}, {full,mamba} or {full,swa,mamba}")
	}
	for _, c := range allComponents {
		if set.Has(c) {
			o.components = append(o.components, c)
		}
	}

	// CF-2.
	o.page = options.PageSize
	if o.page == 0 {
		o.page = 1
	}
	pageOK := o.page >= 1 && o.page <= tree.MaxPageSize
	if !pageOK {
		bad("PageSize", options.PageSize, fmt.Sprintf("1 to %d", tree.MaxPageSize))
	}
	if o.has(tree.SWA) {
		o.window = options.SlidingWindow
		if o.window < 1 || o.window > longestWindow {
			bad("SlidingWindow", options.SlidingWindow, "1 or more with swa")
		}
	}

	o.stateCap = -1
	if o.has(tree.Mamba) {
		// CF-3.
		o.grid = options.CheckpointGrid
		if o.grid == 0 {
			o.grid = o.page
		}
		if o.grid < 1 || (pageOK && o.grid%o.page != 0) {
			bad("CheckpointGrid", options.CheckpointGrid, "a positive multiple of PageSize")
		}
		// CF-4, with 0 as another way to write "no cap".
		if options.MaxStatesPerPath < -1 {
			bad("MaxStatesPerPath", options.MaxStatesPerPath, "-1 or 0 (no cap), or 1 and more")
		}
		if options.MaxStatesPerPath >= 1 {
			o.stateCap = options.MaxStatesPerPath
		}
	}
	o.eagle = options.Eagle && !o.has(tree.Mamba) // CF-5
	o.events = options.Events
	o.sessions = options.Sessions

	chosen, err := newPolicy(options.Policy)
	if err != nil {
		problems = append(problems, err)
	}
	o.policy = chosen
	return errors.Join(problems...)
}

// policyParameters lists the policies of section 10.6, each with its
// parameters and their defaults.
var policyParameters = map[string]map[string]int{
	"lru":      {},
	"mru":      {},
	"lfu":      {},
	"fifo":     {},
	"filo":     {},
	"priority": {},
	"slru":     {"protected_threshold": 2},
	"tlru":     {"threshold": 0, "next_prompt_estimate": 0},
}

const policyNames = "lru, lfu, fifo, mru, filo, priority, slru, tlru"

// policy is a policy's name and the values of its parameters.
type policy struct {
	name   string
	values map[string]int
}

// newPolicy checks name and parameters (rule CF-6).
func newPolicy(options tree.PolicyOptions) (policy, error) {
	p := policy{name: strings.ToLower(options.Name), values: map[string]int{}}
	if p.name == "" {
		p.name = "lru"
	}
	defaults, known := policyParameters[p.name]
	if !known {
		return policy{}, &tree.ConfigError{Field: "Policy.Name", Value: fmt.Sprintf("%q", options.Name), Allowed: policyNames}
	}
	for name, value := range defaults {
		p.values[name] = value
	}
	for _, name := range sortedKeys(options.Params) {
		if _, known := defaults[name]; !known {
			return policy{}, &tree.ConfigError{Field: "Policy.Params", Value: fmt.Sprintf("%q", name), Allowed: "the parameters of policy " + p.name}
		}
		if options.Params[name] < 0 {
			return policy{}, &tree.ConfigError{Field: "Policy.Params." + name, Value: fmt.Sprint(options.Params[name]), Allowed: "0 or more"}
		}
		p.values[name] = options.Params[name]
	}
	return p, nil
}
