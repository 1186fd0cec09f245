// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/storage"
	_ "github.com/treecore/treecore/storage/all" // every scheme
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

var prefetchPolicies = []string{"best-effort", "wait-complete", "timeout"}

// folder is a file store of its own.
func folder(t testing.TB) string { return "file:" + t.TempDir() + "?size=64MiB" }

// What neither device nor host could keep comes from storage; the first token
// waits for lookup, read and load.
func TestStorageTier(t *testing.T) {
	// The second prompt drives the first one off the device and the host; the third
	// gives its write time to end.
	w := prompts(t, tokensLine(1, 60, 1, ""), tokensLine(101, 160, 1, ""), tokensLine(201, 207, 1, ""), tokensLine(1, 60, 1, ""))
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 64, HostBytes: 80, Concurrency: 1, PrefillRate: 10, DecodeRate: 1e6,
		PrefetchThreshold: 8, StorageBandwidth: 1e3, StorageLatency: 10 * time.Millisecond, PrefetchPolicy: "wait-complete",
	}
	for _, policy := range writePolicies[:2] { // write-back keeps the first one on the host
		o.WritePolicy, o.Storage = policy, folder(t)
		r, x := mustRun(t, w, o)
		const want = 59
		if x[3].Cached != want || x[3].Storage != want || x[3].Host != 0 || r.HitsByTier != (Tiers{Storage: want}) {
			t.Errorf("%s: %+v, tiers %+v", policy, x[3], r.HitsByTier)
		}
		s := r.Storage
		if s.BytesNew > s.BytesWritten || s.BytesNew != int64(s.Store.Written) || s.LookupHits != 1 || s.LookupMisses != 2 || s.Issued != 3 || s.RevokedFullMiss != 2 || s.PrefetchedTokens != want || s.BytesRead != want {
			t.Errorf("%s: %+v", policy, s)
		}
		// Each of the three waits for its lookup, the last for 59 bytes at 1000 a
		// second and a latency, too.
		if s.Waited != 3 || s.WaitSeconds < 0.099 || s.WaitSeconds > 0.2 || s.StampsChecked != want || s.WrongStamps != 0 {
			t.Errorf("%s: %d waited for %v s, %d stamps, %d wrong", policy, s.Waited, s.WaitSeconds, s.StampsChecked, s.WrongStamps)
		}
	}
}

// How long a request waits for a slow read is the policy's matter, and what did
// not come is counted.
func TestPrefetchPolicies(t *testing.T) {
	dir := folder(t)
	w := prompts(t, tokensLine(1, 61, 1, `, "timestamp": 0`))
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 64, HostBytes: 64, PrefillRate: 10, DecodeRate: 1e6,
		PrefetchThreshold: 8, Storage: dir, StorageLatency: 10 * time.Millisecond,
	}
	mustRun(t, w, o)
	for _, c := range []struct {
		policy    string
		bandwidth float64
		storage   int
		wait      time.Duration // of the request
		missed    int
	}{
		{"best-effort", 1e6, 0, 0, 0}, // not even the answer of the lookup is there
		{"wait-complete", 1e3, 60, 80 * time.Millisecond, 0},
		{"timeout", 1e3, 60, 80 * time.Millisecond, 0},
	} {
		o.PrefetchPolicy, o.StorageBandwidth = c.policy, c.bandwidth
		r, err := Run(context.Background(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.HitsByTier.Storage != int64(c.storage) || r.Storage.CouldHaveGiven != int64(c.missed) ||
			time.Duration(r.Storage.WaitSeconds*1e9).Round(time.Millisecond) != c.wait {
			t.Errorf("%s at %g bytes a second: tiers %+v, %+v", c.policy, c.bandwidth, r.HitsByTier, r.Storage)
		}
	}
	// The timeout is over before the lookup is answered, and before the read ends.
	o.PrefetchPolicy, o.StorageBandwidth, o.StorageLatency = "timeout", 1e3, time.Minute
	r, err := Run(context.Background(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Storage; r.HitsByTier.Storage != 0 || s.RevokedUnanswered != 1 || s.WaitSeconds < 1 || s.WaitSeconds > 1.1 || s.CouldHaveGiven != 0 {
		t.Errorf("a slow lookup: tiers %+v, %+v", r.HitsByTier, s)
	}
	o.StorageLatency = 900 * time.Millisecond
	r, err = Run(context.Background(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Storage; r.HitsByTier.Storage != 0 || s.RevokedUnanswered != 0 || s.WaitSeconds < 1 || s.WaitSeconds > 1.1 ||
		s.CouldHaveGiven != 60 || s.UnseenElsewhere != 60 || s.LostTokens != 60 {
		t.Errorf("a slow read: tiers %+v, %+v", r.HitsByTier, s)
	}
}

// A request that does not wait for all of a read gets the pages that came first,
// and the store reads no more of it.
func TestPartOfARead(t *testing.T) {
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 500, HostBytes: 500, PrefillRate: 2500, DecodeRate: 1e6,
		PrefetchThreshold: 8, Storage: folder(t), StorageBandwidth: 1e3, StorageLatency: -1,
	}
	// The second arrives after a millisecond, and its turn comes after 40.
	w := prompts(t, tokensLine(501, 600, 1, `, "timestamp": 0`), tokensLine(1, 61, 1, `, "timestamp": 1`))
	mustRun(t, w, o)
	w = prompts(t, tokensLine(701, 800, 1, `, "timestamp": 0`), tokensLine(1, 61, 1, `, "timestamp": 1`))
	o.PrefetchPolicy = "best-effort"
	r, err := Run(context.Background(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Storage; r.HitsByTier.Storage != 38 || s.CouldHaveGiven != 22 || s.LostTokens != 22 || s.BytesRead > 39 || s.Busy.Read > 0.0391 || s.Waited != 0 {
		t.Errorf("best-effort: tiers %+v, %+v", r.HitsByTier, s)
	}
	// The timeout is over 14 ms after the first byte came.
	o.PrefetchPolicy, o.StorageLatency = "timeout", 500*time.Millisecond
	if r, err = Run(context.Background(), prompts(t, tokensLine(1, 61, 1, `, "timestamp": 0`)), o); err != nil {
		t.Fatal(err)
	}
	if s := r.Storage; r.HitsByTier.Storage != 14 || s.CouldHaveGiven != 46 || s.BytesRead != 14 {
		t.Errorf("timeout: tiers %+v, %+v", r.HitsByTier, s)
	}
}

// When a read is cut off, those behind it come earlier.
func TestCutRead(t *testing.T) {
	s := &shelf{pages: map[string]float64{"full": 1}, page: 1, bandwidth: 1e3, wake: func(time.Duration) {}}
	q := queue.New(queue.Options{Store: storagetest.NewMemory(storagetest.Fingerprint()), Manual: true, Started: s.started})
	jobs := make([]job, 3)
	for i := range jobs {
		s.asker = &jobs[i]
		q.Read(queue.Batch{Pool: "full", Pages: make([]tree.Digest, 60), Bytes: make([][]byte, 60)}, nil)
	}
	s.now = 20 * time.Millisecond
	s.cut(&jobs[0])
	s.cut(&jobs[0])
	for i, want := range []time.Duration{20, 80, 140} {
		if end := s.flights[queue.Read][i].end.Truncate(time.Millisecond); end != want*time.Millisecond {
			t.Errorf("read %d ends at %v, want %v ms", i, end, want)
		}
	}
	if free, busy := s.free[queue.Read], s.busy[queue.Read]; free.Truncate(time.Millisecond) != 140*time.Millisecond || busy.Truncate(time.Millisecond) != 140*time.Millisecond {
		t.Errorf("the line is free at %v, and busy for %v", free, busy)
	}
	if err := q.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// One that waits for storage lets those behind it go first, unless the order is
// strict.
func TestOthersGoFirst(t *testing.T) {
	dir := folder(t)
	long := tokensLine(1, 101, 1, `, "timestamp": 0`)
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 300, HostBytes: 300, PrefillRate: 1e6, DecodeRate: 1e6,
		PrefetchThreshold: 50, Storage: dir, PrefetchPolicy: "wait-complete", StorageBandwidth: 1e3,
	}
	mustRun(t, prompts(t, long), o)
	w := prompts(t, long, tokensLine(501, 520, 1, `, "timestamp": 1`))
	for _, order := range []string{OrderReady, OrderListed} {
		o.Order = order
		var x []Outcome
		o.Observe = func(y Outcome) { x = append(x, y) }
		r, err := Run(context.Background(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		if first := x[0].Request; first == 0 != (order == OrderListed) || r.HitsByTier.Storage != 100 {
			t.Errorf("%s: request %d ended first, tiers %+v", order, first, r.HitsByTier)
		}
	}
}

// Random runs over three tiers, for every set of components and write policy:
// slots are conserved at each end, hits by tier and misses add up, equal runs on
// empty stores are equal, what comes back is what was put there, and a second run
// on the same store starts warm.
func TestRandomStorageRuns(t *testing.T) {
	n := 96
	if testing.Short() {
		n = 24
	}
	var cold, warm Tiers
	var lost, waited, stalled, dropped int64
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 4))
		w := randomWorkload(t, random, 30)
		o := randomStorageOptions(random, seed)
		name := fmt.Sprintf("seed %d: %+v", seed, o)
		o.Storage = folder(t)
		first := conserving(t, name, w, o)
		checkReport(t, first)
		stores := o.Storage
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
		if third.Storage.WrongStamps+first.Storage.WrongStamps != 0 || t.Failed() {
			t.Fatalf("%s: %+v", name, third.Storage)
		}
		cold.Storage += first.HitsByTier.Storage
		warm.Storage += third.HitsByTier.Storage
		lost += third.Storage.LostTokens
		waited += int64(third.Storage.Waited)
		dropped += third.Storage.RevokedNoRoom + third.Storage.RefillsDropped
		if first.Host.StallSeconds > 0 {
			stalled++
		}
	}
	t.Logf("from storage %d cold, %d warm; %d lost, %d waited, %d stalled, %d dropped", cold.Storage, warm.Storage, lost, waited, stalled, dropped)
	if min(cold.Storage, warm.Storage-cold.Storage, lost, waited, stalled) <= 0 {
		t.Error("the test does not reach what it is for")
	}
}

// randomStorageOptions draws everything but the store.
func randomStorageOptions(random *rand.Rand, seed int) Options {
	components := []string{"full", "full,swa", "full,mamba", "full,swa,mamba"}[seed%4]
	page := []int{1, 4, 16}[random.IntN(3)]
	o := Options{
		Profile: tiny(components, 1+random.IntN(40), 1<<random.IntN(6)), PageSize: page,
		SWARatio: 0.2 + 0.8*random.Float64(), StateRatio: 0.2,
		Chunk: page * (1 + random.IntN(10)), PrefillRate: 1000, DecodeRate: 50,
		WritePolicy: writePolicies[random.IntN(3)], HostBandwidth: 1e3 * (1 + 1e4*random.Float64()),
		HostLatency: time.Duration(random.IntN(20)) * time.Millisecond, HostBytes: int64(80 + random.IntN(800)),
		PrefetchPolicy: prefetchPolicies[random.IntN(3)], PrefetchThreshold: 1 + random.IntN(40),
		StorageBandwidth: 1e3 * (1 + 100*random.Float64()), StorageLatency: time.Duration(random.IntN(300)) * time.Millisecond,
	}
	if random.IntN(2) == 0 {
		o.Concurrency = 1 + random.IntN(6)
	}
	if random.IntN(3) == 0 {
		o.Order = OrderListed
	}
	var small *model.TooSmallError
	if _, err := o.Profile.Pools(1, model.Split{PageSize: page, SWARatio: o.SWARatio, StateRatio: o.StateRatio}); !errors.As(err, &small) {
		small = &model.TooSmallError{Needed: int64(page)}
	}
	o.DeviceBytes = small.Needed + int64(random.IntN(1500))
	return o
}

// conserving runs and counts every slot whenever a request has ended.
func conserving(t *testing.T, name string, w *workload.Workload, o Options) *Report {
	t.Helper()
	run, err := prepare(context.Background(), w, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	run.driver.o.Progress = func(int) {
		if err := run.meter.c.CheckConservation(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	r, err := run.run(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// On real servers the second run starts warm, too.
func TestStorageServers(t *testing.T) {
	w, err := workload.Generate("agents", "sessions=3", "turns=3", "system-tokens=3000")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TREECORE_REDIS_URL", "TREECORE_REDIS_CLUSTER_URL", "TREECORE_S3_URL"} {
		t.Run(name, func(t *testing.T) {
			server := os.Getenv(name)
			if server == "" {
				t.Skipf("%s is not set: see scripts/services.sh", name)
			}
			o := Options{Profile: profile(t, "gpt-oss-20b"), PageSize: 256, DeviceBytes: 2 << 30, HostBytes: 3 << 30, Storage: server}
			p := *o.Profile
			p.Name = fmt.Sprintf("test of %s", t.Name())
			o.Profile = &p
			store, err := storage.Open(context.Background(), server, fingerprint(&o))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(store.Clear(context.Background()), store.Close()); err != nil {
				t.Fatal(err)
			}
			cold, _ := mustRun(t, w, o)
			warm, err := Run(context.Background(), w, o)
			if err != nil {
				t.Fatal(err)
			}
			if warm.HitsByTier.Storage <= cold.HitsByTier.Storage || warm.TokenHitRate <= cold.TokenHitRate || warm.Storage.Store.Hits == 0 {
				t.Errorf("cold %+v, warm %+v: %+v", cold.HitsByTier, warm.HitsByTier, warm.Storage.Store)
			}
		})
	}
}

// unclosed is a store that outlives its runs.
type unclosed struct{ storage.Store }

func (unclosed) Close() error { return nil }

// twisted is a store that says that a page is right and gives another one.
type twisted struct{ storage.Store }

func (s twisted) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	found, err := s.Store.Get(ctx, keys, into)
	for _, page := range into {
		page[len(page)-1] ^= 1
	}
	return found, err
}

// A store that lies about content fails the run.
func TestWrongStamps(t *testing.T) {
	for _, components := range []string{"full", "full,swa", "full,mamba", "full,swa,mamba"} {
		var memory *storagetest.Memory
		storage.Register("twisted", func(_ context.Context, _ *url.URL, f storage.Fingerprint) (storage.Store, error) {
			if memory == nil {
				memory = storagetest.NewMemory(f)
			}
			return twisted{unclosed{memory}}, nil
		})
		w := prompts(t, tokensLine(1, 61, 1, `, "timestamp": 0`))
		o := Options{
			Profile: tiny(components, 8, 4), PageSize: 4, DeviceBytes: 2000, HostBytes: 2000, PrefetchThreshold: 8,
			Storage: "twisted://", PrefetchPolicy: "wait-complete",
		}
		if _, err := Run(context.Background(), w, o); err != nil {
			t.Fatal(err)
		}
		_, err := Run(context.Background(), w, o)
		if err == nil || !strings.Contains(err.Error(), "reused pages and states are wrong, first the full of the first 4 tokens of request 0") {
			t.Errorf("%s: got %v", components, err)
		}
	}
}

// A store that fails costs hits, and nothing else.
func TestFailingStore(t *testing.T) {
	var failed, hits int64
	for every := 2; every <= 5; every++ {
		calls := 0
		var faulty *storage.Faulty
		storage.Register("failing", func(_ context.Context, _ *url.URL, f storage.Fingerprint) (storage.Store, error) {
			if faulty == nil {
				faulty = storage.WithFaults(storagetest.NewMemory(f))
				faulty.Set(storage.Fault{Fail: true, Kind: storage.Unreachable, When: func(storage.Call) bool {
					calls++
					return calls%every == 0
				}})
			}
			return unclosed{faulty}, nil
		})
		w := randomWorkload(t, rand.New(rand.NewPCG(uint64(every), 5)), 40)
		o := Options{Profile: tiny("full", 0, 0), PageSize: 4, DeviceBytes: 500, HostBytes: 500, PrefetchThreshold: 8, Storage: "failing://", PrefillRate: 1000}
		for range 2 {
			r := conserving(t, fmt.Sprint("every ", every), w, o)
			r.Infinite = Rates{1, 1}
			checkReport(t, r)
			failed += r.Storage.WritesFailed + r.Storage.LookupsFailed + r.Storage.ReadsFailed
			hits += r.HitsByTier.Storage
		}
	}
	if failed == 0 || hits == 0 {
		t.Errorf("%d operations failed, %d tokens from storage", failed, hits)
	}
}

// Equal tokens of two namespaces are different content.
func TestNamespacesHaveStampsOfTheirOwn(t *testing.T) {
	var lines []string
	for _, more := range []string{"", `, "cache_salt": "a"`, `, "cache_salt": "b"`, `, "extra_key": "a"`, `, "extra_key": ""`} {
		lines = append(lines, tokensLine(1, 61, 1, more))
	}
	w := prompts(t, lines...)
	o := Options{Profile: tiny("full", 0, 0), DeviceBytes: 100, HostBytes: 1000, PrefetchThreshold: 8, Storage: folder(t), PrefetchPolicy: "wait-complete", Concurrency: 1}
	r, _ := mustRun(t, w, o)
	if r.CachedTokens != 0 {
		t.Errorf("%+v", r.HitsByTier)
	}
	again, err := Run(context.Background(), w, o)
	if err != nil || again.HitsByTier.Storage+again.HitsByTier.Host+again.HitsByTier.Device != 5*60 || again.HitsByTier.Storage == 0 {
		t.Errorf("%v, %+v", err, again)
	}
	seen := map[uint64]string{}
	for i := range w.Requests {
		sum := startSum(namespaceOf(&w.Requests[i]))
		if other, ok := seen[sum]; ok {
			t.Errorf("%s has the sum of %s", lines[i], other)
		}
		seen[sum] = lines[i]
	}
}

func TestStorageOptions(t *testing.T) {
	w := prompts(t, tokensLine(1, 10, 1, ""))
	dir := t.TempDir()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Storage: "file:" + dir}, "storage needs a host tier"},
		{Options{PrefetchPolicy: "eager"}, `prefetch policy "eager": must be best-effort, wait-complete or timeout`},
		{Options{PrefetchThreshold: -1}, "prefetch threshold is -1"},
		{Options{StorageBandwidth: 1}, "storage bandwidth is 1, must be"},
		{Options{StorageLatency: time.Hour}, "storage latency is 1h0m0s"},
		{Options{Storage: "ftp://x", HostBytes: 1 << 30}, `scheme is "ftp"`},
		{Options{Storage: "file:" + dir + "?sise=3", HostBytes: 1 << 30}, `setting "sise" is unknown`},
	} {
		c.o.Profile = profile(t, "gpt-oss-20b")
		_, err := Run(context.Background(), w, c.o)
		var wrong *OptionsError
		if !errors.As(err, &wrong) || !sameLines(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("a refused run left %v, %v", list, err)
	}
	if _, err := parsePrefetchPolicy("wait_complete"); err != nil {
		t.Error(err)
	}
	if p, err := parsePrefetchPolicy(DefaultPrefetchPolicy); err != nil || p != cache.WaitTimeout {
		t.Errorf("the default is %v, %v", p, err)
	}
}

// A folder that somebody else has open is refused.
func TestLockedStorage(t *testing.T) {
	w := prompts(t, tokensLine(1, 10, 1, ""))
	o := Options{Profile: tiny("full", 0, 0), DeviceBytes: 100, HostBytes: 100, PageSize: 1, Storage: folder(t)}
	other, err := storage.Open(context.Background(), o.Storage, fingerprint(&o))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), w, o)
	var wrong *OptionsError
	var locked *storage.LockedError
	if !errors.As(err, &wrong) || !errors.As(err, &locked) {
		t.Errorf("got %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, w, o)
}

// What a report shows of a URL holds no secret.
func TestRedacted(t *testing.T) {
	for raw, want := range map[string]string{
		"file:/a b?size=3GiB":                             "file:/a b?size=3GiB",
		"redis://me:secret@h:1/2?ttl=24h":                 "redis://h:1/2?ttl=24h",
		"redis://h:1?mode=sentinel&sentinel-password=s":   "redis://h:1?mode=sentinel",
		"s3://ACCESS:SECRET@b/p?endpoint=h%3A9&region=eu": "s3://b/p?endpoint=h%3A9&region=eu",
		"redis://me:se%cret@h:1/2":                        "redis:...",
	} {
		if got := redacted(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
