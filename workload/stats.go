// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Stats are figures that follow from a workload alone.
type Stats struct {
	Requests     int
	Sessions     int           // different names of sessions
	Span         time.Duration // latest arrival; within a session for closed loops
	InputTokens  int64
	OutputTokens int64

	// The rest is 0 where the format has no blocks. A last, partial block counts
	// as a block.
	Blocks       int64
	UniqueBlocks int64
	// BlockHits and TokenHits are what a cache without limits would find of the
	// prompts, one request after the other in listed order, outputs not kept:
	// the ceiling for any cache. Tokens are counted singly, so two equal blocks
	// of different length share what both have.
	BlockHits int64
	TokenHits int64
}

// Stats computes the figures. Where Chained is false a block counts as equal to
// another only if everything before it is equal too.
func (w *Workload) Stats() Stats {
	s := Stats{Requests: len(w.Requests)}
	sessions := map[string]bool{}
	seen := newPaths(w.Chained)
	for i := range w.Requests {
		r := &w.Requests[i]
		if r.Session != "" {
			sessions[r.Session] = true
		}
		s.Span = max(s.Span, r.Arrival)
		s.InputTokens += int64(r.InputLen)
		s.OutputTokens += int64(r.OutputLen)
		blocks, ok := r.prompt.(*blockList)
		if !ok {
			continue
		}
		s.Blocks += int64(len(blocks.ids))
		path, hit := uint32(0), true
		for k, id := range blocks.ids {
			length := min(blocks.size, r.InputLen-k*blocks.size)
			var known *int
			path, known = seen.follow(path, id)
			if hit = hit && *known > 0; hit {
				s.BlockHits++
				s.TokenHits += int64(min(length, *known))
			}
			if *known == 0 {
				s.UniqueBlocks++
			}
			*known = max(*known, length)
		}
	}
	s.Sessions = len(sessions)
	return s
}

// paths numbers blocks together with what stands before them, from 1, and keeps
// the longest length seen of each.
type paths struct {
	next   map[[2]uint32]uint32 // path and id to path; nil: the id says it all
	length []int
}

func newPaths(chained bool) *paths {
	p := &paths{length: []int{0}}
	if !chained {
		p.next = map[[2]uint32]uint32{}
	}
	return p
}

func (p *paths) follow(path, id uint32) (uint32, *int) {
	to := id + 1
	if p.next != nil {
		step := [2]uint32{path, id}
		var known bool
		if to, known = p.next[step]; !known {
			to = uint32(len(p.length))
			p.next[step] = to
		}
	}
	for int(to) >= len(p.length) {
		p.length = append(p.length, 0)
	}
	return to, &p.length[to]
}
