// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"time"

	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// Miss reasons beside those that the tree gives (tree.Reason).
const (
	missLastToken = "last_token"     // at least one token of a prompt is computed
	missGivenUp   = "reuse_given_up" // locking the match would have left no room to run
	missRefused   = "refused"        // the request did not fit
)

// reasons lists the miss reasons in the order of a table.
var reasons = []string{
	tree.ReasonNeverSeen.String(), tree.ReasonOtherNamespace.String(), tree.ReasonWindowTombstoned.String(),
	tree.ReasonNoState.String(), tree.ReasonHostOnly.String(), tree.ReasonPageRemainder.String(),
	missLastToken, missGivenUp, missRefused,
}

// recorder counts what happens to requests.
type recorder struct {
	page  int
	sizes *sizes

	ended, hit, retractions int
	host, store             int64           // cached tokens that were loaded from the host, and fetched from storage
	lacked                  int64           // tokens that storage had and that did not come
	unseen                  int64           // those of them that nobody else had
	waits                   []time.Duration // to the first token
	fetches                 []time.Duration // waits for storage
	fetchWait               time.Duration   // their sum
	cached, computed        int64           // prompt tokens; computed with the work of runs that were taken off
	output                  int64           // tokens of requests that were served
	pageHits                int64
	misses                  map[string]int64 // looked up only
	refusals                []Refusal
	refusedCount            int
	// closed: arrival times are not kept, so a request comes when it is its turn.
	closed bool
	last   time.Duration // the latest end

	timeline timeline
	tree     treeSize
}

// Refusal is a request that did not fit the device.
type Refusal struct {
	Request   int    `json:"request"` // index in the workload, from 0
	ID        string `json:"id,omitempty"`
	Component string `json:"component"`
	Needed    int    `json:"needed"` // slots at once
	Size      int    `json:"size"`   // slots of the pool
}

// maxRefusals bounds the refusals that are listed one by one.
const maxRefusals = 20

func newRecorder(o *Options, s *sizes, requests int) *recorder {
	r := &recorder{page: s.page, sizes: s, closed: o.Concurrency > 0, misses: map[string]int64{}, waits: make([]time.Duration, 0, requests)}
	for _, reason := range reasons {
		r.misses[reason] = 0
	}
	return r
}

// done counts a request that was served.
func (r *recorder) done(j *job, now time.Duration) {
	r.ended++
	j.done = true
	r.last = now
	from := j.ready
	if r.closed {
		from = j.begun
	}
	r.waits = append(r.waits, j.first-from)
	r.output += int64(j.request.OutputLen)
	r.cached += int64(j.reused)
	r.host += int64(j.fromHost)
	r.store += int64(j.fromStore)
	r.lacked += int64(j.missed)
	if e := &j.found; e.Reason != tree.ReasonOtherNamespace {
		r.unseen += int64(min(j.missed, max(0, e.Units-e.PageRemainder-e.FullOnly)))
	}
	r.pageHits += int64(j.reused / r.page)
	if j.reused > 0 {
		r.hit++
	}
	r.missed(j.request, j.reused, j.found)
}

// missed takes apart the tokens that were not reused: those that a match did
// not dare to lock, those that Full has and another component does not, those
// that nobody has, and those that can never be found.
func (r *recorder) missed(q *workload.Request, reused int, e tree.Explanation) {
	unknown := tree.ReasonNeverSeen
	if e.Reason == tree.ReasonOtherNamespace {
		unknown = e.Reason
	}
	r.misses[missGivenUp] += int64(e.Matched - reused)
	gap := max(e.FullOnly-e.Matched, 0)
	if e.Reason == tree.ReasonHostOnly {
		onHost := min(gap, e.Host)
		r.misses[e.Reason.String()] += int64(onHost)
		// Beyond what the host could have given another component has a gap.
		gap -= onHost
		e.Reason = tree.ReasonNoState
		if e.LimitedBy == tree.SWA || e.LimitedBy == tree.Full && r.sizes.device.SWA > 0 {
			e.Reason = tree.ReasonWindowTombstoned
		}
	}
	if gap > 0 {
		r.misses[e.Reason.String()] += int64(gap)
	}
	r.misses[unknown.String()] += int64(e.Units - e.PageRemainder - e.FullOnly)
	r.misses[tree.ReasonPageRemainder.String()] += int64(e.PageRemainder)
	r.misses[missLastToken] += int64(q.InputLen - e.Units)
}

// refused counts a request that did not fit.
func (r *recorder) refused(j *job, l Lack) {
	r.refusedCount++
	r.misses[missRefused] += int64(j.request.InputLen)
	if len(r.refusals) < maxRefusals {
		r.refusals = append(r.refusals, Refusal{
			Request: j.index, ID: j.request.ID, Component: l.Component.String(), Needed: l.Needed, Size: l.Size,
		})
	}
}

// waited notes how long a request waited for storage when it was its turn.
func (r *recorder) waited(d time.Duration) {
	r.fetches, r.fetchWait = append(r.fetches, d), r.fetchWait+d
}

// retracted counts a request that was taken off.
func (r *recorder) retracted() { r.retractions++ }

// sample looks at the cache from time to time.
func (r *recorder) sample(now time.Duration, m *meter) {
	r.timeline.sample(now, m.c, r.sizes)
	r.tree.follow(m.c.Tree())
}

// quantile gives the duration below which the share q of a sorted list lies.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// spread sums up waits.
func spread(waits []time.Duration) Spread {
	if len(waits) == 0 {
		return Spread{}
	}
	sorted := slices.Clone(waits)
	slices.Sort(sorted)
	sum := 0.0
	for _, d := range sorted {
		sum += d.Seconds()
	}
	return Spread{
		Mean: sum / float64(len(sorted)),
		P50:  quantile(sorted, 0.5).Seconds(), P90: quantile(sorted, 0.9).Seconds(), P99: quantile(sorted, 0.99).Seconds(),
	}
}
