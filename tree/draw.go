// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"io"
	"strings"
)

// deepestIndent is the depth from which on lines say their depth instead.
const deepestIndent = 32

// Draw writes the tree, one line a node: id, key, and what each component has
// of it on device/host. The text is for people and may change.
func (c *Core) Draw(w io.Writer) error {
	depth := 0
	for n := c.root; n != nil; {
		indent := strings.Repeat("  ", min(depth, deepestIndent))
		if depth > deepestIndent {
			indent += fmt.Sprintf("(depth %d) ", depth)
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", indent, c.describe(n)); err != nil {
			return err
		}
		if n.firstChild != nil {
			n, depth = n.firstChild, depth+1
			continue
		}
		for n != nil && n.next == nil {
			n, depth = n.parent, depth-1
		}
		if n != nil {
			n = n.next
		}
	}
	return nil
}

func (c *Core) describe(n *node) string {
	if n == c.root {
		return fmt.Sprintf("root #%d  %d nodes", n.id, c.nodes.len())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#%d [%s] %d", n.id, describeTokens(n.raw), n.units)
	if name := n.ns.name; n.parent == c.root && !name.isDefault() {
		fmt.Fprintf(&b, " extra=%q salt=%q", name.ExtraKey, name.Salt)
	}
	for _, h := range c.comps {
		s := &n.state[h.id()]
		fmt.Fprintf(&b, "  %v=%v", h.id(), s.device)
		if s.host != nil {
			fmt.Fprintf(&b, "/%v", s.host)
		}
		if s.locks > 0 {
			fmt.Fprintf(&b, " lock %d", s.locks)
		}
	}
	if n.hits > 0 {
		fmt.Fprintf(&b, "  hits %d", n.hits)
	}
	return b.String()
}

// describeTokens shows a key's ends, and rising rows as ranges.
func describeTokens(t []Token) string {
	const most = 6 // ranges shown
	var parts []string
	for i := 0; i < len(t); {
		j := i
		for j+1 < len(t) && t[j] != ^Token(0) && t[j+1] == t[j]+1 {
			j++
		}
		if len(parts) == most {
			parts = append(parts, "...")
			break
		}
		switch j {
		case i:
			parts = append(parts, fmt.Sprint(t[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d..%d", t[i], t[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
