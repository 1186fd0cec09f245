// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
)

// insertion is a suspended insert (chapter 7).
type insertion struct {
	core   *Core
	params InsertParams
	ns     *namespace // nil: no node has the key's namespace yet
	phase  phase

	at    *node // node at which the walk stands
	atID  NodeID
	rest  view
	runs  Slots // slots not yet consumed; the first run from skipped on
	skip  int
	base  int // units walked
	total int // units of the aligned key
	leaf  bool

	pending []Action
	barrier bool // an action of this step must be executed before the next
	result  InsertResult
	adopted [NumComponents][]Range
}

type phase uint8

const (
	phaseWalk phase = iota
	phaseCommit
	phaseTail
)

// BeginInsert starts to hand a request's slots to the tree. It runs until it
// needs actions executed or until its end; go on with ResumeInsert while the
// step has no result, and call EndInsert in every case. Bad arguments are
// *ArgumentError, an insert that is suspended already an *OrderError; both
// change nothing.
func (c *Core) BeginInsert(p InsertParams) (InsertStep, error) {
	const op = "BeginInsert"
	if c.log != nil {
		c.log.insert(p)
	}
	if c.insert != nil {
		return InsertStep{}, &OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	v, _, err := c.view(op, p.Key)
	if err != nil {
		return InsertStep{}, err
	}
	if err := c.checkInsert(op, &p, v); err != nil {
		return InsertStep{}, err
	}
	c.touch(c.root)
	c.root.priority = max(c.root.priority, p.Priority)
	in := &insertion{
		core: c, params: p, ns: c.names.find(p.Key.Namespace),
		at: c.root, atID: c.root.id, rest: v, runs: p.Slots, total: v.units,
	}
	if v.units == 0 {
		in.result = InsertResult{MambaExist: true, LastDeviceNode: c.root.id}
		in.finish()
		return InsertStep{Result: &in.result}, nil
	}
	if p.Slots == nil {
		in.runs = slotsFromTokens(v.raw[:v.units])
	}
	c.insert = in
	return c.step()
}

// checkInsert is rule I-4: what can be wrong without looking at the tree.
func (c *Core) checkInsert(op string, p *InsertParams, v view) error {
	bad := func(field, format string, args ...any) error {
		return &ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if err := p.Slots.check(op, "slots"); err != nil {
		return err
	}
	if err := p.MambaState.check(op, "mamba_value"); err != nil {
		return err
	}
	if n := p.Slots.Len(); p.Slots != nil && n < v.units {
		return bad("slots", "%d given for %d units of the aligned key", n, v.units)
	}
	if p.PrevPrefixLen < 0 {
		return bad("prev_prefix_len", "%d is negative", p.PrevPrefixLen)
	}
	if p.SWAEvictedLen < 0 || p.SWAEvictedLen%c.opts.PageSize != 0 {
		return bad("swa_evicted_seqlen", "%d is not a multiple of the page size %d", p.SWAEvictedLen, c.opts.PageSize)
	}
	if p.SWABranchingLen < 0 {
		return bad("swa_branching_seqlen", "%d is negative", p.SWABranchingLen)
	}
	if c.opts.Components.Has(Mamba) && v.units > 0 && p.MambaState.Len() == 0 {
		return bad("mamba_value", "a state is required with the mamba component")
	}
	if !c.opts.Components.Has(SWA) {
		p.SWAEvictedLen = 0
	}
	return nil
}

// ResumeInsert goes on after the actions of the step before were executed.
// Without a suspended insert it is an *OrderError. If the node at which the
// walk stands has died meanwhile it is a *NodeAccessError; the insert stays
// suspended, and EndInsert hands out what is pending.
func (c *Core) ResumeInsert() (InsertStep, error) {
	if c.log != nil {
		c.log.plain("resume-insert")
	}
	in := c.insert
	if in == nil {
		return InsertStep{}, &OrderError{Op: "ResumeInsert", Problem: "no insert is suspended: begin one first"}
	}
	if c.nodes.find(in.atID) != in.at {
		return InsertStep{}, &NodeAccessError{Op: "ResumeInsert", Node: in.atID}
	}
	return c.step()
}

// HasOngoingInsert reports whether an insert is suspended.
func (c *Core) HasOngoingInsert() bool { return c.insert != nil }

// EndInsert ends the suspended insert, if there is one, and returns the actions
// that no step handed out. What finished steps did stays (rule I-12).
func (c *Core) EndInsert() []Action {
	if c.log != nil {
		c.log.plain("end-insert")
	}
	if c.insert == nil {
		return nil
	}
	pending := c.insert.pending
	c.insert = nil
	return pending
}

// step runs the machine until a barrier or the end.
func (c *Core) step() (InsertStep, error) {
	in := c.insert
	for {
		switch in.phase {
		case phaseWalk:
			in.walkNode()
		case phaseCommit:
			in.commit()
		case phaseTail:
			in.tail()
			in.finish()
			c.insert = nil
			return InsertStep{Actions: in.pending, Result: &in.result}, nil
		}
		if in.barrier {
			actions := in.pending
			in.pending, in.barrier = nil, false
			return InsertStep{Actions: actions}, nil
		}
	}
}

// walkNode handles one node that the tree already has (section 7.4).
func (in *insertion) walkNode() {
	c := in.core
	var n *node
	if in.rest.units > 0 && in.ns != nil {
		n = c.edges.find(in.at, in.ns, in.rest)
	}
	if n == nil {
		in.phase = phaseCommit
		return
	}
	c.touch(n)
	length := common(n.key(c.extra), in.rest, c.opts.PageSize)
	if length < n.units {
		prefix, relocation := c.split(n, length)
		in.emit(relocation)
		n = prefix
	}
	c.raisePriority(n, in.params.Priority)
	if n.evicted() {
		n = in.unevict(n, length)
	} else {
		n = in.overlap(n, length)
	}
	if c.countHit(n, in.params.Chunked) {
		in.emit(c.backup(n, in.total, in.base+length == in.total))
	}
	in.base += length
	in.rest = in.rest.from(length)
	in.advance(length)
	in.at, in.atID = n, n.id
}

// overlap settles who owns the slots of a node that is on the device
// (section 7.5), and frees the copies that nobody needs.
func (in *insertion) overlap(n *node, length int) *node {
	c := in.core
	consumed := length
	node := n
	for _, h := range c.comps {
		claim, at := h.overlap(in, n, length)
		if at != n {
			node = at
		}
		consumed = min(consumed, claim)
	}
	from := max(0, in.params.PrevPrefixLen-in.base)
	if from >= consumed {
		return node
	}
	below := min(max(in.params.SWAEvictedLen-(in.base+from), 0), consumed-from)
	if below > 0 {
		in.emit(FreeDeviceKVFullOnly{Slots: in.slice(from, from+below)})
	}
	if from+below < consumed {
		in.emit(FreeDeviceKV{Slots: in.slice(from+below, consumed)})
	}
	return node
}

// unevict gives an evicted node the fresh slots (section 7.6).
func (in *insertion) unevict(n *node, length int) *node {
	c := in.core
	c.setFullDevice(n, in.slice(0, length))
	c.trackDuplicate(n)
	c.refreshLeaf(n)
	c.refreshLeaf(n.parent)
	c.recordStored(n, MediumDevice, in.params.SessionID)
	in.adopt(Full, in.base, in.base+length)
	for _, h := range c.comps {
		n = h.unevicted(in, n, length)
	}
	return n
}

// commit makes the leaf for what the tree lacks, and lets the components have
// their part (section 7.8).
func (in *insertion) commit() {
	c := in.core
	target := in.at
	if in.rest.units > 0 {
		in.leaf = true
		target = in.newLeaf()
	}
	in.result.PrefixLen = in.base
	in.result.LastDeviceNode = target.id
	for _, h := range c.comps {
		h.commit(in, target, in.leaf)
	}
	in.at, in.atID = target, target.id
	in.phase = phaseTail
}

func (in *insertion) newLeaf() *node {
	c, p := in.core, in.at
	n := c.newNode()
	n.ns = c.names.retain(in.params.Key.Namespace)
	n.setKey(cloneTokens(in.rest.span(in.rest.units)), in.rest.units)
	n.priority = in.params.Priority
	p.linkChild(n, c)
	c.setFullDevice(n, in.slice(0, n.units))
	if c.switches.Storage {
		c.fill(storageChain, n)
	}
	c.growTails(n)
	c.refreshLeaf(n)
	c.refreshLeaf(p)
	c.recordStored(n, MediumDevice, in.params.SessionID)
	in.adopt(Full, in.base, in.base+n.units)
	return n
}

// tail refreshes recency and asks for the backups that are due (section 7.9).
func (in *insertion) tail() {
	c, target := in.core, in.at
	for _, h := range c.comps {
		h.refresh(target, true)
	}
	if in.leaf {
		if c.countHit(target, in.params.Chunked) {
			in.emit(c.backup(target, in.total, true))
		}
		return
	}
	if c.incrementalBackupDue(target) {
		in.emit(BackupKV{Nodes: []NodeID{target.id}, KeyLen: in.total, EndsAtPrompt: true})
	}
}

// incrementalBackupDue is rule BK-4: a backed-up node got auxiliary data that
// the host lacks. Under write-back only the window is asked: what leaves it is
// freed without passing through eviction.
func (c *Core) incrementalBackupDue(n *node) bool {
	if !c.switches.HostTier || n.parent == nil || !n.backedUp() || n.writeThroughPending() != 0 {
		return false
	}
	for _, h := range c.comps {
		if h.id() == Full || c.switches.WriteBack && h.id() != SWA {
			continue
		}
		if len(h.backupNodes(n)) > 0 {
			return true
		}
	}
	return false
}

// countHit counts an insert that passed n, and reports whether that makes n
// ask for a backup (rule I-26).
func (c *Core) countHit(n *node, chunked bool) bool {
	if n.parent == nil || n.evicted() || chunked || c.switches.WriteBack {
		return false
	}
	n.hits++
	c.reorderLeaf(n)
	return c.wantsCopy(n) && n.hits >= int64(c.switches.WriteThroughThreshold)
}

// wantsCopy reports whether n lacks a copy on the host, or in the store of an
// external linker.
func (c *Core) wantsCopy(n *node) bool {
	if c.switches.ExternalLinker {
		return n.mayOffload()
	}
	return c.switches.HostTier && !n.backedUp()
}

// backup names n and its ancestors up to the first that wants no copy (rules
// I-28, XL-9).
func (c *Core) backup(n *node, keyLen int, atEnd bool) BackupKV {
	var ids []NodeID
	for ; n.parent != nil && c.wantsCopy(n); n = n.parent {
		ids = append(ids, n.id)
	}
	slices.Reverse(ids)
	return BackupKV{Nodes: ids, KeyLen: keyLen, EndsAtPrompt: atEnd}
}

func (c *Core) raisePriority(n *node, p int64) {
	if p > n.priority {
		n.priority = p
		c.reorderLeaf(n)
	}
}

// growTails keeps tlru's depths and histories for a new leaf (rule E-37).
func (c *Core) growTails(leaf *node) {
	if c.tails == nil {
		return
	}
	depth := leaf.units
	if p := leaf.parent; p.parent != nil {
		depth += p.extend().depth
	}
	e := leaf.extend()
	e.depth, e.history = depth, depth
	for n := leaf.parent; n.parent != nil && n.extend().history < depth; n = n.parent {
		n.ext.history = depth
		c.reorderLeaf(n)
	}
}

// emit adds an action to those of this step; nil adds nothing.
func (in *insertion) emit(a Action) {
	if a == nil {
		return
	}
	in.pending = append(in.pending, a)
	in.barrier = in.barrier || barrier(a)
}

// adopt notes that the tree took the slots of the positions [start, end).
func (in *insertion) adopt(id Component, start, end int) {
	if !in.params.TrackAdopted || start >= end {
		return
	}
	list := in.adopted[id]
	if n := len(list); n > 0 && start <= list[n-1].End {
		list[n-1].Start = min(list[n-1].Start, start)
		list[n-1].End = max(list[n-1].End, end)
		return
	}
	in.adopted[id] = append(list, Range{start, end})
}

// finish completes the result.
func (in *insertion) finish() {
	if in.params.TrackAdopted {
		in.result.Adopted = &in.adopted
	}
}

// slice returns a fresh list of the slots at [from, to) after the walk's place.
func (in *insertion) slice(from, to int) Slots {
	return in.runs.Slice(in.skip+from, in.skip+to)
}

// advance drops n slots from the front.
func (in *insertion) advance(n int) {
	in.skip += n
	for len(in.runs) > 0 && in.skip >= int(in.runs[0].Length) {
		in.skip -= int(in.runs[0].Length)
		in.runs = in.runs[1:]
	}
}

// slotsFromTokens lets token ids stand in for slots (rule K-15).
func slotsFromTokens(tokens []Token) Slots {
	s := Slots{}
	for _, t := range tokens {
		s = s.AppendRun(Run{First: Slot(t), Length: 1})
	}
	return s
}
