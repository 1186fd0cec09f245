// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
)

// Storage says what happened on the storage tier. Tokens are those of Full; bytes
// and times are those that the model's pages would take, but for Store.
type Storage struct {
	URL               string  `json:"url"` // without credentials
	PrefetchPolicy    string  `json:"prefetch_policy"`
	PrefetchThreshold int     `json:"prefetch_threshold"` // tokens
	TimeoutBase       float64 `json:"prefetch_timeout_base_seconds"`
	TimeoutPerKiToken float64 `json:"prefetch_timeout_per_ki_token_seconds"`
	Bandwidth         float64 `json:"bytes_per_second"`
	Latency           float64 `json:"latency_seconds"`

	Lookups      int64 `json:"lookups"` // that were answered
	LookupHits   int64 `json:"lookup_hits"`
	LookupMisses int64 `json:"lookup_misses"`

	// What became of prefetches: they were asked for, declined, issued, and of
	// these revoked.
	Attempts            int64 `json:"attempts"`
	DeclinedTooShort    int64 `json:"declined_too_short"`
	DeclinedRateLimited int64 `json:"declined_rate_limited"`
	DeclinedUnbacked    int64 `json:"declined_unbacked"`
	Issued              int64 `json:"issued"`
	RevokedInsufficient int64 `json:"revoked_insufficient"`
	RevokedFullMiss     int64 `json:"revoked_full_miss"`
	RevokedNoRoom       int64 `json:"revoked_no_room"`
	RevokedUnanswered   int64 `json:"revoked_unanswered"`
	RefillsDropped      int64 `json:"refills_dropped"`
	LookupsFailed       int64 `json:"lookups_failed"`
	ReadsFailed         int64 `json:"reads_failed"`

	PrefetchedTokens int64 `json:"prefetched_tokens"`
	LostTokens       int64 `json:"lost_tokens"` // found, and did not come
	AuxAllocFailed   int64 `json:"prefetch_aux_alloc_failed"`
	Writes           int64 `json:"writes"`
	WritesFailed     int64 `json:"writes_failed"`
	WrittenTokens    int64 `json:"written_tokens"` // those that were there already, too

	DemandRequests    int64   `json:"l3_demand_requests"`
	DemandTokens      int64   `json:"l1l2_miss_tokens"`
	MissTokens        int64   `json:"l3_miss_tokens"`
	DemandTotalTokens int64   `json:"l3_demand_total_tokens"`
	MissRateSum       float64 `json:"l3_sum_rate_all"`
	MissRateWeighted  float64 `json:"l3_sum_rate_main_weighted"`

	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"` // those of pages that were there already, too
	// BytesNew are the bytes of pages that were not: what a run takes of a store.
	BytesNew int64     `json:"bytes_new"`
	Busy     LineTimes `json:"busy_seconds"`
	// FetchPerKiToken is what 1,024 tokens take to be read, ComputePerKiToken what
	// they take to be computed, in seconds: fetching pays off in time where the
	// first is smaller.
	FetchPerKiToken   float64 `json:"fetch_seconds_per_ki_token"`
	ComputePerKiToken float64 `json:"compute_seconds_per_ki_token"`

	// WaitSeconds is the simulated time for which requests whose turn it was
	// waited for prefetches, all together, and Waited how many did.
	WaitSeconds float64 `json:"prefetch_wait_seconds"`
	Waits       Spread  `json:"prefetch_wait"` // of those that waited
	Waited      int     `json:"requests_waited"`
	// CouldHaveGiven are prompt tokens that the store was found to have and that
	// did not come: not waited for, no room, or a failed read.
	CouldHaveGiven int64 `json:"could_have_given"`
	// UnseenElsewhere are those of them that count as never seen.
	UnseenElsewhere int64 `json:"never_seen_but_in_storage"`

	// StampsChecked are the pages, windows and states that were looked at when
	// they were reused; WrongStamps held something else. A run with one fails.
	StampsChecked int64 `json:"stamps_checked"`
	WrongStamps   int64 `json:"wrong_stamps"`

	// Staging says what happened in the staging area; null: the host is a tier.
	Staging *Staging   `json:"staging,omitempty"`
	Store   StoreStats `json:"store"`
	Remarks []string   `json:"remarks"` // what the numbers mean for the size of the tier
}

// LineTimes are the simulated times for which lookups, reads and writes kept the
// store busy, in seconds.
type LineTimes struct {
	Lookup float64 `json:"lookup"`
	Read   float64 `json:"read"`
	Write  float64 `json:"write"`
}

// StoreStats is what the store itself has counted: pages of each component, and
// the bytes of stamps that stand for them.
type StoreStats struct {
	Pages        int64             `json:"pages"`     // held at the end; -1: it cannot tell
	Bytes        int64             `json:"bytes"`     // held at the end; -1: it cannot tell
	CapBytes     int64             `json:"cap_bytes"` // 0: none
	Hits         uint64            `json:"hits"`
	Misses       uint64            `json:"misses"`
	Written      uint64            `json:"written"`
	Present      uint64            `json:"present"` // were to be written, and there already
	Failed       uint64            `json:"failed"`
	Evicted      uint64            `json:"evicted"`
	BytesRead    uint64            `json:"bytes_read"`
	BytesWritten uint64            `json:"bytes_written"`
	Errors       map[string]uint64 `json:"errors"` // by kind; only those that occurred
}

// stampRevision names what stands for weights in the fingerprint of a replay, so
// that its pages are never taken for those of an engine.
const stampRevision = "treecore replay: content stamps, not a model's state, version 1"

// fingerprint says what a replay's pages mean.
func fingerprint(o *Options) storage.Fingerprint {
	f := storage.Fingerprint{
		Model: o.Profile.Name, Revision: stampRevision, DType: "stamp64", PageSize: o.PageSize,
		Components: o.Profile.Components(), Window: o.Profile.Window(), Ranks: 1,
	}
	if grid := o.Profile.Grid(o.PageSize); grid > 0 {
		f.Layout = fmt.Sprintf("states every %d tokens", grid)
	}
	return f
}

// attachStorage opens the store and gives it to the cache.
func (r *run) attachStorage(ctx context.Context) error {
	if r.o.Storage == "" {
		return nil
	}
	store, err := storage.Open(ctx, r.o.Storage, fingerprint(&r.o))
	if err != nil {
		return err
	}
	r.shelf = newShelf(&r.o)
	r.shelf.wake = r.driver.wakeWaiting
	if r.shelf.staging = r.o.bufferOnly; r.shelf.staging {
		r.shelf.wrote = r.driver.wakeUp
	}
	err = r.meter.c.AttachStorage(cache.StorageOptions{
		Store: counted{store, r.shelf}, StopPolicy: r.o.stopPolicy, PrefetchThreshold: r.o.PrefetchThreshold, Timeout: r.shelf.timeout,
		Manual: true, Started: r.shelf.started, Now: r.shelf.clock,
	})
	if err != nil {
		_ = store.Close() // the first error says more
		return err
	}
	r.store, r.driver.shelf, r.driver.stamps = store, r.shelf, r.stamps
	r.stamps.cache, r.stamps.page, r.stamps.window = r.meter.c, r.o.PageSize, r.o.Profile.Window()
	r.stamps.grid = r.o.Profile.Grid(r.o.PageSize)
	return nil
}

// redacted is a URL without what a reader of a report must not learn.
func redacted(raw string) string {
	if strings.HasPrefix(raw, "file:") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		scheme, _, _ := strings.Cut(raw, ":")
		return scheme + ":..."
	}
	u.User = nil
	query := u.Query()
	for name := range query {
		if strings.Contains(name, "password") || strings.Contains(name, "secret") || strings.Contains(name, "user") || name == "key" {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func storageReport(run *run) *Storage {
	if run.store == nil {
		return nil
	}
	o, l, r, s := &run.o, run.shelf, run.rec, run.meter.c.Stats().Storage
	seconds := func(k queue.Kind) float64 { return l.busy[k].Seconds() }
	x := &Storage{
		URL: redacted(o.Storage), PrefetchPolicy: prefetchPolicyName(o.stopPolicy), PrefetchThreshold: max(o.PrefetchThreshold, o.PageSize),
		TimeoutBase: l.timeout.Base.Seconds(), TimeoutPerKiToken: l.timeout.PerKiToken.Seconds(),
		Bandwidth: o.StorageBandwidth, Latency: o.StorageLatency.Seconds(),
		Lookups: l.answers[0] + l.answers[1], LookupHits: l.answers[0], LookupMisses: l.answers[1],
		Attempts: s.Attempts, DeclinedTooShort: s.DeclinedTooShort, DeclinedRateLimited: s.DeclinedRateLimited,
		DeclinedUnbacked: s.DeclinedUnbacked, Issued: s.Issued, RevokedInsufficient: s.RevokedInsufficient,
		RevokedFullMiss: s.RevokedFullMiss, RevokedNoRoom: s.RevokedNoRoom, RevokedUnanswered: s.RevokedUnanswered,
		RefillsDropped: s.RefillsDropped, LookupsFailed: s.LookupsFailed, ReadsFailed: s.ReadsFailed,
		PrefetchedTokens: s.PrefetchedTokens, LostTokens: s.LostTokens, AuxAllocFailed: s.AuxAllocFailedTokens,
		Writes: s.Writes, WritesFailed: s.WritesFailed, WrittenTokens: s.WrittenTokens,
		DemandRequests: s.DemandRequests, DemandTokens: s.DemandTokens, MissTokens: s.MissTokens,
		DemandTotalTokens: s.DemandTotalTokens, MissRateSum: s.MissRateSum, MissRateWeighted: s.MissRateWeighted,
		BytesRead: int64(l.moved[queue.Read]), BytesWritten: int64(l.moved[queue.Write]), BytesNew: int64(l.grown),
		Busy:              LineTimes{Lookup: seconds(queue.Lookup), Read: seconds(queue.Read), Write: seconds(queue.Write)},
		FetchPerKiToken:   1024 * l.pages["full"] / float64(o.PageSize) / l.bandwidth,
		ComputePerKiToken: 1024 / o.PrefillRate,
		WaitSeconds:       r.fetchWait.Seconds(), Waited: len(r.fetches), Waits: spread(r.fetches),
		CouldHaveGiven: r.lacked, UnseenElsewhere: r.unseen,
		StampsChecked: run.stamps.checked, WrongStamps: run.stamps.wrong, Store: storeStats(run.store.Stats()),
		Remarks: []string{},
		Staging: stagingReport(o, &s),
	}
	x.remark(o, r.last.Seconds())
	return x
}

func storeStats(s storage.Stats) StoreStats {
	x := StoreStats{
		Pages: s.Pages, Bytes: s.Bytes, CapBytes: s.CapBytes, Hits: s.Hits, Misses: s.Misses, Written: s.Written,
		Present: s.Present, Failed: s.Failed, Evicted: s.Evicted, BytesRead: s.BytesRead, BytesWritten: s.BytesWritten,
		Errors: map[string]uint64{},
	}
	for k, n := range s.Errors {
		if n > 0 {
			x.Errors[storage.Kind(k).String()] = n
		}
	}
	return x
}
