// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strconv"
	"strings"
)

// Component numbers one kind of cached state.
type Component uint8

// The components. Their order is component order: hooks, frees and results run
// in it unless a rule says "reverse".
const (
	Full  Component = iota // one slot a token; every token of a prefix is needed
	SWA                    // sliding window: one slot a token, the last window is needed
	Mamba                  // recurrent state: one state for a whole prefix

	// NumComponents is the number of components that exist.
	NumComponents = 3
)

var componentNames = [NumComponents]string{"full", "swa", "mamba"}

// String returns the lower-case name: full, swa or mamba.
func (c Component) String() string {
	if int(c) < len(componentNames) {
		return componentNames[c]
	}
	return "component(" + strconv.Itoa(int(c)) + ")"
}

// ComponentSet is a set of components.
type ComponentSet uint8

// SetOf returns the set of the given components.
func SetOf(components ...Component) ComponentSet {
	var s ComponentSet
	for _, c := range components {
		s |= 1 << c
	}
	return s
}

// Has reports whether c is in the set.
func (s ComponentSet) Has(c Component) bool { return s&(1<<c) != 0 }

// String joins the names with commas, in component order; "none" if empty.
func (s ComponentSet) String() string {
	var names []string
	for c := Full; c < 8; c++ { // bits that name no component show, too
		if s.Has(c) {
			names = append(names, c.String())
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}
