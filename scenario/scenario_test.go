// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/treecore/treecore/scenario"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, name string, o scenario.Options) *scenario.Result {
	t.Helper()
	s, err := scenario.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every scenario is right on both models, at full size and scaled down.
func TestScenarios(t *testing.T) {
	for _, s := range scenario.List() {
		for _, tiny := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tiny=%v", s.Name, tiny), func(t *testing.T) {
				t.Parallel()
				o := scenario.Options{Tiny: tiny, Requests: 1000}
				if tiny {
					o.Requests = 200
				}
				if os.Getenv("TREECORE_LONG") != "" && !tiny {
					o.Requests = 10000
				}
				if testing.Short() {
					o.Requests = 90 // one for each mix
				}
				if testing.Short() && s.Name == "shared-prefix" && !tiny {
					t.Skip("takes seconds at full size")
				}
				r := run(t, s.Name, o)
				for _, a := range r.Arms {
					if !a.OK {
						t.Errorf("%s: %s", a.Name, a.Problem)
					}
				}
				if len(r.Arms) == 0 || !r.OK {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

// What is left out shows, as the known wrong numbers or as values that are not
// what they should be.
func TestWithout(t *testing.T) {
	for _, c := range []struct {
		name    string
		without scenario.Feature
		problem string // in one of the arms
		on      string // models: s, t, or both
	}{
		{"branching", scenario.Branching, "[0 16384 16384 16384]", "s"},
		{"branching", scenario.Branching, "[0 64 64 64]", "t"},
		{"branching", scenario.Freeing, "[0 24576 24576 24576]", "s"},
		{"hybrid-checkpoint", scenario.HybridGuard, "resumed at 96, expected is 64", "st"},
		{"branching", scenario.WindowCheck, "request", "t"},
		{"shortened-prefetch", scenario.ShortWindow, "cached 12, from storage 4", "st"},
		{"cold-warm", scenario.HybridGuard, "mamba", "s"},
		{"cold-warm", scenario.WindowCheck, "swa", "s"},
		{"cold-warm", scenario.CopyOnWrite, "mamba", "s"},
		{"cold-warm", scenario.CopyOnWrite, "request", "t"}, // a state that is two things at once is refused
		{"cold-warm", scenario.HybridGuard, "differs", "t"},
	} {
		for _, model := range c.on {
			t.Run(fmt.Sprintf("%s/%s/%c", c.name, c.without, model), func(t *testing.T) {
				if testing.Short() && c.name == "cold-warm" {
					t.Skip("takes seconds")
				}
				t.Parallel()
				o := scenario.Options{Tiny: model == 't', Without: []scenario.Feature{c.without}, Requests: 1000}
				r := run(t, c.name, o)
				if r.OK {
					t.Fatalf("the verdict is right without %s", c.without)
				}
				for _, a := range r.Arms {
					if strings.Contains(a.Problem, c.problem) {
						return
					}
				}
				t.Errorf("no arm says %q: %+v", c.problem, r.Arms)
			})
		}
	}
}

// The host tier is what cold-warm gets its host hits from.
func TestWithoutHost(t *testing.T) {
	r := run(t, "cold-warm", scenario.Options{Without: []scenario.Feature{scenario.HostTier}, Requests: 180})
	if !r.OK {
		t.Errorf("%+v", r)
	}
	for _, a := range r.Arms {
		if a.Measured["from_host"] != int64(0) || a.Measured["from_storage"] != int64(0) {
			t.Errorf("%s: %v", a.Name, a.Measured)
		}
	}
}

// Traffic in which nothing is reused would show nothing.
func TestColdWarmReuses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := run(t, "cold-warm", scenario.Options{Requests: 2000})
	idle := 0
	for _, a := range r.Arms {
		// What comes from a store depends on its speed.
		if a.Measured["reused_tokens"] == 0 && !strings.Contains(a.Name, "storage") {
			idle++
			t.Logf("%s: %v", a.Name, a.Measured)
		}
	}
	if idle > 5 {
		t.Errorf("%d of %d mixes reuse nothing", idle, len(r.Arms))
	}
}

func TestWhatCannotBeLeftOut(t *testing.T) {
	s, err := scenario.Find("shortened-prefetch")
	if err != nil {
		t.Fatal(err)
	}
	var needs *scenario.NeedsError
	if _, err := s.Run(context.Background(), scenario.Options{Without: []scenario.Feature{scenario.HostTier}}); !errors.As(err, &needs) {
		t.Error(err)
	}
}

func TestUnknownNames(t *testing.T) {
	var unknown *scenario.UnknownError
	if _, err := scenario.Find("nothing"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "cold-warm") {
		t.Error(err)
	}
	if _, err := scenario.ParseFeature("nothing"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "hybrid-guard") {
		t.Error(err)
	}
}
