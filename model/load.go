// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

//go:embed profiles/*.yaml
var files embed.FS

const (
	folder = "profiles"
	suffix = ".yaml"

	maxFile = 1 << 20
)

// Names gives the names of the built-in profiles, sorted.
func Names() []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil // the folder is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// Load gives the built-in profile of that name, or else reads the profile file
// at that path. Anything that looks like a path (it has a separator or ends in
// .yaml or .yml) is a file. For errors of files see [Parse]; an unknown name
// gives an *UnknownError.
func Load(nameOrFile string) (*Profile, error) {
	isPath := strings.ContainsRune(nameOrFile, '/') || strings.ContainsRune(nameOrFile, os.PathSeparator) ||
		strings.HasSuffix(nameOrFile, suffix) || strings.HasSuffix(nameOrFile, ".yml")
	if !isPath {
		text, err := files.ReadFile(path.Join(folder, nameOrFile+suffix))
		if err == nil {
			return Parse(nameOrFile, text)
		}
	}
	f, err := os.Open(nameOrFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isPath, nameOrFile == "":
		return nil, &UnknownError{Name: nameOrFile}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such profile file, check the path: %w", nameOrFile, err)
	case err != nil:
		return nil, fmt.Errorf("%s: the profile file cannot be opened, check its permissions: %w", nameOrFile, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil && !isPath:
		return nil, &UnknownError{Name: nameOrFile} // a folder that happens to have that name
	case err != nil:
		return nil, fmt.Errorf("%s: the profile file cannot be read, name a YAML file: %w", nameOrFile, err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: more than %d bytes, name a profile file", nameOrFile, maxFile)
	}
	return Parse(nameOrFile, text)
}

// UnknownError says that a name is not that of a built-in profile.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %q is not known; known are %s, or give the path of a profile file (YAML)", e.Name, strings.Join(Names(), ", "))
}

// SyntaxError says where a profile file cannot be read.
type SyntaxError struct {
	File         string
	Line, Column int // from 1
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// Parse reads the text of a profile file; from names it in messages. It fills in
// defaults. What is not YAML, or has a field that is unknown, given twice or of
// the wrong type, gives a *SyntaxError. Otherwise all wrong values are reported
// together, a *FieldError each.
func Parse(from string, text []byte) (*Profile, error) {
	p := &Profile{}
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(p)
	if err == io.EOF {
		return nil, &SyntaxError{File: from, Line: 1, Column: 1, Problem: "the profile is empty, it needs at least name and full.bytes_per_token"}
	}
	if err != nil {
		var at yaml.Error
		if !errors.As(err, &at) || at.GetToken() == nil {
			return nil, fmt.Errorf("%s: the profile cannot be read: %w", from, err)
		}
		where := at.GetToken().Position
		return nil, &SyntaxError{File: from, Line: where.Line, Column: where.Column, Problem: explain(at)}
	}
	if err := wholeNumbers(from, text); err != nil {
		return nil, err
	}
	if err := p.complete(from); err != nil {
		return nil, err
	}
	return p, nil
}

// wholeNumbers reports a fraction where a whole number belongs; the decoder
// would cut it off.
func wholeNumbers(from string, text []byte) error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fmt.Errorf("%s: the profile cannot be read: %w", from, err)
	}
	find := &fractions{}
	for _, doc := range file.Docs {
		ast.Walk(find, doc)
	}
	if find.first == nil {
		return nil
	}
	where := find.first.Value.GetToken()
	return &SyntaxError{
		File: from, Line: where.Position.Line, Column: where.Position.Column,
		Problem: fmt.Sprintf("%s is %s, must be a whole number", find.first.Key, where.Value),
	}
}

// fractions finds the first fraction that is not a rate.
type fractions struct{ first *ast.MappingValueNode }

func (f *fractions) Visit(n ast.Node) ast.Visitor {
	pair, ok := n.(*ast.MappingValueNode)
	if ok && f.first == nil && pair.Value.Type() == ast.FloatType && !strings.HasSuffix(pair.Key.String(), "_per_second") {
		f.first = pair
	}
	return f
}

// explain puts the library's message in one line and says what to do about an
// unknown field.
func explain(err yaml.Error) string {
	text := strings.Join(strings.Fields(err.GetMessage()), " ")
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		return text + "; fields are name, full.bytes_per_token, swa.bytes_per_token, swa.window, " +
			"mamba.bytes_per_state, mamba.checkpoint_grid, page_size, prefill_tokens_per_second and decode_tokens_per_second"
	}
	return text
}
