// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// LineError says which line of a trace is wrong, and how.
type LineError struct {
	File  string // as given to Open or Read
	Line  int    // counted from 1, empty lines included
	Field string // the field's name or path; empty when the line as a whole is wrong
	Found string // what stands there
	Want  string // what would be right
}

// Error gives everything in one line.
func (e *LineError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s:%d: found %s, want %s", e.File, e.Line, e.Found, e.Want)
	}
	return fmt.Sprintf("%s:%d: field %q: found %s, want %s", e.File, e.Line, e.Field, e.Found, e.Want)
}

// fieldError is a LineError before the place is known. The functions that walk
// down a line return it, and each level adds its name in front of field.
type fieldError struct {
	field, found, want string
	cut                bool // the text ended where more had to follow
}

func (e *fieldError) at(file string, line int) *LineError {
	return &LineError{File: file, Line: line, Field: e.field, Found: e.found, Want: e.want}
}

// under puts a name in front of the field's path.
func (e *fieldError) under(name string) *fieldError {
	switch {
	case e.field == "":
		e.field = name
	case strings.HasPrefix(e.field, "["):
		e.field = name + e.field
	default:
		e.field = name + "." + e.field
	}
	return e
}

// fieldName gives a key as part of a path.
func fieldName(key []byte) string {
	if len(key) == 0 {
		return `""`
	}
	return clip(key)
}

func missing(field, want string) *fieldError {
	return &fieldError{field: field, found: "no such field", want: want}
}

// clip shortens text for an error message and escapes what would not show.
func clip(text []byte) string {
	const most = 40
	if len(text) == 0 {
		return "nothing"
	}
	rest := ""
	if len(text) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text, rest = text[:cut], "..."
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 || !strconv.IsGraphic(r) {
			quoted := strconv.QuoteToGraphic(string(text[:size]))
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.Write(text[:size])
		}
		text = text[size:]
	}
	return b.String() + rest
}

// count says "1 id", "2 ids".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// problems collects everything that is wrong with a set of parameters.
type problems []string

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Sprintf(format, args...))
}

// check adds a problem when value lies outside of least..most.
func (p *problems) check(name string, value, least, most int) {
	if value < least || value > most {
		p.add("%s is %d, must be from %d to %d", name, value, least, most)
	}
}

// err joins the problems in one line, or gives nil.
func (p problems) err(what string) error {
	if len(p) == 0 {
		return nil
	}
	return errors.New(what + ": " + strings.Join(p, "; "))
}
