// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/storage"
)

// text is the storage's line in the head of a report.
func (s *Storage) text() string {
	wait := s.PrefetchPolicy
	if wait == prefetchPolicyName(cache.WaitTimeout) {
		wait += fmt.Sprintf(" of %gs and %gms for each 1,024 tokens", s.TimeoutBase, 1000*s.TimeoutPerKiToken)
	}
	return fmt.Sprintf("%s: from %s tokens on, %s; operations of %s, %s/s", s.URL, grouped(int64(s.PrefetchThreshold)), wait,
		time.Duration(s.Latency*float64(time.Second)), model.FormatSize(int64(s.Bandwidth)))
}

// storageTable says what the tier gave and what it cost.
func (r *Report) storageTable() table.Writer {
	s := r.Storage
	found := s.DemandTokens - s.MissTokens
	t := newTable("storage", "", "")
	row := func(name, value, more string) { t.AppendRow(table.Row{name, value, more}) }
	row("lookups / that found something", grouped(s.Lookups)+" / "+grouped(s.LookupHits), percent(share(s.LookupHits, s.Lookups)))
	row("tokens asked for / found", grouped(s.DemandTokens)+" / "+grouped(found), percent(share(found, s.DemandTokens)))
	row("tokens fetched", grouped(s.PrefetchedTokens), percent(share(s.PrefetchedTokens, s.DemandTokens)))
	if n := found - s.PrefetchedTokens - s.CouldHaveGiven; n > 0 {
		row("the cache had them meanwhile", grouped(n), percent(share(n, s.DemandTokens)))
	}
	row("could have given, did not come", grouped(s.CouldHaveGiven), percent(share(s.CouldHaveGiven, s.DemandTokens)))
	row("tokens written", grouped(s.WrittenTokens), "")
	row("  pages new / there already", grouped(int64(s.Store.Written))+" / "+grouped(int64(s.Store.Present)), "")
	held := "unknown"
	if s.Store.Pages >= 0 {
		held = grouped(s.Store.Pages)
	}
	row("pages held at the end", held, "")
	busy := func(seconds float64) string { return percent(seconds/max(r.SimulatedSeconds, 1e-9)) + " busy" }
	row("bytes read, of the model", model.FormatSize(s.BytesRead), busy(s.Busy.Read))
	row("bytes written, of the model", model.FormatSize(s.BytesWritten), busy(s.Busy.Write))
	row("  of new pages: what the store grew by", model.FormatSize(s.BytesNew), "")
	row("requests that waited for it", grouped(int64(s.Waited)), "p50 "+seconds(s.Waits.P50)+", p99 "+seconds(s.Waits.P99))
	row("1,024 tokens: fetched in / computed in", seconds(s.FetchPerKiToken)+" / "+seconds(s.ComputePerKiToken), "")
	row("pages and states checked / wrong", grouped(s.StampsChecked)+" / "+grouped(s.WrongStamps), "")
	return t
}

// prefetchTable says what became of the prefetches; outcomes that did not occur
// are left out.
func (r *Report) prefetchTable() table.Writer {
	s := r.Storage
	t := newTable("prefetches", "", "of all")
	row := func(name string, n int64) {
		if n > 0 {
			t.AppendRow(table.Row{name, grouped(n), percent(share(n, s.Attempts+s.DeclinedUnbacked))})
		}
	}
	staging := s.Staging
	if staging == nil {
		staging = &Staging{}
	}
	revoked := staging.RevokedBaseGone + staging.RevokedCovered + s.RevokedFullMiss + s.RevokedInsufficient + s.RevokedUnanswered + s.RevokedNoRoom + s.RefillsDropped
	row("declined: too few tokens are missing", s.DeclinedTooShort)
	row("declined: half of the host is being fetched", s.DeclinedRateLimited-staging.Parked)
	row("declined: what is above is not on the host", s.DeclinedUnbacked)
	row("ended: nothing found", s.RevokedFullMiss)
	row("ended: too little found", s.RevokedInsufficient)
	row("ended: not waited for the answer", s.RevokedUnanswered)
	row("ended: no room on the host", s.RevokedNoRoom)
	row("ended: what is above left the host", s.RefillsDropped)
	row("ended: what is above left the device", staging.RevokedBaseGone)
	row("ended: the device got all of it", staging.RevokedCovered)
	row("read, or given up while they were read", max(0, s.Issued-revoked))
	t.AppendFooter(table.Row{"all", grouped(s.Attempts + s.DeclinedUnbacked), ""})
	return t
}

// remark says what a reader should know who has to size the tier.
func (s *Storage) remark(o *Options, simulated float64) {
	add := func(format string, args ...any) { s.Remarks = append(s.Remarks, fmt.Sprintf(format, args...)) }
	if s.FetchPerKiToken > s.ComputePerKiToken {
		add("fetching a token takes %.2f times as long as computing it: storage saves computation, not time; from %s/s on it would save both",
			s.FetchPerKiToken/s.ComputePerKiToken, model.FormatSize(int64(s.Bandwidth*s.FetchPerKiToken/s.ComputePerKiToken)))
	}
	const full = 0.9
	if s.Busy.Read > full*simulated {
		add("reads keep it busy for %s of the run's time: first tokens wait for it", percent(s.Busy.Read/simulated))
	}
	if s.Busy.Write > full*simulated {
		add("writes keep it busy for %s of the run's time: host copies wait for them and stay locked", percent(s.Busy.Write/simulated))
	}
	if o.stopPolicy == cache.BestEffort && o.Concurrency > 0 {
		add("best-effort gives nothing where arrival times are not kept: a request begins at once when it comes")
	}
	if n := s.DeclinedRateLimited; s.Staging == nil && 10*n > s.Attempts {
		add("%s of the prefetches were declined because half of the host was being fetched already: a larger host would take more", percent(share(n, s.Attempts)))
	}
	switch {
	case s.Store.Evicted == 0:
	case s.Store.Bytes < s.Store.CapBytes/2: // a cap is kept by dropping far less
		add("the disk is full, and so %s pages were dropped before the cap of %s: free room, or lower the cap to what is there", grouped(int64(s.Store.Evicted)), model.FormatSize(s.Store.CapBytes))
	default:
		add("the store is full and has dropped %s pages: its cap of %s counts stamps of 8 bytes, not the model's state", grouped(int64(s.Store.Evicted)), model.FormatSize(s.Store.CapBytes))
	}
	var failed []string
	for k := range storage.Kind(storage.NumKinds) {
		if n := s.Store.Errors[k.String()]; n > 0 {
			failed = append(failed, fmt.Sprintf("%d %v", n, k))
		}
	}
	if len(failed) > 0 {
		add("the store failed or had damaged pages, which count as misses or failed writes: %s", strings.Join(failed, ", "))
	}
}
