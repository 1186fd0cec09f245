// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"strconv"
	"time"
)

// tokens reads the plain token format: a JSON object a line, with tokens (the
// prompt) and, all optional, output (the generated tokens) or output_length,
// timestamp (milliseconds), delay (milliseconds after the previous turn),
// session, id, extra_key and cache_salt. A request with a delay, or without a
// timestamp, waits for the previous turn of its session.
type tokens struct {
	b      *builder
	unit   time.Duration
	timing timing
	last   time.Duration // of the latest request with a time
}

func newTokens(b *builder, o Options) parser {
	return &tokens{b: b, unit: o.TimeUnit}
}

func (p *tokens) line(text []byte) *fieldError {
	var (
		r                            Request
		m                            moment
		prompt, output               tokenList
		hasPrompt, hasOutput, hasLen bool
	)
	s := scanner{text: text}
	err := s.line(func(key []byte) (err *fieldError) {
		switch string(key) {
		case "tokens":
			hasPrompt = true
			prompt, err = s.tokens()
		case "output":
			hasOutput = true
			output, err = s.tokens()
		case "output_length":
			hasLen = true
			r.OutputLen, err = s.length(0)
		case "timestamp":
			m.hasTime = true
			m.time, m.timeText, err = s.time(p.unit)
		case "delay":
			m.hasDelay = true
			m.delay, _, err = s.time(p.unit)
		case "session":
			r.Session, err = s.name()
		case "id":
			r.ID, err = s.name()
		case "extra_key":
			r.ExtraKey, r.HasExtraKey, err = s.optional()
		case "cache_salt":
			r.Salt, _, err = s.optional()
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !hasPrompt:
		return missing("tokens", "the prompt's tokens")
	case len(prompt) == 0 || len(prompt) > MaxLength:
		return &fieldError{field: "tokens", found: count(len(prompt), "token"), want: "from 1 to " + count(MaxLength, "token")}
	case len(output) > MaxLength:
		return &fieldError{field: "output", found: count(len(output), "token"), want: "at most " + count(MaxLength, "token")}
	case hasOutput && hasLen && r.OutputLen != len(output):
		return &fieldError{
			field: "output_length",
			found: strconv.Itoa(r.OutputLen) + " beside an output of " + count(len(output), "token"),
			want:  "the same number, or one of the two fields",
		}
	case m.hasDelay && r.Session == "":
		return missing("session", "the session whose previous turn the delay follows")
	}
	if r.Session == "" && !m.hasTime {
		// No time given: together with the request before.
		r.Arrival = p.last
	} else if err := p.timing.place(&r, m, p.b.line); err != nil {
		return err
	}
	r.InputLen, r.prompt = len(prompt), prompt
	if hasOutput {
		r.OutputLen, r.output = len(output), output
	}
	index := p.b.add(r)
	p.timing.done(&r, index, m, p.b.line)
	if m.hasTime {
		p.last = m.time
	}
	return nil
}

// tokens reads an array of tokens.
func (s *scanner) tokens() (tokenList, *fieldError) {
	list := tokenList{}
	err := s.array(func(int) *fieldError {
		n, err := s.whole(0, math.MaxUint32)
		list = append(list, uint32(n))
		return err
	})
	return list, err
}

// optional reads text or a null.
func (s *scanner) optional() (text string, given bool, err *fieldError) {
	if s.null() {
		return "", false, nil
	}
	raw, err := s.str()
	return string(raw), true, err
}
