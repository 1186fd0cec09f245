// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// SoakEnv names the environment variable that sets the number of operations of
// the random tests for a soak: TREECORE_SOAK_OPS=1000000 makes a million in each
// test that usually makes 10,000, and others longer in proportion. Run it with
// go test -timeout 0.
const SoakEnv = "TREECORE_SOAK_OPS"

// usualOperations is what a random test makes when nothing else is said.
const usualOperations = 10000

// Operations returns how many operations a random test makes that usually makes
// the given number: in proportion to SoakEnv if that is set, else a tenth with
// go test -short or -race.
func Operations(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv(SoakEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: set it to a number of operations", SoakEnv, text)
		}
		return max(n*usual/usualOperations, 1)
	}
	if testing.Short() || raceEnabled {
		return max(usual/10, 1)
	}
	return usual
}

// shrinkTime bounds the search for a shorter script of a failure.
const shrinkTime = 30 * time.Second

// RandomTest makes up a story from the seed and tells it to two machines, as
// Compare does. If they part, it shrinks the story to a few lines and fails
// with a script that can be saved in a file and run by RunRegressions.
func RandomTest(t *testing.T, newA, newB NewMachine, config RandomConfig, seed uint64, operations int) {
	t.Helper()
	p, err := newPair(config.Options, newA, newB)
	if err != nil {
		t.Fatal(err)
	}
	g := newGenerator(config, seed, p.a.m, p.b.m)
	lines := g.startLines()
	for _, line := range lines {
		if problem := p.do(line); problem != "" {
			t.Fatalf("%s\n%s", line, problem)
		}
	}
	for i := range operations {
		line := g.next(p.a)
		lines = append(lines, line)
		problem := p.do(line)
		if problem == "" {
			continue
		}
		t.Logf("seed %d, operation %d: the machines part at %q", seed, i, line)
		short, mismatch := shrink(config, newA, newB, lines, time.Now().Add(shrinkTime))
		if mismatch != nil {
			problem = mismatch.Problem
		}
		t.Fatalf("%s\n\nscript of %d lines, to be kept in testdata/regressions:\n%s\n%s",
			problem, len(short), FormatHeader(config.Options), strings.Join(short, "\n"))
	}
}

// RunRegressions runs the scripts of earlier failures: files *.story below dir,
// a header line as of a log and the lines of a story.
func RunRegressions(t *testing.T, dir string, newA, newB NewMachine) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.story"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".story"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nhost-copy ") && (!hasDoor(newA) || !hasDoor(newB)) {
				t.Skipf("%s: a machine has no test door for host values", path)
			}
			if strings.Contains(string(text), "\nhost-pools") && (!hasHost(newA) || !hasHost(newB)) {
				t.Skipf("%s: a machine has no host tier", path)
			}
			lines := strings.Split(string(text), "\n")
			for len(lines) > 0 && (lines[0] == "" || lines[0][0] == '#') {
				lines = lines[1:]
			}
			if len(lines) == 0 {
				t.Fatalf("%s is empty", path)
			}
			o, err := ParseHeader(lines[0])
			if err != nil {
				t.Fatal(err)
			}
			mismatch, err := Compare(o, newA, newB, lines[1:])
			if err != nil {
				t.Fatal(err)
			}
			if mismatch != nil {
				t.Fatal(mismatch)
			}
		})
	}
}

// Name names a configuration in test names.
func (c RandomConfig) Name() string {
	o := c.Options
	name := fmt.Sprintf("%s/page=%d", strings.ReplaceAll(o.Components.String(), ",", "+"), o.PageSize)
	if o.SlidingWindow > 0 {
		name += fmt.Sprintf("/window=%d", o.SlidingWindow)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"eagle", o.Eagle}, {"events", o.Events}, {"sessions", o.Sessions}, {"host", c.Host}, {"linker", c.Linker}} {
		if f.set {
			name += "/" + f.name
		}
	}
	name += c.hostName()
	if o.Policy.Name != "" {
		name += "/" + o.Policy.Name
	}
	return name
}
