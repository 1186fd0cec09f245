// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"unicode/utf8"

	"github.com/treecore/treecore/tree"
)

// Tokens are bytes: 0 to 255 are the bytes of a text, endOfText ends one. Ids
// beyond it have no text.
const endOfText tree.Token = 256

// encode returns the tokens of a text.
func encode(text string) []tree.Token {
	out := make([]tree.Token, len(text))
	for i := range len(text) {
		out[i] = tree.Token(text[i])
	}
	return out
}

// decoder makes text of tokens as they come. It never gives out a part of a
// character, and what is no valid UTF-8 becomes a replacement character.
type decoder struct {
	hold  int    // bytes that are kept back, since they may be part of a stop text
	bytes []byte // not given out yet
}

// newDecoder returns a decoder for an output that ends with one of the stop texts.
func newDecoder(stops []string) *decoder {
	d := &decoder{}
	for _, s := range stops {
		d.hold = max(d.hold, len(s))
	}
	return d
}

// next returns the text that more tokens bring.
func (d *decoder) next(tokens []tree.Token) string {
	for _, t := range tokens {
		if t < endOfText {
			d.bytes = append(d.bytes, byte(t))
		}
	}
	return d.give(len(d.bytes)-d.hold, false)
}

// end returns what is left when the output has ended, without the stop text that
// has ended it.
func (d *decoder) end(matched string) string {
	d.bytes = d.bytes[:len(d.bytes)-len(matched)]
	return d.give(len(d.bytes), true)
}

// give gives out whole characters that begin among the first n bytes.
func (d *decoder) give(n int, last bool) string {
	var out []byte
	at := 0
	for at < n && (last || utf8.FullRune(d.bytes[at:n])) {
		r, size := utf8.DecodeRune(d.bytes[at:])
		out = utf8.AppendRune(out, r)
		at += size
	}
	d.bytes = append(d.bytes[:0], d.bytes[at:]...)
	return string(out)
}
