// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/workload"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// profile gives a built-in profile.
func profile(t testing.TB, name string) *model.Profile {
	t.Helper()
	p, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tiny gives a profile with a byte a token, so that device bytes are tokens.
func tiny(components string, window, grid int) *model.Profile {
	p := &model.Profile{Name: "tiny-" + components, Full: model.Full{BytesPerToken: 1}, PageSize: 1}
	if strings.Contains(components, "swa") {
		p.SWA = &model.SWA{BytesPerToken: 1, Window: window}
	}
	if strings.Contains(components, "mamba") {
		p.Mamba = &model.Mamba{BytesPerState: 8, CheckpointGrid: grid}
	}
	return p
}

// prompts gives a workload of the given prompts, in the plain token format.
func prompts(t testing.TB, lines ...string) *workload.Workload {
	t.Helper()
	w, err := workload.Read(strings.NewReader(strings.Join(lines, "\n")+"\n"), "test.jsonl", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tokensLine writes the tokens from..to as a line of the plain token format, with
// so many output tokens.
func tokensLine(from, to, output int, more string) string {
	var list []string
	for n := from; n <= to; n++ {
		list = append(list, fmt.Sprint(n))
	}
	return fmt.Sprintf(`{"tokens": [%s], "output_length": %d%s}`, strings.Join(list, ","), output, more)
}

// mustRun replays, checks what holds of every run, and gives the report and the
// outcomes by request.
func mustRun(t testing.TB, w *workload.Workload, o Options) (*Report, []Outcome) {
	t.Helper()
	outcomes := make([]Outcome, len(w.Requests))
	seen := 0
	o.Observe = func(x Outcome) {
		outcomes[x.Request] = x
		seen++
	}
	r, err := Run(context.Background(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(w.Requests) {
		t.Errorf("%d outcomes of %d requests", seen, len(w.Requests))
	}
	checkReport(t, r)
	checkOutcomes(t, r, outcomes)
	return r, outcomes
}

// checkReport checks that the numbers of a report go together.
func checkReport(t testing.TB, r *Report) {
	t.Helper()
	var missed int64
	for _, n := range r.MissesByReason {
		if n < 0 {
			t.Errorf("negative misses: %v", r.MissesByReason)
		}
		missed += n
	}
	if r.CachedTokens+missed != r.InputTokens {
		t.Errorf("%d cached and %d missed tokens, want %d together: %v", r.CachedTokens, missed, r.InputTokens, r.MissesByReason)
	}
	if r.HitsByTier.Device+r.HitsByTier.Host+r.HitsByTier.Storage != r.CachedTokens {
		t.Errorf("tiers %+v, want %d together", r.HitsByTier, r.CachedTokens)
	}
	if r.RequestsDone+r.RequestsRefused != r.Requests {
		t.Errorf("%d done and %d refused of %d requests", r.RequestsDone, r.RequestsRefused, r.Requests)
	}
	if r.BlockHits*int64(r.Options.PageSize) != r.CachedTokens {
		t.Errorf("%d block hits of %d tokens, want %d tokens together", r.BlockHits, r.Options.PageSize, r.CachedTokens)
	}
	if r.TokenHitRate > r.Infinite.TokenHitRate || r.BlockHitRate > r.Infinite.BlockHitRate {
		t.Errorf("hit rates %v and %v are above the bound %+v", r.TokenHitRate, r.BlockHitRate, r.Infinite)
	}
	if r.SeenBefore > r.MissesByReason["never_seen"] {
		t.Errorf("%d tokens seen before of %d never seen", r.SeenBefore, r.MissesByReason["never_seen"])
	}
	for i := range r.Occupancy {
		x := &r.Occupancy[i]
		for _, p := range []struct {
			use  *Use
			size int
		}{{&x.Full, r.Pools.Full}, {x.SWA, r.Pools.SWA}, {x.Mamba, r.Pools.Mamba}} {
			if p.use == nil {
				continue
			}
			sum := p.use.Free + p.use.Evictable + p.use.Protected + p.use.Held
			if sum != p.size || min(p.use.Free, p.use.Evictable, p.use.Protected, p.use.Held) < 0 {
				t.Errorf("sample at %v: %+v, want parts of %d", x.Seconds, *p.use, p.size)
			}
		}
	}
}

func checkOutcomes(t testing.TB, r *Report, outcomes []Outcome) {
	t.Helper()
	var cached int64
	done, runs := 0, 0
	for i, x := range outcomes {
		runs += x.Runs
		if x.Refused {
			continue
		}
		done++
		cached += int64(x.Cached)
		if x.Reused+x.Computed != x.Input {
			t.Errorf("request %d: %d reused and %d computed of %d tokens", i, x.Reused, x.Computed, x.Input)
		}
		if x.Cached > x.Reused || x.Runs == 1 && x.Cached != x.Reused {
			t.Errorf("request %d: %d count as cached in %d runs, the last reused %d", i, x.Cached, x.Runs, x.Reused)
		}
		if x.Computed < 1 || x.Begun < x.Ready || x.FirstToken < x.Begun || x.End < x.FirstToken {
			t.Errorf("request %d: %+v", i, x)
		}
	}
	if cached != r.CachedTokens || done != r.RequestsDone {
		t.Errorf("outcomes: %d cached tokens in %d requests, report: %d in %d", cached, done, r.CachedTokens, r.RequestsDone)
	}
}

// timeless gives the report as JSON without what the wall clock measured.
func timeless(t testing.TB, r *Report) string {
	t.Helper()
	x := *r
	x.WallSeconds, x.TokensPerSecond = 0, 0
	for _, op := range []*Operation{&x.Ops.Match, &x.Ops.Insert, &x.Ops.Lock, &x.Ops.Evict} {
		op.P50, op.P99 = 0, 0
	}
	text, err := json.MarshalIndent(&x, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sharedFile finds a file of the data that is not part of the repository, and
// skips the test where it is absent.
func sharedFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("TREECORE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(dir, "traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("trace %s is absent: set TREECORE_SHARED to the folder that holds traces", name)
	}
	return path
}
