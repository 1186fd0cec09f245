// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/treecore/treecore/"

// mayImport lists, for each package, the packages of ours that its code (not
// its tests) may import. Arrows run one way: a package knows those below it.
var mayImport = map[string][]string{
	"tree":    {},
	"pool":    {"tree"},
	"cache":   {"tree", "pool", "storage", "storage/queue"},
	"storage": {"tree"},
	// The backends know nothing of each other.
	"storage/file":        {"storage"},
	"storage/redis":       {"storage"},
	"storage/s3":          {"storage"},
	"storage/all":         {"storage/file", "storage/redis", "storage/s3"},
	"storage/attach":      {"storage", "storage/queue"},
	"storage/storagetest": {"storage", "tree"},
	"storage/queue":       {"storage", "tree"},
	"workload":            {},
	"engine":              {"tree", "pool", "cache", "storage/queue"},
	"engine/symbolic":     {"tree", "pool", "engine"},
	"engine/tiny":         {"tree", "pool", "engine"},
	"scenario":            {"tree", "cache", "engine", "engine/symbolic", "engine/tiny", "storage", "storage/file"},
	"model":               {"tree", "cache"},
	"replay":              {"tree", "pool", "cache", "storage", "storage/queue", "workload", "model"},
	"server":              {"tree", "pool", "cache", "engine", "storage", "storage/queue", "storage/attach"},
	"cmd/treecore": {
		"scenario", "tree", "pool", "cache", "storage/all", "workload", "model", "replay",
		"internal/ops", "internal/bench", "engine", "engine/symbolic", "engine/tiny", "server", "storage",
	},
	"capi":              {"capi/internal/abi"},
	"capi/internal/abi": {"tree"},
	// What calls the C functions in tests sees the header and links the rest.
	"capi/internal/client": {"tree", "capi/internal/abi"},
	"internal/ops":         {"tree"},
	"internal/bench":       {"tree", "pool"},
	// The oracle shares types with the tree, and no logic.
	"internal/oracle": {"tree", "internal/ops"},
	"internal/house":  {},
}

// noClock lists the packages whose decisions must not depend on time.
var noClock = []string{"tree", "pool", "cache"}

type goFile struct {
	path, pkg string
	test      bool
	imports   []string
	text      []byte
}

func files(t *testing.T) []goFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f := goFile{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(path, "_test.go")}
		if f.text, err = os.ReadFile(path); err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, f.text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, name)
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d Go files found: the test looks in the wrong place", len(out))
	}
	return out
}

func TestImportsRunDownwards(t *testing.T) {
	for _, f := range files(t) {
		allowed, known := mayImport[f.pkg]
		if !known {
			t.Errorf("%s: package %s has no line in mayImport: say what it may import", f.path, f.pkg)
			continue
		}
		if f.test {
			continue
		}
		for _, i := range f.imports {
			ours, ok := strings.CutPrefix(i, module)
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s: %s must not import %s: arrows run one way, see ARCHITECTURE.md", f.path, f.pkg, ours)
			}
		}
	}
}

func TestNoClockWhereDecisionsAreMade(t *testing.T) {
	for _, f := range files(t) {
		if !f.test && slices.Contains(noClock, f.pkg) && slices.Contains(f.imports, "time") {
			t.Errorf("%s: %s must not read a clock: equal calls give equal answers", f.path, f.pkg)
		}
		if !f.test && slices.Contains(noClock, f.pkg) && (slices.Contains(f.imports, "math/rand") || slices.Contains(f.imports, "math/rand/v2")) {
			t.Errorf("%s: %s must not use randomness: equal calls give equal answers", f.path, f.pkg)
		}
	}
}

func TestEveryFileNamesItsLicence(t *testing.T) {
	header := []byte("// Copyright The treecore Authors\n// SPDX-License-Identifier: Apache-2.0\n")
	for _, f := range files(t) {
		if !bytes.HasPrefix(f.text, header) {
			t.Errorf("%s: does not begin with the two licence lines", f.path)
		}
	}
}

// A file is about one thing. One that outgrows this has taken in a second idea.
func TestFilesStayShort(t *testing.T) {
	const most = 600
	for _, f := range files(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > most {
			t.Errorf("%s: %d lines: which second idea moved in?", f.path, n)
		}
	}
}
