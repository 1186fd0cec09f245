// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"time"
)

// mooncake reads the Mooncake format: a JSON object a line, with timestamp
// (milliseconds), input_length, output_length and hash_ids, one id a block, the
// last of which may be partial. Ids mean the same in the whole file.
//
// Multi-turn variants have session_id, and delay (milliseconds after the
// previous turn has finished) with timestamp or instead of it. Such a request
// waits for the previous turn; the first of a session starts at its timestamp,
// else at its delay. Times must not go backwards within a session, and among
// the requests without one.
type mooncake struct {
	b      *builder
	unit   time.Duration
	timing timing
	ids    []uint64
}

const outputsUnique = "outputs are unique to each request: the format gives generated tokens no identity"

func newMooncake(b *builder, o Options) parser {
	b.note(outputsUnique)
	return &mooncake{b: b, unit: o.TimeUnit}
}

func (p *mooncake) line(text []byte) *fieldError {
	var (
		r                       Request
		m                       moment
		hasIn, hasOut, hasBlock bool
	)
	s := scanner{text: text}
	err := s.line(func(key []byte) (err *fieldError) {
		switch string(key) {
		case "timestamp":
			m.hasTime = true
			m.time, m.timeText, err = s.time(p.unit)
		case "delay":
			m.hasDelay = true
			m.delay, _, err = s.time(p.unit)
		case "session_id":
			r.Session, err = s.name()
		case "input_length":
			hasIn = true
			r.InputLen, err = s.length(1)
		case "output_length":
			hasOut = true
			r.OutputLen, err = s.length(0)
		case "hash_ids":
			hasBlock = true
			p.ids, err = s.wholes(p.ids[:0], math.MaxUint64)
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case m.hasDelay && r.Session == "":
		return missing("session_id", "the session whose previous turn the delay follows")
	case !m.hasTime && !m.hasDelay:
		return missing("timestamp", "a timestamp, or a session_id and a delay")
	case !hasIn:
		return missing("input_length", "the number of prompt tokens")
	case !hasOut:
		return missing("output_length", "the number of generated tokens")
	case !hasBlock:
		return missing("hash_ids", "an id for each block of the prompt")
	}
	if err := blocksFit(len(p.ids), r.InputLen, p.b.w.BlockSize); err != nil {
		return err
	}
	if err := p.timing.place(&r, m, p.b.line); err != nil {
		return err
	}
	heads, err := p.b.ids.number(p.ids)
	if err != nil {
		return err.under("hash_ids")
	}
	r.prompt = &blockList{size: p.b.w.BlockSize, ids: heads}
	p.timing.done(&r, p.b.add(r), m, p.b.line)
	return nil
}

// blocksFit checks for an id for each block, the last of which may be partial.
func blocksFit(ids, tokens, size int) *fieldError {
	want := (tokens + size - 1) / size
	if ids == want {
		return nil
	}
	return &fieldError{
		field: "hash_ids",
		found: count(ids, "id"),
		want:  fmt.Sprintf("%s for %s of %d, or another block size", count(want, "id"), count(tokens, "token"), size),
	}
}

// name reads a name that may be given as text or as a whole number.
func (s *scanner) name() (string, *fieldError) {
	const want = "text in quotes or a whole number"
	if s.look() == '"' {
		text, err := s.str()
		return string(text), err
	}
	start := s.i
	text, err := s.number(want)
	if err != nil {
		return "", err
	}
	for i, c := range text {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			s.i = start
			return "", s.wrong(want)
		}
	}
	return string(text), nil
}
