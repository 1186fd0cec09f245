// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Open reads the trace in the file at path; "-" is the standard input. A
// gzip-compressed file is recognized by its first bytes. For errors see [Read].
func Open(path string, o Options) (*Workload, error) {
	if path == "-" {
		return Read(os.Stdin, "stdin", o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such trace file, check the path: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: the trace file cannot be opened, check its permissions: %w", path, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory, name a trace file in it", path)
	}
	return Read(f, path, o)
}

// Read reads a trace from r, gzip-compressed or not; name stands for the file in
// messages, and its base name becomes the workload's name. A wrong line gives a
// [*LineError]. Wrong options, a format that is not known, a damaged gzip stream
// and a file without requests give errors of one line each that say what to
// change.
func Read(r io.Reader, name string, o Options) (*Workload, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.MaxLineBytes == 0 {
		o.MaxLineBytes = defaultMaxLine
	}
	lines, err := newLineReader(r, name, o.MaxLineBytes)
	if err != nil {
		return nil, err
	}
	f := formatNamed(o.Format)
	if f == nil {
		if f, err = detect(lines); err != nil {
			return nil, err
		}
	}
	if err := o.validateFor(f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if o.TimeUnit == 0 {
		o.TimeUnit = f.unit
	}
	w := &Workload{
		Name:    strings.TrimSuffix(filepath.Base(name), ".gz"),
		Format:  f.name,
		Chained: o.Chained == Chained || o.Chained == FormatChaining && f.chained,
	}
	w.BlockSize = o.BlockSize
	if w.BlockSize == 0 {
		w.BlockSize = f.block
	}
	b := newBuilder(w, o.Limit)
	if err := readLines(lines, f.parser(b, o), b, o); err != nil {
		return nil, err
	}
	if len(w.Requests) == 0 {
		return nil, noRequests(name)
	}
	return w, nil
}

func noRequests(name string) error {
	return fmt.Errorf("%s: the file has no requests, name one that has", name)
}

// readLines feeds the parser until the file ends or the builder is full.
func readLines(lines *lineReader, p parser, b *builder, o Options) error {
	for !b.full() {
		text, whole, err := lines.next()
		switch {
		case err == io.EOF:
			return nil
		case err == errCut && o.TolerateCutLine:
			b.w.Truncated++
			return nil
		case err == errCut:
			return cutError(lines, "the end of a gzip stream that breaks off")
		case err != nil:
			return err
		}
		b.line = lines.n
		bad := p.line(text)
		switch {
		case bad == nil:
		case bad.cut && !whole && o.TolerateCutLine:
			b.w.Truncated++
			return nil
		case bad.cut && !whole:
			e := cutError(lines, "the end of the file inside a line")
			e.Field = bad.field
			return e
		default:
			return bad.at(lines.name, lines.n)
		}
	}
	if o.Limit == 0 {
		if _, _, err := lines.next(); err != io.EOF {
			return fmt.Errorf("%s:%d: more than %d requests, split the file or set a limit", lines.name, lines.n, maxRequests)
		}
	}
	return nil
}

func cutError(lines *lineReader, found string) *LineError {
	return &LineError{File: lines.name, Line: lines.n, Found: found, Want: "a whole line; a cut last line can be tolerated by a setting"}
}

// detect tells the format from the first line and leaves that line in place.
func detect(lines *lineReader) (*format, error) {
	text, err := lines.peek()
	switch {
	case err == io.EOF:
		return nil, noRequests(lines.name)
	case err == errCut:
		return nil, cutError(lines, "the end of a gzip stream that breaks off")
	case err != nil:
		return nil, err
	}
	name, what := detectLine(text)
	if name != "" {
		return formatNamed(name), nil
	}
	return nil, &LineError{
		File: lines.name, Line: lines.n, Found: what,
		Want: "a line of one of the formats " + strings.Join(Formats(), ", "),
	}
}

// detectLine gives the name of the format that the line belongs to, or else what
// the line looks like.
func detectLine(text []byte) (name, what string) {
	const texts = "texts as in sharegpt, which a tokenizer must turn into the tokens format first"
	s := scanner{text: text}
	switch s.space(); s.look() {
	case '{':
	case '[':
		if strings.Contains(string(text[:min(len(text), 4096)]), `"conversations"`) {
			return "", texts
		}
		return "", "a JSON array"
	default:
		return detectHeader(text)
	}
	keys := map[string]bool{}
	// A broken line is reported by the reader of the format, if its keys so far
	// tell which.
	_ = s.object(func(key []byte) *fieldError {
		switch k := string(key); k {
		case "hash_ids", "input_length", "output_length", "chat_id", "parent_chat_id", "requests", "tokens", "conversations":
			keys[k] = true
		}
		return s.skip()
	})
	switch {
	case keys["chat_id"] || keys["parent_chat_id"]:
		return "bailian", ""
	case keys["tokens"]:
		return "tokens", ""
	case keys["requests"]:
		return "sessions", ""
	case keys["hash_ids"] || keys["input_length"] || keys["output_length"]:
		return "mooncake", ""
	case keys["conversations"]:
		return "", texts
	}
	return "", "a JSON object without the fields of a format"
}
