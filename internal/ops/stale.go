// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// answersAbsent are the verbs that answer a stale handle with "no" instead of
// an error (rule A-5), and sanity-check, which reports it (rule A-6).
var answersAbsent = map[string]string{
	"contains":                 "false",
	"is-device-evictable-leaf": "false",
	"is-host-evictable-leaf":   "false",
	"sanity-check":             "error: check V-34",
	"snapshot-buffer":          none,
	"validate-buffer":          none,
}

// mayBeNone are the fields in which no node at all is a fair answer.
var mayBeNone = map[string]bool{"inserted": true}

// StaleHandleTest makes every call that takes handles with each of them stale
// in turn: one whose node was evicted, one from before a reset, and numbers that
// were never handed out. Each call must give the error that names the handle,
// and all that can be observed must be as before.
func StaleHandleTest(t *testing.T, newMachine NewMachine) {
	t.Helper()
	s := staleStory(t, newMachine)
	bad := map[string]tree.NodeID{
		"evicted": s.nodes["gone"], "before reset": s.nodes["old"], "zero": 0, "negative": -1, "highest": math.MaxInt64,
	}
	names := make([]string, 0, len(bad))
	for name := range bad {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range verbTable {
		spec := &verbTable[i]
		for j := range spec.fields {
			if spec.fields[j].handle == noHandle {
				continue
			}
			for _, name := range names {
				if bad[name] == tree.NoNode && mayBeNone[spec.fields[j].name] {
					continue
				}
				for k, value := range staleValues(&spec.fields[j], bad[name]) {
					place := spec.fields[j].name
					if k > 0 {
						place += fmt.Sprint(k + 1)
					}
					t.Run(fmt.Sprintf("%s/%s/%s", spec.name, place, strings.ReplaceAll(name, " ", "_")), func(t *testing.T) {
						staleCall(t, s, spec, &spec.fields[j], bad[name], value)
					})
				}
			}
		}
	}
}

// staleStory builds a tree with nodes A > B, locks, a session and an open walk.
func staleStory(t *testing.T, newMachine NewMachine) *Story {
	t.Helper()
	o := tree.Options{Components: tree.SetOf(tree.Full, tree.SWA, tree.Mamba), SlidingWindow: 4, CheckpointGrid: 1, Sessions: true, Events: true}
	m, err := newMachine(o)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStory(o, m)
	lines := []string{
		"insert tokens=1..4 as=old", "reset",
		"insert tokens=21..24 as=gone", "evict full n=4",
		"insert tokens=1..4 as=A", "insert tokens=1..8 from=A as=B", "insert tokens=1..4,9 from=A as=C",
		"lock B skip=mamba as=r", "open-session s1", "register s1 node=C",
	}
	if isHostMachine(m) {
		lines = append(lines, "switches host-tier swa-host-pool storage",
			"backup A", "ack", "lock-host A as=h", "backup B")
	}
	for _, line := range lines {
		text, err := s.Do(line)
		if err != nil || strings.Contains(text, "PROBLEM") || strings.Contains(text, "error") {
			t.Fatalf("%s: %v %s", line, err, text)
		}
	}
	return s
}

// staleValues are the values of a field in which one handle is stale, among
// good ones where there are several.
func staleValues(f *fieldSpec, id tree.NodeID) []string {
	number := formatNode(id)
	switch f.handle {
	case nodesHandle:
		return []string{"A," + number + ",B"}
	case inFlightHandle:
		return []string{"1:B,2:" + number}
	case receiptHandle:
		return []string{number + ":mamba:0"}
	case transfersHandle:
		if f.name == "full" {
			return []string{"full::900..911:A," + number + ",B"}
		}
		return []string{"swa::900..911:A," + number + ",B", "swa::900..907:A,B;mamba::900:" + number}
	}
	return []string{number}
}

func staleCall(t *testing.T, s *Story, spec *verbSpec, stale *fieldSpec, id tree.NodeID, bad string) {
	if _, ok := s.m.(HostMachine); !ok && needsHost(spec.name) {
		t.Skipf("%s: the machine has no host tier", spec.name)
	}
	usual := map[string]string{
		"node": "B", "from": "B", "until": "A", "nodes": "A,B", "receipt": "r",
		"component": "swa", "components": "full,swa", "id": "s1", "generation": formatInt64(s.generations["s1"]),
		"slots": "1000900..1000903", "write-through": "1:B", "load-back": "1:B",
		"anchor": "A", "inserted": "B", "ack": "5", "aux": "swa::900..907:A,B", "full": "full::900..903:A",
		"tokens": "31..34", "units": "4", "found": "0,1,1",
	}
	if spec.name == "unlock-host" {
		usual["node"], usual["receipt"] = "A", "h"
	}
	var fields []rawField
	for i := range spec.fields {
		f := &spec.fields[i]
		value, ok := usual[f.name]
		if f.flag || !ok {
			continue
		}
		if f == stale {
			value = bad
		}
		fields = append(fields, rawField{name: f.name, value: value})
	}
	before := s.dump()
	text, err := s.do(spec.name, fields)
	if err != nil {
		t.Fatal(err)
	}
	want, absent := answersAbsent[spec.name]
	switch {
	case absent:
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s answered %q, want %q", spec.name, text, want)
		}
	case stale.handle == receiptHandle && (strings.HasPrefix(text, "error: receipt") || id == tree.NoNode):
		// A-2 leaves the kind open; a receipt without an anchor is legal.
		if id == tree.NoNode && !strings.HasPrefix(text, "error: receipt") {
			t.Skip("a receipt without an anchor releases what it can")
		}
	case !strings.HasPrefix(text, "error: node-access"):
		t.Errorf("%s %v answered %q, want the node access error", spec.name, fields, text)
	}
	if after := s.dump(); after != before {
		t.Errorf("%s %v changed something.\nbefore:\n%s\nafter:\n%s", spec.name, fields, before, after)
	}
}

// dump writes everything observable as text, with the node numbers.
func (s *Story) dump() string {
	var b strings.Builder
	e := &Executor{Machine: s.m}
	infos := slices.Clone(s.inspectAll())
	for i := range infos {
		b.WriteString(e.inspect(&infos[i]) + "\n")
		hashes, err := s.m.Hashes(infos[i].ID)
		fmt.Fprintf(&b, "  hashes %s leaf %t host leaf %t\n", e.hashes(hashes, err),
			s.m.IsDeviceEvictableLeaf(infos[i].ID), s.m.IsHostEvictableLeaf(infos[i].ID))
	}
	for c := tree.Full; c < tree.NumComponents; c++ {
		fmt.Fprintf(&b, "%s device %s host %s\n", c, e.nodeList(s.m.RecencyOrder(c, false)), e.nodeList(s.m.RecencyOrder(c, true)))
	}
	if m, ok := s.m.(HostMachine); ok {
		fmt.Fprintf(&b, "duplicates %s digest %d\n", e.nodesText(m.HostDuplicates()), m.ReclaimDigest())
	}
	sizes, _ := s.sizesVerb(nil)
	order, err := s.leafOrder()
	fmt.Fprintf(&b, "%s\norder %s %v\nongoing %t\n", sizes, e.nodeList(order), err, s.m.HasOngoingInsert())
	return b.String()
}
