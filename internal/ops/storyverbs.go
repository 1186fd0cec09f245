// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// situation says during what a verb may run; the story ends the rest before.
type situation uint8

const (
	alone        situation = iota
	duringWalk             // walks may be on
	duringInsert           // walks may be on and an insert may be suspended
)

// storyVerb is a verb that only stories have.
type storyVerb struct {
	name   string
	first  string // field that a bare word stands for
	values string // other fields with a value
	flags  string
	during situation
	run    func(s *Story, a *arguments) (string, error)
}

// arguments are the fields of a line for a story verb.
type arguments struct {
	verb   string
	fields []rawField
}

func (a *arguments) text(name string) (string, bool) {
	for _, f := range a.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return "", false
}

func (a *arguments) has(name string) bool { _, ok := a.text(name); return ok }

// argument reads a field; without it the fallback is returned.
func argument[T any](a *arguments, name string, parse func(string) (T, error), fallback T) (T, error) {
	text, ok := a.text(name)
	if !ok {
		return fallback, nil
	}
	v, err := parse(text)
	if err != nil {
		return v, &ParseError{Verb: a.verb, Field: name, Problem: err.Error()}
	}
	return v, nil
}

// required is argument for a field that must be there.
func required[T any](a *arguments, name string, parse func(string) (T, error)) (T, error) {
	if !a.has(name) {
		var zero T
		return zero, &ParseError{Verb: a.verb, Field: name, Problem: "the field is missing", Remedy: "add " + name + "=value"}
	}
	var zero T
	return argument(a, name, parse, zero)
}

func (v *storyVerb) arguments(s *Story, verb string, fields []rawField) (*arguments, error) {
	a := &arguments{verb: verb}
	values := strings.Fields(v.values)
	flags := strings.Fields(v.flags)
	for _, f := range joinAs(fields) {
		isFlag := slices.Contains(flags, f.name)
		isValue := f.name == v.first || slices.Contains(values, f.name)
		switch {
		case f.isFlag && !isFlag && v.first != "" && !a.has(v.first):
			f = rawField{name: v.first, value: f.name}
		case f.isFlag != isFlag || isFlag == isValue:
			return nil, &ParseError{Verb: verb, Field: f.name, Problem: "this verb has no such field, or it is not used so",
				Remedy: "values: " + strings.TrimSpace(v.first+" "+v.values) + "; flags: " + v.flags}
		}
		if a.has(f.name) {
			return nil, &ParseError{Verb: verb, Field: f.name, Problem: "the field stands twice", Remedy: "keep one"}
		}
		a.fields = append(a.fields, f)
	}
	return a, nil
}

func findStoryVerb(name string) *storyVerb {
	for i := range storyVerbs {
		if storyVerbs[i].name == name {
			return &storyVerbs[i]
		}
	}
	return nil
}

var storyVerbs []storyVerb

func init() {
	const insertValues = "extra salt slots prev from mamba swa-evicted swa-branch priority session stop-after as"
	const fetchValues = "tokens extra salt slots pages swa found found-state as"
	const fetchFlags = "bigram mamba hashed no-lock fail"
	storyVerbs = []storyVerb{
		{"insert", "tokens", insertValues, "bigram chunked adopted no-state token-slots hold", alone, (*Story).insertVerb},
		{"step", "", "", "", duringInsert, (*Story).stepVerb},
		{"finish", "", "as", "", duringInsert, (*Story).finishVerb},
		{"abandon", "", "", "", duringInsert, (*Story).abandonVerb},
		{"match", "tokens", "extra salt as best", "bigram explain", alone, (*Story).matchVerb},
		{"child", "node", "n as", "", duringInsert, (*Story).childVerb},
		{"parent", "node", "as", "", duringInsert, (*Story).parentVerb},
		{"names", "", "", "", duringInsert, (*Story).namesVerb},
		{"lock", "node", "skip as", "", duringInsert, (*Story).lockVerb},
		{"unlock", "receipt", "node", "skip-swa", duringInsert, (*Story).unlockVerb},
		{"release-swa", "receipt", "node", "", duringInsert, (*Story).releaseSWAVerb},
		{"release-window", "receipt", "node component", "", duringInsert, (*Story).releaseWindowVerb},
		{"pin", "node", "as", "", duringInsert, (*Story).pinVerb},
		{"unpin", "pin", "", "", duringInsert, (*Story).unpinVerb},
		{"evict", "component", "n keep", "write-back no-backup", duringWalk, (*Story).evictVerb},
		{"walk-start", "component", "n", "", duringWalk, (*Story).walkStartVerb},
		{"walk-next", "component", "", "keep no-backup leave", duringWalk, (*Story).walkNextVerb},
		{"walk-end", "component", "", "", duringWalk, (*Story).walkEndVerb},
		{"attach", "tokens", "extra salt start end slots", "bigram", alone, (*Story).attachVerb},
		{"host-copy", "node", "", "swa mamba", alone, (*Story).hostCopyVerb},
		{"set-host", "node", "component slots", "", alone, (*Story).setHostVerb},
		{"set-pending", "node", "ack", "", alone, (*Story).setPendingVerb},
		{"host-pools", "", "full swa mamba", "", duringInsert, (*Story).hostPoolsVerb},
		{"host-fail", "n", "", "", duringInsert, (*Story).hostFailVerb},
		{"backup", "node", "", "no-lock fail", duringInsert, (*Story).backupVerb},
		{"ack", "node", "", "all", duringWalk, (*Story).ackVerb},
		{"offload", "node", "", "no-lock fail", duringInsert, (*Story).offloadVerb},
		{"ack-offload", "node", "", "failed", duringWalk, (*Story).ackOffloadVerb},
		{"load-back", "node", "", "fail", alone, (*Story).loadBackVerb},
		{"ack-load", "node", "", "", duringWalk, (*Story).ackLoadVerb},
		{"prefetch", "under", fetchValues, fetchFlags, duringWalk, (*Story).prefetchVerb},
		{"graft", "read", "as", "", alone, (*Story).graftVerb},
		{"drop", "read", "", "", duringWalk, (*Story).dropVerb},
		{"host-insert", "under", fetchValues, fetchFlags, alone, (*Story).hostInsertVerb},
		{"lock-host", "node", "as", "", duringInsert, (*Story).lockHostVerb},
		{"unlock-host", "receipt", "node", "", duringInsert, (*Story).unlockHostVerb},
		{"finish-pause", "component", "", "no-backup", duringWalk, (*Story).finishPauseVerb},
		{"register", "id", "node generation", "", duringWalk, (*Story).registerVerb},
		{"draw", "", "", "", duringInsert, (*Story).drawVerb},
		{"order", "", "", "", alone, (*Story).orderVerb},
		{"sizes", "", "", "", duringInsert, (*Story).sizesVerb},
		{"conserve", "", "", "", duringInsert, (*Story).conserveVerb},
		{"check", "", "", "", duringInsert, (*Story).checkVerb},
	}
}

func (s *Story) key(a *arguments) (tree.Key, error) {
	var k tree.Key
	var err error
	if k.Tokens, err = required(a, "tokens", parseTokens); err != nil {
		return k, err
	}
	if k.Namespace.ExtraKey, err = argument(a, "extra", parseString, ""); err != nil {
		return k, err
	}
	k.Namespace.HasExtraKey = a.has("extra")
	k.Namespace.Salt, err = argument(a, "salt", parseString, "")
	k.Bigram = a.has("bigram")
	return k, err
}

func (s *Story) matchVerb(a *arguments) (string, error) {
	k, err := s.key(a)
	if err != nil {
		return "", err
	}
	r, err := s.m.Match(k)
	if err != nil {
		return s.run.fault(err), nil
	}
	if as, ok := a.text("as"); ok {
		s.name(as, r.LastDeviceNode)
	}
	if best, ok := a.text("best"); ok {
		s.name(best, r.BestNode)
	}
	s.relocate(r.Actions)
	text := s.run.match(&r)
	if a.has("explain") {
		text += "\n" + explanationText(&r.Explanation)
	}
	return text, nil
}

func (s *Story) childVerb(a *arguments) (string, error) {
	id, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	n, err := argument(a, "n", parseInt, 0)
	if err != nil {
		return "", err
	}
	info, err := s.m.Inspect(id)
	if err != nil {
		return s.run.fault(err), nil
	}
	if n < 0 || n >= len(info.Children) {
		return fmt.Sprintf("there is no child %d", n), nil
	}
	return s.naming(a, info.Children[n]), nil
}

func (s *Story) parentVerb(a *arguments) (string, error) {
	id, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	info, err := s.m.Inspect(id)
	if err != nil {
		return s.run.fault(err), nil
	}
	if info.Parent == tree.NoNode {
		return "none", nil
	}
	return s.naming(a, info.Parent), nil
}

func (s *Story) naming(a *arguments, id tree.NodeID) string {
	if as, ok := a.text("as"); ok {
		s.name(as, id)
	}
	return s.label(id)
}

func (s *Story) namesVerb(*arguments) (string, error) {
	names := make([]string, 0, len(s.nodes))
	for name := range s.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + "=" + s.label(s.nodes[name])
	}
	return strings.Join(names, " "), nil
}

func (s *Story) registerVerb(a *arguments) (string, error) {
	id, err := required(a, "id", parseString)
	if err != nil {
		return "", err
	}
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	generation, err := argument(a, "generation", parseInt64, s.generations[id])
	if err != nil {
		return "", err
	}
	return s.run.done(s.m.RegisterSession(id, generation, node)), nil
}
