// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/treecore/treecore/internal/bench"
)

func benchCommand() *cobra.Command {
	var (
		only, workload, jsonFile string
		duration                 time.Duration
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the tree's operations beside what the machine can do at best",
		Long: `Measure matches, inserts, splits, locks, evictions and memory of the tree, beside
what the machine can do at best. The floor of an operation is the time to compare
and copy as many bytes as it must, and 100 ns for each node that it passes. Times
differ between machines; the ratio to the floor is what to quote.`,
		Example: `  # everything
  treecore bench

  # matches only, as JSON
  treecore bench --only '^match' --json

  # with the published workload, whose two files are in a folder
  treecore bench --workload-dir ../shared/bench`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: bench takes flags only; a file for the results is named by --json=FILE", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			pattern, err := regexp.Compile(only)
			if err != nil {
				return fmt.Errorf("--only %q: %w", only, err)
			}
			if duration <= 0 {
				return fmt.Errorf("--time %v: give a positive time, for example 300ms", duration)
			}
			cases := bench.TreeCases()
			if workload != "" {
				w, err := bench.LoadWorkload(workload)
				if err != nil {
					return fmt.Errorf("--workload-dir: %w", err)
				}
				cases = append(cases, w.Cases()...)
			}
			kept := cases[:0]
			for _, b := range cases {
				if pattern.MatchString(b.Name) {
					kept = append(kept, b)
				}
			}
			if len(kept) == 0 {
				return fmt.Errorf("--only %q: no benchmark has such a name; names begin with match, insert, split, lock, evict, memory or workload", only)
			}
			return runBench(c, kept, duration, jsonFile)
		},
	}
	f := cmd.Flags()
	f.StringVar(&only, "only", "", "regular expression: measure the benchmarks whose name it finds")
	f.StringVar(&workload, "workload-dir", "", "folder with the published workload, to measure it, too")
	f.DurationVar(&duration, "time", 300*time.Millisecond, "how long to measure each")
	f.StringVar(&jsonFile, "json", "", "write the results as JSON to the file, or to standard output if none is named")
	f.Lookup("json").NoOptDefVal = "-"
	return cmd
}

func runBench(c *cobra.Command, cases []bench.Case, duration time.Duration, jsonFile string) error {
	testing.Init() // makes the time a benchmark takes settable
	if err := flag.Set("test.benchtime", duration.String()); err != nil {
		return &failure{err}
	}
	report := struct {
		Floor   bench.Floor    `json:"floor"`
		Results []bench.Result `json:"results"`
	}{Floor: bench.MeasureFloor()}
	bar := newProgress(c.ErrOrStderr(), "benchmarks", int64(len(cases)), jsonFile != "-")
	for _, b := range cases {
		r, err := bench.Run(c.Context(), b, report.Floor)
		if err != nil {
			bar.done()
			return &failure{err}
		}
		report.Results = append(report.Results, r)
		bar.set(int64(len(report.Results)))
	}
	bar.done()
	if jsonFile == "" {
		return printBench(c.OutOrStdout(), report.Floor, report.Results)
	}
	return failed(writeJSONTo(c.OutOrStdout(), jsonFile, report))
}

func printBench(w io.Writer, floor bench.Floor, results []bench.Result) error {
	var page strings.Builder
	fmt.Fprintf(&page, "machine  copies %.1f GB/s and compares %.1f GB/s in 64 MiB; x floor: see treecore bench --help\n\n",
		floor.CopyBytesPerSecond/1e9, floor.CompareBytesPerSecond/1e9)
	t := table.NewWriter()
	t.SetOutputMirror(&page)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"benchmark", "time", "p99", "allocations", "bytes", "x floor", "bytes/token", "bytes/node"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight}, {Number: 6, Align: text.AlignRight}, {Number: 7, Align: text.AlignRight},
		{Number: 8, Align: text.AlignRight},
	})
	some := func(format string, v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	nanoseconds := func(v float64) string {
		if v == 0 {
			return ""
		}
		return time.Duration(v).String()
	}
	for _, r := range results {
		t.AppendRow(table.Row{
			r.Name, nanoseconds(r.NsPerOp), nanoseconds(r.P99Ns), r.AllocsPerOp, r.BytesPerOp,
			some("%.2f", r.FloorRatio), some("%.2f", r.BytesPerToken), some("%.0f", r.BytesPerNode),
		})
	}
	t.Render()
	page.WriteByte('\n')
	if _, err := io.WriteString(w, page.String()); err != nil {
		return &failure{fmt.Errorf("the results cannot be written: %w", err)}
	}
	return nil
}
