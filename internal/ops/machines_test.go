// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

// machines are the kinds of machines that every test here runs on.
var machines = []struct {
	name string
	make ops.NewMachine
}{{"oracle", newOracle}, {"core", newCore}}

func allMixes() []ops.RandomConfig {
	return slices.Concat(ops.Mixes(), ops.HostMixes(), ops.LinkerMixes())
}

func TestStaleHandles(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) { ops.StaleHandleTest(t, m.make) })
	}
}

func TestTwins(t *testing.T) {
	for i, config := range allMixes() {
		t.Run(config.Name(), func(t *testing.T) {
			ops.TwinTest(t, newCore, config, uint64(i+201), ops.Operations(t, 2000))
		})
	}
}

func TestRegressions(t *testing.T) {
	ops.RunRegressions(t, "../../tree/testdata/regressions", newCore, newOracle)
}

// TestLogReplays runs a random story on a core that writes its log, and replays
// the log on a fresh core, which must write the same log.
func TestLogReplays(t *testing.T) {
	for i, config := range allMixes() {
		t.Run(config.Name(), func(t *testing.T) {
			var first, second bytes.Buffer
			logged := func(o tree.Options) (ops.Machine, error) {
				c, err := tree.New(o)
				if err == nil {
					err = c.SetLog(&first)
				}
				return c, err
			}
			ops.RandomTest(t, logged, newOracle, config, uint64(i+301), 300)
			text := first.String()
			text = text[:strings.LastIndexByte(text, '\n')+1] // what was not flushed is cut anywhere
			var transcript bytes.Buffer
			again := func(o tree.Options) (ops.Machine, error) {
				c, err := tree.New(o)
				if err == nil {
					err = c.SetLog(&second)
				}
				return c, err
			}
			if _, err := ops.Replay(strings.NewReader(text), again, &transcript); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(text, second.String()) || second.Len() == 0 {
				t.Errorf("the replay wrote another log:\n%s", firstDifference(text, second.String()))
			}
			if strings.Count(transcript.String(), "\n") < strings.Count(text, "\n") {
				t.Errorf("the transcript is shorter than the log")
			}
		})
	}
}

func firstDifference(a, b string) string {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return linesA[i] + "\n" + linesB[i]
		}
	}
	return "one is longer"
}
