// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// Report is what a run has found. Its JSON form has stable keys. Rates are
// shares from 0 to 1; a block is a page.
type Report struct {
	Trace   string   `json:"trace"`
	Format  string   `json:"format"`
	Notes   []string `json:"notes"` // what was chosen because nobody said it
	Model   string   `json:"model"`
	Options Settings `json:"options"`
	Seed    uint64   `json:"seed"`

	Pools Pools `json:"pools"`

	Requests        int       `json:"requests"`
	RequestsDone    int       `json:"requests_done"`
	RequestsRefused int       `json:"requests_refused"`
	Refusals        []Refusal `json:"refusals"` // the first ones
	Retractions     int       `json:"retractions"`
	RequestHits     int       `json:"request_hits"`
	RequestHitRate  float64   `json:"request_hit_rate"`

	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	TokenHitRate float64 `json:"token_hit_rate"`
	Blocks       int64   `json:"blocks"` // whole pages of the prompts
	BlockHits    int64   `json:"block_hits"`
	BlockHitRate float64 `json:"block_hit_rate"`
	// ComputedTokens are the prompt tokens that were computed, with the work of
	// requests that were taken off or given up.
	ComputedTokens int64 `json:"computed_tokens"`
	OutputTokens   int64 `json:"output_tokens"`

	Infinite       Rates            `json:"infinite"`
	HitsByTier     Tiers            `json:"hits_by_tier"`
	MissesByReason map[string]int64 `json:"misses_by_reason"`
	// SeenBefore are the tokens among the never seen that an infinite cache has:
	// they were evicted, or the request that has them was not done.
	SeenBefore int64 `json:"never_seen_but_in_infinite_cache"`

	Evictions       map[string]int64 `json:"evictions"`  // units by component
	Tombstones      map[string]int64 `json:"tombstones"` // nodes that lost only this component
	BranchPoints    BranchPoints     `json:"branch_points"`
	DuplicatesFreed int64            `json:"duplicates_freed"` // slots
	OutOfWindow     int64            `json:"out_of_window_freed"`
	StatesNotKept   int64            `json:"states_not_kept"`
	Occupancy       []Sample         `json:"occupancy"`
	Host            *Host            `json:"host,omitempty"`    // null: there is no host tier
	Storage         *Storage         `json:"storage,omitempty"` // null: there is no storage tier

	TreeBytesPerCachedToken float64 `json:"tree_bytes_per_cached_token"` // at the peak
	TreePeakBytes           int     `json:"tree_peak_bytes"`
	TreePeakNodes           int     `json:"tree_peak_nodes"`
	TreePeakTokens          int     `json:"tree_peak_cached_tokens"`

	SimulatedSeconds float64 `json:"simulated_seconds"`
	// TimeToFirstToken is simulated: from the moment a request is ready, or
	// where arrival times are not kept from its admission.
	TimeToFirstToken Spread `json:"time_to_first_token_seconds"`

	WallSeconds     float64    `json:"wall_seconds"`
	TokensPerSecond float64    `json:"tokens_per_second"` // input tokens by wall time
	Ops             Operations `json:"ops"`
}

// Settings are the options of a run as they were in force.
type Settings struct {
	DeviceBytes     *int64         `json:"device_bytes"` // null: unlimited
	PageSize        int            `json:"page_size"`
	SWARatio        *float64       `json:"swa_ratio,omitempty"`
	StateRatio      *float64       `json:"state_ratio,omitempty"`
	Window          int            `json:"window,omitempty"`
	CheckpointGrid  int            `json:"checkpoint_grid,omitempty"`
	Policy          string         `json:"policy"`
	PolicyParams    map[string]int `json:"policy_params,omitempty"`
	Chunk           int            `json:"chunk"`
	Concurrency     int            `json:"concurrency"` // 0: arrival times were kept
	MaxRunning      int            `json:"max_running"`
	Order           string         `json:"order"`
	PrefillRate     float64        `json:"prefill_tokens_per_second"`
	DecodeRate      float64        `json:"decode_tokens_per_second"`
	Reserve         float64        `json:"reserve"`
	Branching       bool           `json:"branching"`
	KeepOutOfWindow bool           `json:"keep_out_of_window"`
}

// Pools are the slots that the device holds.
type Pools struct {
	Full  int `json:"full"`            // tokens
	SWA   int `json:"swa,omitempty"`   // tokens
	Mamba int `json:"mamba,omitempty"` // states
}

// Rates are hit rates.
type Rates struct {
	TokenHitRate float64 `json:"token_hit_rate"`
	BlockHitRate float64 `json:"block_hit_rate"`
}

// Tiers are tokens by the tier they were found in.
type Tiers struct {
	Device  int64 `json:"device"`
	Host    int64 `json:"host"`
	Storage int64 `json:"storage"`
}

// BranchPoints counts positions at which a match found that a window or a state
// would help, and those at which one was put.
type BranchPoints struct {
	Seen     int `json:"seen"`
	Inserted int `json:"inserted"`
}

// Spread is how times are distributed, in seconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Operations are the measured times of calls on the cache. A call that had to
// evict stands under Evict, with all that it did.
type Operations struct {
	Match  Operation `json:"match"`
	Insert Operation `json:"insert"` // of a chunk or a finished request
	Lock   Operation `json:"lock"`   // admission
	Evict  Operation `json:"evict"`
}

// Operation is the distribution of one kind of call; quantiles are right to
// within 0.8 %.
type Operation struct {
	Count int64 `json:"count"`
	P50   int64 `json:"p50_ns"`
	P99   int64 `json:"p99_ns"`
}

// Sweep is a row of runs.
type Sweep struct {
	Runs []*Report `json:"runs"`
}

// report puts together what a run has found.
func report(run *run, b *Bound, wall time.Duration) *Report {
	w, o, s, m, r := run.w, &run.o, &run.sizes, &run.meter, run.rec
	stats := m.c.Stats()
	x := &Report{
		Trace: w.Name, Format: w.Format, Notes: notes(w, o, s),
		Model: o.Profile.Name, Options: settings(o, s), Seed: o.Seed,
		Pools:    Pools{Full: s.device.Full, SWA: s.device.SWA, Mamba: s.device.Mamba},
		Requests: len(w.Requests), RequestsDone: r.ended, RequestsRefused: r.refusedCount,
		Refusals: append([]Refusal{}, r.refusals...), Retractions: r.retractions,
		RequestHits: r.hit, RequestHitRate: share(int64(r.hit), int64(len(w.Requests))),
		CachedTokens: r.cached, BlockHits: r.pageHits, ComputedTokens: r.computed, OutputTokens: r.output,
		HitsByTier: Tiers{Device: r.cached - r.host - r.store, Host: r.host, Storage: r.store}, MissesByReason: r.misses,
		Evictions: byComponent(o, stats.Evicted), Tombstones: byComponent(o, stats.Tombstones),
		DuplicatesFreed: stats.DuplicatesFreed, OutOfWindow: stats.OutOfWindowFreed, StatesNotKept: stats.StatesNotKept,
		Occupancy:     r.timeline.samples,
		TreePeakBytes: r.tree.peakBytes, TreePeakNodes: r.tree.peakNodes, TreePeakTokens: r.tree.peakTokens,
		SimulatedSeconds: r.last.Seconds(), TimeToFirstToken: spread(r.waits),
		WallSeconds: wall.Seconds(),
		Ops: Operations{
			Match: m.operation(opMatch), Insert: m.operation(opInsert), Lock: m.operation(opLock), Evict: m.operation(opEvict),
		},
	}
	for i := range w.Requests {
		j := &run.driver.jobs[i]
		if known := min(b.hits[i], j.found.Units) / o.PageSize * o.PageSize; j.done && j.found.Reason != tree.ReasonOtherNamespace {
			x.SeenBefore += int64(max(0, known-j.found.FullOnly))
		}
		x.InputTokens += int64(w.Requests[i].InputLen)
		x.Blocks += int64(w.Requests[i].InputLen / o.PageSize)
	}
	for id := range stats.BranchesSeen {
		x.BranchPoints.Seen += stats.BranchesSeen[id]
		x.BranchPoints.Inserted += stats.BranchesInserted[id]
	}
	x.Host = hostReport(run, x)
	x.Storage = storageReport(run)
	x.TokenHitRate = share(x.CachedTokens, x.InputTokens)
	x.BlockHitRate = share(x.BlockHits, x.Blocks)
	x.Infinite.TokenHitRate, x.Infinite.BlockHitRate = b.rates(w, o.PageSize)
	if s := x.Storage; s != nil && x.TokenHitRate > x.Infinite.TokenHitRate {
		s.Remarks = append(s.Remarks, "it held pages of earlier runs, which the infinite cache does not know: it begins empty")
	}
	if r.tree.peakTokens > 0 {
		x.TreeBytesPerCachedToken = float64(r.tree.peakBytes) / float64(r.tree.peakTokens)
	}
	if wall > 0 {
		x.TokensPerSecond = float64(x.InputTokens) / wall.Seconds()
	}
	return x
}

func (m *meter) operation(op operation) Operation {
	h := &m.ops[op]
	return Operation{Count: h.count, P50: h.quantile(0.5), P99: h.quantile(0.99)}
}

func byComponent(o *Options, u tree.Units) map[string]int64 {
	list := map[string]int64{}
	set := o.Profile.Components()
	for id := tree.Full; id < tree.NumComponents; id++ {
		if set.Has(id) {
			list[id.String()] = int64(u[id])
		}
	}
	return list
}

func settings(o *Options, s *sizes) Settings {
	x := Settings{
		PageSize: o.PageSize, Policy: strings.ToLower(o.Policy.Name), PolicyParams: o.Policy.Params,
		Chunk: s.chunk, Concurrency: o.Concurrency, MaxRunning: o.inFlight(), Order: o.Order,
		PrefillRate: o.PrefillRate, DecodeRate: o.DecodeRate, Reserve: o.Reserve,
		Branching: !o.NoBranching, KeepOutOfWindow: o.KeepOutOfWindow,
		Window: o.Profile.Window(), CheckpointGrid: o.Profile.Grid(o.PageSize),
	}
	if x.Policy == "" {
		x.Policy = "lru"
	}
	if o.DeviceBytes != model.Unlimited {
		x.DeviceBytes = &o.DeviceBytes
	}
	if o.Profile.SWA != nil {
		x.SWARatio = &o.SWARatio
	}
	if o.Profile.Mamba != nil {
		x.StateRatio = &o.StateRatio
	}
	return x
}

// notes says what a reader of the result must know that was not asked for.
func notes(w *workload.Workload, o *Options, s *sizes) []string {
	list := append([]string{}, w.Notes...)
	if w.Truncated > 0 {
		list = append(list, fmt.Sprintf("%d line at the file's end was cut off and left out", w.Truncated))
	}
	list = append(list, s.notes...)
	if o.assumedRates {
		list = append(list, fmt.Sprintf("service rates are assumed: %g prompt tokens a second in all, %g generated tokens a second for each request", o.PrefillRate, o.DecodeRate))
	}
	return list
}
