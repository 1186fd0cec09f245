// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/treecore/treecore/tree"
)

// fields reads the fields of a JSON object one by one. The first mistake is kept,
// and names its field; fields that nobody has asked for are one.
type fields struct {
	path  string // before the names, as "sampling_params."
	raw   map[string]json.RawMessage
	asked map[string]bool
	err   *apiError
}

// readBody reads a request's body, which must be one JSON object.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (*fields, *apiError) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.opts.SlowClient)) // a recorder in tests has none
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opts.MaxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &apiError{
			status: http.StatusRequestEntityTooLarge, kind: invalidRequest, code: "body_too_large",
			message: fmt.Sprintf("the body is larger than %d bytes: send less, or raise --max-body", large.Limit),
		}
	case err != nil:
		return nil, badField("", "the body cannot be read, send it whole within %v: %v", s.opts.SlowClient, err)
	}
	return parseObject("", b)
}

func parseObject(path string, b []byte) (*fields, *apiError) {
	f := &fields{path: path, asked: map[string]bool{}}
	where := strings.TrimSuffix(path, ".")
	if err := json.Unmarshal(b, &f.raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, badField(where, "not JSON at byte %d: %v", syntax.Offset, err)
		}
		return nil, badField(where, "must be a JSON object")
	}
	if f.raw == nil {
		return nil, badField(where, "must be a JSON object, not null")
	}
	return f, nil
}

// has reports whether a field is there and not null.
func (f *fields) has(name string) bool {
	f.asked[name] = true
	v, ok := f.raw[name]
	return ok && !isNull(v)
}

func isNull(v json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(v), []byte("null")) }

func (f *fields) bad(name, format string, args ...any) {
	if f.err == nil {
		f.err = badField(f.path+name, format, args...)
	}
}

// read reads a field into a variable, which is left alone if there is none.
func (f *fields) read(name string, into any, what string) bool {
	if !f.has(name) {
		return false
	}
	if err := json.Unmarshal(f.raw[name], into); err != nil {
		f.bad(name, "is %s, must be %s", short(f.raw[name]), what)
		return false
	}
	return true
}

func (f *fields) text(name string) (v string, given bool) {
	given = f.read(name, &v, "a string")
	return v, given
}

func (f *fields) boolean(name string) (v bool) {
	f.read(name, &v, "true or false")
	return v
}

// integer reads a whole number of a range.
func (f *fields) integer(name string, least, most, otherwise int64) int64 {
	v := otherwise
	what := fmt.Sprintf("a whole number from %d to %d", least, most)
	if f.read(name, &v, what) && (v < least || v > most) {
		f.bad(name, "is %d, must be %s", v, what)
	}
	return v
}

func (f *fields) number(name string, least, most, otherwise float64) float64 {
	v := otherwise
	what := fmt.Sprintf("a number from %g to %g", least, most)
	if f.read(name, &v, what) && !(v >= least && v <= most) {
		f.bad(name, "is %g, must be %s", v, what)
	}
	return v
}

// object reads a field that is an object; an empty one if it is not there.
func (f *fields) object(name string) *fields {
	empty := &fields{path: f.path + name + ".", asked: map[string]bool{}}
	if !f.has(name) {
		return empty
	}
	o, err := parseObject(f.path+name+".", f.raw[name])
	if err != nil {
		if f.err == nil {
			f.err = err
		}
		return empty
	}
	return o
}

// texts reads a string or a list of strings.
func (f *fields) texts(name string, most int) (out []string) {
	if !f.has(name) {
		return nil
	}
	var one string
	if json.Unmarshal(f.raw[name], &one) == nil {
		return []string{one}
	}
	var items []*string // so that null is told from ""
	const what = "a string or a list of strings"
	if !f.read(name, &items, what) {
		return nil
	}
	for _, s := range items {
		if s == nil {
			f.bad(name, "holds null, must be %s", what)
			return nil
		}
		out = append(out, *s)
	}
	if len(out) > most {
		f.bad(name, "has %d strings, at most %d are taken", len(out), most)
	}
	return out
}

// tokens reads a list of token ids; limit 0: of 32 bits.
func (f *fields) tokens(name string, v json.RawMessage, limit int) []tree.Token {
	var ids []int64
	// The decoder would take null for 0.
	if err := json.Unmarshal(v, &ids); err != nil || ids == nil || bytes.Contains(v, []byte("null")) {
		f.bad(name, "is %s, must be a list of whole numbers", short(v))
		return nil
	}
	out, err := tree.TokensOf(ids)
	var wrong *tree.ArgumentError
	if errors.As(err, &wrong) {
		f.bad(name, "%s", wrong.Problem)
		return nil
	}
	for i, t := range out {
		if limit > 0 && int64(t) >= int64(limit) {
			f.bad(name, "position %d holds %d: the model's ids are 0 to %d", i, t, limit-1)
			return nil
		}
	}
	return out
}

// ignore names fields that change nothing here and may have any value.
func (f *fields) ignore(names ...string) {
	for _, n := range names {
		f.asked[n] = true
	}
}

// neutral names a field that is taken only with values that ask for nothing.
func (f *fields) neutral(name string, values ...string) {
	if !f.has(name) {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, f.raw[name]) == nil && slices.Contains(values, compact.String()) {
		return
	}
	f.bad(name, "is %s, which this server does not offer: leave it out", short(f.raw[name]))
}

// end returns the first mistake; a field that nobody has asked for is one.
func (f *fields) end() *apiError {
	if f.err != nil {
		return f.err
	}
	for _, name := range slices.Sorted(maps.Keys(f.raw)) {
		if !f.asked[name] {
			return badField(f.path+short([]byte(name)), "there is no such field: leave it out, or look at its spelling")
		}
	}
	return nil
}

// short shows a value in a message.
func short(v []byte) string {
	const most = 60
	if len(v) > most {
		v = append(append([]byte(nil), v[:most]...), "..."...)
	}
	return strings.ToValidUTF8(string(v), "?")
}
