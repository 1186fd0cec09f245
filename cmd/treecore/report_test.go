// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A run that fails leaves an earlier report as it was, and no empty new one; a
// run that succeeds replaces it whole.
func TestAFailedRunLeavesTheReportAlone(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old.json"), filepath.Join(dir, "fresh.json")
	earlier := bytes.Repeat([]byte("earlier report\n"), 1000)
	if err := os.WriteFile(old, earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	replay := func(file string, more ...string) int {
		args := append([]string{"replay", "--workload", "shared-prefix", "--groups", "1", "--prompts-per-group", "1",
			"--system-tokens", "500", "--question-tokens", "100", "--output-tokens", "4", "--json=" + file}, more...)
		return run(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{})
	}
	for _, file := range []string{old, fresh} {
		if code := replay(file, "--chunk", "1"); code != exitUsage {
			t.Fatalf("a chunk below a page: exit code %d", code)
		}
	}
	if got, err := os.ReadFile(old); err != nil || !bytes.Equal(got, earlier) {
		t.Errorf("the earlier report has %d bytes: %v", len(got), err)
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a report was left behind: %v", err)
	}
	log := filepath.Join(dir, "calls.log")
	if code := replay(old, "--op-log", log, "--chunk", "1"); code != exitUsage {
		t.Fatalf("a chunk below a page: exit code %d", code)
	}
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Errorf("a log was left behind: %v", err)
	}
	if err := os.WriteFile(log, earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := replay(old, "--op-log", log, "--chunk", "1"); code != exitUsage {
		t.Fatalf("a chunk below a page: exit code %d", code)
	}
	if got, err := os.ReadFile(log); err != nil || !bytes.Equal(got, earlier) {
		t.Errorf("the earlier log has %d bytes: %v", len(got), err)
	}
	if code := replay(old, "--op-log", log); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	if got, err := os.ReadFile(log); err != nil || bytes.Contains(got, []byte("earlier")) {
		t.Errorf("the new log holds %d bytes of old and new: %v", len(got), err)
	}
	if code := replay(old); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	if got, err := os.ReadFile(old); err != nil || bytes.Contains(got, []byte("earlier")) || !bytes.HasSuffix(got, []byte("}\n")) {
		t.Errorf("the new report holds %d bytes of old and new: %v", len(got), err)
	}
}
