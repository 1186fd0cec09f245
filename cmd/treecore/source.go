// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/treecore/treecore/workload"
)

// builtIn is the workload that is replayed when none is named, and the device it
// is replayed on when no size is given: small enough that the cache must choose
// what to keep.
const (
	builtIn       = "agents"
	builtInDevice = "6GiB"
)

// sourceFlags say where requests come from.
type sourceFlags struct {
	trace, workload string
	format          string
	blockSize       int
	timeUnit        time.Duration
	chained         string
	limit           int
	tolerateCut     bool
	sharing         workload.Sharing
	generator       *generatorFlags
}

// traceOnly are the flags that apply to traces only.
var traceOnly = []string{
	"format", "block-size", "time-unit", "chained", "limit", "tolerate-cut-line",
	"share-system", "share-groups", "share-group-tokens", "share-zipf",
}

// addNames adds the flags that choose what is replayed.
func (s *sourceFlags) addNames(f *pflag.FlagSet) {
	f.StringVar(&s.trace, "trace", "", "trace file to replay, gzip-compressed or not; - is standard input")
	f.StringVar(&s.workload, "workload", "", "made-up workload to replay instead: "+strings.Join(workload.Generators(), ", "))
}

// addSettings adds the flags that say how a trace is read or a workload made.
func (s *sourceFlags) addSettings(f *pflag.FlagSet) {
	f.StringVar(&s.format, "format", "", "format of the trace: "+strings.Join(workload.Formats(), ", ")+" (default: found out)")
	f.IntVar(&s.blockSize, "block-size", 0, "tokens that a block id of the trace stands for (default: the format's)")
	f.DurationVar(&s.timeUnit, "time-unit", 0, "unit of the trace's times, as 1ms or 1s (default: the format's)")
	f.StringVar(&s.chained, "chained", "auto", "whether a block id stands for everything before it, too: yes, no or auto; the tree finds a block by its whole path either way, so that hits do not depend on it")
	f.IntVar(&s.limit, "limit", 0, "replay only the first requests of the trace, so many (default: all)")
	f.BoolVar(&s.tolerateCut, "tolerate-cut-line", false, "accept a trace that ends inside its last line, and leave that out")
	f.IntVar(&s.sharing.SystemTokens, "share-system", 0, "for traces of lengths: tokens of a system prompt that all requests share")
	f.IntVar(&s.sharing.Groups, "share-groups", 0, "for traces of lengths: groups of requests with a prefix of their own")
	f.IntVar(&s.sharing.GroupTokens, "share-group-tokens", 0, "for traces of lengths: tokens of a group's prefix")
	f.Float64Var(&s.sharing.ZipfExponent, "share-zipf", 0, "for traces of lengths: how unequal groups are; 0: all alike")
	s.generator = addGeneratorFlags(f)
}

// isBuiltIn says that the command line names neither a trace nor a workload.
func (s *sourceFlags) isBuiltIn() bool { return s.trace == "" && s.workload == "" }

// open reads the trace or makes the workload.
func (s *sourceFlags) open(c *cobra.Command, seed uint64) (*workload.Workload, error) {
	if s.trace != "" && s.workload != "" {
		return nil, fmt.Errorf("--trace and --workload are both given: leave one out")
	}
	for _, name := range []string{"trace", "workload"} {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return nil, fmt.Errorf("--%s is empty: name one, or leave the flag out", name)
		}
	}
	if s.trace == "" {
		name := s.workload
		if name == "" {
			name = builtIn
		}
		return s.generate(c, name, seed)
	}
	if _, err := s.generator.settings(c, ""); err != nil {
		return nil, err
	}
	o := workload.Options{
		Format: s.format, BlockSize: s.blockSize, TimeUnit: s.timeUnit, Limit: s.limit,
		TolerateCutLine: s.tolerateCut, Sharing: s.sharing,
	}
	for _, name := range []string{"block-size", "time-unit", "limit"} {
		if f := c.Flags().Lookup(name); f.Changed && strings.Trim(f.Value.String(), "0ns") == "" {
			return nil, fmt.Errorf("--%s is 0: give more, or leave the flag out", name)
		}
	}
	switch s.chained {
	case "auto":
	case "yes":
		o.Chained = workload.Chained
	case "no":
		o.Chained = workload.Unchained
	default:
		return nil, fmt.Errorf("--chained is %q: must be yes, no or auto", s.chained)
	}
	if o.Sharing != (workload.Sharing{}) {
		o.Sharing.Seed = seed
	}
	return workload.Open(s.trace, o)
}

func (s *sourceFlags) generate(c *cobra.Command, name string, seed uint64) (*workload.Workload, error) {
	for _, flag := range traceOnly {
		if c.Flags().Changed(flag) {
			return nil, fmt.Errorf("--%s applies to --trace only: leave it out, or name a trace", flag)
		}
	}
	if workload.Settings(name) != nil {
		settings, err := s.generator.settings(c, name)
		if err != nil {
			return nil, err
		}
		return workload.Generate(name, append(settings, fmt.Sprintf("%s=%d", seedSetting, seed))...)
	}
	return workload.Generate(name)
}
