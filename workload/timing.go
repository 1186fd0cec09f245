// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"
)

// clock checks that times do not go backwards.
type clock struct {
	last time.Duration
	text string
	line int
}

// tick takes the time of a line, as a duration and as it is written.
func (c *clock) tick(t time.Duration, text []byte, line int) *fieldError {
	if t < c.last {
		return &fieldError{
			found: clip(text),
			want:  fmt.Sprintf("at least %s as on line %d: times must not go backwards", c.text, c.line),
		}
	}
	if t > c.last || c.line == 0 {
		*c = clock{last: t, text: clip(text), line: line}
	}
	return nil
}

// timing places requests in time for the formats that give either a time, or a
// delay after the previous turn of the session.
type timing struct {
	all   clock            // of requests without a session
	turns map[string]*turn // by session
}

// turn is the latest request of a session.
type turn struct {
	index   int
	arrival time.Duration
	clock   clock
}

// moment is what a line says about its time.
type moment struct {
	hasTime, hasDelay bool
	time, delay       time.Duration
	timeText          []byte
}

// place fills in Arrival, After and Think, and checks the order. A request with
// a delay, or without a time, waits for the previous turn of its session; other
// requests start at their time. Nothing is remembered until done is called.
func (t *timing) place(r *Request, m moment, line int) *fieldError {
	last := t.turns[r.Session] // nil without a session
	if m.hasTime {
		c := t.all
		if last != nil {
			c = last.clock
		} else if r.Session != "" {
			c = clock{}
		}
		if err := c.tick(m.time, m.timeText, line); err != nil {
			return err.under("timestamp")
		}
		r.Arrival = m.time
	}
	switch {
	case last != nil && (m.hasDelay || !m.hasTime):
		r.After, r.Think = []int{last.index}, m.delay
		if !m.hasTime {
			r.Arrival = last.arrival + m.delay
		}
	case !m.hasTime:
		r.Arrival = m.delay
	}
	if r.Arrival > MaxTime {
		return &fieldError{field: "delay", found: "a session of more than 100 years", want: "shorter delays"}
	}
	return nil
}

// done remembers a request that was placed and got its index.
func (t *timing) done(r *Request, index int, m moment, line int) {
	if r.Session == "" {
		if m.hasTime {
			_ = t.all.tick(m.time, m.timeText, line)
		}
		return
	}
	if t.turns == nil {
		t.turns = map[string]*turn{}
	}
	last := t.turns[r.Session]
	if last == nil {
		last = &turn{}
		t.turns[r.Session] = last
	}
	last.index, last.arrival = index, r.Arrival
	if m.hasTime {
		_ = last.clock.tick(m.time, m.timeText, line)
	}
}
