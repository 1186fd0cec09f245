// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/treecore/treecore/tree"
)

// maxLineBytes bounds a line of a log: MaxListLen tokens written one by one.
const maxLineBytes = 64 << 20

// Replay makes a machine from the header of a log, runs its lines, and writes a
// transcript: each line as it is written canonically, and what it returned,
// indented by two spaces. A call that returns an error is part of the
// transcript and does not end it; refused counts them. The error of Replay is
// about the log itself (*ParseError with its line), the reader, the writer or
// the options.
func Replay(log io.Reader, newMachine func(tree.Options) (Machine, error), transcript io.Writer) (refused int, err error) {
	in := bufio.NewScanner(log)
	in.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	if !in.Scan() {
		if err := in.Err(); err != nil {
			return 0, err
		}
		return 0, &ParseError{Line: 1, Problem: "the log is empty", Remedy: `the first line begins with "` + headerStart + `"`}
	}
	options, err := ParseHeader(in.Text())
	if err != nil {
		return 0, atLine(err, 1)
	}
	m, err := newMachine(options)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(transcript)
	e := &Executor{Machine: m, Explain: true}
	fmt.Fprintln(out, FormatHeader(options))
	for line := 2; in.Scan(); line++ {
		c, err := ParseCall(in.Text())
		if err != nil {
			return refused, errors.Join(atLine(err, line), out.Flush())
		}
		if c.Verb == "" {
			continue
		}
		fmt.Fprintln(out, c.Format())
		answer := e.Run(&c)
		if strings.HasPrefix(answer, "error: ") {
			refused++
		}
		fmt.Fprintln(out, "  "+strings.ReplaceAll(answer, "\n", "\n  "))
	}
	return refused, errors.Join(in.Err(), out.Flush())
}

func atLine(err error, line int) error {
	var p *ParseError
	if errors.As(err, &p) {
		p.Line = line
	}
	return err
}
