// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// follow runs jobs and tells show about each one's news, in the order of the jobs,
// until all have ended. It ends them when the client goes, when show returns an
// error, or when one of them fails.
func (s *Server) follow(r *http.Request, jobs []*job, show func(i int, p progress) error) *apiError {
	if err := s.submit(r.Context(), jobs); err != nil {
		return err
	}
	defer func() { // also when show panics
		s.abort(jobs)
		for _, j := range jobs {
			s.metrics.ended(j)
		}
	}()
	seen := make([]int, len(jobs)) // tokens that were shown; below 0: the end was
	for left := len(jobs); left > 0; {
		select {
		case <-jobs[0].wake:
		case <-r.Context().Done():
			return errGone
		case <-s.cut:
			return draining()
		}
		for i, j := range jobs {
			p := j.look()
			if seen[i] < 0 || len(p.tokens) == seen[i] && p.finish == engine.Unfinished {
				continue
			}
			if err := s.broken(p); err != nil {
				return err
			}
			seen[i] = len(p.tokens)
			if p.finish != engine.Unfinished {
				seen[i] = -1
				left--
			}
			if show == nil {
				continue
			}
			if err := show(i, p); err != nil {
				return errGone
			}
		}
	}
	return nil
}

// broken says why a job has ended without an answer; nil if it has not.
func (s *Server) broken(p progress) *apiError {
	switch p.finish {
	case engine.FinishFailed:
		return refusal(p.err)
	case engine.FinishAborted: // by the engine's end, since nobody else did
		if err := s.loop.failed.Load(); err != nil {
			return s.unavailable(*err)
		}
		return draining()
	}
	return nil
}

// outcome is a finished job as answers show it.
type outcome struct {
	progress
	prompt int
	text   string
}

func (j *job) outcome() outcome {
	o := outcome{progress: j.look(), prompt: len(j.params.Tokens)}
	d := newDecoder(j.stops)
	o.text = d.next(o.tokens) + d.end(o.matched)
	return o
}

// reuseReport says what was found in the cache and why it was not more.
type reuseReport struct {
	// Tokens of the prompt that were reused, by the tier they came from, and those
	// that a lower tier had and that did not come.
	Device        int `json:"device"`
	Host          int `json:"host"`
	Storage       int `json:"storage"`
	HostMissed    int `json:"host_missed"`
	StorageMissed int `json:"storage_missed"`
}

type matchReport struct {
	Matched   int            `json:"matched"`
	FullOnly  int            `json:"full_only"`
	LimitedBy string         `json:"limited_by"`
	Reason    string         `json:"reason"`
	Tiers     map[string]int `json:"tiers"`
}

func (r reuse) byTier() reuseReport {
	return reuseReport{
		Device: r.cached - r.origin.Host - r.origin.Storage, Host: r.origin.Host, Storage: r.origin.Storage,
		HostMissed: r.origin.HostMissed, StorageMissed: r.origin.StorageMissed,
	}
}

func (r reuse) match() matchReport {
	m := matchReport{
		Matched: r.why.Matched, FullOnly: r.why.FullOnly, LimitedBy: "none", Reason: r.why.Reason.String(),
		Tiers: map[string]int{"device": r.why.Device, "host": r.why.Host},
	}
	if r.why.Limited {
		m.LimitedBy = r.why.LimitedBy.String()
	}
	return m
}

// ids makes an empty list of no tokens, and not null.
func ids(t []tree.Token) []tree.Token {
	if t == nil {
		return []tree.Token{}
	}
	return t
}
