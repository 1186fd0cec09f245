// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// The functions below read and write the values of fields. Readers return
// errors that say what was found and what would be right.

func parseInt(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no integer", s)
	}
	return v, nil
}

func parseInt64(s string) (int64, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no 64-bit integer", s)
	}
	return v, nil
}

func parseNode(s string) (tree.NodeID, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no node number", s)
	}
	return tree.NodeID(v), nil
}

func parseUint32(s string) (uint32, error) {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no number from 0 to 4294967295", s)
	}
	return uint32(v), nil
}

func parseString(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		v, err := strconv.Unquote(s)
		if err != nil {
			return "", fmt.Errorf("%s is no quoted string", s)
		}
		return v, nil
	}
	if s == "" {
		return "", fmt.Errorf(`the value is empty, an empty string is ""`)
	}
	for i := 0; i < len(s); i++ {
		if ch := s[i]; !isWordByte(ch) {
			return "", fmt.Errorf("%q has to be quoted", s)
		}
	}
	return s, nil
}

func isWordByte(ch byte) bool {
	return ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' ||
		ch == '_' || ch == '.' || ch == '-' || ch == '/'
}

func parseComponent(s string) (tree.Component, error) {
	for c := tree.Full; c < tree.NumComponents; c++ {
		if s == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%q is no component: full, swa or mamba", s)
}

func parseSet(s string) (tree.ComponentSet, error) {
	if s == "none" {
		return 0, nil
	}
	var set tree.ComponentSet
	for name := range strings.SplitSeq(s, ",") {
		c, err := parseComponent(name)
		if err != nil {
			return 0, err
		}
		if set.Has(c) {
			return 0, fmt.Errorf("%s stands twice", c)
		}
		set |= tree.SetOf(c)
	}
	return set, nil
}

// span is one item of a list: Count numbers from First on, or Count times
// First.
type span struct {
	first  uint32
	count  int
	repeat bool
}

func parseSpan(s string) (span, error) {
	if a, b, ok := strings.Cut(s, ".."); ok {
		from, err := parseUint32(a)
		if err != nil {
			return span{}, err
		}
		to, err := parseUint32(b)
		if err != nil {
			return span{}, err
		}
		if to < from {
			return span{}, fmt.Errorf("the range %s falls", s)
		}
		n := int64(to) - int64(from) + 1
		if n > MaxListLen {
			return span{}, fmt.Errorf("the range %s is longer than %d", s, MaxListLen)
		}
		return span{first: from, count: int(n)}, nil
	}
	if a, b, ok := strings.Cut(s, "*"); ok {
		v, err := parseUint32(a)
		if err != nil {
			return span{}, err
		}
		n, err := parseUint32(b)
		if err != nil {
			return span{}, err
		}
		if n < 1 || n > MaxListLen {
			return span{}, fmt.Errorf("%s repeats less than once or more than %d times", s, MaxListLen)
		}
		return span{first: v, count: int(n), repeat: true}, nil
	}
	v, err := parseUint32(s)
	return span{first: v, count: 1}, err
}

func parseTokens(s string) ([]tree.Token, error) {
	if s == "-" {
		return nil, nil
	}
	var out []tree.Token
	for item := range strings.SplitSeq(s, ",") {
		sp, err := parseSpan(item)
		if err != nil {
			return nil, err
		}
		if len(out)+sp.count > MaxListLen {
			return nil, fmt.Errorf("the list is longer than %d", MaxListLen)
		}
		for i := range sp.count {
			v := sp.first
			if !sp.repeat {
				v += uint32(i)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

func formatTokens(tokens []tree.Token) string {
	if len(tokens) == 0 {
		return "-"
	}
	var b strings.Builder
	for i := 0; i < len(tokens); {
		if i > 0 {
			b.WriteByte(',')
		}
		n := 1
		b.WriteString(strconv.FormatUint(uint64(tokens[i]), 10))
		for i+n < len(tokens) && tokens[i+n] == tokens[i] {
			n++
		}
		if n > 1 {
			b.WriteString("*" + strconv.Itoa(n))
			i += n
			continue
		}
		for i+n < len(tokens) && uint64(tokens[i+n]) == uint64(tokens[i])+uint64(n) {
			n++
		}
		if n > 1 {
			b.WriteString(".." + strconv.FormatUint(uint64(tokens[i+n-1]), 10))
		}
		i += n
	}
	return b.String()
}

func parseSlots(s string) (tree.Slots, error) {
	out := tree.Slots{}
	if s == "-" {
		return out, nil
	}
	total := 0
	for item := range strings.SplitSeq(s, ",") {
		var buffer uint32
		if after, ok := strings.CutPrefix(item, "buf"); ok {
			id, inner, found := strings.Cut(after, "[")
			inner, closed := strings.CutSuffix(inner, "]")
			var err error
			if buffer, err = parseUint32(id); err != nil || !found || !closed || buffer == 0 {
				return nil, fmt.Errorf("%q is no run of a buffer such as buf2[10..13]", item)
			}
			item = inner
		}
		sp, err := parseSpan(item)
		if err != nil {
			return nil, err
		}
		if total += sp.count; total > MaxListLen {
			return nil, fmt.Errorf("the list is longer than %d", MaxListLen)
		}
		run := tree.Run{Buffer: tree.BufferID(buffer), First: tree.Slot(sp.first), Length: uint32(sp.count)}
		if !sp.repeat {
			out = out.AppendRun(run)
			continue
		}
		run.Length = 1
		for range sp.count {
			out = append(out, run)
		}
	}
	return out, nil
}

// formatSlots writes the list with neighbours joined, so that equal lists have
// equal text.
func formatSlots(s tree.Slots) string {
	return tree.Slots{}.AppendSlice(s, 0, s.Len()).String()
}

func parseReceipt(s string) (tree.Receipt, error) {
	var r tree.Receipt
	parts := strings.Split(s, ":")
	if len(parts) != 3 && len(parts) != 5 {
		return r, fmt.Errorf("%q is no receipt such as 3:none:0", s)
	}
	var err error
	if r.Node, err = parseNode(parts[0]); err != nil {
		return r, err
	}
	if r.Skipped, err = parseSet(parts[1]); err != nil {
		return r, err
	}
	targets := []*uint64{&r.Boundary[tree.SWA], &r.HostBound[tree.Full], &r.HostBound[tree.SWA]}
	for i, p := range parts[2:] {
		v, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return r, fmt.Errorf("%q is no boundary number", p)
		}
		*targets[i] = v
	}
	return r, nil
}

func formatReceipt(r tree.Receipt) string {
	s := fmt.Sprintf("%d:%s:%d", r.Node, r.Skipped, r.Boundary[tree.SWA])
	if r.HostBound[tree.Full] != 0 || r.HostBound[tree.SWA] != 0 {
		s += fmt.Sprintf(":%d:%d", r.HostBound[tree.Full], r.HostBound[tree.SWA])
	}
	return s
}

func parseUnits(s string) (tree.Units, error) {
	var u tree.Units
	parts := strings.Split(s, ",")
	if len(parts) != len(u) {
		return u, fmt.Errorf("%q are not three integers such as 0,0,0", s)
	}
	for i, p := range parts {
		v, err := parseInt(p)
		if err != nil {
			return u, err
		}
		u[i] = v
	}
	return u, nil
}

func formatUnits(u tree.Units) string { return fmt.Sprintf("%d,%d,%d", u[0], u[1], u[2]) }

func parseInFlight(s string) ([]tree.InFlight, error) {
	if s == "-" {
		return nil, nil
	}
	var out []tree.InFlight
	for item := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(item, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no pair id:node", item)
		}
		id, err := parseInt64(a)
		if err != nil {
			return nil, err
		}
		node, err := parseNode(b)
		if err != nil {
			return nil, err
		}
		out = append(out, tree.InFlight{ID: id, Node: node})
	}
	return out, nil
}

func formatInFlight(list []tree.InFlight) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = fmt.Sprintf("%d:%d", f.ID, f.Node)
	}
	return strings.Join(parts, ",")
}

func parseNodes(s string) ([]tree.NodeID, error) {
	if s == "-" {
		return nil, nil
	}
	var out []tree.NodeID
	for item := range strings.SplitSeq(s, ",") {
		id, err := parseNode(item)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

func formatNodes(list []tree.NodeID) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, id := range list {
		parts[i] = strconv.FormatInt(int64(id), 10)
	}
	return strings.Join(parts, ",")
}
