// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

const fineMooncake = `{"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}`

// TestBrokenLines checks for each way a line can be wrong what is reported. The
// wrong line is always the second one that is not empty.
func TestBrokenLines(t *testing.T) {
	const (
		session = `{"id":"s","block_size":64,"requests":[{"type":"n","t":0,"in":130,"out":1,"hash_ids":[1,2]}]}`
		bailian = `{"chat_id":1,"parent_chat_id":-1,"timestamp":1.5,"input_length":20,"output_length":3,"type":"text","turn":1,"hash_ids":[4,5]}`
		azure   = "TIMESTAMP,ContextTokens,GeneratedTokens"
	)
	cases := []struct {
		name, first, second  string
		field, found, expect string
	}{
		{"more ids than the length allows", fineMooncake, `{"timestamp": 6, "input_length": 20, "output_length": 3, "hash_ids": [0,1]}`,
			"hash_ids", "2 ids", "1 id for 20 tokens of 512"},
		{"fewer ids than the length needs", fineMooncake, `{"timestamp": 6, "input_length": 513, "output_length": 3, "hash_ids": [0]}`,
			"hash_ids", "1 id", "2 ids for 513 tokens of 512"},
		{"no input length", fineMooncake, `{"timestamp": 6, "output_length": 3, "hash_ids": [0]}`, "input_length", "no such field", "the number of prompt tokens"},
		{"no output length", fineMooncake, `{"timestamp": 6, "input_length": 3, "hash_ids": [0]}`, "output_length", "no such field", "generated"},
		{"no ids", fineMooncake, `{"timestamp": 6, "input_length": 3, "output_length": 3}`, "hash_ids", "no such field", "an id for each block"},
		{"no time", fineMooncake, `{"input_length": 3, "output_length": 3, "hash_ids": [0]}`, "timestamp", "no such field", "a timestamp, or"},
		{"a delay without a session", fineMooncake, `{"delay": 1, "input_length": 3, "output_length": 3, "hash_ids": [0]}`, "session_id", "no such field", "previous turn"},
		{"negative length", fineMooncake, `{"timestamp": 6, "input_length": -20, "output_length": 3, "hash_ids": [0]}`, "input_length", "-20", "from 1 to"},
		{"prompt of length 0", fineMooncake, `{"timestamp": 6, "input_length": 0, "output_length": 3, "hash_ids": []}`, "input_length", "0", "from 1 to"},
		{"absurd length", fineMooncake, `{"timestamp": 6, "input_length": 1000000000000000, "output_length": 3, "hash_ids": [0]}`, "input_length", "1000000000000000", "from 1 to 268435456"},
		{"length with a fraction", fineMooncake, `{"timestamp": 6, "input_length": 20.5, "output_length": 3, "hash_ids": [0]}`, "input_length", "20.5", "a whole number"},
		{"time going backwards", fineMooncake, `{"timestamp": 4, "input_length": 20, "output_length": 3, "hash_ids": [0]}`, "timestamp", "4", "at least 5 as on line 1"},
		{"negative time", fineMooncake, `{"timestamp": -4, "input_length": 20, "output_length": 3, "hash_ids": [0]}`, "timestamp", "-4", "not negative"},
		{"time of NaN", fineMooncake, `{"timestamp": NaN, "input_length": 20, "output_length": 3, "hash_ids": [0]}`, "timestamp", "NaN", "a number"},
		{"endless time", fineMooncake, `{"timestamp": 1e999, "input_length": 20, "output_length": 3, "hash_ids": [0]}`, "timestamp", "1e999", "at most 100 years"},
		{"time of null", fineMooncake, `{"timestamp": null, "input_length": 20, "output_length": 3, "hash_ids": [0]}`, "timestamp", "null", "a number"},
		{"id beyond 64 bits", fineMooncake, `{"timestamp": 6, "input_length": 20, "output_length": 3, "hash_ids": [18446744073709551616]}`, "hash_ids[0]", "18446744073709551616", "from 0 to 18446744073709551615"},
		{"negative id", fineMooncake, `{"timestamp": 6, "input_length": 520, "output_length": 3, "hash_ids": [3, -1]}`, "hash_ids[1]", "-1", "from 0 to"},
		{"text instead of a number", fineMooncake, `{"timestamp": 6, "input_length": "20", "output_length": 3, "hash_ids": [0]}`, "input_length", `"20"`, "a whole number"},
		{"text instead of an array", fineMooncake, `{"timestamp": 6, "input_length": 20, "output_length": 3, "hash_ids": "0"}`, "hash_ids", `"0"`, "an array"},
		{"object instead of a number", fineMooncake, `{"timestamp": 6, "input_length": {}, "output_length": 3, "hash_ids": [0]}`, "input_length", "an object", "a whole number"},
		{"leading zero", fineMooncake, `{"timestamp": 6, "input_length": 020, "output_length": 3, "hash_ids": [0]}`, "input_length", "020", "a whole number"},
		{"no comma", fineMooncake, `{"timestamp": 6 "input_length": 20}`, "timestamp", `"input_length"`, "a comma"},
		{"a trailing comma", fineMooncake, `{"timestamp": 6,}`, "", "}", "a field's name"},
		{"two objects", fineMooncake, fineMooncake + fineMooncake, "", "an object", "one JSON object a line"},
		{"no object", fineMooncake, `17`, "", "17", "a JSON object"},
		{"wrong unknown field", fineMooncake, `{"timestamp": 6, "extra": {"a": [1, nope]}}`, "extra.a[1]", "nope", "a JSON value"},
		{"cut, though a line end follows", fineMooncake, `{"timestamp": 6, "inp`, "", "the end of the line", "the closing quote"},

		{"session without a name", session, `{"requests":[]}`, "id", "no such field", "name"},
		{"session without requests", session, `{"id":"s"}`, "requests", "no such field", "requests"},
		{"session's request without a type", session, `{"id":"s","requests":[{"t":0,"in":1,"out":1,"hash_ids":[]}]}`, "requests[0].type", "no such field", "n, s or subagent"},
		{"session's request without a length", session, `{"id":"s","requests":[{"type":"n","t":0,"out":1,"hash_ids":[]}]}`, "requests[0].in", "no such field", "prompt tokens"},
		{"session's request without an output length", session, `{"id":"s","requests":[{"type":"n","t":0,"in":1,"hash_ids":[]}]}`, "requests[0].out", "no such field", "generated"},
		{"session's request without ids", session, `{"id":"s","requests":[{"type":"n","t":0,"in":1,"out":1}]}`, "requests[0].hash_ids", "no such field", "full block"},
		{"sub-agent without requests", session, `{"id":"s","requests":[{"type":"subagent","t":0}]}`, "requests[0].requests", "no such field", "the sub-agent's requests"},
		{"think time as text", session, `{"id":"s","requests":[{"type":"n","t":0,"think_time":"long"}]}`, "requests[0].think_time", `"long"`, "a number"},
		{"a name that is a fraction", fineMooncake, `{"session_id": 1.5}`, "session_id", "1.5", "text in quotes or a whole number"},
		{"found text that is long and not printable", fineMooncake, "{\"timestamp\": \"\x80 and so on, until it is much too long to be shown\"}",
			"timestamp", `"\x80 and so on, until it is much too long ...`, "a number"},
		{"another block size", session, `{"id":"s","block_size":32,"requests":[]}`, "block_size", "32", "64"},
		{"unknown scope", session, `{"id":"s","hash_id_scope":"galaxy","requests":[]}`, "hash_id_scope", "galaxy", "local or global"},
		{"unknown type", session, `{"id":"s","requests":[{"type":"x"}]}`, "requests[0].type", "x", "n, s or subagent"},
		{"id for a block that is not full", session, `{"id":"s","requests":[{"type":"n","t":0,"in":130,"out":1,"hash_ids":[1,2,3]}]}`,
			"requests[0].hash_ids", "3 ids", "2 ids for the full blocks of 64 in 130 tokens"},
		{"session's time going backwards", session, `{"id":"s","requests":[{"type":"n","t":2,"in":1,"out":1,"hash_ids":[]},{"type":"n","t":1.5,"in":1,"out":1,"hash_ids":[]}]}`,
			"requests[1].t", "1.5", "at least 2"},
		{"sub-agent's request without a time", session, `{"id":"s","requests":[{"type":"subagent","t":1,"requests":[{"type":"n","in":1,"out":1,"hash_ids":[]}]}]}`,
			"requests[0].requests[0].t", "no such field", "seconds"},
		{"sub-agent's prompt of length 0", session, `{"id":"s","requests":[{"type":"subagent","t":1,"requests":[{"type":"n","t":0,"in":0,"out":1,"hash_ids":[]}]}]}`,
			"requests[0].requests[0].in", "0", "from 1"},
		{"sub-agents in sub-agents without end", session, `{"id":"s","requests":` + strings.Repeat(`[{"type":"subagent","t":1,"requests":`, 40),
			strings.Repeat("requests[0].", 33) + "requests", "sub-agents in 32 sub-agents", "fewer levels"},

		{"bailian without a parent", bailian, `{"chat_id":2,"timestamp":1.5,"input_length":20,"output_length":3,"hash_ids":[4,5]}`, "parent_chat_id", "no such field", "or -1"},
		{"bailian with too few ids", bailian, `{"chat_id":2,"parent_chat_id":1,"timestamp":1.5,"input_length":20,"output_length":3,"hash_ids":[4]}`, "hash_ids", "1 id", "2 ids for 20 tokens of 16"},
		{"bailian going backwards", bailian, `{"chat_id":2,"parent_chat_id":1,"timestamp":1.499,"input_length":20,"output_length":3,"hash_ids":[4,5]}`, "timestamp", "1.499", "at least 1.5"},

		{"azure with too few columns", azure, "2023-11-16 18:17:03.9799600,4808", "", "2 columns", "3 as in the header"},
		{"azure with a broken date", azure, "2023-13-16 18:17:03.9799600,4808,3", "TIMESTAMP", "2023-13-16 18:17:03.9799600", "a time as"},
		{"azure with text", azure, "2023-11-16 18:17:03.9799600,many,3", "ContextTokens", "many", "from 1 to"},
		{"azure with nothing", azure, "2023-11-16 18:17:03.9799600,7,", "GeneratedTokens", "nothing", "from 0 to"},
		{"azure with a prompt of length 0", azure, "2023-11-16 18:17:03.9799600,0,3", "ContextTokens", "0", "from 1 to"},
		{"burstgpt with NaN", "Timestamp,Model,Request tokens,Response tokens", "NaN,GPT-4,5,6", "Timestamp", "NaN", "a time"},

		{"token beyond 32 bits", `{"tokens":[1]}`, `{"tokens":[1,4294967296]}`, "tokens[1]", "4294967296", "from 0 to 4294967295"},
		{"negative token", `{"tokens":[1]}`, `{"tokens":[-1]}`, "tokens[0]", "-1", "from 0"},
		{"no tokens", `{"tokens":[1]}`, `{"tokens":[]}`, "tokens", "0 tokens", "from 1"},
		{"tokens missing", `{"tokens":[1]}`, `{"id":"a"}`, "tokens", "no such field", "tokens"},
		{"output of another length", `{"tokens":[1]}`, `{"tokens":[1],"output":[1,2],"output_length":3}`, "output_length", "3 beside an output of 2 tokens", "the same number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.first+"\n"+c.second+"\n"), "dir/t.jsonl", Options{})
			var e *LineError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a LineError", err)
			}
			if e.File != "dir/t.jsonl" || e.Line != 2 || e.Field != c.field || e.Found != c.found || !strings.Contains(e.Want, c.expect) {
				t.Errorf("got  %q\nwant line 2, field %q, found %q, want ...%s...", e, c.field, c.found, c.expect)
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "dir/t.jsonl:2: ") {
				t.Errorf("message %q", text)
			}
			// Three empty lines before move the line number, and nothing else.
			_, err = Read(strings.NewReader("\n\r\n \n"+c.first+"\n"+c.second), "t", Options{})
			if !errors.As(err, &e) || e.Line != 5 {
				t.Errorf("after three empty lines: %v", err)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	_, err := Read(strings.NewReader(fineMooncake+"\n"+`{"timestamp":5,"input_length":20,"output_length":1,"hash_ids":[0,1]}`), "a.jsonl", Options{})
	const want = `a.jsonl:2: field "hash_ids": found 2 ids, want 1 id for 20 tokens of 512, or another block size`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestAcceptedLines checks what is unusual and right.
func TestAcceptedLines(t *testing.T) {
	const second = `{"timestamp": 6, "input_length": 20, "output_length": 0, "hash_ids": [18446744073709551615]}`
	for _, c := range []struct{ name, text string }{
		{"plain", fineMooncake + "\n" + second + "\n"},
		{"no line end at the end", fineMooncake + "\n" + second},
		{"byte-order mark", "\ufeff" + fineMooncake + "\n" + second + "\n"},
		{"Windows line ends", fineMooncake + "\r\n" + second + "\r\n"},
		{"Windows line ends, none at the end", fineMooncake + "\r\n" + second + "\r"},
		{"empty lines", "\n\n" + fineMooncake + "\n   \n\r\n" + second + "\n\n\n"},
		{"unknown fields", `{"x": {"y": [1, "é\u00e9\n", null, true, false, -1.5e+3]}, ` + fineMooncake[1:] + "\n" + second},
		{"fields given twice", `{"input_length": 1, "hash_ids": [1,2,3,4], ` + fineMooncake[1:] + "\n" + second},
		{"blanks everywhere", strings.NewReplacer(",", "\t , ", ":", " : ", "[", "[ ", "]", " ]").Replace(fineMooncake) + " \n\t" + second},
		{"times with fractions and exponents", strings.Replace(fineMooncake, "5", "0.5e1", 1) + "\n" + strings.Replace(second, "6", "6.0", 1)},
		{"escaped field names", strings.Replace(fineMooncake, "timestamp", `time\u0073tamp`, 1) + "\n" + second},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, zipped := range []bool{false, true} {
				text := []byte(c.text)
				if zipped {
					text = pack(t, text)
				}
				w, err := Read(iotest.OneByteReader(bytes.NewReader(text)), "t", Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkWorkload(t, w)
				if len(w.Requests) != 2 || w.Requests[0].InputLen != 600 || w.Requests[1].Arrival.Milliseconds() != 6 || w.Truncated != 0 {
					t.Errorf("got %+v", w)
				}
			}
		})
	}
}

func pack(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCutFiles(t *testing.T) {
	header := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,48,1\n"
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"inside a name", fineMooncake + "\n" + `{"timestamp": 5, "inpu`, 2},
		{"inside a number", fineMooncake + "\n" + `{"timestamp": 5, "input_length": 6`, 2},
		{"inside an array", fineMooncake + "\n" + `{"timestamp": 5, "hash_ids": [1,`, 2},
		{"inside a word", fineMooncake + "\n" + `{"timestamp": 5, "extra": tru`, 2},
		{"inside an escape", fineMooncake + "\n" + `{"timestamp": 5, "extra": "\u00`, 2},
		{"behind a minus", fineMooncake + "\n" + `{"timestamp": 5, "extra": -`, 2},
		{"behind the first brace", fineMooncake + "\n\n" + `{`, 3},
		{"inside a CSV line", header + "2023-11-16 18:17:03.9799600,4", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), "t", Options{})
			var e *LineError
			if !errors.As(err, &e) || e.Line != c.line || e.Found != "the end of the file inside a line" {
				t.Errorf("got %v", err)
			}
			w, err := Read(strings.NewReader(c.text), "t", Options{TolerateCutLine: true})
			if err != nil || len(w.Requests) != 1 || w.Truncated != 1 {
				t.Errorf("tolerated: %+v, %v", w, err)
			}
			// With a line end behind it is not a cut file but a wrong line.
			if _, err := Read(strings.NewReader(c.text+"\n"), "t", Options{TolerateCutLine: true}); !errors.As(err, &e) || e.Line != c.line {
				t.Errorf("with a line end: %v", err)
			}
		})
	}
	t.Run("a wrong last line is not a cut one", func(t *testing.T) {
		text := fineMooncake + "\n" + `{"timestamp": 5, "input_length": "x"}`
		if _, err := Read(strings.NewReader(text), "t", Options{TolerateCutLine: true}); err == nil {
			t.Error("accepted")
		}
	})
}

func TestCutAndCorruptGzip(t *testing.T) {
	var text []byte
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 { // lines that do not compress to nothing
		text = append(text, strings.Replace(fineMooncake, "[7, 8]", "["+itoa(random.Uint32())+","+itoa(random.Uint32())+"]", 1)+"\n"...)
	}
	whole := pack(t, text)
	cut := whole[:len(whole)/2]
	_, err := Read(bytes.NewReader(cut), "t.gz", Options{})
	var e *LineError
	if !errors.As(err, &e) || e.Line < 500 || e.Line > 1500 || !strings.Contains(e.Found, "gzip stream") {
		t.Errorf("cut stream: %v", err)
	}
	w, err := Read(bytes.NewReader(cut), "t.gz", Options{TolerateCutLine: true})
	if err != nil || w.Truncated != 1 || len(w.Requests) != e.Line-1 {
		t.Errorf("cut stream tolerated: %v", err)
	}
	// A limit ends reading before the damage.
	if w, err := Read(bytes.NewReader(cut), "t.gz", Options{Limit: 10}); err != nil || len(w.Requests) != 10 {
		t.Errorf("limit before the cut: %v", err)
	}
	for _, damage := range []int{5, len(whole) / 2, len(whole) - 6} {
		bad := bytes.Clone(whole)
		for i := range 4 {
			bad[damage+i] ^= 0x5a
		}
		if damage == 5 {
			bad = append(bytes.Clone(whole[:2]), bad[6:]...)
		}
		_, err := Read(bytes.NewReader(bad), "t.gz", Options{TolerateCutLine: true})
		if err == nil || !strings.Contains(err.Error(), "t.gz") || strings.Contains(err.Error(), "\n") {
			t.Errorf("damage at %d: %v", damage, err)
		}
	}
	if _, err := Read(bytes.NewReader(whole[:4]), "t.gz", Options{}); err == nil || !strings.Contains(err.Error(), "t.gz") {
		t.Errorf("cut inside the header: %v", err)
	}
}

func itoa(n uint32) string { return string(appendDecimal(nil, n)) }

func appendDecimal(dst []byte, n uint32) []byte {
	if n >= 10 {
		dst = appendDecimal(dst, n/10)
	}
	return append(dst, byte('0'+n%10))
}

func TestLongLines(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"tokens":[0`)
	size := 50 << 20
	if testing.Short() || racing {
		size = 4 << 20
	}
	n := 1
	for ; b.Len() < size; n++ {
		b.WriteString(`,4294967295`)
	}
	b.WriteString("]}\n" + `{"tokens":[1,2,"x"]}` + "\n")
	_, err := Read(bytes.NewReader(b.Bytes()), "t", Options{})
	var e *LineError
	if !errors.As(err, &e) || e.Line != 2 || e.Field != "tokens[2]" {
		t.Errorf("behind a line of 50 MB: %v", err)
	}
	w, err := Read(bytes.NewReader(b.Bytes()), "t", Options{Limit: 1})
	if err != nil || w.Requests[0].InputLen != n {
		t.Errorf("a line of 50 MB: %v", err)
	}
	_, err = Read(bytes.NewReader(b.Bytes()), "t", Options{MaxLineBytes: 1 << 20})
	if !errors.As(err, &e) || e.Line != 1 || !strings.Contains(e.Found, "more than 1048576 bytes") {
		t.Errorf("a line longer than allowed: %v", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none.jsonl"), Options{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.jsonl") || !strings.Contains(err.Error(), "check the path") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	for _, text := range []string{"", "\n\n \r\n", "\ufeff"} {
		for _, format := range append(Formats(), "") {
			if _, err := Read(strings.NewReader(text), "t.csv", Options{Format: format}); err == nil || !strings.Contains(err.Error(), "t.csv: the file has no requests") {
				t.Errorf("%q as %q: %v", text, format, err)
			}
		}
	}
	broken := errors.New("the disk is gone")
	for _, r := range []io.Reader{iotest.ErrReader(broken), io.MultiReader(strings.NewReader(fineMooncake+"\n"+fineMooncake), iotest.ErrReader(broken))} {
		if _, err := Read(r, "t", Options{TolerateCutLine: true}); !errors.Is(err, broken) {
			t.Errorf("reader that fails: %v", err)
		}
	}
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.jsonl.gz")
	if err := os.WriteFile(path, pack(t, []byte(fineMooncake)), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(path, Options{})
	if err != nil || w.Name != "chat.jsonl" || w.Format != "mooncake" {
		t.Errorf("%+v, %v", w, err)
	}
	// The name does not decide what is gzip.
	plain := filepath.Join(t.TempDir(), "plain.gz")
	if err := os.WriteFile(plain, []byte(fineMooncake), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(plain, Options{}); err != nil {
		t.Error(err)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ line, format, what string }{
		{fineMooncake, "mooncake", ""},
		{`{"input_length":`, "mooncake", ""},
		{`{"hash_ids":[1],"chat_id":3}`, "bailian", ""},
		{`{"id":"x","requests":[]}`, "sessions", ""},
		{`{"id":"x","tokens":[1]}`, "tokens", ""},
		{"TIMESTAMP,ContextTokens,GeneratedTokens", "azure", ""},
		{"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type", "burstgpt", ""},
		{`[{"id":"x","conversations":[]}]`, "", "sharegpt"},
		{`{"id":"x","conversations":[]}`, "", "sharegpt"},
		{`[1]`, "", "array"},
		{`{"a":1}`, "", "without the fields"},
		{"PK\x03\x04", "", `PK\x03\x04`},
	} {
		w, err := Read(strings.NewReader(c.line+"\n"), "t", Options{})
		name, what := detectLine([]byte(c.line))
		if name != c.format || !strings.Contains(what, c.what) {
			t.Errorf("%s: got %q, %q", c.line, name, what)
		}
		if c.format == "" && (err == nil || !strings.Contains(err.Error(), strings.Join(Formats(), ", "))) {
			t.Errorf("%s: %+v, %v", c.line, w, err)
		}
	}
	_, err := Read(strings.NewReader(fineMooncake), "t", Options{Format: "ShareGPT"})
	if err == nil || !strings.Contains(err.Error(), "tokenizer") {
		t.Errorf("sharegpt: %v", err)
	}
}

func TestOptions(t *testing.T) {
	_, err := Read(strings.NewReader(fineMooncake), "t", Options{
		Format: "csv", BlockSize: -1, TimeUnit: -1, Chained: 9, Limit: -2, MaxLineBytes: -3,
		Sharing: Sharing{SystemTokens: -4, Groups: 3, ZipfExponent: -5},
	})
	for _, part := range []string{"csv is not known", "block size is -1", "time unit", "chaining is 9", "limit is -2", "bytes is -3", "is -4", "both or neither", "zipf exponent is -5"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	for _, c := range []struct {
		line, part string
		o          Options
	}{
		{fineMooncake, "sharing model does not apply", Options{Sharing: Sharing{SystemTokens: 1}}},
		{`{"tokens":[1]}`, "block size does not apply", Options{BlockSize: 4}},
		{`{"tokens":[1]}`, "chaining does not apply", Options{Chained: Chained}},
		{"TIMESTAMP,ContextTokens,GeneratedTokens", "time unit does not apply", Options{TimeUnit: 1}},
	} {
		if _, err := Read(strings.NewReader(c.line), "t", c.o); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%v", err)
		}
	}
}
