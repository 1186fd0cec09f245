// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

const headerStart = "treecore-log 1"

// FormatHeader returns the first line of a log, without a line end.
func FormatHeader(o tree.Options) string {
	var b strings.Builder
	policy := o.Policy.Name
	if _, err := parseString(policy); err != nil || strings.HasPrefix(policy, `"`) {
		policy = strconv.Quote(policy)
	}
	fmt.Fprintf(&b, "%s components=%s page=%d window=%d grid=%d max-states=%d eagle=%t policy=%s",
		headerStart, o.Components, o.PageSize, o.SlidingWindow, o.CheckpointGrid, o.MaxStatesPerPath, o.Eagle, policy)
	for _, name := range slices.Sorted(maps.Keys(o.Policy.Params)) {
		fmt.Fprintf(&b, " %s=%d", name, o.Policy.Params[name])
	}
	if o.Events {
		b.WriteString(" events")
	}
	if o.Sessions {
		b.WriteString(" sessions")
	}
	return b.String()
}

// ParseHeader reads the first line of a log. It checks the form only; whether
// the options make sense is for the core to say. Errors are *ParseError.
func ParseHeader(line string) (tree.Options, error) {
	rest, ok := strings.CutPrefix(strings.TrimRight(line, " \t\r\n"), headerStart)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return tree.Options{}, &ParseError{Problem: "this is no log that this version reads", Remedy: `the first line begins with "` + headerStart + `"`}
	}
	_, fields, err := splitLine("options " + rest)
	if err != nil {
		return tree.Options{}, err
	}
	return parseOptions(fields)
}

func parseOptions(fields []rawField) (tree.Options, error) {
	var o tree.Options
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.name] {
			return tree.Options{}, &ParseError{Field: f.name, Problem: "the option stands twice", Remedy: "keep one"}
		}
		seen[f.name] = true
		if err := setOption(&o, f); err != nil {
			return tree.Options{}, &ParseError{Field: f.name, Problem: err.Error(), Remedy: "see the header in the package comment of ops"}
		}
	}
	return o, nil
}

func setOption(o *tree.Options, f rawField) (err error) {
	if f.isFlag {
		switch f.name {
		case "events":
			o.Events = true
		case "sessions":
			o.Sessions = true
		default:
			return fmt.Errorf("the only flags are events and sessions")
		}
		return nil
	}
	switch f.name {
	case "components":
		o.Components, err = parseSet(f.value)
	case "page":
		o.PageSize, err = parseInt(f.value)
	case "window":
		o.SlidingWindow, err = parseInt(f.value)
	case "grid":
		o.CheckpointGrid, err = parseInt(f.value)
	case "max-states":
		o.MaxStatesPerPath, err = parseInt(f.value)
	case "eagle":
		if f.value != "true" && f.value != "false" {
			return fmt.Errorf("%q is neither true nor false", f.value)
		}
		o.Eagle = f.value == "true"
	case "policy":
		o.Policy.Name, err = parseString(f.value)
	case "events", "sessions":
		return fmt.Errorf("it is a flag and takes no value")
	default:
		if !isName(f.name) {
			return fmt.Errorf("this is no name of a policy parameter")
		}
		var v int
		if v, err = parseInt(f.value); err == nil {
			if o.Policy.Params == nil {
				o.Policy.Params = map[string]int{}
			}
			o.Policy.Params[f.name] = v
		}
	}
	return err
}
