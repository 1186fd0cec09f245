// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// Options says what network New makes. The zero value is two layers of full
// attention, 32 values wide.
type Options struct {
	// Components is the set of cached states that the network has layers of; it
	// holds tree.Full. Zero: those that Layers names, and {Full} if that is
	// empty, too.
	Components tree.ComponentSet
	// Layers names the layers from the first to the last, by the component that
	// keeps their state, as in "full,swa,mamba,full". Each component has one at
	// least. The last is full, since what an early position has read reaches the
	// last position only through a layer above that reads all. Empty: one of each
	// component in their order, and a full one.
	Layers string
	// Window is the sliding window in tokens, 1 or more: position n sees the
	// positions n-Window+1 to n. Zero: 32. Not looked at without SWA.
	Window int
	// Chunk is the number of tokens between two states that can be given out, 1 or
	// more. Zero: 16. Not looked at without Mamba.
	Chunk int
	// Hidden is the width of the network: a multiple of 8 from 8 to 1024. Zero: 32.
	Hidden int
	// Heads is the number of heads of each layer, 1 to 64. Zero: 4.
	Heads int
	// KVHeads is the number of heads that have keys and values of their own in an
	// attention layer; it divides Heads. Zero: half of Heads if that is even, else
	// all.
	KVHeads int
	// HeadDim is the width of a head: an even number from 2 to 128. Zero: 8.
	HeadDim int
	// Vocabulary is the number of tokens, 2 to 65536. Zero: 512.
	Vocabulary int
	// Seed picks the weights; zero is a seed like others.
	Seed uint64
}

const maxLayers = 64

// complete fills in what is zero and returns the components of the layers. It
// returns all problems, each a *tree.ConfigError, joined.
func (o Options) complete() (Options, []tree.Component, error) {
	var problems []error
	bad := func(field, value, allowed string) {
		problems = append(problems, &tree.ConfigError{Field: field, Value: value, Allowed: allowed})
	}
	number := func(field string, value *int, zero, from, to, step int) {
		if *value == 0 {
			*value = zero
		}
		if *value < from || *value > to || *value%step != 0 {
			allowed := fmt.Sprintf("0 for %d, or %d to %d", zero, from, to)
			if step > 1 {
				allowed += fmt.Sprintf(" in steps of %d", step)
			}
			bad(field, strconv.Itoa(*value), allowed)
			*value = zero // as above
		}
	}
	if o.Components != 0 && (!o.Components.Has(tree.Full) || o.Components>>tree.NumComponents != 0) {
		bad("Components", o.Components.String(), "{full}, {full,swa}, {full,mamba} or {full,swa,mamba}")
		o.Components = 0 // what depends on it is checked all the same
	}
	layers, err := o.layers()
	if err != nil {
		problems = append(problems, err)
	}
	if o.Components.Has(tree.SWA) {
		number("Window", &o.Window, 32, 1, 1<<20, 1)
	} else {
		o.Window = 0
	}
	if o.Components.Has(tree.Mamba) {
		number("Chunk", &o.Chunk, 16, 1, 1<<20, 1)
	} else {
		o.Chunk = 0
	}
	number("Hidden", &o.Hidden, 32, block, 1024, block)
	number("HeadDim", &o.HeadDim, 8, 2, 128, 2)
	number("Vocabulary", &o.Vocabulary, 512, 2, 1<<16, 1)
	number("Heads", &o.Heads, 4, 1, 64, 1)
	if o.KVHeads == 0 {
		if o.KVHeads = o.Heads; o.Heads%2 == 0 {
			o.KVHeads = o.Heads / 2
		}
	}
	if o.KVHeads < 1 || o.Heads%o.KVHeads != 0 {
		bad("KVHeads", strconv.Itoa(o.KVHeads), fmt.Sprintf("0, or a number that divides Heads, %d", o.Heads))
	}
	return o, layers, errors.Join(problems...)
}

// layers reads Layers, or makes it up, and completes Components.
func (o *Options) layers() ([]tree.Component, error) {
	if o.Layers == "" {
		if o.Components == 0 {
			o.Components = tree.SetOf(tree.Full)
		}
		var names []string
		for c := range tree.Component(tree.NumComponents) {
			if o.Components.Has(c) {
				names = append(names, c.String())
			}
		}
		o.Layers = strings.Join(append(names, tree.Full.String()), ",")
	}
	bad := func(allowed string, args ...any) error {
		return &tree.ConfigError{Field: "Layers", Value: strconv.Quote(o.Layers), Allowed: fmt.Sprintf(allowed, args...)}
	}
	var layers []tree.Component
	var set tree.ComponentSet
	for i, name := range strings.Split(o.Layers, ",") {
		c, ok := component(name)
		if !ok {
			return nil, bad("full, swa or mamba, separated by commas; entry %d is %q", i+1, name)
		}
		layers, set = append(layers, c), set|tree.SetOf(c)
	}
	if o.Components == 0 {
		o.Components = set
	}
	switch {
	case len(layers) > maxLayers:
		return nil, bad("%d layers at most", maxLayers)
	case layers[len(layers)-1] != tree.Full:
		return nil, bad("a list that ends in full, so that what earlier positions read reaches the last")
	case set != o.Components:
		return nil, bad("a list with each of the components {%v} and no other", o.Components)
	}
	return layers, nil
}

// component reads the name of a component, in any case.
func component(name string) (tree.Component, bool) {
	for c := range tree.Component(tree.NumComponents) {
		if strings.EqualFold(strings.TrimSpace(name), c.String()) {
			return c, true
		}
	}
	return 0, false
}
