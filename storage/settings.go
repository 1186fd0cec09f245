// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Settings reads the settings of a URL's query and collects what is wrong with
// them. Each setting is asked for once; Err then reports all bad and all unknown
// ones.
type Settings struct {
	values url.Values
	known  []string
	errs   []error
}

// NewSettings reads the query of a URL.
func NewSettings(u *url.URL) *Settings {
	s := &Settings{}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		s.Bad("url", "with a query that cannot be read", "name=value pairs joined by &")
	}
	s.values = values
	return s
}

// Bad notes a bad setting.
func (s *Settings) Bad(field, value, allowed string) {
	s.errs = append(s.errs, &ConfigError{Field: field, Value: value, Allowed: allowed})
}

// Text returns a setting as it is, or a default if it is absent.
func (s *Settings) Text(name, otherwise string) string {
	s.known = append(s.known, name)
	if !s.values.Has(name) {
		return otherwise
	}
	if len(s.values[name]) > 1 {
		s.Bad(name, "given more than once", "one value")
	}
	return s.values.Get(name)
}

// Bool returns a setting that is 0, 1, false or true.
func (s *Settings) Bool(name string, otherwise bool) bool {
	v := s.Text(name, strconv.FormatBool(otherwise))
	b, err := strconv.ParseBool(v)
	if err != nil {
		s.Bad(name, strconv.Quote(v), "0 or 1")
	}
	return b
}

// Duration returns a setting such as 24h or 500ms, at least 0.
func (s *Settings) Duration(name string, otherwise time.Duration) time.Duration {
	v := s.Text(name, otherwise.String())
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		s.Bad(name, strconv.Quote(v), "a time such as 24h, 90s or 500ms")
	}
	return d
}

// Int returns a whole number between least and most.
func (s *Settings) Int(name string, otherwise, least, most int) int {
	v := s.Text(name, strconv.Itoa(otherwise))
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		s.Bad(name, strconv.Quote(v), fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n
}

// Bytes returns a size such as 16GiB or 500MB, at least least bytes.
func (s *Settings) Bytes(name string, otherwise, least int64) int64 {
	v := s.Text(name, strconv.FormatInt(otherwise, 10))
	n, ok := parseBytes(v)
	if !ok || n < least {
		s.Bad(name, strconv.Quote(v), fmt.Sprintf("a size of at least %d bytes, such as 16GiB, 500MB or 4096", least))
	}
	return n
}

var byteUnits = []struct {
	suffix string
	size   float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

func parseBytes(v string) (int64, bool) {
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(v, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(digits, 64)
		if n *= unit.size; err != nil || math.IsNaN(n) || n < 0 || n >= math.MaxInt64 {
			return 0, false
		}
		return int64(n), true
	}
	return 0, false
}

// Err returns all that was wrong, or nil. Settings that nobody asked for are
// unknown.
func (s *Settings) Err() error {
	allowed := make(map[string]bool, len(s.known))
	for _, k := range s.known {
		allowed[k] = true
	}
	pairs := strings.Split(s.values.Encode(), "&") // in the order of their names
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err == nil && name != "" && !allowed[name] {
			s.Bad("setting "+strconv.Quote(name), "unknown", "one of "+strings.Join(s.known, ", "))
			allowed[name] = true
		}
	}
	return errors.Join(s.errs...)
}
