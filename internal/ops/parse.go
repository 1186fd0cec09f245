// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// MaxListLen is the greatest number of tokens or slots that one list may name.
const MaxListLen = 1 << 22

// ParseError reports a line that is not in the grammar.
type ParseError struct {
	Line    int    // from 1; 0 for a line on its own
	Verb    string // "" if the line got no further
	Field   string // "" if the problem is not one field's
	Problem string // what is wrong
	Remedy  string // what to write
}

func (e *ParseError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Verb != "" {
		b.WriteString(e.Verb + ": ")
	}
	if e.Field != "" {
		b.WriteString("field " + e.Field + ": ")
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString(": " + e.Remedy)
	}
	return b.String()
}

// rawField is one field of a line, its value not looked at yet.
type rawField struct {
	name, value string
	isFlag      bool
}

func (f rawField) String() string {
	if f.isFlag {
		return f.name
	}
	return f.name + "=" + f.value
}

// splitLine cuts a line into its verb and fields. The verb is "" for an empty
// line and for a comment.
func splitLine(line string) (verb string, fields []rawField, err error) {
	rest := strings.TrimLeft(strings.TrimRight(line, " \t\r\n"), " \t")
	if rest == "" || rest[0] == '#' {
		return "", nil, nil
	}
	verb, rest = cutWord(rest)
	if !isName(verb) {
		return "", nil, &ParseError{Problem: fmt.Sprintf("%q is no verb", verb), Remedy: "begin the line with a verb such as match"}
	}
	for {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return verb, fields, nil
		}
		end := strings.IndexAny(rest, " \t=")
		if end < 0 || rest[end] != '=' {
			var word string
			word, rest = cutWord(rest)
			fields = append(fields, rawField{name: word, isFlag: true})
			continue
		}
		f := rawField{name: rest[:end]}
		rest = rest[end+1:]
		if strings.HasPrefix(rest, `"`) {
			q, qerr := strconv.QuotedPrefix(rest)
			if qerr != nil {
				return verb, nil, &ParseError{Verb: verb, Field: f.name, Problem: "the quoted string does not end or has a bad escape", Remedy: `write it as Go does, for example "a\tb"`}
			}
			f.value, rest = q, rest[len(q):]
			if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return verb, nil, &ParseError{Verb: verb, Field: f.name, Problem: "something follows the closing quote", Remedy: "put a space between fields"}
			}
		} else {
			f.value, rest = cutWord(rest)
		}
		fields = append(fields, f)
	}
}

func cutWord(s string) (word, rest string) {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if (ch < 'a' || ch > 'z') && (i == 0 || ch != '-' && ch != '_' && (ch < '0' || ch > '9')) {
			return false
		}
	}
	return s != ""
}

// ParseCall reads one line. The verb of the call is "" for an empty line and
// for a comment. Errors are *ParseError.
func ParseCall(line string) (Call, error) {
	verb, fields, err := splitLine(line)
	if err != nil || verb == "" {
		return Call{}, err
	}
	return parseFields(verb, fields)
}

func parseFields(verb string, fields []rawField) (Call, error) {
	c := Call{Verb: verb, Switches: tree.Switches{WriteThroughThreshold: defaultThreshold}}
	spec := findVerb(verb)
	if spec == nil {
		return Call{}, &ParseError{Verb: verb, Problem: "no such verb", Remedy: "see the tables of verbs in the package comment of ops"}
	}
	seen := make([]bool, len(spec.fields))
	for _, f := range fields {
		i := spec.index(f.name)
		if i < 0 {
			return Call{}, &ParseError{Verb: verb, Field: f.name, Problem: "this verb has no such field", Remedy: "allowed: " + spec.fieldNames()}
		}
		fs := &spec.fields[i]
		if seen[i] {
			return Call{}, &ParseError{Verb: verb, Field: f.name, Problem: "the field stands twice", Remedy: "keep one"}
		}
		seen[i] = true
		if fs.flag != f.isFlag {
			remedy := "write " + f.name + "=value"
			if fs.flag {
				remedy = "write " + f.name + " alone"
			}
			return Call{}, &ParseError{Verb: verb, Field: f.name, Problem: "flag and value are mixed up", Remedy: remedy}
		}
		if perr := fs.parse(&c, f.value); perr != nil {
			return Call{}, &ParseError{Verb: verb, Field: f.name, Problem: perr.Error(), Remedy: "see the values in the package comment of ops"}
		}
	}
	for i, fs := range spec.fields {
		if !fs.optional && !seen[i] {
			return Call{}, &ParseError{Verb: verb, Field: fs.name, Problem: "the field is missing", Remedy: "add " + fs.name + "=value"}
		}
	}
	return c, nil
}
