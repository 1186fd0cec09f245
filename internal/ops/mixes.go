// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// Mixes are the configurations of the random tests: each component set on each
// page size, with windows, grids, policies and features dealt out over them.
func Mixes() []RandomConfig {
	sets := []tree.ComponentSet{
		tree.SetOf(tree.Full), tree.SetOf(tree.Full, tree.SWA),
		tree.SetOf(tree.Full, tree.Mamba), tree.SetOf(tree.Full, tree.SWA, tree.Mamba),
	}
	policies := []tree.PolicyOptions{
		{}, {Name: "slru"}, {Name: "lfu"}, {Name: "tlru", Params: map[string]int{"threshold": 3}},
		{Name: "mru"}, {Name: "fifo"}, {Name: "priority"}, {Name: "filo"},
	}
	windows := map[int][]int{1: {4, 1, 6, 9}, 4: {4, 6, 1, 9}, 64: {64, 100, 1, 130}}
	var out []RandomConfig
	for i, set := range sets {
		for j, page := range []int{1, 4, 64} {
			n := 3*i + j
			o := tree.Options{
				Components: set, PageSize: page, Policy: policies[n%len(policies)],
				Events: n%2 == 0, Sessions: n%3 != 1,
			}
			if set.Has(tree.SWA) {
				o.SlidingWindow = windows[page][n%4]
			}
			if set.Has(tree.Mamba) {
				o.CheckpointGrid = page * (1 + n%2)
				o.MaxStatesPerPath = 3 - n%4
				if o.MaxStatesPerPath == 0 {
					o.MaxStatesPerPath = -1
				}
			} else {
				o.Eagle = n%2 == 1
			}
			out = append(out, RandomConfig{Options: o})
		}
	}
	return out
}

// LinkerMixes are the mixes with an external linker (rule XL-1).
func LinkerMixes() []RandomConfig {
	var out []RandomConfig
	for _, config := range Mixes() {
		if !config.Options.Components.Has(tree.Mamba) {
			config.Linker = true
			out = append(out, config)
		}
	}
	return out
}

// HostMixes are the mixes with a host tier under each write policy, with one that
// changes, and with a host that is a staging area.
func HostMixes() []RandomConfig {
	var out []RandomConfig
	for _, config := range Mixes() {
		config.Host = true
		for _, policy := range []RandomConfig{{Threshold: 1}, {Threshold: 2}, {WriteBack: true}, {Threshold: 1, Changing: true}} {
			config.Threshold, config.WriteBack, config.Changing = policy.Threshold, policy.WriteBack, policy.Changing
			out = append(out, config)
		}
		if !config.Options.Components.Has(tree.Mamba) { // rule BO-2
			config.Threshold, config.WriteBack, config.Changing, config.BufferOnly = 1, false, false, true
			out = append(out, config)
		}
	}
	return out
}
