// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// holds wants a folder to have these files and no others, with their contents.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if _, ok := want[entry.Name()]; !ok {
			t.Errorf("there is a file %s", entry.Name())
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, text)
		}
	}
}

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Until a report is written as a whole there is nothing new in its folder, so a
// process that is killed before leaves no empty file.
func TestAReportAppearsAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	for _, before := range []map[string]string{{}, {"report.json": "first"}} {
		r, err := openReport(path)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, dir, before)
		full := errors.New("no room")
		if err := r.write(func(w io.Writer) error {
			if err := says("half a rep")(w); err != nil {
				return err
			}
			if got, err := os.ReadFile(path); string(got) != before["report.json"] {
				t.Errorf("half of it is there: %q, %v", got, err)
			}
			return full
		}); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
		holds(t, dir, before)
		if r, err = openReport(path); err != nil {
			t.Fatal(err)
		}
		if err := r.write(says("first")); err != nil {
			t.Error(err)
		}
		holds(t, dir, map[string]string{"report.json": "first"})
	}
}

// A file that is there keeps its rights, a link stays one, and what it leads to
// is replaced, or made.
func TestAReportBehindALink(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	target := filepath.Join(other, "target.json")
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"first", "again"} {
		r, err := openReport(link)
		if err == nil {
			err = r.write(says(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		holds(t, other, map[string]string{"target.json": text})
		holds(t, dir, map[string]string{"link.json": text})
		if to, err := os.Readlink(link); err != nil || to != target {
			t.Errorf("the link leads to %q: %v", to, err)
		}
		if i == 0 {
			if err := os.Chmod(target, 0o640); err != nil {
				t.Fatal(err)
			}
		} else if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	round := filepath.Join(dir, "round")
	if err := os.Symlink("round", round); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{round, dir, filepath.Join(dir, "none") + "/", filepath.Join(dir, "no", "x"), filepath.Join(link, "x")} {
		if r, err := openReport(path); err == nil {
			_ = r.close()
			t.Errorf("%s can be written", path)
		}
	}
}

// What is no file is written in place.
func TestAReportInAPipe(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	path := filepath.Join("/dev/fd", strconv.Itoa(int(to.Fd())))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("open files have no names here: %v", err)
	}
	r, err := openReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.write(says("report")), to.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(from); err != nil || string(got) != "report" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	if r, err = openReport("/dev/full"); err != nil {
		t.Fatal(err)
	}
	if err := r.write(says("report")); err == nil {
		t.Error("a full disk took the report")
	}
}
