// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// model stands in for a language model: what it writes into a slot says which
// tokens the slot's content depends on, and it checks all that it reads. So a
// slot that is reused for something else, a window with a hole, or a state that
// is ahead of its key is found when it is read.
type model struct {
	t     failer
	cache *Cache
	full  map[tree.Slot]uint64
	swa   map[tree.Slot]uint64
	state map[tree.Slot]uint64
	sums  map[*Request][]uint64 // by number of tokens
}

// errLost is what a request meets whose load back failed.
var errLost = errors.New("lost")

var seed = maphash.MakeSeed()

func newModel(t failer, o Options) *model {
	t.Helper()
	m := &model{t: t, full: map[tree.Slot]uint64{}, swa: map[tree.Slot]uint64{}, state: map[tree.Slot]uint64{}, sums: map[*Request][]uint64{}}
	o.CopyState = func(from, to tree.Slot) { m.put(tree.Mamba, to, m.get(tree.Mamba, from)) }
	c, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	m.cache = c
	return m
}

// get and put read and write what a device slot holds: in the cache's own memory
// where it has some, so that copies between the tiers move it.
func (m *model) get(id tree.Component, s tree.Slot) uint64 {
	if memory := m.cache.Memory(); memory != nil && memory.Device[id] != nil {
		return memory.Device[id].Stamp(s)
	}
	return m.content(id)[s]
}

func (m *model) put(id tree.Component, s tree.Slot, stamp uint64) {
	if memory := m.cache.Memory(); memory != nil && memory.Device[id] != nil {
		memory.Device[id].SetStamp(s, stamp)
		return
	}
	m.content(id)[s] = stamp
}

func (m *model) content(id tree.Component) map[tree.Slot]uint64 {
	return [...]map[tree.Slot]uint64{m.full, m.swa, m.state}[id]
}

// ready waits until all that r reads is there, and reports whether it ever will.
func (m *model) ready(r *Request) bool {
	m.t.Helper()
	if r.state == Lost {
		return false
	}
	if !m.cache.Loading(r) {
		return true
	}
	var order *OrderError
	if r.Allocated() > r.Len() && r.Len() < len(r.tokens) {
		if err := m.cache.Commit(r, 1); !errors.As(err, &order) {
			m.t.Fatalf("request %d computes on what is not there: %v", r.id, err)
		}
	}
	err := m.cache.WaitLoads(context.Background(), r)
	var lost *LoadError
	if errors.As(err, &lost) && r.state == Lost {
		m.check()
		return false
	}
	m.ok(err)
	return true
}

// prefix is the content that depends on the first n tokens of r.
func (m *model) prefix(r *Request, n int) uint64 {
	sums := m.sums[r]
	if sums == nil {
		sums = []uint64{maphash.String(seed, r.namespace.ExtraKey+"|"+r.namespace.Salt)}
	}
	for len(sums) <= n {
		link := [2]uint64{sums[len(sums)-1], uint64(r.tokens[len(sums)-1])}
		sums = append(sums, maphash.Comparable(seed, link))
	}
	m.sums[r] = sums
	return sums[n]
}

func (m *model) slots(r *Request) []tree.Slot {
	row, err := r.Row().Numbers()
	if err != nil || len(row) != r.Allocated() {
		m.t.Fatalf("row of request %d: %d slots for %d positions (%v)", r.id, len(row), r.Allocated(), err)
	}
	return row
}

// read checks everything that computing position n of r reads.
func (m *model) read(r *Request, n int) {
	m.t.Helper()
	c := m.cache
	if !m.ready(r) {
		return
	}
	row := m.slots(r)
	for i := range n {
		if m.get(tree.Full, row[i]) != m.prefix(r, i+1) {
			m.t.Fatalf("request %d reads slot %d at position %d: it holds something else", r.id, row[i], i)
		}
		if c.swa && i >= n-c.window+1 {
			twin, err := c.dual.TwinOf(int64(row[i]))
			if err != nil || twin <= 0 {
				m.t.Fatalf("request %d at %d reads its window at %d: slot %d has no SWA slot", r.id, n, i, row[i])
			}
			if m.get(tree.SWA, tree.Slot(twin)) != m.prefix(r, i+1) {
				m.t.Fatalf("request %d reads SWA slot %d at position %d: it holds something else", r.id, twin, i)
			}
		}
	}
	if c.mamba && m.get(tree.Mamba, r.StateSlot()) != m.prefix(r, n) {
		m.t.Fatalf("request %d runs on a state that is not that of its first %d tokens", r.id, n)
	}
}

// write stores the content of the positions from .. to-1.
func (m *model) write(r *Request, from, to int) {
	row := m.slots(r)
	for i := from; i < to; i++ {
		m.put(tree.Full, row[i], m.prefix(r, i+1))
		if m.cache.swa {
			if twin, _ := m.cache.dual.TwinOf(int64(row[i])); twin > 0 {
				m.put(tree.SWA, tree.Slot(twin), m.prefix(r, i+1))
			}
		}
	}
	if m.cache.mamba {
		m.put(tree.Mamba, r.StateSlot(), m.prefix(r, to))
	}
}

func (m *model) ok(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	m.check()
}

func (m *model) check() {
	m.t.Helper()
	if err := m.cache.CheckConservation(); err != nil {
		m.t.Fatalf("%v", err)
	}
	m.gauges()
}

// start makes, matches and admits a request.
func (m *model) start(tokens ...tree.Token) *Request {
	m.t.Helper()
	r, err := m.cache.NewRequest(RequestParams{Tokens: tokens})
	m.ok(err)
	_, err = m.cache.Match(r)
	m.ok(err)
	m.admit(r)
	return r
}

func (m *model) admit(r *Request) {
	m.t.Helper()
	m.ok(m.cache.Admit(r))
	m.admitted(r)
}

func (m *model) admitted(r *Request) {
	m.t.Helper()
	if m.cache.mamba && r.Len() == 0 {
		m.put(tree.Mamba, r.StateSlot(), m.prefix(r, 0))
	}
	m.read(r, r.Len())
}

// compute extends r by n positions, computes them and commits them.
func (m *model) compute(r *Request, n int) {
	m.t.Helper()
	more := max(r.Len()+n-r.Allocated(), 0)
	err := m.cache.Extend(r, more)
	for momentary(err) && m.cache.storage != nil && len(m.cache.storage.writes) > 0 {
		// A write to storage keeps the host from taking what has to go.
		m.ok(m.cache.Sync(context.Background()))
		err = m.cache.Extend(r, more)
	}
	m.ok(err)
	m.commit(r, n)
}

func (m *model) commit(r *Request, n int) {
	m.t.Helper()
	at := r.Len()
	m.read(r, at)
	if r.state == Lost {
		return
	}
	if length, slot, ok := m.cache.PlanTrack(r, n); ok {
		m.put(tree.Mamba, slot, m.prefix(r, length))
	}
	m.write(r, at, at+n)
	m.ok(m.cache.Commit(r, n))
}

// prefill computes the rest of the prompt in chunks and caches each.
func (m *model) prefill(r *Request, chunk int) {
	m.t.Helper()
	for r.Len() < r.PromptLen() {
		m.compute(r, min(chunk, r.PromptLen()-r.Len()))
		m.ok(m.cache.CacheUnfinished(r))
		m.read(r, r.Len())
	}
}

// decode appends tokens one by one.
func (m *model) decode(r *Request, tokens ...tree.Token) {
	m.t.Helper()
	for _, token := range tokens {
		if err := m.decodeOne(r, token); err != nil {
			m.t.Fatalf("%v", err)
		}
	}
}

func (m *model) decodeOne(r *Request, token tree.Token) error {
	m.t.Helper()
	at := r.Len()
	m.read(r, at)
	if r.state == Lost {
		return errLost
	}
	if n, err := m.cache.Decode(r, []tree.Token{token}); err != nil {
		if n != 0 {
			m.t.Fatalf("decoded %d tokens, and %v", n, err)
		}
		m.check()
		return err
	}
	m.write(r, at, at+1)
	if length, slot, ok := r.Tracked(); ok && length == at+1 {
		m.put(tree.Mamba, slot, m.prefix(r, length))
	}
	m.check()
	return nil
}

func (m *model) finish(r *Request) {
	m.t.Helper()
	m.ok(m.cache.Finish(r, true))
}

// run leads a prompt through its whole life and returns how much it reused.
func (m *model) run(chunk int, tokens ...tree.Token) int {
	m.t.Helper()
	r := m.start(tokens...)
	reused := r.Len()
	m.prefill(r, chunk)
	m.finish(r)
	return reused
}

// reuse returns how many of the tokens a request would reuse, and what it would
// be told.
func (m *model) reuse(tokens ...tree.Token) tree.MatchResult {
	m.t.Helper()
	result, err := m.cache.tree.Match(tree.Key{Tokens: tokens})
	m.ok(err)
	return result
}

// span returns the tokens from .. to.
func span(from, to int) []tree.Token {
	out := make([]tree.Token, 0, to-from+1)
	for i := from; i <= to; i++ {
		out = append(out, tree.Token(i))
	}
	return out
}

func join(parts ...[]tree.Token) []tree.Token {
	var out []tree.Token
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func components(swa, mamba bool) tree.ComponentSet {
	set := tree.SetOf(tree.Full)
	if swa {
		set |= tree.SetOf(tree.SWA)
	}
	if mamba {
		set |= tree.SetOf(tree.Mamba)
	}
	return set
}

func wantInt(t failer, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %d, want %d", what, got, want)
	}
}

func wantExhausted(t *testing.T, err error, name string) {
	t.Helper()
	var short *pool.ExhaustedError
	if !errors.As(err, &short) || short.Pool != name {
		t.Fatalf("error %v, want pool %s exhausted", err, name)
	}
}

func wantOrder(t *testing.T, err error, state State) {
	t.Helper()
	var order *OrderError
	if !errors.As(err, &order) || order.State != state {
		t.Fatalf("error %v, want an *OrderError in state %v", err, state)
	}
}

func (m *model) free(id tree.Component) int { return m.cache.Usage(id).Free }
