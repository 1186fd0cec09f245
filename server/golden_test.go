// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// varying is what differs from run to run.
var varying = []struct{ found, shown string }{
	{`"id":"(cmpl-|chatcmpl-|)[a-z2-7]{26}"`, `"id":"${1}ID"`},
	{`"created":\d+`, `"created":TIME`},
	{`"e2e_latency":[0-9.e-]+`, `"e2e_latency":TIME`},
	{`"uptime_seconds":[0-9.e+-]+`, `"uptime_seconds":TIME`},
	{`"steps":\d+`, `"steps":N`},
}

// The scripts in testdata are calls and what they are answered, one server a file:
//
//	post path=/generate
//	{"text": "..."}
//	----
//	200
//	{...}
//
// -rewrite writes the answers anew. Streams are put together as far as pieces are
// a matter of time: events=N shows only the last N.
func TestGoldenAnswers(t *testing.T) {
	datadriven.Walk(t, "testdata/calls", func(t *testing.T, path string) {
		r := newRig(t, setup{})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var to string
			var header []string
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "path":
					to = a.Vals[0]
				case "key":
					header = append(header, "Authorization", "Bearer "+a.Vals[0])
				}
			}
			status, _, text := r.call(strings.ToUpper(d.Cmd), to, d.Input, header...)
			r.idle() // copies have ended, so that the next call meets the same
			for _, v := range varying {
				text = regexp.MustCompile(v.found).ReplaceAllString(text, v.shown)
			}
			if d.HasArg("events") {
				var n int
				d.ScanArgs(t, "events", &n)
				all := strings.Split(strings.TrimSpace(text), "\n\n")
				text = strings.Join(all[max(0, len(all)-n):], "\n") + "\n"
			}
			return fmt.Sprintf("%d\n%s", status, text)
		})
	})
}
