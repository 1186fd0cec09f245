// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// scanner walks through one line of JSON. It accepts what encoding/json accepts
// and says precisely where a line is wrong. Methods for values start at the
// value, after white space, and end behind it.
type scanner struct {
	text  []byte
	i     int
	depth int
}

const maxDepth = 10000 // as in encoding/json

// look gives the next byte, or 0 at the end (a 0 byte is wrong everywhere too).
func (s *scanner) look() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.text) {
		switch s.text[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// wrong says that something else stands here than what is wanted.
func (s *scanner) wrong(want string) *fieldError {
	if s.i >= len(s.text) {
		return &fieldError{found: "the end of the line", want: want, cut: true}
	}
	end := s.i + 1
	switch s.text[s.i] {
	case '{':
		return &fieldError{found: "an object", want: want}
	case '[':
		return &fieldError{found: "an array", want: want}
	case '"':
		for end < len(s.text) && (s.text[end] != '"' || s.text[end-1] == '\\') {
			end++
		}
		end = min(end+1, len(s.text))
	default:
		end = s.i + len(s.word())
	}
	return &fieldError{found: clip(s.text[s.i:end]), want: want}
}

// wrongValue is wrong where any value may stand: the beginning of a word is then
// the end of a line that is cut.
func (s *scanner) wrongValue(want string) *fieldError {
	err := s.wrong(want)
	if word := string(s.word()); s.i+len(word) == len(s.text) &&
		(cutWord(word, "true") || cutWord(word, "false") || cutWord(word, "null")) {
		err.found, err.cut = "the end of the line", true
	}
	return err
}

// word gives what stands here up to something that ends a value, but at least a
// byte.
func (s *scanner) word() []byte {
	rest := s.text[s.i:]
	if len(rest) == 0 {
		return nil
	}
	end := 1
	for end < len(rest) && bytes.IndexByte([]byte(",:{}[]\" \t\r\n"), rest[end]) < 0 {
		end++
	}
	return rest[:end]
}

func cutWord(part, whole string) bool {
	return len(part) < len(whole) && whole[:len(part)] == part
}

// line reads a whole line: one object and nothing behind it.
func (s *scanner) line(member func(key []byte) *fieldError) *fieldError {
	s.space()
	if s.look() != '{' {
		return s.wrong("a JSON object")
	}
	if err := s.object(member); err != nil {
		return err
	}
	if s.space(); s.i < len(s.text) {
		return s.wrong("one JSON object a line and nothing behind it")
	}
	return nil
}

func (s *scanner) enter() *fieldError {
	if s.depth++; s.depth > maxDepth {
		return &fieldError{found: "more than " + strconv.Itoa(maxDepth) + " levels of brackets", want: "fewer"}
	}
	return nil
}

// object calls member with each key; member must read the value.
func (s *scanner) object(member func(key []byte) *fieldError) *fieldError {
	if s.look() != '{' {
		return s.wrong("an object")
	}
	if err := s.enter(); err != nil {
		return err
	}
	s.i++
	for first := true; ; first = false {
		s.space()
		if first && s.look() == '}' {
			break
		}
		if s.look() != '"' {
			return s.wrong("a field's name in quotes")
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if s.space(); s.look() != ':' {
			return s.wrong("a colon").under(fieldName(key))
		}
		s.i++
		s.space()
		if err := member(key); err != nil {
			return err.under(fieldName(key))
		}
		s.space()
		if s.look() == '}' {
			break
		}
		if s.look() != ',' {
			return s.wrong("a comma or a closing brace").under(fieldName(key))
		}
		s.i++
	}
	s.i++
	s.depth--
	return nil
}

// array calls item for each element; item must read it.
func (s *scanner) array(item func(i int) *fieldError) *fieldError {
	if s.look() != '[' {
		return s.wrong("an array")
	}
	if err := s.enter(); err != nil {
		return err
	}
	s.i++
	for n := 0; ; n++ {
		s.space()
		if n == 0 && s.look() == ']' {
			break
		}
		if err := item(n); err != nil {
			return err.under("[" + strconv.Itoa(n) + "]")
		}
		s.space()
		if s.look() == ']' {
			break
		}
		if s.look() != ',' {
			return s.wrong("a comma or a closing bracket").under("[" + strconv.Itoa(n) + "]")
		}
		s.i++
	}
	s.i++
	s.depth--
	return nil
}

// skip reads any value.
func (s *scanner) skip() *fieldError {
	switch c := s.look(); {
	case c == '{':
		return s.object(func([]byte) *fieldError { return s.skip() })
	case c == '[':
		return s.array(func(int) *fieldError { return s.skip() })
	case c == '"':
		_, err := s.raw()
		return err
	case c == '-' || c >= '0' && c <= '9':
		_, err := s.number("a number")
		return err
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.i:], []byte(word)) {
			s.i += len(word)
			return nil
		}
	}
	return s.wrongValue("a JSON value")
}

// null reads a null if there is one.
func (s *scanner) null() bool {
	if bytes.HasPrefix(s.text[s.i:], []byte("null")) {
		s.i += 4
		return true
	}
	return false
}

// raw reads a string and gives it with its quotes.
func (s *scanner) raw() ([]byte, *fieldError) {
	start := s.i
	if s.look() != '"' {
		return nil, s.wrongValue("text in quotes")
	}
	for s.i++; s.i < len(s.text); s.i++ {
		switch c := s.text[s.i]; {
		case c == '"':
			s.i++
			return s.text[start:s.i], nil
		case c < ' ':
			return nil, &fieldError{found: fmt.Sprintf("the control character %#02x in quotes", c), want: "it escaped"}
		case c == '\\':
			s.i++
			switch e := s.look(); e {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for k := 1; k <= 4; k++ {
					if s.i++; s.i < len(s.text) && !isHex(s.text[s.i]) {
						return nil, &fieldError{found: "a broken \\u escape", want: "four hexadecimal digits after \\u"}
					}
				}
			default:
				if s.i < len(s.text) {
					return nil, &fieldError{found: "the escape \\" + clip(s.text[s.i:s.i+1]), want: "one that JSON knows"}
				}
			}
		}
	}
	s.i = len(s.text)
	return nil, s.wrong("the closing quote")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// str reads a string.
func (s *scanner) str() ([]byte, *fieldError) {
	raw, err := s.raw()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, &fieldError{found: clip(raw), want: "text in quotes"}
	}
	return []byte(text), nil
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.text) && s.text[s.i] >= '0' && s.text[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

// number reads a number as text.
func (s *scanner) number(want string) ([]byte, *fieldError) {
	start := s.i
	fail := func() ([]byte, *fieldError) {
		if s.i < len(s.text) {
			s.i = start
		}
		return nil, s.wrongValue(want)
	}
	if s.look() == '-' {
		s.i++
	}
	if s.look() == '0' {
		s.i++
	} else if s.digits() == 0 {
		return fail()
	}
	if s.look() == '.' {
		if s.i++; s.digits() == 0 {
			return fail()
		}
	}
	if c := s.look(); c == 'e' || c == 'E' {
		s.i++
		if c := s.look(); c == '+' || c == '-' {
			s.i++
		}
		if s.digits() == 0 {
			return fail()
		}
	}
	if s.i < len(s.text) && bytes.IndexByte([]byte(",}] \t\r\n"), s.text[s.i]) < 0 {
		s.i = start // 12abc, 007
		return nil, s.wrong(want)
	}
	return s.text[start:s.i], nil
}

// whole reads a whole number from least to most.
func (s *scanner) whole(least, most uint64) (uint64, *fieldError) {
	start := s.i
	if n, ok := s.fastWhole(); ok && n >= least && n <= most {
		return n, nil
	}
	s.i = start
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	text, err := s.number(want)
	if err != nil {
		return 0, err
	}
	n, bad := strconv.ParseUint(string(text), 10, 64)
	if bad != nil || n < least || n > most {
		return 0, &fieldError{found: clip(text), want: want}
	}
	return n, nil
}

// fastWhole reads up to 18 digits that nothing but a separator follows.
func (s *scanner) fastWhole() (n uint64, ok bool) {
	i := s.i
	for ; i < len(s.text) && i-s.i < 18; i++ {
		d := s.text[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + uint64(d)
	}
	if i == s.i || s.text[s.i] == '0' && i > s.i+1 || i == len(s.text) {
		return 0, false
	}
	switch s.text[i] {
	case ',', ']', '}', ' ':
		s.i = i
		return n, true
	}
	return 0, false
}

// wholes appends an array of whole numbers from 0 to most.
func (s *scanner) wholes(dst []uint64, most uint64) ([]uint64, *fieldError) {
	err := s.array(func(int) *fieldError {
		n, err := s.whole(0, most)
		dst = append(dst, n)
		return err
	})
	return dst, err
}

// length reads a number of tokens.
func (s *scanner) length(least int) (int, *fieldError) {
	n, err := s.whole(uint64(least), MaxLength)
	return int(n), err
}

// time reads a time in the given unit, and gives its text too.
func (s *scanner) time(unit time.Duration) (time.Duration, []byte, *fieldError) {
	text, err := s.number("a number: a time in units of " + unit.String())
	if err != nil {
		return 0, nil, err
	}
	d, err := parseTime(text, unit)
	return d, text, err
}

// parseTime turns a number that stands for a time into a duration.
func parseTime(text []byte, unit time.Duration) (time.Duration, *fieldError) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && n >= 0 && n <= int64(MaxTime/unit) {
		return time.Duration(n) * unit, nil
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if d := math.Round(n * float64(unit)); err == nil && n >= 0 && d <= float64(MaxTime) {
		return time.Duration(d), nil
	}
	return 0, &fieldError{
		found: clip(text),
		want:  fmt.Sprintf("a time in units of %v, not negative and at most 100 years", unit),
	}
}
