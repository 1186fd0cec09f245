// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

// Policy says which pages of an auxiliary pool a reuse of n pages needs.
type Policy uint8

const (
	// AllPages needs the pages 0 to n-1.
	AllPages Policy = iota
	// TrailingPages needs the last pages before n: as many as Need.Trailing
	// says, or all of them if n is smaller.
	TrailingPages
)

// Need is what a reuse asks of one auxiliary pool.
type Need struct {
	Pool     string
	Policy   Policy
	Trailing int // for TrailingPages: pages of a window or 1 for a state; below 1 counts as 1
}

// Presence is a need and which pages of its pool exist, by page index. Pages
// beyond the end of the list do not exist.
type Presence struct {
	Need
	Pages []bool
}

// Found is the answer to a lookup.
type Found struct {
	Usable int // leading pages that can be used
	// Aux has, for each need, the pages of it that a reuse of Usable pages
	// reads: all of them for AllPages, the last ones for TrailingPages.
	Aux []int
}

// Usable returns the largest n such that all Full pages 0 to n-1 exist and every
// need holds at n (rule ST-5): one n for all needs, and not the smallest of each
// need's own best. It costs one step a page and need.
func Usable(full []bool, aux []Presence) Found {
	n := Leading(full)
	ok := make([]bool, n+1)
	for i := range ok {
		ok[i] = true
	}
	for _, a := range aux {
		run, gap := 0, false // existing pages right before i; any missing before i
		for i := 1; i <= n; i++ {
			if i <= len(a.Pages) && a.Pages[i-1] {
				run++
			} else {
				run, gap = 0, true
			}
			if gap && run < min(a.want(), i) || gap && a.Policy == AllPages {
				ok[i] = false
			}
		}
	}
	for !ok[n] {
		n-- // ok[0] is true: nothing is needed for nothing
	}
	out := Found{Usable: n, Aux: make([]int, len(aux))}
	for i, a := range aux {
		out.Aux[i] = n
		if a.Policy == TrailingPages {
			out.Aux[i] = min(n, a.want())
		}
	}
	return out
}

func (n Need) want() int { return max(1, n.Trailing) }

// Leading returns the length of the leading run of true (rule ST-7).
func Leading(answers []bool) int {
	for i, ok := range answers {
		if !ok {
			return i
		}
	}
	return len(answers)
}
