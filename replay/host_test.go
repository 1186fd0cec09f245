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
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/workload"
)

var writePolicies = []string{"write-through", "write-through-selective", "write-back"}

// What a device that is too small has to give up, the host gives back; the first
// token waits for the load instead of the computation.
func TestHostTier(t *testing.T) {
	w := prompts(t, tokensLine(1, 60, 1, ""), tokensLine(101, 160, 1, ""), tokensLine(1, 60, 1, ""))
	o := Options{Profile: tiny("full", 0, 0), DeviceBytes: 64, Concurrency: 1, PrefillRate: 10, DecodeRate: 1e6}
	r, without := mustRun(t, w, o)
	if r.CachedTokens != 0 || r.Host != nil || without[2].Host != 0 {
		t.Fatalf("without a host %d tokens are cached", r.CachedTokens)
	}
	for _, policy := range writePolicies {
		o.HostBytes, o.WritePolicy, o.HostBandwidth, o.HostLatency = 200, policy, 1e3, time.Second
		r, with := mustRun(t, w, o)
		const want = 59
		if with[2].Cached != want || with[2].Host != want || r.HitsByTier != (Tiers{Host: want}) {
			t.Errorf("%s: %+v, tiers %+v", policy, with[2], r.HitsByTier)
		}
		// 59 tokens at 1000 bytes a second, after a second of latency; the one
		// token that is computed is done by then.
		start := with[2].Begun
		if took := with[2].FirstToken - start; took < time.Second+59*time.Millisecond || took > 3*time.Second {
			t.Errorf("%s: the first token came after %v", policy, took)
		}
		h := r.Host
		if h == nil || h.WritePolicy != policy || h.LoadBacks != 1 || h.BytesToDevice != 59 || h.LoadedBack["full"] != 59 || h.BytesToHost < 60 {
			t.Errorf("%s: %+v", policy, h)
		}
		if h.StallSeconds == 0 {
			t.Errorf("%s: evictions waited for nothing, although the copies are slow", policy)
		}
		last := r.Occupancy[len(r.Occupancy)-1].Host
		if last == nil || last.Full.Free+last.Full.Cached != 200 || last.Full.Cached < 60 {
			t.Errorf("%s: host use %+v", policy, last)
		}
	}
}

// What the host has and nobody loads stands under its reason.
func TestHostOnlyMisses(t *testing.T) {
	w := prompts(t, tokensLine(1, 9, 0, ""), tokensLine(101, 160, 0, ""), tokensLine(1, 10, 0, ""))
	r, outcomes := mustRun(t, w, Options{Profile: tiny("full", 0, 0), DeviceBytes: 64, HostBytes: 200, Concurrency: 1})
	if outcomes[2].Cached != 0 || r.MissesByReason["host_only"] != 9 || r.Host.CouldHaveGiven != 9 || r.Host.LoadBacksGivenUp != 1 {
		t.Errorf("%+v, misses %v, host %+v", outcomes[2], r.MissesByReason, r.Host)
	}
}

// Random runs over a host tier, for every set of components and write policy:
// slots are conserved at each end, the tiers add up, equal runs are equal, and
// nothing is left in flight.
func TestRandomHostRuns(t *testing.T) {
	n := 96
	if testing.Short() {
		n = 24
	}
	var host, refused int64
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		w := randomWorkload(t, random, 30)
		components := []string{"full", "full,swa", "full,mamba", "full,swa,mamba"}[seed%4]
		p := tiny(components, 1+random.IntN(40), 1<<random.IntN(6))
		page := []int{1, 4, 16}[random.IntN(3)]
		o := Options{
			Profile: p, PageSize: page, SWARatio: 0.2 + 0.8*random.Float64(), StateRatio: 0.2,
			Chunk: page * (1 + random.IntN(10)), PrefillRate: 1000, DecodeRate: 50,
			WritePolicy: writePolicies[random.IntN(3)], HostBandwidth: 1e3 * (1 + 1e4*random.Float64()),
			HostLatency: time.Duration(random.IntN(20)) * time.Millisecond,
			HostBytes:   int64(80 + random.IntN(1500)),
		}
		if random.IntN(2) == 0 {
			o.Concurrency = 1 + random.IntN(6)
		}
		var small *model.TooSmallError
		if _, err := p.Pools(1, model.Split{PageSize: page, SWARatio: o.SWARatio, StateRatio: o.StateRatio}); !errors.As(err, &small) {
			small = &model.TooSmallError{Needed: int64(page)}
		}
		o.DeviceBytes = small.Needed + int64(random.IntN(1500))
		name := fmt.Sprintf("seed %d: %s page %d, %d bytes, %+v", seed, components, page, o.DeviceBytes, o)
		checked, err := prepare(context.Background(), w, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checked.driver.o.Progress = func(int) {
			if err := checked.meter.c.CheckConservation(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		first, err := checked.run(context.Background())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		second, _ := mustRun(t, w, o)
		if d := cmp.Diff(timeless(t, first), timeless(t, second)); d != "" {
			t.Fatalf("%s: the second run differs:\n%s", name, d)
		}
		if t.Failed() {
			t.Fatal(name)
		}
		host += first.HitsByTier.Host
		refused += first.Host.BackupsRefused
	}
	if host == 0 || refused == 0 {
		t.Errorf("%d tokens from the host, %d backups refused: the test does not reach what it is for", host, refused)
	}
}

// With room for everything on the host, a small device hits as a large one does.
func TestHostReplacesDevice(t *testing.T) {
	w, err := workload.Generate("agents", "sessions=6", "turns=4")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Profile: profile(t, "gpt-oss-20b"), DeviceBytes: 3 << 30}
	small, _ := mustRun(t, w, o)
	for _, policy := range writePolicies {
		o.HostBytes, o.WritePolicy = model.Unlimited, policy
		both, _ := mustRun(t, w, o)
		if both.TokenHitRate < small.TokenHitRate || both.HitsByTier.Host == 0 && small.TokenHitRate < 0.9 {
			t.Errorf("%s: %.4f with a host, %.4f without, tiers %+v", policy, both.TokenHitRate, small.TokenHitRate, both.HitsByTier)
		}
	}
}

func TestHostOptions(t *testing.T) {
	w := prompts(t, tokensLine(1, 10, 1, ""))
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{HostBytes: -1}, "host bytes is -1"},
		{Options{WritePolicy: "eager"}, `write policy "eager": must be write-through, write-through-selective or write-back`},
		{Options{HostBandwidth: 1}, "host bandwidth is 1, must be"},
		{Options{HostLatency: time.Hour}, "host latency is 1h0m0s"},
		{Options{HostBytes: 100}, "a page on the host"},
	} {
		c.o.Profile = profile(t, "gpt-oss-20b")
		_, err := Run(context.Background(), w, c.o)
		var wrong *OptionsError
		if !errors.As(err, &wrong) || !sameLines(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}
