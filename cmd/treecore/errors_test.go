// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrongLines are the broken lines of C-057: what stands on line 2 of a trace
// whose first line is fine, and what the message must say.
var wrongLines = []struct{ name, line, field, want string }{
	{"too many ids", `{"timestamp": 5, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]}`, "hash_ids", "1 id for 20 tokens"},
	{"missing field", `{"timestamp": 5, "output_length": 1, "hash_ids": [0]}`, "input_length", ""},
	{"negative length", `{"timestamp": 5, "input_length": -20, "output_length": 1, "hash_ids": [0]}`, "input_length", ""},
	{"length 0", `{"timestamp": 5, "input_length": 0, "output_length": 1, "hash_ids": []}`, "input_length", ""},
	{"time goes backwards", `{"timestamp": 1, "input_length": 20, "output_length": 1, "hash_ids": [0]}`, "timestamp", "backwards"},
	{"no time at all", `{"timestamp": NaN, "input_length": 20, "output_length": 1, "hash_ids": [0]}`, "timestamp", ""},
	{"id beyond 64 bits", `{"timestamp": 5, "input_length": 20, "output_length": 1, "hash_ids": [99999999999999999999]}`, "hash_ids", ""},
	{"text for a number", `{"timestamp": 5, "input_length": "20", "output_length": 1, "hash_ids": [0]}`, "input_length", ""},
	{"not JSON", `input_length=20`, "", ""},
}

const fineLine = `{"timestamp": 2, "input_length": 600, "output_length": 1, "hash_ids": [0, 1]}`

// C-057: a line whose numbers do not fit is named with its place, and what would
// be right.
func TestC057(t *testing.T) {
	dir := t.TempDir()
	replay := func(t *testing.T, trace string, more ...string) (code int, stdout, stderr string) {
		return command(t, append([]string{"replay", "--trace", trace, "--model", "llama-3.1-8b", "--concurrency", "1", "--json"}, more...)...)
	}
	for _, c := range wrongLines {
		t.Run(c.name, func(t *testing.T) {
			trace := writeFile(t, dir, "trace.jsonl", fineLine+"\n"+c.line+"\n"+fineLine+"\n")
			code, out, errs := replay(t, trace)
			if code != exitUsage || out != "" {
				t.Errorf("exit code %d, want %d; stdout %q", code, exitUsage, out)
			}
			if strings.Count(errs, "\n") != 1 {
				t.Errorf("stderr is not one line: %q", errs)
			}
			for _, want := range []string{"trace.jsonl:2: ", c.field, c.want, "found ", "want "} {
				if !strings.Contains(errs, want) {
					t.Errorf("%q lacks %q", errs, want)
				}
			}
		})
	}

	long := `{"pad": "` + strings.Repeat("x", 50<<20) + `", ` + fineLine[1:]
	for _, c := range []struct{ name, text string }{
		{"empty lines", "\n" + fineLine + "\n\n\n" + fineLine + "\n\n"},
		{"no newline at the end", fineLine + "\n" + fineLine},
		{"byte-order mark", "\ufeff" + fineLine + "\n" + fineLine + "\n"},
		{"Windows line ends", fineLine + "\r\n" + fineLine + "\r\n"},
		{"a line of 50 MB", long + "\n" + fineLine + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := replay(t, writeFile(t, dir, "trace.jsonl", c.text))
			if code != exitDone || errs != "" {
				t.Fatalf("exit code %d, stderr %q", code, errs)
			}
			if doc := document(t, out); doc["requests"] != 2.0 || doc["input_tokens"] != 1200.0 || doc["cached_tokens"] != 592.0 {
				t.Errorf("%v requests, %v input tokens, %v cached", doc["requests"], doc["input_tokens"], doc["cached_tokens"])
			}
		})
	}

	t.Run("cut last line", func(t *testing.T) {
		trace := writeFile(t, dir, "trace.jsonl", fineLine+"\n"+fineLine[:40])
		code, _, errs := replay(t, trace)
		if code != exitUsage || !strings.Contains(errs, "trace.jsonl:2: ") {
			t.Errorf("exit code %d, stderr %q", code, errs)
		}
		code, out, errs := replay(t, trace, "--tolerate-cut-line")
		if code != exitDone || errs != "" {
			t.Fatalf("exit code %d, stderr %q", code, errs)
		}
		doc := document(t, out)
		if notes, _ := doc["notes"].([]any); doc["requests"] != 1.0 || !strings.Contains(strings.Join(texts(notes), "\n"), "1 line at the file's end was cut off") {
			t.Errorf("%v requests, notes %v", doc["requests"], notes)
		}
	})

	t.Run("gzip", func(t *testing.T) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(fineLine + "\n" + fineLine + "\n")); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := replay(t, writeFile(t, dir, "trace.gz", b.String())); code != exitDone {
			t.Errorf("exit code %d, stderr %q", code, errs)
		}
	})
}

func texts(list []any) []string {
	var out []string
	for _, x := range list {
		s, _ := x.(string)
		out = append(out, s)
	}
	return out
}

// Whatever is wrong on the command line: exit code 2, one line with the place and
// the remedy, nothing on stdout.
func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	trace := writeFile(t, dir, "trace.jsonl", fineLine+"\n")
	empty := writeFile(t, dir, "empty.jsonl", "\n")
	profile := writeFile(t, dir, "bad.yaml", "name: x\nfull:\n  bytes_per_tokens: 3\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"unknown flag: --bogus; see treecore replay --help", []string{"replay", "--bogus"}},
		{`unexpected argument "trace.jsonl"`, []string{"replay", "trace.jsonl"}},
		{`unexpected argument "b"`, []string{"replay", "--json", "a", "b"}},
		{`"--page-size" flag`, []string{"replay", "--page-size", "abc"}},
		{"--page-size is 0: must be more than 0", []string{"replay", "--page-size", "0"}},
		{"page size is 2000, must be from 1 to 1024", []string{"replay", "--page-size", "2000"}},
		{"--chunk is -5", []string{"replay", "--chunk", "-5"}},
		{"--reserve is -1: must be from 0 to 1", []string{"replay", "--reserve", "-1"}},
		{"order is best, must be ready or listed", []string{"replay", "--order", "best"}},
		{"swa ratio is 1e-18", []string{"replay", "--swa-ratio", "1e-18"}},
		{"unexpected argument \"mine.jsonl\"", []string{"replay", "mine.jsonl", "--json"}},
		{"--op-log and --json are one file", []string{"replay", "--op-log", "same.file", "--json=same.file"}},
		{"--device-bytes: size \"0\"", []string{"replay", "--device-bytes", "0"}},
		{"swa ratio is 3", []string{"replay", "--swa-ratio", "3"}},
		{"state ratio is 1, must be from 1e-06 to 0.999999", []string{"replay", "--model", "qwen3-next-80b-a3b", "--state-ratio", "1"}},
		{"--max-running applies when arrival times are kept", []string{"replay", "--max-running", "3", "--concurrency", "4"}},
		{"--model: model \"gpt\" is not known; known are gemma-3-27b,", []string{"replay", "--model", "gpt"}},
		{"bad.yaml:3:3: unknown field", []string{"replay", "--model", profile}},
		{"--device-bytes: size \"40 giga\": must be a number with a unit", []string{"replay", "--device-bytes", "40 giga"}},
		{"model gpt-oss-20b: 1KiB hold", []string{"replay", "--device-bytes", "1KiB"}},
		{"--policy: ", []string{"replay", "--policy", "best"}},
		{"protected_threshold", []string{"replay", "--policy", "slru:x=3"}},
		{"--sweep: sweep \"pages=1..2\"", []string{"replay", "--sweep", "pages=1..2"}},
		{"--device-bytes and --sweep", []string{"replay", "--sweep", "device-bytes=1GiB..2GiB", "--device-bytes", "3GiB"}},
		{"--op-log records one run", []string{"replay", "--sweep", "device-bytes=1GiB..2GiB", "--op-log", filepath.Join(dir, "x")}},
		{"hold", []string{"replay", "--sweep", "device-bytes=1KiB..2GiB"}},
		{"--trace and --workload are both given", []string{"replay", "--trace", trace, "--workload", "agents"}},
		{"--trace is empty", []string{"replay", "--trace", ""}},
		{"--json is empty", []string{"replay", "--json="}},
		{"workload bogus is not known; known are agents,", []string{"replay", "--workload", "bogus"}},
		{"--turns does not apply to --workload shared-prefix: it belongs to --workload agents", []string{"replay", "--workload", "shared-prefix", "--turns", "3"}},
		{"--groups does not apply to --workload agents: it belongs to --workload shared-prefix", []string{"replay", "--groups", "3"}},
		{"--groups does not apply to a trace", []string{"replay", "--trace", trace, "--groups", "3"}},
		{"setting turns is x, must be", []string{"replay", "--turns", "x"}},
		{"--format applies to --trace only", []string{"replay", "--format", "mooncake"}},
		{"--limit applies to --trace only", []string{"replay", "--workload", "agents", "--limit", "3"}},
		{"--block-size is 0", []string{"replay", "--trace", trace, "--block-size", "0"}},
		{"--chained is \"maybe\": must be yes, no or auto", []string{"replay", "--trace", trace, "--chained", "maybe"}},
		{"a sharing model does not apply", []string{"replay", "--trace", trace, "--share-system", "100"}},
		{"format parquet is not known", []string{"replay", "--trace", trace, "--format", "parquet"}},
		{"none.jsonl: there is no such trace file", []string{"replay", "--trace", "none.jsonl"}},
		{"empty.jsonl: the file has no requests", []string{"replay", "--trace", empty}},
		{"--json: the file cannot be written", []string{"replay", "--trace", trace, "--json=" + filepath.Join(dir, "no", "x")}},
		{"--op-log: the file cannot be written", []string{"replay", "--trace", trace, "--op-log", filepath.Join(dir, "no", "x")}},
		{"unknown command", []string{"bogus"}},
		{"inspect takes one operation log, 0 arguments", []string{"inspect"}},
		{"the operation log cannot be opened", []string{"inspect", filepath.Join(dir, "none.log")}},
		{"trace.jsonl: ", []string{"inspect", trace}},
		{"unknown command \"x\" for \"treecore version\"", []string{"version", "x"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			code, out, errs := command(t, c.args...)
			if code != exitUsage || out != "" {
				t.Errorf("%v: exit code %d, stdout %.100q; want %d and nothing", c.args, code, out, exitUsage)
			}
			if !strings.HasPrefix(errs, "treecore: ") || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.want) {
				t.Errorf("%v: stderr %q, want one line with %q", c.args, errs, c.want)
			}
		})
	}
}

// failingWriter stands for a full disk or a closed pipe.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// What goes wrong after the command line was understood ends with exit code 1.
func TestFailedRuns(t *testing.T) {
	var errs bytes.Buffer
	if code := run(context.Background(), append(small, "--json"), failingWriter{}, &errs); code != exitFailed || !strings.Contains(errs.String(), "the report cannot be written") {
		t.Errorf("no room for the report: exit code %d, stderr %q", code, errs.String())
	}
	errs.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if code := run(ctx, small, &bytes.Buffer{}, &errs); code != exitFailed || errs.String() != "treecore: interrupted\n" {
		t.Errorf("interrupted: exit code %d, stderr %q", code, errs.String())
	}
}
