// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
)

// writeJSON writes a document.
func writeJSON(w io.Writer, x any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(x)
}

// writeJSONTo writes a document to a file, as a whole or not at all, or to out if
// the file is "-".
func writeJSONTo(out io.Writer, file string, x any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, x); err != nil {
		return err
	}
	if file == "-" {
		_, err := out.Write(b.Bytes())
		return err
	}
	r, err := openReport(file)
	if err != nil {
		return err
	}
	return r.write(func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}
