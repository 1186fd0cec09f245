// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/treecore/treecore/workload"
)

// generatorHelp says what the settings of the generators mean. A setting that is
// not listed still becomes a flag.
var generatorHelp = map[string]string{
	"sessions":          "number of sessions",
	"session-every":     "time between the starts of sessions, as 0s..20s",
	"turns":             "user messages in a session, as 3..12",
	"tool-calls":        "tool calls in a turn",
	"system-tokens":     "length of the system prompt",
	"user-tokens":       "length of a user's message",
	"tool-tokens":       "length of a tool's result",
	"output-tokens":     "length of an answer",
	"tool-time":         "time that a tool takes",
	"think-time":        "time from an answer to the next message",
	"idle-chance":       "chance that the user is away between two turns",
	"idle-time":         "time away",
	"cut-chance":        "chance that a turn branches off from an earlier one",
	"sub-agent-chance":  "chance that a tool call is a sub-agent",
	"sub-agent-calls":   "requests of a sub-agent",
	"groups":            "groups, each with a system prompt of its own",
	"prompts-per-group": "prompts in a group",
	"question-tokens":   "length of a question",
	"passes":            "how often all prompts are asked",
	"shuffle":           "mix the order of the prompts",
	"rate":              "arrivals a second within a pass; 0: all at once",
	"vocabulary":        "number of different tokens",
	"root-tokens":       "length of the first sequence",
	"chain":             "sequences that each extend a random earlier one",
	"burst":             "sequences made as children of random earlier ones",
	"children":          "children made at once",
	"run":               "tokens that a sequence adds",
}

// generatorFlags holds the flags that set up generators.
type generatorFlags struct {
	values map[string]*string
	order  []string            // names of the flags
	takes  map[string][]string // flag to the generators that take it
}

// seedSetting has a flag of its own, for all that is random.
const seedSetting = "seed"

// addGeneratorFlags makes a flag of every setting of every generator.
func addGeneratorFlags(flags *pflag.FlagSet) *generatorFlags {
	g := &generatorFlags{values: map[string]*string{}, takes: map[string][]string{}}
	defaults := map[string][]string{}
	for _, generator := range workload.Generators() {
		for _, setting := range workload.Settings(generator) {
			name, value, _ := strings.Cut(setting, "=")
			if name == seedSetting {
				continue
			}
			if g.takes[name] == nil {
				g.order = append(g.order, name)
			}
			g.takes[name] = append(g.takes[name], generator)
			defaults[name] = append(defaults[name], generator+": "+value)
		}
	}
	for _, name := range g.order {
		usage := strings.TrimSpace(generatorHelp[name] + " (" + strings.Join(defaults[name], ", ") + ")")
		g.values[name] = flags.String(name, "", usage)
		flags.Lookup(name).DefValue = "" // stands in the text, for each generator
	}
	return g
}

// settings gives the settings that the command line asks for; a flag that the
// generator does not take is an error. generator "" stands for a trace.
func (g *generatorFlags) settings(c *cobra.Command, generator string) ([]string, error) {
	var list []string
	for _, name := range g.order {
		if !c.Flags().Changed(name) {
			continue
		}
		if !slices.Contains(g.takes[name], generator) {
			what := "a trace"
			if generator != "" {
				what = "--workload " + generator
			}
			return nil, fmt.Errorf("--%s does not apply to %s: it belongs to --workload %s", name, what, strings.Join(g.takes[name], " or "))
		}
		list = append(list, name+"="+*g.values[name])
	}
	return list, nil
}
