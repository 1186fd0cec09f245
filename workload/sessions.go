// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// sessions reads the coding-agent format: a session a line, whose requests form
// a chain. Block ids stand for full blocks, so the rest of a prompt has no
// identity and is filled with tokens of the request's own.
//
// A request waits for the previous one of its chain, then for its think time:
// think_time where given, else the time from the previous answer (t + api_time)
// to the request, else nothing. A sub-agent's requests are a chain of their own
// that starts when the parent's previous request has finished; sub-agents that
// stand one after the other run at the same time. The parent's next request
// waits for all of them, and its think time is then what was left between the
// end of the last one and the request: its think_time counts from the previous
// answer and would include the sub-agents' work.
//
// A sub-agent's t is the moment it was done: in the published files t minus
// duration_ms is the end of the parent's previous answer. Where that would be
// before the previous request, t is taken for its start.
type sessions struct {
	b         *builder
	unit      time.Duration
	blockSize int      // settled by the option or by the first session; 0: not yet
	ids       []uint64 // of all requests of the line
}

func newSessions(b *builder, o Options) parser {
	b.note("sessions all start at 0: the format gives no times between sessions")
	b.note("the part of a prompt behind its last full block is unique to the request: the format gives it no identity")
	b.note(outputsUnique)
	return &sessions{b: b, unit: o.TimeUnit, blockSize: o.BlockSize}
}

// entry is a request or a sub-agent in a session.
type entry struct {
	t, think, api, duration     time.Duration
	hasThink, hasAPI            bool
	input, output               int
	first, ids                  int // the ids are sessions.ids[first : first+ids]
	agent                       string
	isAgent                     bool
	entries                     []entry // of a sub-agent
	hasT, hasIn, hasOut, hasIDs bool
	hasType, hasEntries         bool
	text                        []byte // of t
}

func (p *sessions) line(text []byte) *fieldError {
	var (
		id         string
		scope      = "local"
		block      uint64
		entries    []entry
		hasEntries bool
	)
	p.ids = p.ids[:0]
	s := scanner{text: text}
	err := s.line(func(key []byte) (err *fieldError) {
		switch string(key) {
		case "id":
			id, err = s.name()
		case "block_size":
			block, err = s.whole(1, maxBlockSize)
		case "hash_id_scope":
			var raw []byte
			raw, err = s.str()
			if scope = string(raw); err == nil && scope != "local" && scope != "global" {
				err = &fieldError{found: clip(raw), want: "local or global"}
			}
		case "requests":
			hasEntries = true
			entries, err = p.entries(&s, 0)
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case id == "":
		return missing("id", "the session's name")
	case !hasEntries:
		return missing("requests", "the session's requests")
	}
	size, err := p.size(int(block))
	if err != nil {
		return err
	}
	if err := p.check(entries, size, 0); err != nil {
		return err.under("requests")
	}
	p.blockSize, p.b.w.BlockSize = size, size
	if scope == "local" {
		whole := p.b.ids.scope
		defer func() { p.b.ids.scope = whole }()
		p.b.ids.newScope()
	}
	_, err = p.chain(chain{session: id}, entries)
	return err
}

// size settles the block size between the option, the first session and this.
func (p *sessions) size(block int) (int, *fieldError) {
	switch {
	case block == 0 && p.blockSize == 0:
		return p.b.w.BlockSize, nil
	case block == 0 || p.blockSize == 0 || block == p.blockSize:
		return max(block, p.blockSize), nil
	}
	return 0, &fieldError{
		field: "block_size",
		found: strconv.Itoa(block),
		want:  fmt.Sprintf("%d, as set or as in the first session", p.blockSize),
	}
}

const maxNesting = 32

// entries reads the requests of a session or a sub-agent.
func (p *sessions) entries(s *scanner, depth int) (list []entry, err *fieldError) {
	if depth > maxNesting {
		return nil, &fieldError{found: "sub-agents in " + strconv.Itoa(maxNesting) + " sub-agents", want: "fewer levels"}
	}
	err = s.array(func(int) *fieldError {
		var e entry
		err := s.object(func(key []byte) *fieldError { return p.field(s, &e, string(key), depth) })
		if err != nil {
			return err
		}
		list = append(list, e)
		return e.complete()
	})
	return list, err
}

func (p *sessions) field(s *scanner, e *entry, key string, depth int) (err *fieldError) {
	switch key {
	case "type":
		e.hasType = true
		var raw []byte
		raw, err = s.str()
		switch {
		case err != nil:
		case string(raw) == "subagent":
			e.isAgent = true
		case string(raw) == "n" || string(raw) == "s":
			e.isAgent = false
		default:
			err = &fieldError{found: clip(raw), want: "n, s or subagent"}
		}
	case "t":
		e.hasT = true
		e.t, e.text, err = s.time(p.unit)
	case "in":
		e.hasIn = true
		e.input, err = s.length(1)
	case "out":
		e.hasOut = true
		e.output, err = s.length(0)
	case "hash_ids":
		e.hasIDs = true
		e.first = len(p.ids)
		p.ids, err = s.wholes(p.ids, math.MaxUint64)
		e.ids = len(p.ids) - e.first
	case "think_time":
		if e.hasThink = !s.null(); e.hasThink {
			e.think, _, err = s.time(p.unit)
		}
	case "api_time":
		if e.hasAPI = !s.null(); e.hasAPI {
			e.api, _, err = s.time(p.unit)
		}
	case "agent_id":
		e.agent, err = s.name()
	case "duration_ms":
		if !s.null() {
			e.duration, _, err = s.time(time.Millisecond)
		}
	case "requests":
		e.hasEntries = true
		e.entries, err = p.entries(s, depth+1)
	default:
		err = s.skip()
	}
	return err
}

// complete says which field is missing.
func (e *entry) complete() *fieldError {
	switch {
	case !e.hasType:
		return missing("type", "n, s or subagent")
	case !e.hasT:
		return missing("t", "the time in seconds since the start")
	case e.isAgent && !e.hasEntries:
		return missing("requests", "the sub-agent's requests")
	case e.isAgent:
		return nil
	case !e.hasIn:
		return missing("in", "the number of prompt tokens")
	case !e.hasOut:
		return missing("out", "the number of generated tokens")
	case !e.hasIDs:
		return missing("hash_ids", "an id for each full block of the prompt")
	}
	return nil
}

// check looks at what spans several fields or requests: numbers of ids, order of
// times, and times that get too long when added up.
func (p *sessions) check(entries []entry, size int, base time.Duration) *fieldError {
	var c clock
	at := func(i int, err *fieldError) *fieldError { return err.under("[" + strconv.Itoa(i) + "]") }
	for i := range entries {
		e := &entries[i]
		if base+e.t > MaxTime {
			return at(i, &fieldError{field: "t", found: "a session of more than 100 years", want: "shorter times"})
		}
		if e.isAgent {
			if err := p.check(e.entries, size, base+e.t); err != nil {
				return at(i, err.under("requests"))
			}
			continue
		}
		if e.t < c.last {
			return at(i, &fieldError{
				field: "t", found: clip(e.text),
				want: "at least " + c.text + " as in the request before: times must not go backwards",
			})
		}
		c.last, c.text = e.t, clip(e.text)
		if want := e.input / size; e.ids != want {
			return at(i, &fieldError{
				field: "hash_ids", found: count(e.ids, "id"),
				want: fmt.Sprintf("%s for the full blocks of %d in %s", count(want, "id"), size, count(e.input, "token")),
			})
		}
	}
	return nil
}

// chain is where the requests of a session or of a sub-agent stand.
type chain struct {
	session, agent string
	start          time.Duration // since the session's start, as all times here
	after          []int         // what its first request waits for
	done           time.Duration // when that was done,
	known          bool          // if the file says
}

// chain adds the requests of a chain and gives the indices of those that end it.
func (p *sessions) chain(c chain, entries []entry) (ends []int, err *fieldError) {
	var (
		before   = c.after // the previous request, which sub-agents wait for
		asked    = c.start // when it was made
		done     = c.done  // when it was done,
		known    = c.known // if the file says
		inChain  = false   // it is one of this chain
		parallel []int     // ends of the sub-agents since
		idle     time.Duration
	)
	for i := range entries {
		e, t := &entries[i], c.start+entries[i].t
		switch {
		case p.b.full():
			continue
		case e.isAgent:
			start, end := t-e.duration, t
			if start < asked {
				start, end = t, t+e.duration
			}
			size := len(p.b.w.Requests)
			last, err := p.chain(chain{c.session, e.agent, start, before, done, known}, e.entries)
			if err != nil {
				return nil, err
			}
			if len(p.b.w.Requests) > size {
				parallel = append(parallel, last...)
				idle = max(idle, end)
			}
			continue
		}
		heads, err := p.b.ids.number(p.ids[e.first : e.first+e.ids])
		if err != nil {
			return nil, err.under("hash_ids")
		}
		r := Request{
			Session: c.session, Agent: c.agent, Arrival: t, After: before,
			InputLen: e.input, OutputLen: e.output,
			prompt: &blockList{size: p.b.w.BlockSize, ids: heads},
		}
		switch {
		case len(parallel) > 0:
			r.After = append(slices.Clone(before), parallel...)
			r.Think = max(0, t-max(done, idle))
		case len(before) == 0: // opens the session
		case inChain && e.hasThink:
			r.Think = e.think
		case known:
			r.Think = max(0, t-done)
		case !inChain:
			r.Think = e.think
		}
		before = []int{p.b.add(r)}
		asked, done, known, inChain = t, t+e.api, e.hasAPI, true
		parallel, idle = nil, 0
	}
	return append(slices.Clone(before), parallel...), nil
}
