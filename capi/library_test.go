// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A made is a library that was built once for all tests.
type made func() (dir string, err error)

var (
	plain     made = sync.OnceValues(func() (string, error) { return build() })
	sanitized made = sync.OnceValues(func() (string, error) { return build("-asan") })
)

// folders are where the libraries are, to be removed at the end.
var folders []string

func build(flags ...string) (string, error) {
	dir, err := os.MkdirTemp("", "libtreecore")
	if err != nil {
		return "", err
	}
	folders = append(folders, dir)
	link := "-X github.com/treecore/treecore/capi/internal/abi.Fingerprint=test"
	if runtime.GOOS == "linux" {
		exports, err := filepath.Abs("treecore.map")
		if err != nil {
			return "", err
		}
		link += " -extldflags=-Wl,--version-script=" + exports
	}
	arguments := append([]string{"build", "-buildmode=c-shared"}, flags...)
	arguments = append(arguments, "-ldflags", link, "-o", filepath.Join(dir, "libtreecore.so"), ".")
	if text, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %v: %v\n%s", arguments, err, text)
	}
	return dir, nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range folders {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// library returns the folder with a library.
func library(t *testing.T, of made) string {
	t.Helper()
	compiler(t)
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("capi: the C program of this test is not written for %s", runtime.GOOS)
	}
	dir, err := of()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// compiler returns the C compiler that the Go command uses, with its flags.
func compiler(t *testing.T) []string {
	t.Helper()
	text, err := exec.Command("go", "env", "CC").Output()
	cc := strings.Fields(string(text))
	if err == nil && len(cc) > 0 {
		_, err = exec.LookPath(cc[0])
	}
	if err != nil || len(cc) == 0 {
		t.Skipf("capi: there is no C compiler (%q): %v", cc, err)
	}
	return cc
}

// exercise is the C program that uses all of the library.
var exercise = filepath.Join("testdata", "exercise.c")

// compile makes a program of a source; an error is the compiler's.
func compile(t *testing.T, dir, source string, flags ...string) (string, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cc := append(compiler(t), "-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I.")
	cc = append(append(cc, flags...), "-o", program, source,
		"-L"+dir, "-ltreecore", "-lpthread", "-Wl,-rpath,"+dir)
	if text, err := exec.Command(cc[0], cc[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %v\n%s", cc, err, text)
	}
	return program, nil
}

func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if text, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, text)
	}
}

// TestExercise runs the C program, and many random calls besides.
func TestExercise(t *testing.T) {
	program, err := compile(t, library(t, plain), exercise)
	if err != nil {
		t.Fatal(err)
	}
	run(t, program)
	for seed := 2; seed < 6; seed++ {
		run(t, program, "50000", fmt.Sprint(seed))
	}
}

// TestExerciseUnderSanitizers runs it with the C program and the library watched:
// what either does to the C heap, and what is left of it. (Valgrind takes the
// stacks of the Go runtime for faults.)
func TestExerciseUnderSanitizers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("capi: the Go command has -asan on linux, this is %s", runtime.GOOS)
	}
	probe := filepath.Join(t.TempDir(), "probe.c")
	if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sanitizers := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	cc := append(compiler(t), sanitizers...)
	if text, err := exec.Command(cc[0], append(cc[1:], "-o", probe+".out", probe)...).CombinedOutput(); err != nil {
		t.Skipf("capi: the C compiler has no sanitizers: %s", text)
	}
	// The library that is watched, too, keeps old addresses on Go stacks, which
	// hides leaks; the other one does not.
	for _, of := range []made{sanitized, plain} {
		program, err := compile(t, library(t, of), exercise, sanitizers...)
		if err != nil {
			t.Fatal(err)
		}
		run(t, program)
	}
}

// TestReadme compiles and runs the program of the README, which says what it
// prints.
func TestReadme(t *testing.T) {
	dir := library(t, plain)
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "```c\n")
	program, rest, ends := strings.Cut(program, "```\n")
	_, want, says := strings.Cut(rest, "prints `")
	want, _, _ = strings.Cut(want, "`")
	if !found || !ends || !says {
		t.Fatal("README.md has no program, or does not say what it prints")
	}
	source := filepath.Join(t.TempDir(), "first.c")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := compile(t, dir, source)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := exec.Command(first).CombinedOutput()
	if err != nil || string(printed) != want+"\n" {
		t.Fatalf("it printed %q, README.md says %q (%v)", printed, want, err)
	}
}

// TestHeaderAlone shows that the header needs no other one, in C and in C++.
func TestHeaderAlone(t *testing.T) {
	cc := compiler(t)
	for _, language := range []string{"c", "c++"} {
		t.Run(language, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "alone."+language)
			if err := os.WriteFile(source, []byte("#include \"treecore.h\"\n#include \"treecore.h\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			arguments := append(cc[1:], "-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I.", source)
			text, err := exec.Command(cc[0], arguments...).CombinedOutput()
			if err != nil && language == "c++" && strings.Contains(string(text), "cc1plus") {
				t.Skipf("capi: there is no C++ compiler: %s", text)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		})
	}
}
