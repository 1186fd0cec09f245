// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command runs the program in this process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// mustRun runs the program and wants it to succeed without a word on stderr.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(t, args...)
	if code != exitDone || errs != "" {
		t.Fatalf("treecore %s: exit code %d, stderr %q", strings.Join(args, " "), code, errs)
	}
	return out
}

// document reads a JSON document and nothing else.
func document(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("no JSON document: %v in %q", err, text)
	}
	if d.More() {
		t.Fatalf("more than one document: %q", text)
	}
	return doc
}

// dropMeasured removes what the wall clock measured and what depends on the
// memory layout, after looking whether it is there.
func dropMeasured(t *testing.T, doc map[string]any) {
	t.Helper()
	positive := func(m map[string]any, key string) {
		if n, ok := m[key].(float64); !ok || n <= 0 {
			t.Errorf("key %s is %v, want a number above 0", key, m[key])
		}
		delete(m, key)
	}
	for _, key := range []string{"wall_seconds", "tokens_per_second", "tree_bytes_per_cached_token", "tree_peak_bytes"} {
		positive(doc, key)
	}
	ops, _ := doc["ops"].(map[string]any)
	for _, op := range []string{"match", "insert", "lock", "evict"} {
		m, _ := ops[op].(map[string]any)
		positive(m, "p50_ns")
		positive(m, "p99_ns")
	}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got), go test -update writes it anew:\n%s", path, d)
	}
}

var small = []string{
	"replay", "--workload", "agents", "--sessions", "3", "--turns", "2..4", "--tool-calls", "0..2", "--system-tokens", "3000",
	"--model", "hybrid-3way", "--page-size", "16", "--device-bytes", "250MiB", "--swa-ratio", "0.4", "--chunk", "1024",
}

// The report has the keys and the values that others rely on.
func TestReplayJSON(t *testing.T) {
	doc := document(t, mustRun(t, append(small, "--json")...))
	dropMeasured(t, doc)
	samples, _ := doc["occupancy"].([]any)
	if len(samples) < 10 {
		t.Errorf("%d samples of occupancy", len(samples))
	}
	doc["occupancy"] = samples[len(samples)-1:]
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "replay.json", string(text)+"\n")
}

func TestReplayTable(t *testing.T) {
	text := mustRun(t, small...)
	golden(t, "replay.txt", dropTimes(text))
}

func dropTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if regexp.MustCompile(`^│ (match|insert|lock|evict) `).MatchString(line) {
			cells := strings.Split(line, "│")
			lines[i] = "│" + cells[1] + "│" + cells[2] + "│ ..."
		}
		if regexp.MustCompile(`^[├┌└]─+[┬┼┴]─+[┬┼┴]─+[┬┼┴]─+[┐┤┘]$|^│ call `).MatchString(line) {
			lines[i] = "..."
		}
	}
	return regexp.MustCompile(`(?m)^(tree at its peak|replayed in).*$`).ReplaceAllString(strings.Join(lines, "\n"), "$1 ...")
}

// One seed, one result; another seed, another one.
func TestReplayIsDeterministic(t *testing.T) {
	run := func(seed string) map[string]any {
		doc := document(t, mustRun(t, append(small, "--json", "--seed", seed)...))
		dropMeasured(t, doc)
		return doc
	}
	first := run("7")
	if d := cmp.Diff(first, run("7")); d != "" {
		t.Errorf("the same seed gives something else:\n%s", d)
	}
	if cmp.Equal(first["input_tokens"], run("8")["input_tokens"]) {
		t.Error("another seed gives the same")
	}
}

// Without an argument a workload is replayed that shows something.
func TestReplayBuiltIn(t *testing.T) {
	doc := document(t, mustRun(t, "replay", "--json"))
	rate, bound := doc["token_hit_rate"].(float64), doc["infinite"].(map[string]any)["token_hit_rate"].(float64)
	if rate < 0.3 || rate > bound-0.05 || doc["evictions"].(map[string]any)["full"].(float64) == 0 {
		t.Errorf("hit rate %v of %v, evictions %v: the device should be too small, but not useless", rate, bound, doc["evictions"])
	}
	if doc["trace"] != builtIn || doc["model"] != defaultModel || doc["requests_refused"].(float64) != 0 {
		t.Errorf("trace %v, model %v, refused %v", doc["trace"], doc["model"], doc["requests_refused"])
	}
	if text := mustRun(t, "replay"); !strings.Contains(text, "infinite cache") {
		t.Errorf("the table lacks the bound: %s", text)
	}
}

func TestReplayJSONFile(t *testing.T) {
	for _, spelling := range [][]string{{"--json="}, {"--json", ""}} {
		path := filepath.Join(t.TempDir(), "report.json")
		args := append([]string{}, small...)
		if len(spelling) == 1 {
			args = append(args, spelling[0]+path)
		} else {
			args = append(args, spelling[0], path)
		}
		if out := mustRun(t, args...); out != "" {
			t.Errorf("%q on stdout beside the file", out)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if doc := document(t, string(text)); doc["model"] != "hybrid-3way" {
			t.Errorf("model %v", doc["model"])
		}
	}
}

func TestSweep(t *testing.T) {
	args := []string{"replay", "--workload", "agents", "--sessions", "4", "--turns", "2", "--sweep", "device-bytes=2GiB..8GiB"}
	doc := document(t, mustRun(t, append(args, "--json")...))
	runs, _ := doc["runs"].([]any)
	if len(runs) != 3 || len(doc) != 1 {
		t.Fatalf("%d runs, %d keys", len(runs), len(doc))
	}
	for i, want := range []float64{2 << 30, 4 << 30, 8 << 30} {
		r := runs[i].(map[string]any)
		if got := r["options"].(map[string]any)["device_bytes"]; got != want {
			t.Errorf("run %d: %v bytes, want %v", i, got, want)
		}
	}
	table := mustRun(t, args...)
	for _, want := range []string{"2GiB", "4GiB", "8GiB", "an infinite cache hits"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

// C-078 on the command line: two identical prompts of 40 tokens in chunks of 16.
func TestC078(t *testing.T) {
	dir := t.TempDir()
	line := `{"tokens": [` + strings.TrimSuffix(strings.Repeat("7,", 40), ",") + `], "output_length": 2}` + "\n"
	trace := writeFile(t, dir, "two.jsonl", line+line)
	profile := writeFile(t, dir, "one.yaml", "name: one\nfull:\n  bytes_per_token: 1\n")
	for _, c := range []struct {
		page, concurrency string
		cached            float64
	}{{"1", "1", 39}, {"4", "1", 36}, {"1", "2", 32}, {"4", "2", 32}} {
		doc := document(t, mustRun(t, "replay", "--trace", trace, "--model", profile, "--device-bytes", "unlimited",
			"--page-size", c.page, "--concurrency", c.concurrency, "--chunk", "16", "--json"))
		if doc["cached_tokens"] != c.cached || doc["computed_tokens"] != 80-c.cached || doc["input_tokens"] != 80.0 {
			t.Errorf("page %s, %s at once: %v cached, %v computed of %v; want %v cached", c.page, c.concurrency,
				doc["cached_tokens"], doc["computed_tokens"], doc["input_tokens"], c.cached)
		}
	}
}

// An operation log leads to a sound tree again.
func TestOpLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.log")
	mustRun(t, "replay", "--op-log", path, "--workload", "agents", "--sessions", "2", "--turns", "2", "--tool-calls", "1",
		"--system-tokens", "200", "--user-tokens", "20", "--tool-tokens", "50", "--output-tokens", "20",
		"--model", "hybrid-3way", "--page-size", "16", "--device-bytes", "80MiB")
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "treecore-log 1 components=full,swa,mamba page=16 window=128 grid=64") {
		t.Fatalf("%v: log begins with %.80q", err, text)
	}
	if out := mustRun(t, "inspect", "--check", path); !regexp.MustCompile(`^the tree is sound: \d+ nodes, [1-9]`).MatchString(out) {
		t.Errorf("check says %q", out)
	}
	drawn := mustRun(t, "inspect", path)
	if n := strings.Count(drawn, "\n"); n < 3 {
		t.Errorf("%d lines are drawn: %s", n, drawn)
	}
	transcript := mustRun(t, "inspect", "--transcript", path)
	if !strings.HasSuffix(transcript, drawn) || !strings.Contains(transcript, "\nbegin-insert ") {
		t.Errorf("the transcript lacks calls or tree:\n%s", transcript)
	}
}

func TestVersion(t *testing.T) {
	if out := mustRun(t, "version"); !regexp.MustCompile(`^treecore \S+, .*, go1\.\d+`).MatchString(out) {
		t.Errorf("version %q", out)
	}
}

// Every command and every flag is explained.
func TestHelp(t *testing.T) {
	out := mustRun(t)
	for _, c := range commands() {
		if !strings.Contains(out, c.Short) {
			t.Errorf("help lacks %s", c.Name())
		}
		help := mustRun(t, c.Name(), "--help")
		if c.HasFlags() && !strings.Contains(help, "Examples:") {
			t.Errorf("%s has no examples", c.Name())
		}
	}
	replay := replayCommand()
	if text := replay.Flags().FlagUsages(); strings.Contains(text, `(default "")`) {
		t.Errorf("a flag is listed with an empty default:\n%s", text)
	}
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The built program ends with the right code and keeps the streams apart.
func TestProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := filepath.Join(t.TempDir(), "treecore")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"version"}, exitDone, `^treecore `, `^$`},
		{[]string{"replay", "--workload", "shared-prefix", "--groups", "1", "--json"}, exitDone, `^\{\n`, `^$`},
		{[]string{"replay", "--trace", "none.jsonl"}, exitUsage, `^$`, `^treecore: none.jsonl: .*\n$`},
		{[]string{"bogus"}, exitUsage, `^$`, `^treecore: unknown command "bogus" for "treecore"\n$`},
	} {
		var out, errs bytes.Buffer
		p := exec.Command(program, c.args...)
		p.Stdout, p.Stderr = &out, &errs
		_ = p.Run() // the exit code says it
		if code := p.ProcessState.ExitCode(); code != c.code || !regexp.MustCompile(c.stdout).MatchString(out.String()) || !regexp.MustCompile(c.stderr).MatchString(errs.String()) {
			t.Errorf("%v: code %d, stdout %.60q, stderr %q", c.args, code, out.String(), errs.String())
		}
	}
}
