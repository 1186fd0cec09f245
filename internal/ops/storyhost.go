// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// hostTier is a story's controller of the host tier: what is in flight, and
// how large the host pools are.
type hostTier struct {
	on       bool                    // backup actions are executed
	limit    [tree.NumComponents]int // slots of each pool; 0: no limit
	fails    int                     // so many allocations fail from now on
	switches tree.Switches

	acks   int64 // ack numbers given out
	writes []*hostWrite
	// Offloads to an external linker; their acks are node ids.
	offloads []*hostWrite
	loads    []*hostLoad
	fetches  map[string]*hostFetch
	paused   [tree.NumComponents]tree.NodeID // nodes that wait for the end of their eviction

	notes []string // what making room did, not shown yet
}

// hostWrite is a backup whose ack is not in.
type hostWrite struct {
	ack     int64
	target  tree.NodeID
	publish []tree.NodeID
	locked  bool
	receipt tree.Receipt
}

const noHostMachine = "unsupported: this machine has no host tier"

// host returns the machine's host tier; the text is the answer without one.
func (s *Story) hostMachine() (HostMachine, string) {
	m, ok := s.m.(HostMachine)
	if !ok {
		return nil, noHostMachine
	}
	return m, ""
}

// hostPoolsVerb sets the sizes of the host pools. From then on the story
// executes backup actions.
func (s *Story) hostPoolsVerb(a *arguments) (string, error) {
	var limit [tree.NumComponents]int
	for c := range limit {
		n, err := argument(a, tree.Component(c).String(), parseInt, 0)
		if err != nil {
			return "", err
		}
		limit[c] = max(n, 0)
	}
	s.host.limit, s.host.on = limit, true
	return "ok", nil
}

func (s *Story) hostFailVerb(a *arguments) (string, error) {
	n, err := required(a, "n", parseInt)
	if err != nil {
		return "", err
	}
	s.host.fails = max(n, 0)
	return "ok", nil
}

// hostAlloc takes n host slots, evicting exactly what is short (rule BK-13).
func (s *Story) hostAlloc(m HostMachine, c tree.Component, n int) ([]uint32, bool) {
	h, p := &s.host, &s.pools.host[c]
	if h.fails > 0 {
		h.fails--
		return nil, false
	}
	if h.limit[c] > 0 && p.count+n > h.limit[c] {
		short := p.count + n - h.limit[c]
		v, err := m.EvictHost(c, short)
		h.notes = append(h.notes, fmt.Sprintf("room for %d %s: %s", short, c, s.run.evicted(v, err)))
		if p.count+n > h.limit[c] {
			return nil, false
		}
	}
	return p.alloc(n), true
}

func (s *Story) hostRelease(c tree.Component, slots []uint32) {
	for _, h := range slots {
		if !s.pools.host[c].release(h) {
			s.pools.problem("%s host slot %d was given back and is not in use", c, h)
		}
	}
}

// withNotes puts what making room did in front of an answer.
func (s *Story) withNotes(text string) string {
	notes := s.takeNotes()
	if len(notes) == 0 {
		return text
	}
	return "\n  " + strings.Join(append(notes, text), "\n  ")
}

func (s *Story) takeNotes() []string {
	notes := s.host.notes
	s.host.notes = nil
	return notes
}

// hosted notes that a raw call gave host slots to the tree.
func (s *Story) hosted(c tree.Component, slots tree.Slots) {
	for _, h := range s.pools.numbers(slots, 0) {
		s.pools.host[c].take(h)
	}
}

// inFlight lists what the sanity check wants to know: backups that hold a lock,
// and load backs.
func (s *Story) inFlight() (writes, loads []tree.InFlight) {
	for _, w := range s.host.writes {
		if w.locked {
			writes = append(writes, tree.InFlight{ID: w.ack, Node: w.target})
		}
	}
	for _, w := range s.host.offloads {
		if w.locked {
			writes = append(writes, tree.InFlight{ID: w.ack, Node: w.target})
		}
	}
	for _, l := range s.host.loads {
		loads = append(loads, tree.InFlight{ID: int64(l.best), Node: l.best})
	}
	return writes, loads
}

func (s *Story) sanity() error { return s.m.SanityCheck(s.inFlight()) }

// relocate keeps the books of backups in step with splits (rule ND-18).
func (s *Story) relocate(actions []tree.Action) {
	for _, a := range actions {
		r, ok := a.(tree.ReplaceWriteThroughOnNodeSplit)
		if !ok {
			continue
		}
		for _, w := range slices.Concat(s.host.writes, s.host.offloads) {
			if w.ack != r.Ack {
				continue
			}
			if at := slices.Index(w.publish, r.Old); at >= 0 {
				w.publish = slices.Replace(w.publish, at, at+1, r.New, r.Child)
			}
		}
	}
}

// forgetHost ends everything in flight, as a reset does (rule CT-3).
func (s *Story) forgetHost() {
	h := &s.host
	*h = hostTier{on: h.on, limit: h.limit, switches: h.switches, acks: h.acks}
}
