// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"debug/elf"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// declared returns the prototypes of the header: name to result and parameters,
// without const and without the parameters' names.
func declared(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("treecore.h")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^TC_API (\w+) (tc_\w+)\((.*)\);$`).FindAllStringSubmatch(string(text), -1) {
		var types []string
		for _, p := range strings.Split(m[3], ", ") {
			p = strings.TrimPrefix(p, "const ")
			if p == "void" {
				continue
			}
			i := strings.LastIndexAny(p, " *")
			types = append(types, strings.ReplaceAll(p[:i+1], " ", ""))
		}
		out[m[2]] = m[1] + "(" + strings.Join(types, ", ") + ")"
	}
	if n := strings.Count(string(text), "\nTC_API "); n != len(out) || n == 0 {
		t.Fatalf("%d of %d prototypes were understood: each is one line", len(out), n)
	}
	return out
}

// exported returns the same of the functions in Go.
func exported(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("internal", "abi", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil || !slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//export "+f.Name.Name }) {
				continue
			}
			var types []string
			for _, p := range f.Type.Params.List {
				for range max(len(p.Names), 1) {
					types = append(types, cType(t, p.Type))
				}
			}
			result := "void"
			if f.Type.Results != nil {
				result = cType(t, f.Type.Results.List[0].Type)
			}
			out[f.Name.Name] = result + "(" + strings.Join(types, ", ") + ")"
		}
	}
	return out
}

func cType(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.StarExpr:
		return cType(t, e.X) + "*"
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	t.Fatalf("a parameter is %T: use the types of C", e)
	return ""
}

// TestHeaderIsTheLibrary compares the header, written by hand, with the functions.
func TestHeaderIsTheLibrary(t *testing.T) {
	header, functions := declared(t), exported(t)
	for name, is := range functions {
		if header[name] != is {
			t.Errorf("%s is %s, the header declares %q", name, is, header[name])
		}
	}
	for name := range header {
		if _, ok := functions[name]; !ok {
			t.Errorf("%s is declared and does not exist", name)
		}
	}
}

// TestExports shows that the library exports what the header declares and not a
// thing more.
func TestExports(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("capi: exports are compared on linux, this is %s", runtime.GOOS)
	}
	file, err := elf.Open(filepath.Join(library(t, plain), "libtreecore.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	header := declared(t)
	found := 0
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		found++
		if _, ok := header[s.Name]; !ok {
			t.Errorf("the library exports %s, which the header does not declare", s.Name)
		}
	}
	if found != len(header) {
		t.Errorf("the library exports %d names, the header declares %d", found, len(header))
	}
}

// TestEveryFunctionIsCalledAtRandom shows that the random calls leave none out.
func TestEveryFunctionIsCalledAtRandom(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "random.h"))
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for name, is := range declared(t) {
		if !strings.HasPrefix(is, "int32_t(tc_core") || name == "tc_destroy" || name == "tc_set_log" {
			continue
		}
		cases++
		if !strings.Contains(string(text), "return "+name+"(") {
			t.Errorf("%s has no case in random_call", name)
		}
	}
	if !strings.Contains(string(text), fmt.Sprintf("FUNCTIONS = %d }", cases)) {
		t.Errorf("FUNCTIONS must be %d", cases)
	}
}
