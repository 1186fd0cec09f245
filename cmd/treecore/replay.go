// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/replay"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

const (
	defaultModel  = "gpt-oss-20b"
	defaultDevice = "40GiB"
	defaultSeed   = 42
)

const replayLong = `Replay a trace of requests, or a made-up workload, through the prefix cache of a
model on a device of a given size, and report hit rates, the reasons of misses,
and what happened to the memory.

With no flag at all a built-in workload runs: coding agents on ` + defaultModel + `, on a
device that is too small for them. Time is simulated: a run is a function of the
trace, the model, the flags and the seed.`

const replayExample = `  # the built-in workload
  treecore replay

  # a production trace on 200 GiB, in pages of 64 tokens
  treecore replay --trace conversation_trace.jsonl.gz --model llama-3.1-70b --device-bytes 200GiB --page-size 64

  # how much memory pays off? one row for each size, as JSON
  treecore replay --trace conversation_trace.jsonl.gz --model gpt-oss-120b --sweep device-bytes=10GiB..160GiB --json

  # what any cache could reach: memory for everything, one request at a time
  treecore replay --trace conversation_trace.jsonl.gz --model llama-3.1-8b --device-bytes unlimited --concurrency 1 --page-size 512

  # three tiers; what this run leaves in the folder the next one finds
  treecore replay --device-bytes 4GiB --host-bytes 8GiB --storage file:/tmp/pages

  # a made-up workload
  treecore replay --workload shared-prefix --groups 4 --system-tokens 8192 --policy slru:protected_threshold=2`

// replayFlags are the flags of the command replay.
type replayFlags struct {
	source    sourceFlags
	model     string
	device    string
	host      string
	bandwidth string
	storage   storageFlags
	policy    string
	sweep     string
	json      string
	opLog     string
	o         replay.Options
}

// positive are the numbers that a flag must not set to 0, since 0 stands for the
// default.
var positive = []string{
	"page-size", "swa-ratio", "state-ratio", "chunk", "concurrency", "max-running", "prefill-rate", "decode-rate",
}

func replayCommand() *cobra.Command {
	r := &replayFlags{}
	c := &cobra.Command{
		Use:     "replay",
		Short:   "Replay a trace or a workload through the cache and report what happened",
		Long:    replayLong,
		Example: replayExample,
		Args:    r.args,
		RunE:    r.run,
	}
	f := c.Flags()
	f.SortFlags = false
	r.source.addNames(f)
	f.StringVar(&r.model, "model", defaultModel, "model profile: "+strings.Join(model.Names(), ", ")+", or a YAML file")
	f.StringVar(&r.device, "device-bytes", defaultDevice, "memory for cached state, as 40GiB, 1.5TiB or unlimited; the built-in workload has "+builtInDevice)
	f.StringVar(&r.host, "host-bytes", "", "memory of a host tier below the device, as 400GiB or unlimited; 0: none (default: none)")
	f.StringVar(&r.o.WritePolicy, "write-policy", "write-through", "when data is copied to the host: write-through, write-through-selective or write-back; or buffer-only: the host is a staging area between device and storage, and keeps nothing")
	f.StringVar(&r.bandwidth, "host-bandwidth", "25GB", "bytes that the link to the host moves in a second, each way")
	f.DurationVar(&r.o.HostLatency, "host-latency", replay.DefaultHostLatency, "time that each copy takes besides")
	r.storage.add(f, &r.o)
	f.StringVar(&r.sweep, "sweep", "", "replay once for each size: device-bytes=10GiB..160GiB doubles, device-bytes=10GiB..160GiB:9 takes 9 steps")
	f.StringVar(&r.json, "json", "", "write the report as JSON to the file, or to standard output if none is named")
	f.Lookup("json").NoOptDefVal = stdoutName
	f.StringVar(&r.opLog, "op-log", "", "record every call on the tree in the file, for treecore inspect; each line names its whole prompt, so pick a small workload")
	f.Uint64Var(&r.o.Seed, "seed", defaultSeed, "seed of everything that is made up")

	f.IntVar(&r.o.PageSize, "page-size", 0, "tokens in a page (default: the model's)")
	f.StringVar(&r.policy, "policy", "lru", "eviction policy, with parameters as name:param=value,...: "+strings.Join(tree.Policies(), ", "))
	f.Float64Var(&r.o.SWARatio, "swa-ratio", model.DefaultSWARatio, "size of the sliding-window pool in tokens, as a share of the full pool")
	f.Float64Var(&r.o.StateRatio, "state-ratio", model.DefaultStateRatio, "share of the memory that goes to recurrent states")
	f.BoolVar(&r.o.NoBranching, "no-branching", false, "ignore branch points")
	f.BoolVar(&r.o.KeepOutOfWindow, "keep-out-of-window", false, "keep sliding-window slots of a request that left its window")

	f.IntVar(&r.o.Concurrency, "concurrency", 0, "requests in flight, without arrival times (default: arrival times are kept)")
	f.IntVar(&r.o.MaxRunning, "max-running", replay.DefaultMaxRunning, "most requests in flight when arrival times are kept")
	f.StringVar(&r.o.Order, "order", replay.OrderReady, "order in which requests stand in line: ready, or listed as in the trace")
	f.IntVar(&r.o.Chunk, "chunk", 0, fmt.Sprintf("most prompt tokens computed in a step (default: %d, at least a page)", replay.DefaultChunk))
	f.Float64Var(&r.o.PrefillRate, "prefill-rate", 0, fmt.Sprintf("prompt tokens computed in a second (default: the model's, else %g)", replay.DefaultPrefillRate))
	f.Float64Var(&r.o.DecodeRate, "decode-rate", 0, fmt.Sprintf("tokens that each request generates in a second (default: the model's, else %g)", replay.DefaultDecodeRate))
	f.Float64Var(&r.o.Reserve, "reserve", replay.DefaultReserve, "share of the outputs to come for which admission keeps room")
	r.source.addSettings(f)
	return c
}

// stdoutName stands for the standard output where a file is asked for.
const stdoutName = "-"

// args refuses arguments that no flag takes.
func (r *replayFlags) args(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: replay takes flags only, a trace is named by --trace", args[0])
	}
	return nil
}

// distinctFiles refuses to write to the file that is read, or two things to one.
func (r *replayFlags) distinctFiles() error {
	used := map[string]string{}
	for _, f := range []struct{ flag, path string }{{"--trace", r.source.trace}, {"--op-log", r.opLog}, {"--json", r.json}} {
		if f.path == "" || f.path == stdoutName {
			continue
		}
		path, err := filepath.Abs(f.path)
		if err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if other, ok := used[path]; ok {
			return fmt.Errorf("%s and %s are one file, %s: name another", other, f.flag, f.path)
		}
		used[path] = f.flag
	}
	return nil
}

func (r *replayFlags) run(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("json") && r.json == "" {
		return errors.New("--json is empty: name a file, or give the flag without a value")
	}
	sizes, err := r.options(c)
	if err != nil {
		return err
	}
	w, err := r.source.open(c, r.o.Seed)
	if err != nil {
		return err
	}
	if err := r.distinctFiles(); err != nil {
		return err
	}
	closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	var file *reportFile // nil: the report goes to the standard output
	if r.json != "" && r.json != stdoutName {
		// Looked at before the run, so that a bad path is found at once.
		if file, err = openReport(r.json); err != nil {
			return fmt.Errorf("--json: the file cannot be written, name another: %w", errors.Join(err, closeLog()))
		}
	}
	result, err := r.replay(c, w, sizes)
	if err = errors.Join(err, closeLog()); err != nil {
		if file != nil {
			_ = file.close() // the run's own error says more
		}
		return err
	}
	switch {
	case file != nil:
		err = file.write(func(w io.Writer) error { return writeJSON(w, result) })
	case r.json != "":
		err = writeJSON(c.OutOrStdout(), result)
	default:
		err = result.WriteTable(c.OutOrStdout())
	}
	if err != nil {
		return &failure{fmt.Errorf("the report cannot be written: %w", err)}
	}
	return nil
}

// result is a report or a sweep.
type result interface{ WriteTable(io.Writer) error }

// replay runs with a progress bar on a terminal.
func (r *replayFlags) replay(c *cobra.Command, w *workload.Workload, sizes []int64) (result, error) {
	bar := newProgress(c.ErrOrStderr(), "requests", int64(len(w.Requests)*max(1, len(sizes))), r.json != stdoutName)
	r.o.Progress = func(ended int) { bar.set(int64(ended)) }
	defer r.storage.quiet()()
	var (
		x   result
		err error
	)
	if sizes != nil {
		x, err = replay.RunSweep(c.Context(), w, r.o, sizes)
	} else {
		x, err = replay.Run(c.Context(), w, r.o)
	}
	bar.done()
	var wrong *replay.OptionsError
	switch {
	case err == nil || errors.As(err, &wrong):
		return x, err
	case errors.Is(err, context.Canceled):
		return nil, &failure{errors.New("interrupted")}
	}
	return nil, &failure{err}
}

// options turns flags into options, and gives the sizes of a sweep.
func (r *replayFlags) options(c *cobra.Command) (sizes []int64, err error) {
	flags := c.Flags()
	for _, name := range positive {
		if f := flags.Lookup(name); f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
			return nil, fmt.Errorf("--%s is %s: must be more than 0", name, f.Value)
		}
	}
	if r.o.Reserve < 0 {
		return nil, fmt.Errorf("--reserve is %g: must be from 0 to 1", r.o.Reserve)
	}
	if r.o.Reserve == 0 {
		r.o.Reserve = -1 // asked for, not left open
	}
	if flags.Changed("concurrency") && flags.Changed("max-running") {
		return nil, errors.New("--max-running applies when arrival times are kept: leave it or --concurrency out")
	}
	if r.o.Profile, err = model.Load(r.model); err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	if r.source.isBuiltIn() && !flags.Changed("device-bytes") {
		r.device = builtInDevice
	}
	if r.o.DeviceBytes, err = model.ParseSize(r.device); err != nil {
		return nil, fmt.Errorf("--device-bytes: %w", err)
	}
	if r.host == "0" { // none, as without the flag
		r.host = ""
	}
	if r.host != "" {
		if r.o.HostBytes, err = model.ParseSize(r.host); err != nil {
			return nil, fmt.Errorf("--host-bytes: %w", err)
		}
	}
	if err := r.bufferOnly(); err != nil {
		return nil, err
	}
	if r.host == "" {
		for _, name := range []string{"write-policy", "host-bandwidth", "host-latency"} {
			if flags.Changed(name) {
				return nil, fmt.Errorf("--%s applies to a host tier: give --host-bytes, too", name)
			}
		}
	}
	bandwidth, err := model.ParseSize(r.bandwidth)
	if err != nil || bandwidth == model.Unlimited {
		return nil, fmt.Errorf("--host-bandwidth is %q: must be bytes a second, as 25GB", r.bandwidth)
	}
	r.o.HostBandwidth = float64(bandwidth)
	if r.o.HostLatency < 0 {
		return nil, fmt.Errorf("--host-latency is %v: must be 0 or more", r.o.HostLatency)
	}
	if r.o.HostLatency == 0 {
		r.o.HostLatency = -1 // asked for, not left open
	}
	if err := r.storage.options(flags, &r.o, r.host != ""); err != nil {
		return nil, err
	}
	if r.o.Policy, err = replay.ParsePolicy(r.policy); err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	if !flags.Changed("sweep") {
		return nil, nil
	}
	switch {
	case flags.Changed("device-bytes"):
		return nil, errors.New("--device-bytes and --sweep both set the device's size: leave one out")
	case r.opLog != "":
		return nil, errors.New("--op-log records one run: leave it or --sweep out")
	case r.o.Storage != "":
		return nil, errors.New("--storage keeps what a run leaves there, so the runs of a sweep would not start equal: leave it or --sweep out")
	}
	if sizes, err = replay.ParseSweep(r.sweep); err != nil {
		return nil, fmt.Errorf("--sweep: %w", err)
	}
	return sizes, nil
}

// bufferOnly refuses a staging area that lacks its own memory or what is behind it.
func (r *replayFlags) bufferOnly() error {
	var lack []string
	if r.host == "" {
		lack = append(lack, "--host-bytes, as --host-bytes 20GiB")
	}
	if r.storage.url == "" {
		lack = append(lack, "--storage, as --storage file:DIR")
	}
	if len(lack) == 0 || strings.ReplaceAll(r.o.WritePolicy, "_", "-") != replay.BufferOnly {
		return nil
	}
	return fmt.Errorf("--write-policy %s stages on the host what goes to storage and comes from it: add %s", replay.BufferOnly, strings.Join(lack, ", and "))
}

// openLog opens the file for the operation log, if there is to be one.
func (r *replayFlags) openLog() (closeLog func() error, err error) {
	if r.opLog == "" {
		return func() error { return nil }, nil
	}
	_, before := os.Stat(r.opLog)
	f, err := os.OpenFile(r.opLog, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("--op-log: the file cannot be written, name another: %w", err)
	}
	log := &logFile{File: f}
	r.o.OpLog = log
	return func() error {
		err := f.Close()
		if before != nil && !log.begun {
			err = errors.Join(err, os.Remove(r.opLog))
		}
		if err != nil {
			return &failure{fmt.Errorf("--op-log: %w", err)}
		}
		return nil
	}, nil
}

// logFile is emptied when something is written to it, so that a run that does not
// begin leaves an earlier log alone.
type logFile struct {
	*os.File
	begun bool
}

func (f *logFile) Write(b []byte) (int, error) {
	if !f.begun {
		f.begun = true
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := f.Truncate(0); err != nil {
				return 0, err
			}
		}
	}
	return f.File.Write(b)
}
