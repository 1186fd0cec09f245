// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// errCut says that the gzip stream broke off inside the current line.
var errCut = errors.New("the gzip stream breaks off")

// lineReader gives the lines of a file that may be gzip-compressed.
type lineReader struct {
	name    string
	r       *bufio.Reader
	gzipped bool
	most    int    // longest line accepted
	n       int    // number of the line given last
	long    []byte // holds lines longer than the buffer
	peeked  bool   // give the same line again
	text    []byte
	whole   bool
}

const readBuffer = 256 << 10

// newLineReader looks at the first bytes to see whether they are gzip.
func newLineReader(r io.Reader, name string, most int) (*lineReader, error) {
	l := &lineReader{name: name, r: bufio.NewReaderSize(r, readBuffer), most: most}
	magic, err := l.r.Peek(2)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(l.r)
		if err != nil {
			return nil, fmt.Errorf("%s: is not a sound gzip file, get it anew: %w", name, err)
		}
		l.r, l.gzipped = bufio.NewReaderSize(z, readBuffer), true
	}
	return l, nil
}

// peek gives the next line without using it up.
func (l *lineReader) peek() ([]byte, error) {
	text, _, err := l.next()
	if err == nil {
		l.peeked = true
	}
	return text, err
}

// next gives the next line that is not empty, without its end and without a
// byte-order mark, valid until the next call. whole is false for a line that the
// end of the file ends. At the end the error is io.EOF; errCut when the stream
// broke off.
func (l *lineReader) next() (text []byte, whole bool, err error) {
	if l.peeked {
		l.peeked = false
		return l.text, l.whole, nil
	}
	for {
		l.text, l.whole, err = l.read()
		if err != nil {
			return nil, false, err
		}
		if l.n == 1 {
			l.text = bytes.TrimPrefix(l.text, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(l.text)) > 0 {
			return l.text, l.whole, nil
		}
	}
}

// read gives the next line, empty ones too.
func (l *lineReader) read() (text []byte, whole bool, err error) {
	l.n++
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > l.most {
			return nil, false, &LineError{
				File: l.name, Line: l.n,
				Found: fmt.Sprintf("more than %d bytes in a line", l.most),
				Want:  "shorter lines; the longest line accepted is a setting",
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
			l.long = append(l.long, part...)
			continue
		case err == io.EOF:
		case err == io.ErrUnexpectedEOF && l.gzipped:
			return nil, false, errCut
		case err != nil && l.gzipped:
			return nil, false, fmt.Errorf("%s:%d: is not a sound gzip file, get it anew: %w", l.name, l.n, err)
		case err != nil:
			return nil, false, fmt.Errorf("%s:%d: cannot be read: %w", l.name, l.n, err)
		}
		if len(l.long) > 0 {
			l.long = append(l.long, part...)
			part = l.long
		}
		if err == io.EOF {
			if len(part) == 0 {
				return nil, false, io.EOF
			}
			return part, false, nil
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), true, nil
	}
}
