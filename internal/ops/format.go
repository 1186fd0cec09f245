// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "strings"

// Format returns the call as a line, without a line end. It is "" for a call
// without verb and for a verb that does not exist.
func (c *Call) Format() string {
	spec := findVerb(c.Verb)
	if spec == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(spec.name)
	for i := range spec.fields {
		f := &spec.fields[i]
		value, write := f.format(c)
		if !write {
			continue
		}
		b.WriteString(" " + f.name)
		if !f.flag {
			b.WriteString("=" + value)
		}
	}
	return b.String()
}
