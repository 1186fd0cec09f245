// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/treecore/treecore/scenario"
)

const scenarioLong = `Experiments with known right answers, on the reference engine: each arm says what
it measures, what that must be, and whether it is. Every answer of the engine is
also compared with that of an empty cache, token for token.

With --without a feature or a guard is left out, so that one sees what goes wrong
then; the verdict fails.`

const scenarioExample = `  treecore scenario list
  treecore scenario run branching
  treecore scenario run branching --without branching    # exit code 1
  treecore scenario run cold-warm --requests 10000
  treecore scenario run hybrid-checkpoint --engine tiny --json`

func scenarioCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "scenario",
		Short:   "Run experiments with known right answers",
		Long:    scenarioLong,
		Example: scenarioExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("scenario %s is not known: use scenario list, or scenario run NAME", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List the scenarios",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var b strings.Builder
			for _, s := range scenario.List() {
				fmt.Fprintf(&b, "%-20s %s\n", s.Name, s.Summary)
			}
			_, err := io.WriteString(c.OutOrStdout(), b.String())
			return failed(err)
		},
	}, scenarioRunCommand())
	return c
}

// failed marks an error as one of a run.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}

func scenarioRunCommand() *cobra.Command {
	var engine, jsonFile string
	var without []string
	var o scenario.Options
	c := &cobra.Command{
		Use:     "run NAME",
		Short:   "Run a scenario and compare it with its right answer",
		Example: scenarioExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("scenario run takes one name, %d arguments are given: treecore scenario list tells them", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := scenario.Find(args[0])
			if err != nil {
				return err
			}
			switch engine {
			case "symbolic":
			case "tiny":
				o.Tiny = true
			default:
				return fmt.Errorf("--engine %q: give symbolic or tiny", engine)
			}
			for _, name := range without {
				f, err := scenario.ParseFeature(name)
				if err != nil {
					return fmt.Errorf("--without: %w", err)
				}
				o.Without = append(o.Without, f)
			}
			if o.Requests < 1 {
				return fmt.Errorf("--requests %d: give 1 or more", o.Requests)
			}
			return runScenario(c, s, o, jsonFile)
		},
	}
	f := c.Flags()
	f.StringVar(&engine, "engine", "symbolic", "symbolic: full size, every value that is read is checked; tiny: a real small network, scaled down")
	f.StringSliceVar(&without, "without", nil, "features to leave out: "+names(scenario.Features()))
	f.IntVar(&o.Requests, "requests", 1000, "number of requests of cold-warm")
	f.Uint64Var(&o.Seed, "seed", 0, "makes other random traffic")
	f.StringVar(&jsonFile, "json", "", "write the result as JSON to the file, or to standard output if none is named")
	f.Lookup("json").NoOptDefVal = "-"
	return c
}

func names(features []scenario.Feature) string {
	var out []string
	for _, f := range features {
		out = append(out, string(f))
	}
	return strings.Join(out, ", ")
}

func runScenario(c *cobra.Command, s scenario.Scenario, o scenario.Options, jsonFile string) error {
	bar := newProgress(c.ErrOrStderr(), "parts", 100, jsonFile != "-")
	o.Progress = func(done, of int) { bar.set(int64(100 * done / of)) }
	r, err := s.Run(c.Context(), o)
	bar.done()
	if errors.As(err, new(*scenario.NeedsError)) {
		return fmt.Errorf("--without: %w", err)
	}
	if err != nil {
		return &failure{err}
	}
	if jsonFile == "" {
		err = printScenario(c.OutOrStdout(), r)
	} else {
		err = writeJSONTo(c.OutOrStdout(), jsonFile, r)
	}
	if err == nil && !r.OK {
		err = errors.New("the scenario's verdict is wrong")
	}
	return failed(err)
}

func printScenario(w io.Writer, r *scenario.Result) error {
	var page strings.Builder
	fmt.Fprintf(&page, "scenario %s on the %s engine", r.Name, r.Model)
	if len(r.Without) > 0 {
		fmt.Fprintf(&page, ", without %s", names(r.Without))
	}
	page.WriteString("\n\n")
	t := table.NewWriter()
	style := table.StyleLight
	style.Format = table.FormatOptions{Header: text.FormatDefault}
	t.SetStyle(style)
	// What is measured by name has a column for each name.
	var columns []string
	for _, a := range r.Arms {
		for name := range a.Measured {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	slices.Sort(columns)
	header := table.Row{"arm"}
	reused := slices.ContainsFunc(r.Arms, func(a scenario.Arm) bool { return measured(a) != "" })
	if reused {
		header = append(header, "cached tokens")
	}
	var configs []table.ColumnConfig
	for _, name := range columns {
		header = append(header, strings.ReplaceAll(name, "_", " "))
		configs = append(configs, table.ColumnConfig{Number: len(header), Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(append(header, "expected", "verdict"))
	for i := range 2 {
		configs = append(configs, table.ColumnConfig{Number: len(header) + 1 + i, WidthMax: 48, WidthMaxEnforcer: text.WrapSoft})
	}
	t.SetColumnConfigs(configs)
	for _, a := range r.Arms {
		row := table.Row{a.Name}
		if reused {
			row = append(row, measured(a))
		}
		for _, name := range columns {
			row = append(row, a.Measured[name])
		}
		verdict := "right"
		if !a.OK {
			verdict = "WRONG: " + a.Problem
		}
		t.AppendRow(append(row, told(a.Expected), verdict))
	}
	page.WriteString(t.Render())
	page.WriteString("\n")
	_, err := io.WriteString(w, page.String())
	return err
}

// measured says what an arm reused.
func measured(a scenario.Arm) string {
	if a.TokenHitRate != nil {
		return fmt.Sprintf("%.1f %%", 100**a.TokenHitRate)
	}
	return told(a.CachedTokens)
}

// told writes a value for people: maps by their sorted names.
func told(v any) string {
	switch x := v.(type) {
	case []int:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(x), " ", ", "), "[]")
	case map[string]int:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(k, "_", " "), x[k]))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
}
