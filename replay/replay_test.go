// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// C-078: the cache is consulted for the whole prompt, and nobody counts the
// chunks that it computed itself.
func TestC078(t *testing.T) {
	w := prompts(t, tokensLine(1, 40, 3, ""), tokensLine(1, 40, 3, ""))
	for _, c := range []struct {
		page, concurrency, chunk int
		want                     [2]int // cached tokens
	}{
		{1, 1, 16, [2]int{0, 39}},
		{4, 1, 16, [2]int{0, 36}},
		// At once: the second is admitted when the first leaves room in a step,
		// and finds what that has computed by then.
		{1, 2, 16, [2]int{0, 32}},
		{4, 2, 16, [2]int{0, 32}},
		// In one step neither can find anything of the other.
		{1, 2, 80, [2]int{0, 0}},
		{4, 2, 80, [2]int{0, 0}},
	} {
		t.Run(fmt.Sprintf("page %d, %d at once, chunk %d", c.page, c.concurrency, c.chunk), func(t *testing.T) {
			r, outcomes := mustRun(t, w, Options{
				Profile: tiny("full", 0, 0), PageSize: c.page, Chunk: c.chunk, Concurrency: c.concurrency,
			})
			for i, x := range outcomes {
				if x.Cached != c.want[i] || x.Reused+x.Computed != 40 {
					t.Errorf("request %d: %+v, want %d cached", i, x, c.want[i])
				}
			}
			if want := int64(c.want[0] + c.want[1]); r.CachedTokens != want || r.ComputedTokens != 80-want {
				t.Errorf("%d cached and %d computed, want %d and %d", r.CachedTokens, r.ComputedTokens, want, 80-want)
			}
		})
	}
}

// The story of the branch point: a shared prefix that ends inside a chunk.
func TestBranching(t *testing.T) {
	w, err := workload.Generate("shared-prefix", "groups=1", "prompts-per-group=4", "passes=1",
		"system-tokens=24576", "question-tokens=16384", "output-tokens=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		off  bool
		want [4]int
	}{{false, [4]int{0, 16384, 24576, 24576}}, {true, [4]int{0, 16384, 16384, 16384}}} {
		r, outcomes := mustRun(t, w, Options{
			Profile: profile(t, "gpt-oss-20b"), PageSize: 1, Concurrency: 1, Chunk: 16384, NoBranching: c.off,
		})
		for i, x := range outcomes {
			if x.Cached != c.want[i] {
				t.Errorf("branching off %v: request %d has %d cached tokens, want %d", c.off, i, x.Cached, c.want[i])
			}
		}
		if seen := r.BranchPoints.Seen > 0; seen == c.off {
			t.Errorf("branching off %v: branch points %+v", c.off, r.BranchPoints)
		}
		if r.MissesByReason["window_tombstoned"] == 0 {
			t.Errorf("branching off %v: misses %v", c.off, r.MissesByReason)
		}
	}
}

// Requests that generate more than fits take the youngest off, and all end.
func TestRetraction(t *testing.T) {
	var lines []string
	for i := range 6 {
		lines = append(lines, tokensLine(1000*i, 1000*i+99, 300, ""))
	}
	w := prompts(t, lines...)
	r, outcomes := mustRun(t, w, Options{
		Profile: tiny("full", 0, 0), PageSize: 4, DeviceBytes: 800, Chunk: 64, Reserve: -1,
	})
	if r.Retractions == 0 || r.RequestsDone != 6 {
		t.Errorf("%d retractions, %d done; want some, and 6", r.Retractions, r.RequestsDone)
	}
	runs := 0
	for i, x := range outcomes {
		runs += x.Runs
		if x.Cached != 0 {
			t.Errorf("request %d counts %d tokens as cached, but nobody shares its prompt", i, x.Cached)
		}
	}
	if runs != 6+r.Retractions {
		t.Errorf("%d runs with %d retractions", runs, r.Retractions)
	}
	if r.ComputedTokens < r.InputTokens {
		t.Errorf("%d computed of %d", r.ComputedTokens, r.InputTokens)
	}
	// With room kept for outputs nobody is taken off.
	r, _ = mustRun(t, w, Options{Profile: tiny("full", 0, 0), PageSize: 4, DeviceBytes: 800, Chunk: 64, Reserve: 1})
	if r.Retractions != 0 {
		t.Errorf("%d retractions although room was kept", r.Retractions)
	}
}

// What does not fit is refused with the size that it needs; the rest of its
// session goes on.
func TestRefusal(t *testing.T) {
	w := prompts(t,
		tokensLine(1, 50, 5, `, "session": "a"`),
		tokensLine(1, 200, 5, `, "session": "a", "id": "big"`),
		tokensLine(1, 60, 60, `, "session": "a"`),
		tokensLine(1, 60, 3, `, "session": "a"`),
	)
	r, outcomes := mustRun(t, w, Options{Profile: tiny("full", 0, 0), PageSize: 8, DeviceBytes: 100, Chunk: 16})
	want := []Refusal{
		{Request: 1, ID: "big", Component: "full", Needed: 208, Size: 96},
		{Request: 2, Component: "full", Needed: 120, Size: 96},
	}
	if d := cmp.Diff(want, r.Refusals); d != "" {
		t.Errorf("refusals (-want +got):\n%s", d)
	}
	if r.RequestsRefused != 2 || r.MissesByReason["refused"] != 260 || outcomes[3].Cached != 48 {
		t.Errorf("%d refused, misses %v, last request %+v", r.RequestsRefused, r.MissesByReason, outcomes[3])
	}
}

func TestMissReasons(t *testing.T) {
	w := prompts(t,
		tokensLine(1, 37, 1, ""),
		tokensLine(1, 37, 1, `, "cache_salt": "other"`),
		tokensLine(1, 37, 1, ""),
	)
	r, _ := mustRun(t, w, Options{Profile: tiny("full", 0, 0), PageSize: 8, Concurrency: 1})
	// The key of 36 tokens has 4 pages and 4 tokens.
	want := map[string]int64{
		"never_seen": 32, "other_namespace": 32, "page_remainder": 3 * 4, "last_token": 3,
		"window_tombstoned": 0, "no_state": 0, "host_only": 0, "reuse_given_up": 0, "refused": 0,
	}
	if d := cmp.Diff(want, r.MissesByReason); d != "" {
		t.Errorf("misses (-want +got):\n%s", d)
	}

	// A window of 4 is there at 32 only, where the first request's prompt ended.
	w = prompts(t, tokensLine(1, 33, 0, ""), tokensLine(1, 20, 0, ""))
	r, outcomes := mustRun(t, w, Options{Profile: tiny("full,swa", 4, 0), Concurrency: 1})
	if outcomes[1].Cached != 0 || r.MissesByReason["window_tombstoned"] != 19 {
		t.Errorf("window: %+v, misses %v", outcomes[1], r.MissesByReason)
	}
	// A state is there at 32 only.
	r, outcomes = mustRun(t, w, Options{Profile: tiny("full,mamba", 0, 16), Concurrency: 1})
	if outcomes[1].Cached != 0 || r.MissesByReason["no_state"] != 19 {
		t.Errorf("state: %+v, misses %v", outcomes[1], r.MissesByReason)
	}
}

// Requests start at their time, or after those that they follow.
func TestTimes(t *testing.T) {
	w := prompts(t,
		tokensLine(1, 100, 10, `, "session": "a", "timestamp": 1000`),
		tokensLine(200, 299, 10, `, "timestamp": 1000`),
		tokensLine(300, 399, 10, `, "session": "a", "delay": 5000`),
	)
	o := Options{Profile: tiny("full", 0, 0), PrefillRate: 100, DecodeRate: 10}
	_, got := mustRun(t, w, o)
	second := time.Second
	want := [][3]time.Duration{
		// The first two share a step of 200 tokens.
		{1 * second, 3 * second, 4 * second}, {1 * second, 3 * second, 4 * second},
		{9 * second, 10 * second, 11 * second},
	}
	check := func(name string, got []Outcome, want [][3]time.Duration) {
		t.Helper()
		for i, x := range got {
			if have := [3]time.Duration{x.Ready, x.FirstToken, x.End}; have != want[i] {
				t.Errorf("%s: request %d ready, first token, end %v, want %v", name, i, have, want[i])
			}
		}
	}
	check("arrival times", got, want)

	o.Concurrency = 1
	_, got = mustRun(t, w, o)
	check("one at a time", got, [][3]time.Duration{
		{0, 1 * second, 2 * second}, {0, 3 * second, 4 * second}, {7 * second, 8 * second, 9 * second},
	})
	o.Concurrency, o.MaxRunning = 0, 1
	_, got = mustRun(t, w, o)
	check("at most one", got, [][3]time.Duration{
		{1 * second, 2 * second, 3 * second}, {1 * second, 4 * second, 5 * second}, {8 * second, 9 * second, 10 * second},
	})
}

// Where a pass waits for the whole pass before, nobody starts early.
func TestPasses(t *testing.T) {
	w, err := workload.Generate("shared-prefix", "groups=3", "prompts-per-group=4", "passes=3",
		"system-tokens=100", "question-tokens=50", "output-tokens=20")
	if err != nil {
		t.Fatal(err)
	}
	r, got := mustRun(t, w, Options{Profile: tiny("full", 0, 0), DecodeRate: 20})
	var end [4]time.Duration // of passes, from 1
	for i, x := range got {
		pass := i/12 + 1
		end[pass] = max(end[pass], x.End)
		if x.Ready != end[pass-1] {
			t.Errorf("request %d of pass %d is ready at %v, the pass before ended at %v", i, pass, x.Ready, end[pass-1])
		}
		if pass > 1 && x.Cached != 149 {
			t.Errorf("request %d of pass %d has %d cached tokens", i, pass, x.Cached)
		}
	}
	if end[3] <= end[2] || r.SimulatedSeconds != end[3].Seconds() {
		t.Errorf("passes end at %v, the run at %v", end, r.SimulatedSeconds)
	}
	// Without arrival times a request comes when it is its turn.
	r, _ = mustRun(t, w, Options{Profile: tiny("full", 0, 0), Concurrency: 1, PrefillRate: 10})
	if want := (12*150 - 9*100 + 24*1.0) / 10 / 36; math.Abs(r.TimeToFirstToken.Mean-want) > 1e-9 {
		t.Errorf("mean time to the first token %v, want %v", r.TimeToFirstToken.Mean, want)
	}
}

// In listed order nobody passes a request that is not ready.
func TestListedOrder(t *testing.T) {
	w := prompts(t,
		tokensLine(1, 10, 1, `, "session": "a", "timestamp": 0`),
		tokensLine(1, 20, 1, `, "session": "a", "delay": 60000`),
		tokensLine(100, 110, 1, `, "timestamp": 0`),
	)
	var ends []int
	for _, c := range []struct {
		order string
		want  []int
	}{{OrderReady, []int{0, 2, 1}}, {OrderListed, []int{0, 1, 2}}} {
		ends = nil
		_, err := Run(context.Background(), w, Options{
			Profile: tiny("full", 0, 0), Concurrency: 1, Order: c.order,
			Observe: func(x Outcome) { ends = append(ends, x.Request) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, ends); d != "" {
			t.Errorf("order %s (-want +got):\n%s", c.order, d)
		}
	}
}

// randomWorkload makes up requests that share prefixes, in sessions and alone.
func randomWorkload(t testing.TB, random *rand.Rand, requests int) *workload.Workload {
	var lines []string
	var earlier [][]int
	now := 0
	for i := range requests {
		var prompt []int
		if len(earlier) > 0 && random.IntN(4) > 0 {
			from := earlier[random.IntN(len(earlier))]
			prompt = append(prompt, from[:random.IntN(len(from))+1]...)
		}
		for range random.IntN(120) + 1 {
			prompt = append(prompt, 1000*(i+1)+random.IntN(3))
		}
		earlier = append(earlier, prompt)
		more := ""
		switch random.IntN(5) {
		case 0:
			more = fmt.Sprintf(`, "session": "s%d", "delay": %d`, random.IntN(3), random.IntN(500))
		case 1:
			more = fmt.Sprintf(`, "cache_salt": "x%d"`, random.IntN(2))
		default:
			now += random.IntN(300)
			more = fmt.Sprintf(`, "timestamp": %d`, now)
		}
		lines = append(lines, fmt.Sprintf(`{"tokens": [%s], "output_length": %d%s}`,
			strings.Trim(strings.ReplaceAll(fmt.Sprint(prompt), " ", ","), "[]"), random.IntN(150), more))
	}
	return prompts(t, lines...)
}

// Whatever the traffic, the model and the size: every request ends, no slot is
// lost at any time, the sums add up, and a second run says the same.
func TestRandomRuns(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 30
	}
	retracted, refused := 0, 0
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		w := randomWorkload(t, random, 30)
		components := []string{"full", "full,swa", "full,mamba", "full,swa,mamba"}[seed%4]
		p := tiny(components, 1+random.IntN(40), 1<<random.IntN(6))
		page := []int{1, 4, 16}[random.IntN(3)]
		policies := tree.Policies()
		o := Options{
			Profile: p, PageSize: page, SWARatio: 0.2 + 0.8*random.Float64(), StateRatio: 0.2,
			Chunk: page * (1 + random.IntN(10)), Reserve: float64(random.IntN(3)) - 1,
			PrefillRate: 1000, DecodeRate: 50, NoBranching: random.IntN(3) == 0, KeepOutOfWindow: random.IntN(3) == 0,
			Policy: tree.PolicyOptions{Name: policies[random.IntN(len(policies))]},
		}
		if random.IntN(2) == 0 {
			o.Concurrency = 1 + random.IntN(6)
		}
		var small *model.TooSmallError
		if _, err := p.Pools(1, model.Split{PageSize: page, SWARatio: o.SWARatio, StateRatio: o.StateRatio}); !errors.As(err, &small) {
			// Without other components a byte is a page of one token.
			small = &model.TooSmallError{Needed: int64(page)}
		}
		o.DeviceBytes = small.Needed + int64(random.IntN(2000))
		name := fmt.Sprintf("seed %d: %s page %d, %d bytes, %+v", seed, components, page, o.DeviceBytes, o)

		checked, err := prepare(context.Background(), w, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checked.driver.o.Progress = func(int) {
			if most := checked.o.inFlight(); len(checked.driver.running) > most {
				t.Errorf("%s: %d requests run, at most %d may", name, len(checked.driver.running), most)
			}
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
		retracted += first.Retractions
		refused += first.RequestsRefused
	}
	if retracted == 0 || refused == 0 {
		t.Errorf("%d retractions and %d refusals: the test does not reach what it is for", retracted, refused)
	}
}

// The pools are cut to what the workload can use, which must not change a run.
func TestUnlimitedIsLargeEnough(t *testing.T) {
	for seed := range 12 {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		w := randomWorkload(t, random, 25)
		p := tiny([]string{"full", "full,swa", "full,mamba", "full,swa,mamba"}[seed%4], 10, 16)
		o := Options{Profile: p, PageSize: 4, Chunk: 32, PrefillRate: 1000}
		a, _ := mustRun(t, w, o)
		o.DeviceBytes, o.uncut = 1<<20, true
		b, _ := mustRun(t, w, o)
		if b.Pools.Full < 2*a.Pools.Full || b.Evictions["full"] != 0 {
			t.Fatalf("seed %d: pools of %+v are not far larger than %+v", seed, b.Pools, a.Pools)
		}
		if a.CachedTokens != b.CachedTokens || a.Retractions+a.RequestsRefused != 0 || a.Evictions["full"] != 0 ||
			a.Tombstones["swa"] != b.Tombstones["swa"] || a.Evictions["mamba"] != b.Evictions["mamba"] {
			t.Errorf("seed %d: unlimited: %d cached, evicted %v; a mebibyte: %d, %v", seed, a.CachedTokens, a.Evictions, b.CachedTokens, b.Evictions)
		}
	}
}

func TestCancel(t *testing.T) {
	w, err := workload.Generate("agents")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = Run(ctx, w, Options{Profile: profile(t, "gpt-oss-20b"), Progress: func(ended int) {
		if ended == 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := RunSweep(ctx, w, Options{Profile: profile(t, "gpt-oss-20b")}, []int64{1 << 30}); !errors.Is(err, context.Canceled) {
		t.Errorf("sweep: got %v", err)
	}
}

func TestOptionErrors(t *testing.T) {
	w := prompts(t, tokensLine(1, 10, 1, ""))
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "profile is missing"},
		{Options{DeviceBytes: -1}, "device bytes is -1"},
		{Options{PageSize: 2000}, "page size is 2000, must be from 1 to 1024"},
		{Options{PageSize: 512, Chunk: 100}, "chunk is 100, must be from a page of 512"},
		{Options{Concurrency: -1}, "concurrency is -1"},
		{Options{MaxRunning: -1}, "max running is -1"},
		{Options{Order: "random"}, "order is random, must be ready or listed"},
		{Options{PrefillRate: -1}, "prefill rate is -1"},
		{Options{DecodeRate: 1e13}, "decode rate is 1e+13"},
		{Options{Reserve: 1.5}, "reserve is 1.5"},
		{Options{DeviceBytes: 100, SWARatio: 2}, "swa ratio is 2"},
		{Options{DeviceBytes: 100}, "give at least"},
		{Options{PageSize: 2000, Order: "x"}, "page size is 2000, must be from 1 to 1024\norder"},
	} {
		if c.want != "profile is missing" {
			c.o.Profile = profile(t, "gpt-oss-20b")
		}
		_, err := Run(context.Background(), w, c.o)
		var wrong *OptionsError
		if !errors.As(err, &wrong) || !sameLines(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}

// sameLines says whether each line of want stands in got.
func sameLines(got, want string) bool {
	for _, line := range strings.Split(want, "\n") {
		if !strings.Contains(got, line) {
			return false
		}
	}
	return true
}

func TestParsePolicy(t *testing.T) {
	p, err := ParsePolicy("slru:protected_threshold=3")
	if err != nil || p.Name != "slru" || p.Params["protected_threshold"] != 3 {
		t.Errorf("%+v %v", p, err)
	}
	for _, text := range []string{"best", "slru:x=1", "slru:protected_threshold", "slru:protected_threshold=a", "slru:protected_threshold=1.5", "slru:", "lru:x=1"} {
		if _, err := ParsePolicy(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestParseSweep(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int64
	}{
		{"device-bytes=10GiB..160GiB", []int64{10 << 30, 20 << 30, 40 << 30, 80 << 30, 160 << 30}},
		{"device-bytes=10..35", []int64{10, 20, 35}},
		{"device-bytes=100..800:4", []int64{100, 200, 400, 800}},
		{"device-bytes=1KiB..2KiB:2", []int64{1024, 2048}},
	} {
		got, err := ParseSweep(c.text)
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{
		"", "device-bytes", "host-bytes=1..2", "device-bytes=1GiB", "device-bytes=2..1", "device-bytes=1..1", "device-bytes=0..5",
		"device-bytes=1..unlimited", "device-bytes=a..b", "device-bytes=1..2:1", "device-bytes=1..2:x", "device-bytes=1..2:1001",
	} {
		if _, err := ParseSweep(text); err == nil || !strings.Contains(err.Error(), "device-bytes=10GiB..160GiB") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
