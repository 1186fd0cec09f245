// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// fuzzFormat reads any bytes in a format: nothing panics, errors are one line
// each, and what is accepted keeps its promises.
func fuzzFormat(f *testing.F, format string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed+"\n"+seed[:len(seed)/2]), true)
		f.Add(pack(f, []byte(seed)), false)
		f.Add(pack(f, []byte(seed))[:20], true)
	}
	f.Add([]byte("\ufeff\r\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, tolerate bool) {
		if len(data) > 64<<10 {
			t.Skip("too long")
		}
		w, err := Read(bytes.NewReader(data), "f", Options{Format: format, TolerateCutLine: tolerate, MaxLineBytes: 1 << 20})
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "f:") {
				t.Fatalf("error %q", text)
			}
			var e *LineError
			if errors.As(err, &e) && (e.Line < 1 || e.Found == "" || e.Want == "") {
				t.Fatalf("error %#v", e)
			}
			return
		}
		if len(w.Requests) == 0 || !tolerate && w.Truncated != 0 || w.Truncated > 1 {
			t.Fatalf("%d requests, %d truncated", len(w.Requests), w.Truncated)
		}
		checkWorkload(t, w)
		s := w.Stats()
		if s.BlockHits > s.Blocks || s.TokenHits > s.InputTokens || s.UniqueBlocks > s.Blocks {
			t.Fatalf("%+v", s)
		}
		limited, err := Read(bytes.NewReader(data), "f", Options{Format: format, Limit: 1, MaxLineBytes: 1 << 20})
		if err != nil || len(limited.Requests) != 1 || common(limited.prompt(0)[:1], w.prompt(0)[:1]) != 1 {
			t.Fatalf("limited to one request: %v", err)
		}
	})
}

func FuzzMooncake(f *testing.F) {
	fuzzFormat(f, "mooncake", fineMooncake+"\n"+fineMooncake,
		`{"session_id":"a","delay":3,"input_length":5,"output_length":2,"hash_ids":[18446744073709551615]}`+"\n"+
			`{"session_id":"a","delay":1e3,"input_length":5,"output_length":2,"hash_ids":[0]}`)
}

func FuzzSessions(f *testing.F) {
	fuzzFormat(f, "sessions", twoSessions,
		`{"id":"s","hash_id_scope":"global","requests":[{"type":"subagent","t":3,"duration_ms":1,"requests":[{"type":"n","t":0,"in":64,"out":0,"hash_ids":[9]}]}]}`)
}

func FuzzBailian(f *testing.F) {
	fuzzFormat(f, "bailian",
		`{"chat_id":1,"parent_chat_id":-1,"timestamp":1.5,"input_length":20,"output_length":3,"type":"text","turn":1,"hash_ids":[4,5]}`+"\n"+
			`{"chat_id":2,"parent_chat_id":1,"timestamp":1.5,"input_length":16,"output_length":3,"type":"text","turn":2,"hash_ids":[5]}`)
}

func FuzzAzure(f *testing.F) {
	fuzzFormat(f, "azure", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04,3,1",
		"\"GeneratedTokens\",x,ContextTokens,timestamp\n1,\"a,b\",2,2024-05-10 00:00:00.009930+00:00")
}

func FuzzBurstGPT(f *testing.F) {
	fuzzFormat(f, "burstgpt", "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,abc,1.5,ChatGPT,472,18,490,x")
}

func FuzzTokens(f *testing.F) {
	fuzzFormat(f, "tokens", `{"tokens":[0,4294967295],"output":[3],"timestamp":1.25,"session":"a","extra_key":null,"cache_salt":"\u00e9","id":7}`+"\n"+
		`{"tokens":[1],"session":"a","delay":3,"output_length":2}`)
}

// FuzzDetect reads any bytes without being told the format.
func FuzzDetect(f *testing.F) {
	for _, seed := range []string{fineMooncake, twoSessions, "TIMESTAMP,ContextTokens,GeneratedTokens", `{"tokens":[1]}`, `[{"conversations":`, "\x1f\x8b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			t.Skip("too long")
		}
		w, err := Read(bytes.NewReader(data), "f", Options{})
		if err == nil {
			checkWorkload(t, w)
		} else if strings.Contains(err.Error(), "\n") {
			t.Fatalf("error %q", err)
		}
	})
}

// FuzzJSON holds the scanner against encoding/json: both accept the same texts.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":[1,2,-0.5e+10,{}],"b":null}`, `{"a":"\u00e9\\\""}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":-}`,
		`{"a":tru}`, `{"a":truex}`, `{"a" 1}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[,]}`, "{\"a\":\"\t\"}", `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"`,
		`{"a":"\`, `{"a":"\u1`, `{"a":[`, `{"a":12"b":1}`, "{\"a\":\"\x80\"}", `{"a":1}}`, `{"a":nul`, ` { } `, `{"a":1 2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			t.Skip("too long")
		}
		s := scanner{text: data}
		err := s.line(func([]byte) *fieldError { return s.skip() })
		object := bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
		if valid := object && json.Valid(data); valid != (err == nil) {
			t.Fatalf("%q: encoding/json says %v, the scanner %+v", data, valid, err)
		}
		if err != nil && err.cut {
			// What is cut must be possible to complete: it is not wrong already.
			var syntax *json.SyntaxError
			if e := json.Unmarshal(data, new(any)); !errors.As(e, &syntax) || int(syntax.Offset) < len(data) {
				t.Fatalf("%q: called cut, and encoding/json says %v", data, e)
			}
		}
	})
}
