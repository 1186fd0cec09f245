// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/treecore/treecore/storage"
)

// present returns a list of n answers that are true at the given indexes.
func present(n int, at ...int) []bool {
	out := make([]bool, n)
	for _, i := range at {
		out[i] = true
	}
	return out
}

func TestUsableLength(t *testing.T) {
	six := []bool{true, true, true, true, true, true}
	trailing := func(t int, pages []bool) storage.Presence {
		return storage.Presence{Need: storage.Need{Policy: storage.TrailingPages, Trailing: t}, Pages: pages}
	}
	for _, c := range []struct {
		name string
		full []bool
		aux  []storage.Presence
		want storage.Found
	}{
		{"nothing asked", nil, nil, storage.Found{Aux: []int{}}},
		{"full alone, up to the gap", []bool{true, true, false, true}, nil, storage.Found{Usable: 2, Aux: []int{}}},
		{"X-ST-2", six, []storage.Presence{trailing(2, present(6, 1, 2, 3))}, storage.Found{Usable: 4, Aux: []int{2}}},
		{"X-ST-3", six, []storage.Presence{trailing(2, present(6, 1, 2, 3)), trailing(1, present(6, 1))}, storage.Found{Aux: []int{0, 0}}},
		{"X-ST-4", six[:4], []storage.Presence{{Pages: present(4, 0, 1, 3)}}, storage.Found{Usable: 2, Aux: []int{2}}},
		{"X-ST-5", six[:2], []storage.Presence{trailing(4, present(2, 0, 1))}, storage.Found{Usable: 2, Aux: []int{2}}},
		{"no placeholder counts as one", six, []storage.Presence{trailing(0, present(6, 2))}, storage.Found{Usable: 3, Aux: []int{1}}},
		{"pages beyond the list are absent", six, []storage.Presence{{Pages: present(3, 0, 1, 2)}}, storage.Found{Usable: 3, Aux: []int{3}}},
	} {
		if diff := cmp.Diff(c.want, storage.Usable(c.full, c.aux)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if n := storage.Leading([]bool{true, true, false, true}); n != 2 {
		t.Errorf("X-ST-7: %d, wanted 2", n)
	}
}

// The slow twin tries every n from the largest on, in the words of the rule.
func TestUsableAgainstTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bools := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 4).Draw(t, "") > 0 }), 0, 12)
		full := bools.Draw(t, "full")
		aux := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.Presence {
			return storage.Presence{
				Need:  storage.Need{Policy: storage.Policy(rapid.IntRange(0, 1).Draw(t, "policy")), Trailing: rapid.IntRange(-1, 5).Draw(t, "trailing")},
				Pages: bools.Draw(t, "pages"),
			}
		}), 0, 3).Draw(t, "aux")
		holds := func(n int) bool {
			for i := range n {
				if !full[i] {
					return false
				}
			}
			for _, a := range aux {
				from := 0
				if a.Policy == storage.TrailingPages {
					from = max(0, n-max(1, a.Trailing))
				}
				for i := from; i < n; i++ {
					if i >= len(a.Pages) || !a.Pages[i] {
						return false
					}
				}
			}
			return true
		}
		want := len(full)
		for !holds(want) {
			want--
		}
		if got := storage.Usable(full, aux).Usable; got != want {
			t.Fatalf("usable %d, wanted %d", got, want)
		}
	})
}
