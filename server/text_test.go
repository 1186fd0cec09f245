// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/treecore/treecore/tree"
	"pgregory.net/rapid"
)

// Whatever the bytes and however they come, the pieces are whole characters and
// together what the bytes say at once.
func TestPiecesOfText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
			rapid.StringOfN(rapid.RuneFrom([]rune("aé€𝄞")), 0, 20, -1),
		).Draw(t, "text")
		stop := rapid.StringOfN(rapid.RuneFrom([]rune("aé€")), 0, 3, -1).Draw(t, "stop")
		d := newDecoder([]string{stop})
		tokens := encode(text)
		if rapid.Bool().Draw(t, "end") {
			tokens = append(tokens, endOfText)
		}
		matched := ""
		if strings.HasSuffix(text, stop) {
			matched = stop
		}
		got := ""
		for len(tokens) > 0 {
			n := rapid.IntRange(1, len(tokens)).Draw(t, "piece")
			piece := d.next(tokens[:n])
			if !utf8.ValidString(piece) {
				t.Fatalf("piece %q", piece)
			}
			got, tokens = got+piece, tokens[n:]
		}
		got += d.end(matched)
		if want := string([]rune(strings.TrimSuffix(text, matched))); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestStopTexts(t *testing.T) {
	j := &job{stops: []string{"b", "ab", "xyz"}}
	var found []string
	for _, c := range encode("xaxyabz") {
		if s := j.stopped(c); s != "" {
			found = append(found, s)
		}
	}
	if len(found) != 1 || found[0] != "ab" {
		t.Errorf("found %q", found)
	}
	if j.stopped(tree.Token(300)) != "" {
		t.Error("an id without text ends one")
	}
}
