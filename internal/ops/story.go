// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/treecore/treecore/tree"
)

// Story runs the lines of a script on a machine. It knows names, owns the slots
// in place of a controller, and executes the tree's actions. Its answer to a
// line is text in which nodes appear as name[tokens], so that two machines that
// behave alike give equal text, whatever numbers they hand out.
//
// A line is a line of the log grammar with names in place of node numbers and
// receipts, or one of the verbs below. A word "as" followed by a word is short
// for as=word; a bare word that is no flag of the verb stands for the verb's
// first field ("lock A as r1" is "lock node=A as=r1"). Nodes are written as a
// name (with or without $), as root, or as a number; null is a node number
// that never exists.
//
// After each line the story runs the sanity check and counts all slots; what it
// finds is added to the answer as lines that begin with "PROBLEM".
//
//	insert KEY slots=? prev=? from=NODE? mamba=? no-state? token-slots?
//	    swa-evicted=? swa-branch=? chunked? priority=? adopted? session=?
//	    hold? stop-after=? as=NAME?
//	  begin, execute, resume until the result, end; without a host tier backup
//	  actions are shown and not executed. Slots are made up when not given, and
//	  so is a state. from sets prev to the length of that node's path, with its
//	  slots, if the key begins with the path and the path is on the device; else
//	  it is ignored. The SWA slots of the request's own positions below
//	  swa-evicted are freed before. What the tree did not take is freed at the
//	  end and shown as "kept". hold runs the first step only; step, finish and
//	  abandon go on. stop-after=n ends the insert after n steps.
//	match KEY explain? as=NAME? best=NAME?
//	                                names the result's last device node, and its
//	                                best node
//	child NODE n=? as=NAME          names a child, counted from 0
//	parent NODE as=NAME
//	names
//	lock NODE skip=? as=NAME        names the receipt
//	unlock RECEIPT skip-swa?        skip-swa is set after an early release
//	release-swa RECEIPT             ReleaseSWALock
//	release-window RECEIPT component=?
//	pin NODE as=NAME, unpin NAME
//	evict COMPONENT n=? write-back? keep=? no-backup?
//	  a whole walk; with keep=n the first n leaves returned are not evicted;
//	  with no-backup pauses are ended without a backup. write-back is set by
//	  itself once the switch and host-pools are
//	walk-start COMPONENT n=?        the same, one step a line
//	walk-next COMPONENT keep? no-backup? leave?
//	walk-end COMPONENT
//	attach KEY start=? end=? slots=?   attach-swa-window with fresh slots
//	host-copy NODE swa? mamba?      gives host copies to the node and its
//	                                ancestors through the test door
//	set-host NODE component=? slots=?
//	set-pending NODE ack=?
//
// The host tier, on a machine that is a HostMachine. Once host-pools was given,
// the story executes the backups that inserts and evictions ask for, and shows
// them; with an external linker, the offloads. Where host slots are short it evicts exactly what is missing.
//
//	host-pools full=? swa=? mamba=? sizes of the host pools; 0 or nothing: no
//	                                limit
//	host-fail n=?                   the next n allocations of host slots fail
//	backup NODE no-lock? fail?      one node: build the spec, take host slots,
//	                                commit, lock, mark; fail lets the first
//	                                allocation fail
//	ack NODE? all?                  delivers the ack of the oldest backup, of
//	                                that of the node, or of all
//	offload NODE no-lock? fail?     one node to an external linker: build, lock,
//	                                mark; fail lets the linker refuse it
//	ack-offload NODE? failed?       delivers the ack of the oldest offload, or of
//	                                that of the node
//	load-back NODE fail?            host lock, lock, build, take device slots,
//	                                commit, lock again
//	ack-load NODE?                  delivers the ack of a load back
//	prefetch under=NODE KEY slots=? pages=? swa=? found=? mamba? found-state=?
//	    hashed? no-lock? fail? as=NAME
//	  begins a read from storage: KEY are the tokens below the node, in its
//	  namespace (that of the line below the root). Takes a host lock on the node
//	  and the slots for all pages of the key, for a window of swa pages, and for
//	  a state with mamba. pages is how many Full pages come (default all), found
//	  how many of the window, found-state whether the state does (0 or 1).
//	  hashed passes the hashes of the pages.
//	graft READ as=NAME?             ends it: insert-host, commit-prefetch, frees
//	drop READ                       ends it, keeping nothing
//	host-insert ...                 prefetch and graft in one; as names the node
//	lock-host NODE as=NAME          names the receipt
//	unlock-host RECEIPT node=?
//	finish-pause COMPONENT no-backup?
//	  ends a pause that "walk-next COMPONENT leave" left: backs up the one value
//	  as well as it can, and calls finish-state-eviction
//
//	register ID node=? generation=? register-session, by default with the
//	                                generation that the id has now
//	draw                            the tree
//	order                           the order in which a Full walk that evicted
//	                                nothing would return the leaves
//	sizes, conserve, check
type Story struct {
	options tree.Options
	m       Machine
	run     Executor
	pools   ledger

	nodes    map[string]tree.NodeID
	labels   map[tree.NodeID]string // name of a node, the latest
	receipts map[string]*heldLock
	pins     map[string]tree.NodeID
	insert   *request // suspended insert
	host     hostTier
	walks    [tree.NumComponents]*storyWalk

	generations map[string]int64

	infos []tree.NodeInfo // all nodes, reused by each audit
	// quiet is for random stories: Compare makes the audit, a receipt is used
	// once, and raw calls end what is under way before.
	quiet bool
}

type heldLock struct {
	node     tree.NodeID
	receipt  tree.Receipt
	released bool // early release was made
}

// NewStory returns a story about a fresh machine with these options.
func NewStory(o tree.Options, m Machine) *Story {
	s := &Story{
		options: o, m: m,
		nodes: map[string]tree.NodeID{}, labels: map[tree.NodeID]string{},
		receipts: map[string]*heldLock{}, pins: map[string]tree.NodeID{}, generations: map[string]int64{},
	}
	s.pools.swa = o.Components.Has(tree.SWA)
	s.run = Executor{Machine: m, nameNode: s.label, showSlots: showSlots, dropped: s.pools.dropped, stored: s.stored, hosted: s.hosted, loaded: s.loaded}
	return s
}

func showSlots(c tree.Component, slots tree.Slots) string {
	if c != tree.SWA {
		return formatSlots(slots)
	}
	numbers, err := numbersOf(slots, swaBase)
	if err != nil || len(numbers) == 0 {
		return formatSlots(slots)
	}
	parts := strings.Split(formatSlots(slotsFrom(numbers, 0)), ",")
	return "s" + strings.Join(parts, ",s")
}

// label draws a node as name[tokens], root, or for one that is gone its name
// or number alone.
func (s *Story) label(id tree.NodeID) string {
	name := s.labels[id]
	info, err := s.m.Inspect(id)
	switch {
	case err != nil && name != "":
		return name
	case err != nil:
		return "gone"
	case info.Parent == tree.NoNode:
		return "root"
	}
	return name + keyText(&info)
}

func (s *Story) name(name string, id tree.NodeID) {
	if name == "" {
		return
	}
	if old, ok := s.nodes[name]; ok && s.labels[old] == name {
		delete(s.labels, old)
	}
	s.nodes[name] = id
	s.labels[id] = name
}

// Do runs one line. The answer is "" for an empty line and for a comment. The
// error is about the line itself (*ParseError); what the machine returned is
// always part of the answer.
func (s *Story) Do(line string) (string, error) {
	verb, fields, err := splitLine(line)
	if err != nil || verb == "" {
		return "", err
	}
	text, err := s.guarded(verb, fields)
	if err != nil {
		return "", err
	}
	text = verb + ": " + text
	if strings.Contains(text, "\n") && strings.HasPrefix(text, verb+": \n") {
		text = verb + ":" + text[len(verb)+2:]
	}
	for _, p := range s.takeProblems() {
		text += "\nPROBLEM: " + p
	}
	return text, nil
}

// guarded turns a panic of the machine into a problem, so that it can be shrunk
// and shown like any other.
func (s *Story) guarded(verb string, fields []rawField) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.pools.problem("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return s.do(verb, fields)
}

func (s *Story) do(verb string, fields []rawField) (string, error) {
	if spec := findStoryVerb(verb); spec != nil {
		args, err := spec.arguments(s, verb, fields)
		if err != nil {
			return "", err
		}
		s.settle(spec.during)
		if s.quiet && verb == "register" {
			s.endWalk(tree.Full)
		}
		return spec.run(s, args)
	}
	fields, err := s.substitute(verb, fields)
	if err != nil {
		return "", err
	}
	c, err := parseFields(verb, fields)
	if err != nil {
		return "", err
	}
	if s.quiet && disturbs(verb) {
		s.settle(alone)
	}
	if s.quiet && (verb == "release-session" || verb == "register-session") {
		// References are part of a leaf's key, and whether a walk that is on
		// sees them change is left open (rules E-12, SR-19, F-2).
		s.endWalk(tree.Full)
	}
	text := s.run.Run(&c)
	if !strings.HasPrefix(text, "error") {
		s.note(&c)
	}
	return text, nil
}

// disturbs reports whether a raw verb is out of order during walks or inserts.
func disturbs(verb string) bool {
	switch verb {
	case "begin-insert", "insert-host", "commit-prefetch", "commit-load-back", "drop-subtree", "demote", "evict-leaf", "evict-excess-path-states", "attach-swa-window", "set-device", "switches":
		return true
	}
	return false
}

// note keeps the story's books in step with a raw call that was made.
func (s *Story) note(c *Call) {
	switch c.Verb {
	case "reset":
		s.pools.reset()
		s.insert = nil
		s.walks = [tree.NumComponents]*storyWalk{}
		s.generations = map[string]int64{}
		s.forgetHost()
		if s.quiet {
			s.receipts, s.pins = map[string]*heldLock{}, map[string]tree.NodeID{}
		}
	case "switches":
		s.host.switches = c.Switches
	case "open-session", "ensure-session":
		s.generations[c.ID] = s.m.EnsureSession(c.ID)
	}
}

// settle ends what is under way and would be in the way of a verb: a suspended
// insert, and walks. Thus each line of a random script stands on its own.
func (s *Story) settle(during situation) {
	if during < duringInsert && s.insert != nil {
		s.abandon()
	}
	if during < duringWalk {
		for c := range s.walks {
			s.endWalk(tree.Component(c))
		}
	}
}

// walking reports whether a walk is on.
func (s *Story) walking() bool {
	for _, w := range s.walks {
		if w != nil {
			return true
		}
	}
	return false
}

func (s *Story) endWalk(c tree.Component) {
	if s.walks[c] == nil {
		return
	}
	s.walks[c] = nil
	s.host.paused[c] = tree.NoNode
	if err := s.m.EvictEnd(c); err != nil {
		s.pools.problem("ending the walk of %s: %v", c, err)
	}
}

func (s *Story) takeProblems() []string {
	problems := s.pools.problems
	s.pools.problems = nil
	if s.quiet {
		return problems
	}
	if err := s.sanity(); err != nil {
		problems = append(problems, s.run.fault(err))
	}
	return append(problems, s.pools.audit(s.inspectAll(), s.staged)...)
}

// inspectAll reads all nodes. The list is the story's own until the next call.
func (s *Story) inspectAll() []tree.NodeInfo {
	s.infos = s.infos[:0]
	for _, id := range s.m.Nodes() {
		info, err := s.m.Inspect(id)
		if err != nil {
			s.pools.problem("a node of the list of nodes cannot be inspected: %v", err)
			continue
		}
		s.infos = append(s.infos, info)
	}
	return s.infos
}

// stored notes that a script gave device slots to a node by hand.
func (s *Story) stored(id tree.NodeID, c tree.Component, slots tree.Slots) {
	switch c {
	case tree.SWA:
		full, err := s.m.ComponentDeviceValue(id, tree.Full)
		if err != nil {
			return
		}
		numbers := s.pools.numbers(full, 0)
		for i, twin := range s.pools.numbers(slots, swaBase) {
			s.pools.swas.take(twin)
			if i < len(numbers) {
				s.pools.setTwin(numbers[i], twin)
			}
		}
	case tree.Mamba:
		for _, state := range s.pools.numbers(slots, 0) {
			s.pools.mamba.take(state)
		}
	}
}

func (s *Story) resolve(word string) (tree.NodeID, error) {
	word = strings.TrimPrefix(word, "$")
	switch word {
	case "root":
		return s.m.Root(), nil
	case "null":
		return tree.NoNode, nil
	}
	if id, ok := s.nodes[word]; ok {
		return id, nil
	}
	if id, err := parseNode(word); err == nil {
		return id, nil
	}
	return 0, fmt.Errorf("no node is named %q: name one with as=%s first", word, word)
}

func (s *Story) held(word string) (*heldLock, error) {
	if h, ok := s.receipts[strings.TrimPrefix(word, "$")]; ok {
		return h, nil
	}
	if strings.Contains(word, ":") {
		text, err := s.substituteValue(receiptHandle, word)
		if err != nil {
			return nil, err
		}
		r, err := parseReceipt(text)
		return &heldLock{node: r.Node, receipt: r}, err
	}
	return nil, fmt.Errorf("no receipt is named %q: name one with lock ... as=%s first", word, word)
}

// substitute puts numbers in place of names, in the fields that take handles.
func (s *Story) substitute(verb string, fields []rawField) ([]rawField, error) {
	spec := findVerb(verb)
	if spec == nil {
		return nil, &ParseError{Verb: verb, Problem: "no such verb", Remedy: "see Story and the package comment of ops"}
	}
	out := make([]rawField, 0, len(fields))
	for _, f := range joinAs(fields) {
		if f.isFlag && spec.index(f.name) < 0 {
			if len(spec.fields) == 0 {
				return nil, &ParseError{Verb: verb, Field: f.name, Problem: "this verb has no fields"}
			}
			f = rawField{name: spec.fields[0].name, value: f.name}
		}
		if i := spec.index(f.name); i >= 0 {
			value, err := s.substituteValue(spec.fields[i].handle, f.value)
			if err != nil {
				return nil, &ParseError{Verb: verb, Field: f.name, Problem: err.Error()}
			}
			f.value = value
		}
		out = append(out, f)
	}
	return out, nil
}

func (s *Story) substituteValue(kind handleKind, value string) (string, error) {
	switch kind {
	case nodeHandle:
		id, err := s.resolve(value)
		return formatNode(id), err
	case nodesHandle, inFlightHandle:
		if value == "-" {
			return value, nil
		}
		parts := strings.Split(value, ",")
		for i, p := range parts {
			prefix := ""
			if a, b, ok := strings.Cut(p, ":"); ok && kind == inFlightHandle {
				prefix, p = a+":", b
			}
			id, err := s.resolve(p)
			if err != nil {
				return "", err
			}
			parts[i] = prefix + formatNode(id)
		}
		return strings.Join(parts, ","), nil
	case transfersHandle:
		if value == "-" {
			return value, nil
		}
		items := strings.Split(value, ";")
		for i, item := range items {
			at := strings.LastIndex(item, ":")
			nodes, err := s.substituteValue(nodesHandle, item[at+1:])
			if err != nil {
				return "", err
			}
			items[i] = item[:at+1] + nodes
		}
		return strings.Join(items, ";"), nil
	case receiptHandle:
		if strings.Contains(value, ":") {
			anchor, rest, _ := strings.Cut(value, ":")
			id, err := s.resolve(anchor)
			return formatNode(id) + ":" + rest, err
		}
		h, err := s.held(value)
		if err != nil {
			return "", err
		}
		return formatReceipt(h.receipt), nil
	}
	return value, nil
}

// joinAs turns the two words "as X" into the field as=X.
func joinAs(fields []rawField) []rawField {
	out := make([]rawField, 0, len(fields))
	for i := 0; i < len(fields); i++ {
		if fields[i].isFlag && fields[i].name == "as" && i+1 < len(fields) && fields[i+1].isFlag {
			out = append(out, rawField{name: "as", value: fields[i+1].name})
			i++
			continue
		}
		out = append(out, fields[i])
	}
	return out
}
