// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// table reads the CSV formats that give lengths and times only: a header line,
// then a request a line. Columns are found by name, in any order; others are
// ignored.
type table struct {
	b       *builder
	columns lengthColumns
	parse   func(text []byte) (time.Duration, *fieldError) // of the time column
	sharing *sharing
	clock   clock
	header  bool // seen
	at      [4]int
	width   int
	first   time.Duration
	fields  [][]byte
}

// lengthColumns names the columns; session may be empty or absent.
type lengthColumns struct{ time, input, output, session string }

func (c lengthColumns) names() [4]string { return [4]string{c.time, c.input, c.output, c.session} }

var (
	azureColumns    = lengthColumns{time: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens"}
	burstGPTColumns = lengthColumns{time: "Timestamp", input: "Request tokens", output: "Response tokens", session: "Session ID"}
)

// newAzure reads the Azure format, whose times are dates in UTC. Arrivals count
// from the first request.
func newAzure(b *builder, o Options) parser {
	var start time.Time
	return &table{b: b, columns: azureColumns, sharing: newSharing(b, o.Sharing), parse: func(text []byte) (time.Duration, *fieldError) {
		at, ok := parseDate(string(text))
		if !ok {
			return 0, &fieldError{found: clip(text), want: "a time as 2023-11-16 18:17:03.9799600"}
		}
		if start.IsZero() {
			start = at
		}
		d := at.Sub(start) // at most 292 years either way
		if d > MaxTime {
			return 0, &fieldError{found: clip(text), want: "a time within 100 years of the first"}
		}
		return d, nil
	}}
}

// newBurstGPT reads the BurstGPT format, whose times are seconds. Arrivals count
// from the first request.
func newBurstGPT(b *builder, o Options) parser {
	return &table{b: b, columns: burstGPTColumns, sharing: newSharing(b, o.Sharing), parse: func(text []byte) (time.Duration, *fieldError) {
		return parseTime(text, o.TimeUnit)
	}}
}

// parseDate takes dates as in the files of 2023, and with an offset as in those
// of 2024.
func parseDate(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// detectHeader tells a CSV format by its header line.
func detectHeader(text []byte) (name, what string) {
	header := strings.ToLower(string(text[:min(len(text), 4096)]))
	switch {
	case strings.Contains(header, "contexttokens"):
		return "azure", ""
	case strings.Contains(header, "request tokens"):
		return "burstgpt", ""
	}
	return "", clip(text)
}

func (t *table) line(text []byte) *fieldError {
	t.fields = splitCSV(t.fields[:0], text)
	if !t.header {
		return t.readHeader()
	}
	if len(t.fields) != t.width {
		return &fieldError{
			found: count(len(t.fields), "column"),
			want:  fmt.Sprintf("%d as in the header", t.width),
			cut:   len(t.fields) < t.width,
		}
	}
	var r Request
	column := func(i int) []byte { return t.fields[t.at[i]] }
	var err *fieldError
	if r.Arrival, err = t.parse(column(0)); err != nil {
		return err.under(t.columns.time)
	}
	if r.InputLen, err = parseLength(column(1), 1); err != nil {
		return err.under(t.columns.input)
	}
	if r.OutputLen, err = parseLength(column(2), 0); err != nil {
		return err.under(t.columns.output)
	}
	if t.at[3] >= 0 {
		r.Session = string(column(3))
	}
	if err = t.clock.tick(r.Arrival, column(0), t.b.line); err != nil {
		return err.under(t.columns.time)
	}
	if len(t.b.w.Requests) == 0 {
		t.first = r.Arrival
	}
	r.Arrival -= t.first
	r.prompt = t.sharing.prompt(t.b)
	t.b.add(r)
	return nil
}

func (t *table) readHeader() *fieldError {
	for i, name := range t.columns.names() {
		t.at[i] = -1
		for k, field := range t.fields {
			if name != "" && strings.EqualFold(string(field), name) {
				t.at[i] = k
				break
			}
		}
		if t.at[i] < 0 && name != t.columns.session {
			return &fieldError{field: name, found: "no such column in the header", want: "one of this name"}
		}
	}
	t.header, t.width = true, len(t.fields)
	return nil
}

// splitCSV splits at commas outside of double quotes and trims blanks and the
// quotes around a field.
func splitCSV(dst [][]byte, text []byte) [][]byte {
	start, quoted := 0, false
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',' && !quoted:
			field := bytes.TrimSpace(text[start:i])
			if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
				field = field[1 : n-1]
			}
			dst = append(dst, field)
			start = i + 1
		case text[i] == '"':
			quoted = !quoted
		}
	}
	return dst
}

func parseLength(text []byte, least uint64) (int, *fieldError) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n < least || n > MaxLength {
		return 0, &fieldError{found: clip(text), want: fmt.Sprintf("a whole number from %d to %d", least, MaxLength)}
	}
	return int(n), nil
}
