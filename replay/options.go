// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
)

// Defaults of Options.
const (
	DefaultChunk       = 8192
	DefaultMaxRunning  = 256
	DefaultPrefillRate = 50_000.0
	DefaultDecodeRate  = 50.0
	DefaultReserve     = 0.5
	// DefaultHostBandwidth is what a PCIe 4.0 link with 16 lanes moves, in bytes a
	// second each way, and DefaultHostLatency the time that a copy takes besides.
	DefaultHostBandwidth = 25e9
	DefaultHostLatency   = 20 * time.Microsecond
	// DefaultStorageBandwidth is what a fast local disk or a network of 40 Gbit/s
	// moves, in bytes a second each way, and DefaultStorageLatency the time that an
	// operation on a store in the same data centre takes besides. An object store
	// takes 20 ms or more.
	DefaultStorageBandwidth = 5e9
	DefaultStorageLatency   = time.Millisecond
	// DefaultPrefetchPolicy is how long requests wait for what is in storage.
	DefaultPrefetchPolicy = "timeout"
)

// Orders in which requests stand in line.
const (
	// OrderReady: who is ready first stands first; the earlier listed first
	// among equals.
	OrderReady = "ready"
	// OrderListed: strictly in listed order. A request that is not ready holds
	// up those behind it.
	OrderListed = "listed"
)

// Options are the settings of a run. Zero values take the defaults but for
// Profile, which is required.
type Options struct {
	Profile *model.Profile
	// DeviceBytes is the memory for cached state. 0 or model.Unlimited: as much
	// as the workload can use.
	DeviceBytes int64
	PageSize    int // tokens; 0: the profile's
	// HostBytes is the memory of the host tier, divided like that of the device.
	// 0: there is none; model.Unlimited: as much as the workload can use.
	HostBytes int64
	// WritePolicy says when data is copied to the host: write-through,
	// write-through-selective or write-back; or buffer-only: the host is a staging
	// area between device and storage, and keeps nothing. Empty: write-through.
	WritePolicy string
	// HostBandwidth is what the link to the host moves in a second in each
	// direction, in bytes, and HostLatency what a copy takes besides. 0: the
	// defaults; a negative latency: none.
	HostBandwidth float64
	HostLatency   time.Duration
	// Storage is the URL of a store below the host tier, as storage.Open takes it;
	// empty: there is none. The package of its backend must be imported. Pages of
	// earlier runs that are there are found.
	Storage string
	// PrefetchPolicy says how long a request waits for what is in storage:
	// best-effort, wait-complete or timeout. Empty: DefaultPrefetchPolicy.
	PrefetchPolicy string
	// PrefetchThreshold is the fewest tokens that are fetched from storage. 0:
	// cache.DefaultPrefetchThreshold.
	PrefetchThreshold int
	// StorageBandwidth is what reads and writes each move in a second, in bytes of
	// the model, and StorageLatency what an operation takes besides. 0: the
	// defaults; a negative latency: none.
	StorageBandwidth float64
	StorageLatency   time.Duration
	SWARatio         float64 // 0: model.DefaultSWARatio
	StateRatio       float64 // 0: model.DefaultStateRatio

	Policy tree.PolicyOptions // which Full leaf goes first; zero: lru

	// Chunk is the most prompt tokens computed in a step, at least a page.
	Chunk int
	// Concurrency is the number of requests in flight when arrival times are
	// not to be kept: a request starts when another one ends. Closed loops keep
	// their order and think times. 0: keep arrival times.
	Concurrency int
	// MaxRunning is the most requests in flight with arrival times.
	MaxRunning int
	Order      string // OrderReady or OrderListed; empty: OrderReady
	// PrefillRate is the number of prompt tokens computed in a second by all
	// requests together, DecodeRate that of the tokens that each running request
	// generates. 0: the profile's, or else the default.
	PrefillRate, DecodeRate float64
	// Reserve is the share of the outputs still to come from running requests
	// for which admission keeps room: from 0 to 1. Negative: none.
	Reserve float64

	NoBranching     bool // ignore branch points
	KeepOutOfWindow bool // keep SWA slots that left the window

	Seed uint64 // reported; the workload was made with it

	// OpLog receives every call on the tree as a line of text, if not nil.
	OpLog io.Writer
	// Bound is NewBound of the same workload, if at hand; nil: computed.
	Bound *Bound
	// Progress is called with the number of requests that have ended, if not
	// nil, after each.
	Progress func(ended int)
	// Observe is called with each request that has ended, if not nil, in the
	// order in which they end.
	Observe func(Outcome)

	uncut        bool // pools as large as the device, for tests
	writePolicy  cache.WritePolicy
	bufferOnly   bool // then with write-through
	stopPolicy   cache.StopPolicy
	assumedRates bool // a rate is neither given nor in the profile
}

// Outcome is what became of one request. Times are virtual, since the start.
type Outcome struct {
	Request  int  // index in the workload
	Refused  bool // it did not fit; then the rest says nothing
	Runs     int  // how often it was admitted: once, and once more after each retraction
	Input    int  // prompt tokens
	Cached   int  // prompt tokens that count as reused
	Host     int  // those of them that were loaded from the host
	Storage  int  // those of them that were fetched from storage
	Reused   int  // prompt tokens that the last run reused
	Computed int  // prompt tokens that the last run computed
	Output   int  // tokens generated

	Ready      time.Duration // it got in line
	Begun      time.Duration // it was admitted for the first time
	FirstToken time.Duration
	End        time.Duration
}

// complete fills in defaults and joins all problems.
func (o Options) complete() (Options, error) {
	var problems []error
	bad := func(what string, value any, allowed string) {
		problems = append(problems, fmt.Errorf("%s is %v, must be %s", what, value, allowed))
	}
	if o.Profile == nil {
		return o, errors.New("profile is missing, name a model")
	}
	if o.DeviceBytes == 0 {
		o.DeviceBytes = model.Unlimited
	}
	if o.DeviceBytes < 0 {
		bad("device bytes", o.DeviceBytes, "1 or more, or unlimited")
	}
	fill := func(value *int, fallback int) {
		if *value == 0 {
			*value = fallback
		}
	}
	rate := func(what string, value *float64, known, fallback float64) {
		if *value == 0 {
			*value = known
		}
		if *value == 0 {
			*value, o.assumedRates = fallback, true
		}
		if !(*value >= 1e-3 && *value <= 1e12) {
			bad(what, *value, "from 0.001 to 1e12 tokens a second")
		}
	}
	fill(&o.PageSize, o.Profile.PageSize)
	fill(&o.Chunk, max(DefaultChunk, o.PageSize))
	fill(&o.MaxRunning, DefaultMaxRunning)
	rate("prefill rate", &o.PrefillRate, o.Profile.PrefillRate, DefaultPrefillRate)
	rate("decode rate", &o.DecodeRate, o.Profile.DecodeRate, DefaultDecodeRate)
	if o.HostBytes < 0 {
		bad("host bytes", o.HostBytes, "1 or more, unlimited, or 0 for none")
	}
	if o.WritePolicy == "" {
		o.WritePolicy = cache.WriteThrough.String()
	}
	problems = append(problems, o.completeWritePolicy()...)
	if o.HostBandwidth == 0 {
		o.HostBandwidth = DefaultHostBandwidth
	}
	if !(o.HostBandwidth >= 1e3 && o.HostBandwidth <= 1e15) {
		bad("host bandwidth", o.HostBandwidth, "from 1e3 to 1e15 bytes a second")
	}
	switch {
	case o.HostLatency == 0:
		o.HostLatency = DefaultHostLatency
	case o.HostLatency < 0:
		o.HostLatency = 0
	case o.HostLatency > time.Minute:
		bad("host latency", o.HostLatency, "a minute or less")
	}
	problems = append(problems, o.completeStorage()...)
	if o.Order == "" {
		o.Order = OrderReady
	}
	if o.Order != OrderReady && o.Order != OrderListed {
		bad("order", o.Order, OrderReady+" or "+OrderListed)
	}
	switch {
	case o.Reserve == 0:
		o.Reserve = DefaultReserve
	case o.Reserve < 0:
		o.Reserve = 0
	}
	if !(o.Reserve <= 1) {
		bad("reserve", o.Reserve, "from 0 to 1")
	}
	ratio := func(value *float64, fallback float64) {
		if *value == 0 {
			*value = fallback
		}
	}
	ratio(&o.SWARatio, model.DefaultSWARatio)
	ratio(&o.StateRatio, model.DefaultStateRatio)
	if o.PageSize < 1 || o.PageSize > tree.MaxPageSize {
		bad("page size", o.PageSize, fmt.Sprintf("from 1 to %d", tree.MaxPageSize))
	} else if o.Chunk < o.PageSize || o.Chunk > math.MaxInt32 {
		bad("chunk", o.Chunk, fmt.Sprintf("from a page of %d to %d tokens", o.PageSize, math.MaxInt32))
	}
	if o.Concurrency < 0 || o.Concurrency > maxInFlight {
		bad("concurrency", o.Concurrency, fmt.Sprintf("from 1 to %d, or 0 to keep arrival times", maxInFlight))
	}
	if o.MaxRunning < 1 || o.MaxRunning > maxInFlight {
		bad("max running", o.MaxRunning, fmt.Sprintf("from 1 to %d", maxInFlight))
	}
	return o, errors.Join(problems...)
}

const maxInFlight = 1 << 20

// inFlight gives the most requests that may run at once.
func (o *Options) inFlight() int {
	if o.Concurrency > 0 {
		return o.Concurrency
	}
	return o.MaxRunning
}

// ParsePolicy reads "name" or "name:param=value,...".
func ParsePolicy(text string) (tree.PolicyOptions, error) {
	name, list, more := strings.Cut(text, ":")
	p := tree.PolicyOptions{Name: name}
	if more {
		p.Params = map[string]int{}
		for _, part := range strings.Split(list, ",") {
			key, value, ok := strings.Cut(part, "=")
			var n int
			if _, err := fmt.Sscanf(value+"\n", "%d\n", &n); !ok || key == "" || err != nil {
				return p, fmt.Errorf("policy %q: %q is not param=number, as in slru:protected_threshold=2", text, part)
			}
			p.Params[key] = n
		}
	}
	// The core knows names and parameters, and says which there are.
	if _, err := tree.New(tree.Options{Policy: p}); err != nil {
		return p, err
	}
	return p, nil
}
