// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/pelletier/go-toml/v2"
)

// readJSON reads an object key by key: decoding it as a whole would take the
// last of several equal keys, and a fraction for a whole number.
func readJSON(b []byte) ([]setting, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	first, err := d.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if first != json.Delim('{') {
		return nil, errors.New("JSON that is no object")
	}
	var out []setting
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, jsonError(err)
		}
		s := setting{key: key.(string), shown: short(string(raw))} // the decoder takes no other keys
		switch text := string(raw); {
		case text == "true" || text == "false":
			s.value = text == "true"
		case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
			s.value = number(text)
		}
		out = append(out, s)
	}
	if _, err := d.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

// number reads a JSON number: a whole one that fits as int64, another as float64,
// which is infinite if it is too large.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

func jsonError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("JSON that ends too early")
	}
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return fmt.Errorf("byte %d: %w", at.Offset, err)
	}
	return err
}

func readTOML(b []byte) ([]setting, error) {
	var all map[string]any
	if err := toml.Unmarshal(b, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return nil, err
	}
	var out []setting
	for key, value := range all { // the checker asks by key
		s := setting{key: key, value: value}
		switch v := value.(type) {
		case float64:
			s.shown = strconv.FormatFloat(v, 'g', -1, 64)
		case string:
			s.shown = quoted(v)
		case map[string]any:
			s.shown = "a table"
		case []any:
			s.shown = "an array"
		default:
			s.shown = short(fmt.Sprint(v))
		}
		out = append(out, s)
	}
	return out, nil
}

// readYAML looks at the nodes, and at no value as a whole: aliases are not
// followed, so a small file cannot become a large value.
func readYAML(b []byte) ([]setting, error) {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			where := at.GetToken().Position
			return nil, fmt.Errorf("line %d, column %d: %s", where.Line, where.Column, strings.Join(strings.Fields(at.GetMessage()), " "))
		}
		return nil, err
	}
	var out []setting
	for i, doc := range file.Docs {
		var pairs []*ast.MappingValueNode
		switch body := doc.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode:
			continue
		case *ast.MappingNode:
			pairs = body.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{body}
		default:
			return nil, errors.New("YAML that is no mapping")
		}
		if i > 0 {
			return nil, errors.New("YAML of more than one document")
		}
		for _, pair := range pairs {
			out = append(out, yamlSetting(pair))
		}
	}
	return out, nil
}

func yamlSetting(pair *ast.MappingValueNode) setting {
	s := setting{key: pair.Key.String()}
	if text, ok := pair.Key.(*ast.StringNode); ok {
		s.key = text.Value
	}
	switch v := pair.Value.(type) {
	case *ast.BoolNode:
		s.value = v.Value
	case *ast.IntegerNode:
		switch n := v.Value.(type) {
		case int64:
			s.value = n
		case uint64:
			if s.value = float64(n); n <= math.MaxInt64 {
				s.value = int64(n)
			}
		}
	case *ast.FloatNode:
		s.value = v.Value
	case *ast.InfinityNode:
		s.value = v.Value
	case *ast.NanNode:
		s.value = math.NaN()
	case *ast.NullNode:
		s.shown = "null"
	case *ast.StringNode:
		s.shown = quoted(v.Value)
	case *ast.MappingNode, *ast.MappingValueNode:
		s.shown = "a mapping"
	case *ast.SequenceNode:
		s.shown = "a list"
	}
	if s.shown == "" {
		s.shown = short(strings.Join(strings.Fields(fmt.Sprint(pair.Value)), " "))
	}
	if s.shown == "" {
		s.shown = "empty"
	}
	return s
}
