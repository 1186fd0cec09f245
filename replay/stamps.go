// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"hash/fnv"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/tree"
)

// stamps stands in for the model where there is a storage tier: it writes into
// each slot that is computed what its content depends on, the tokens up to it,
// their namespace and the component, and looks at what is reused. So bytes that
// went through the host and the store and came back to another place are found.
// A stamp is the same in every process.
type stamps struct {
	cache   *cache.Cache
	page    int
	window  int // 0 without SWA
	grid    int // 0 without Mamba
	checked int64
	wrong   int64
	first   string // what was wrong first
}

// stampOf makes the stamp of a component from a sum over tokens.
func stampOf(id tree.Component, sum uint64) uint64 {
	return sum ^ (uint64(id)+1)*0x9e3779b97f4a7c15
}

// startSum is the sum over no tokens.
func startSum(n tree.Namespace) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%t %q %q", n.HasExtraKey, n.ExtraKey, n.Salt)
	return h.Sum64()
}

// nextSum adds a token.
func nextSum(sum uint64, t tree.Token) uint64 {
	sum = (sum ^ uint64(t)) * 0xff51afd7ed558ccd
	return sum ^ sum>>32
}

func sumOver(sum uint64, tokens []tree.Token) uint64 {
	for _, t := range tokens {
		sum = nextSum(sum, t)
	}
	return sum
}

// begin notes that a request was admitted. What it reuses may still be on its
// way.
func (s *stamps) begin(j *job) {
	if s != nil {
		j.unread = true
	}
}

// copyState is what the cache calls when a request starts from a state.
func (s *stamps) copyState(from, to tree.Slot) {
	m := s.cache.Memory().Device[tree.Mamba]
	m.SetStamp(to, m.Stamp(from))
}

// computed looks at what a request reuses, when that is there, and writes the
// stamps of the next n positions of its prompt, which are about to be committed.
func (s *stamps) computed(j *job, n int) error {
	if s == nil {
		return nil
	}
	if j.unread {
		s.read(j)
	}
	at := j.live.Len()
	length, slot, track := s.cache.PlanTrack(j.live, n)
	if track {
		s.put(tree.Mamba, slot, sumOver(j.sum, j.tokens[at:length]))
	}
	return s.write(j, at, n)
}

// stride gives how many of n tokens a request may generate in one call: with
// states no more than to the next point at which one is kept.
func (s *stamps) stride(j *job, n int) int {
	if s == nil || s.grid == 0 {
		return n
	}
	return min(n, s.grid-j.live.Len()%s.grid)
}

// decoded writes the stamps of n positions that were generated.
func (s *stamps) decoded(j *job, at, n int) error {
	if s == nil || n == 0 {
		return nil
	}
	err := s.write(j, at, n)
	if length, slot, ok := j.live.Tracked(); ok && length == at+n {
		s.put(tree.Mamba, slot, j.sum)
	}
	return err
}

func (s *stamps) put(id tree.Component, slot tree.Slot, sum uint64) {
	s.cache.Memory().Device[id].SetStamp(slot, stampOf(id, sum))
}

// write stores the stamps of n positions from at on.
func (s *stamps) write(j *job, at, n int) error {
	row := j.live.Row()
	if row.Len() < at+n {
		return fmt.Errorf("request %d has %d slots for %d positions: this is a fault of the program", j.live.ID(), row.Len(), at+n)
	}
	full, sum := s.cache.Memory().Device[tree.Full], j.sum
	for _, run := range row.Slice(at, at+n) {
		for i := range tree.Slot(run.Length) {
			sum = nextSum(sum, j.tokens[at])
			full.SetStamp(run.First+i, stampOf(tree.Full, sum))
			if s.window > 0 {
				if twin, ok := s.cache.SWASlot(run.First + i); ok {
					s.put(tree.SWA, twin, sum)
				}
			}
			at++
		}
	}
	j.sum = sum
	return nil
}

// read looks at the last token of each page that a request reuses, at its window
// and at its state.
func (s *stamps) read(j *job) {
	j.unread = false
	sum, at := startSum(namespaceOf(j.request)), 0
	full := s.cache.Memory().Device[tree.Full]
	for _, run := range j.live.Row().Slice(0, j.start) {
		for i := range tree.Slot(run.Length) {
			sum = nextSum(sum, j.tokens[at])
			at++
			if at%s.page != 0 {
				continue
			}
			s.check(j, tree.Full, at, full.Stamp(run.First+i), sum)
			if at > j.start-s.window+1 { // what the next position reads; not without SWA
				if twin, ok := s.cache.SWASlot(run.First + i); ok {
					s.check(j, tree.SWA, at, s.cache.Memory().Device[tree.SWA].Stamp(twin), sum)
				} else {
					s.fail(j, tree.SWA, at, "has no slot")
				}
			}
		}
	}
	j.sum = sum
	if s.grid > 0 && j.start > 0 {
		s.check(j, tree.Mamba, j.start, s.cache.Memory().Device[tree.Mamba].Stamp(j.live.StateSlot()), sum)
	}
}

func (s *stamps) check(j *job, id tree.Component, at int, got, sum uint64) {
	s.checked++
	if got != stampOf(id, sum) {
		s.fail(j, id, at, "holds something else")
	}
}

func (s *stamps) fail(j *job, id tree.Component, at int, what string) {
	if s.wrong++; s.wrong == 1 {
		s.first = fmt.Sprintf("the %v of the first %d tokens of request %d %s", id, at, j.index, what)
	}
}

// err says that the cache gave a request something else than it had put there.
func (s *stamps) err() error {
	if s == nil || s.wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d reused pages and states are wrong, first %s: the store, or the program, is at fault", s.wrong, s.checked, s.first)
}
