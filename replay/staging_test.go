// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What the device could not keep comes from storage, through a staging area that
// keeps nothing.
func TestBufferOnly(t *testing.T) {
	w := prompts(t, tokensLine(1, 60, 1, ""), tokensLine(101, 160, 1, ""), tokensLine(201, 207, 1, ""), tokensLine(1, 60, 1, ""))
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 64, HostBytes: 80, Concurrency: 1, PrefillRate: 10, DecodeRate: 1e6,
		PrefetchThreshold: 8, StorageBandwidth: 1e3, StorageLatency: 10 * time.Millisecond, PrefetchPolicy: "wait-complete",
		WritePolicy: "buffer_only", Storage: folder(t),
	}
	r, x := mustRun(t, w, o)
	const want = 59
	if x[3].Cached != want || x[3].Storage != want || r.HitsByTier != (Tiers{Storage: want}) {
		t.Errorf("%+v, tiers %+v", x[3], r.HitsByTier)
	}
	s := r.Storage
	if r.Host.WritePolicy != "buffer-only" || s.Staging == nil || s.Staging.Splices != 1 || s.PrefetchedTokens != want ||
		s.StampsChecked != want || s.WrongStamps != 0 || r.Host.BytesToDevice != want {
		t.Errorf("%+v, staging %+v, host %+v", s, s.Staging, r.Host)
	}
	for _, x := range r.Occupancy {
		if x.Host.Full.Cached > 80 || x.Host.Full.Free < 0 {
			t.Errorf("the host has %+v", x.Host.Full)
		}
	}
}

// Random runs with a staging area: slots are conserved at each end, hits and
// misses add up, equal runs are equal, and a second run starts warm.
func TestRandomBufferOnlyRuns(t *testing.T) {
	n := 48
	if testing.Short() {
		n = 12
	}
	var cold, warm Tiers
	var sum Staging
	runs := 0
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		w := randomWorkload(t, random, 30)
		o := randomStorageOptions(random, 4*seed+seed%2) // no states
		o.WritePolicy = BufferOnly
		name := fmt.Sprintf("seed %d: %+v", seed, o)
		o.Storage = folder(t)
		if _, err := Run(context.Background(), w, o); isTooSmall(err) {
			continue
		}
		runs++
		stores := folder(t)
		o.Storage = stores
		first := conserving(t, name, w, o)
		checkReport(t, first)
		o.Storage = folder(t)
		second, _ := mustRun(t, w, o)
		second.Storage.URL = first.Storage.URL
		if d := cmp.Diff(timeless(t, first), timeless(t, second)); d != "" {
			t.Fatalf("%s: the second run differs:\n%s", name, d)
		}
		o.Storage = stores
		third := conserving(t, name, w, o)
		third.Infinite = Rates{1, 1} // what an earlier run left is beyond it
		checkReport(t, third)
		for _, r := range []*Report{first, third} {
			s := r.Storage.Staging
			if r.Storage.WrongStamps != 0 || r.HitsByTier.Host != 0 || t.Failed() {
				t.Fatalf("%s: tiers %+v, %+v", name, r.HitsByTier, r.Storage)
			}
			sum.Parked += s.Parked
			sum.Splices += s.Splices
			sum.DeferredSplices += s.DeferredSplices
			sum.DroppedWriteTokens += s.DroppedWriteTokens
			sum.RevokedCovered += s.RevokedCovered
			sum.RevokedBaseGone += s.RevokedBaseGone
			sum.Holds.Covered += s.Holds.Covered
			sum.Holds.BaseGone += s.Holds.BaseGone
			sum.Holds.DeviceCapacity += s.Holds.DeviceCapacity
		}
		cold.Storage += first.HitsByTier.Storage
		warm.Storage += third.HitsByTier.Storage
	}
	t.Logf("%d runs, from storage %d and %d, %+v", runs, cold.Storage, warm.Storage, sum)
	if runs < n/3 || cold.Storage == 0 || warm.Storage <= cold.Storage || sum.Parked == 0 || sum.Splices == 0 {
		t.Errorf("%d runs, from storage %d and %d: %+v", runs, cold.Storage, warm.Storage, sum)
	}
}

func isTooSmall(err error) bool {
	var wrong *OptionsError
	return errors.As(err, &wrong)
}

// A staging area needs memory, a store, a model without states, and two windows.
func TestBufferOnlyOptions(t *testing.T) {
	w := prompts(t, tokensLine(1, 10, 1, ""))
	for _, c := range []struct {
		want string
		o    Options
	}{
		{"give host bytes, too", Options{Storage: folder(t)}},
		{"name a store, too", Options{HostBytes: 1 << 30}},
		{"write policy buffer-only does not serve model hybrid-3way, which has recurrent states: take another write policy, or a model without",
			Options{Profile: profile(t, "hybrid-3way"), HostBytes: 1 << 30, Storage: folder(t)}},
		{"Host.Pools.SWA is 224: allowed is 256 (two windows) or more, with Host.BufferOnly", Options{HostBytes: 60 << 20, Storage: folder(t)}},
	} {
		c.o.WritePolicy = BufferOnly
		if c.o.Profile == nil {
			c.o.Profile = profile(t, "gpt-oss-20b")
		}
		_, err := Run(context.Background(), w, c.o)
		var wrong *OptionsError
		if !errors.As(err, &wrong) || !sameLines(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}
