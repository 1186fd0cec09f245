// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/treecore/treecore/tree"
)

// RunScripts runs every script below dir against machines that newMachine
// makes. A script is a datadriven file; its directives are
//
//	new OPTIONS     a story about a fresh machine; the options are written as in
//	                the header of a log and default to plain pages of one token
//	run             the same story goes on
//	options OPTIONS the error that these options give, or ok
//	parse           each line of the input as a call of a log, rewritten
//	                canonically, or the error of reading it
//
// The input of new and run are the lines of a [Story], the expected output its
// answers. Files whose name ends in _host.txt need a [HostDoor], those in the
// directory host a [HostMachine]; on a machine without one they are skipped by
// name.
//
// The flag -rewrite of go test writes the outputs into the files.
func RunScripts(t *testing.T, dir string, newMachine func(tree.Options) (Machine, error)) {
	t.Helper()
	files, err := scriptFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("there are no scripts below %s", dir)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))), ".txt")
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(path, "_host.txt") && !hasDoor(newMachine) {
				t.Skipf("%s: the machine has no test door for host values", path)
			}
			if strings.HasPrefix(name, "host/") && !hasHost(newMachine) {
				t.Skipf("%s: the machine has no host tier", path)
			}
			runScript(t, path, newMachine)
		})
	}
}

func scriptFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".txt") {
			files = append(files, path)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

func hasDoor(newMachine func(tree.Options) (Machine, error)) bool {
	m, err := newMachine(tree.Options{})
	if err != nil {
		return false
	}
	_, ok := m.(HostDoor)
	return ok
}

func hasHost(newMachine func(tree.Options) (Machine, error)) bool {
	m, err := newMachine(tree.Options{})
	if err != nil {
		return false
	}
	_, ok := m.(HostMachine)
	return ok
}

func runScript(t *testing.T, path string, newMachine func(tree.Options) (Machine, error)) {
	var story *Story
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "options":
			o, err := directiveOptions(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if _, err = newMachine(o); err != nil {
				return configText(err)
			}
			return "ok\n"
		case "parse":
			return parseText(d.Input)
		case "new":
			o, err := directiveOptions(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			m, err := newMachine(o)
			if err != nil {
				return configText(err)
			}
			story = NewStory(o, m)
		case "run":
			if story == nil {
				d.Fatalf(t, "run needs a story: begin with new")
			}
		default:
			d.Fatalf(t, "unknown directive %q: use new, run, options or parse", d.Cmd)
		}
		var out strings.Builder
		for line := range strings.SplitSeq(d.Input, "\n") {
			text, err := story.Do(line)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			if text != "" {
				out.WriteString(text + "\n")
			}
		}
		return out.String()
	})
}

// directiveOptions reads the arguments of new and options; Full alone, pages of
// one and lru are the defaults of tree.Options.
func directiveOptions(d *datadriven.TestData) (tree.Options, error) {
	var fields []rawField
	for _, a := range d.CmdArgs {
		f := rawField{name: a.Key, value: strings.Join(a.Vals, ","), isFlag: len(a.Vals) == 0}
		fields = append(fields, f)
	}
	return parseOptions(fields)
}

// configText lists the fields of all configuration errors that err joins, with
// what is allowed for names.
func configText(err error) string {
	var lines []string
	var walk func(error)
	walk = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		var c *tree.ConfigError
		if errors.As(err, &c) {
			// The words are free; the field, the value and the list of names
			// are not.
			value, _, _ := strings.Cut(c.Value, " for ")
			line := fmt.Sprintf("config error: %s is %s", c.Field, value)
			if c.Field == "Policy.Name" {
				line += ": allowed is " + c.Allowed
			}
			lines = append(lines, line)
			return
		}
		lines = append(lines, "error: "+err.Error())
	}
	walk(err)
	return strings.Join(lines, "\n") + "\n"
}

func parseText(input string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(input, "\n") {
		c, err := ParseCall(line)
		switch {
		case err != nil:
			fmt.Fprintf(&out, "error: %v\n", err)
		case c.Verb != "":
			fmt.Fprintln(&out, c.Format())
		}
	}
	return out.String()
}
