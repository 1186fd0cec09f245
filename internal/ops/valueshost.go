// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

func parseDigests(s string) ([]tree.Digest, error) {
	out := []tree.Digest{}
	if s == "-" {
		return out, nil
	}
	for item := range strings.SplitSeq(s, ",") {
		var d tree.Digest
		if len(item) != 2*len(d) {
			return nil, fmt.Errorf("%q are not %d hexadecimal digits", item, 2*len(d))
		}
		if _, err := hex.Decode(d[:], []byte(item)); err != nil {
			return nil, fmt.Errorf("%q are not %d hexadecimal digits", item, 2*len(d))
		}
		out = append(out, d)
	}
	return out, nil
}

func formatDigests(list []tree.Digest) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = d.String()
	}
	return strings.Join(parts, ",")
}

func parseTransfer(s string) (tree.Transfer, error) {
	var t tree.Transfer
	parts := strings.Split(s, ":")
	if len(parts) != 4 {
		return t, fmt.Errorf("%q is no transfer such as swa:20..23::5,7", s)
	}
	var err error
	if t.Component, err = parseComponent(parts[0]); err != nil {
		return t, err
	}
	for i, place := range []*tree.Slots{&t.Device, &t.Host} {
		if parts[1+i] == "" {
			continue
		}
		if *place, err = parseSlots(parts[1+i]); err != nil {
			return t, err
		}
	}
	t.Nodes, err = parseNodes(parts[3])
	return t, err
}

func formatTransfer(t tree.Transfer) string {
	side := func(s tree.Slots) string {
		if s == nil {
			return ""
		}
		return formatSlots(s)
	}
	return t.Component.String() + ":" + side(t.Device) + ":" + side(t.Host) + ":" + formatNodes(t.Nodes)
}

func parseTransfers(s string) ([]tree.Transfer, error) {
	if s == "-" {
		return nil, nil
	}
	var out []tree.Transfer
	for item := range strings.SplitSeq(s, ";") {
		t, err := parseTransfer(item)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func formatTransfers(list []tree.Transfer) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = formatTransfer(t)
	}
	return strings.Join(parts, ";")
}

// isNothing reports whether a transfer is the one that a load back without
// Full has.
func isNothing(t *tree.Transfer) bool {
	return t.Component == tree.Full && t.Device == nil && t.Host == nil && len(t.Nodes) == 0
}
