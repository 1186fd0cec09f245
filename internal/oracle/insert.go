// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

type phase int

const (
	walking phase = iota
	committing
	finishing // TAIL
)

// insertion is an insert under way (section 7.3).
type insertion struct {
	params    tree.InsertParams
	namespace tree.Namespace
	mamba     []tree.Slot
	total     int // units of the aligned key
	evicted   int // e: the SWA position; 0 without SWA (I-23)

	phase   phase
	current *node       // where it stands; the target after COMMIT
	fresh   bool        // the target is a new leaf
	base    int         // units matched so far
	rest    []unit      // units that remain
	slots   []tree.Slot // slots that remain, one for each of rest

	pending []tree.Action // collected, not handed out yet
	adopted [tree.NumComponents][]tree.Range
	result  tree.InsertResult
}

func (in *insertion) emit(actions ...tree.Action) { in.pending = append(in.pending, actions...) }

// adopt notes that the tree took the slots at [start, end) (rule I-29).
func (in *insertion) adopt(c tree.Component, start, end int) {
	if start >= end {
		return
	}
	ranges := in.adopted[c]
	if k := len(ranges) - 1; k >= 0 && start <= ranges[k].End {
		ranges[k].Start = min(ranges[k].Start, start)
		ranges[k].End = max(ranges[k].End, end)
		return
	}
	in.adopted[c] = append(ranges, tree.Range{Start: start, End: end})
}

// BeginInsert starts an insert and runs it to its first barrier (chapter 7).
func (o *Oracle) BeginInsert(p tree.InsertParams) (tree.InsertStep, error) {
	const op = "BeginInsert"
	if o.insert != nil { // I-1
		return tree.InsertStep{}, &tree.OrderError{Op: op, Problem: "an insert is suspended: resume or end it first"}
	}
	in, err := o.checkInsert(op, p)
	if err != nil {
		return tree.InsertStep{}, err
	}

	// I-2.
	o.touch(o.root)
	o.root.priority = max(o.root.priority, p.Priority)

	if in.total == 0 { // I-3
		in.result.MambaExist = true
		in.result.LastDeviceNode = o.root.id
		return tree.InsertStep{Result: in.finish()}, nil
	}
	o.insert = in
	return o.run(op)
}

// checkInsert makes the checks of rule I-4; it changes nothing.
func (o *Oracle) checkInsert(op string, p tree.InsertParams) (*insertion, error) {
	bad := func(field, format string, args ...any) error {
		return &tree.ArgumentError{Op: op, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	all, namespace, err := o.units(op, p.Key)
	if err != nil {
		return nil, err
	}
	rest := o.align(all)
	in := &insertion{params: p, namespace: namespace, total: len(rest), current: o.root, rest: rest}

	in.slots, err = slotList(op, "slots", p.Slots)
	if err != nil {
		return nil, err
	}
	if p.Slots == nil { // K-15
		for _, u := range rest {
			in.slots = append(in.slots, tree.Slot(u.first))
		}
	}
	if len(in.slots) < in.total {
		return nil, bad("slots", "%d slots for %d units", len(in.slots), in.total)
	}
	in.slots = in.slots[:in.total]

	if p.PrevPrefixLen < 0 {
		return nil, bad("prev prefix length", "%d is negative", p.PrevPrefixLen)
	}
	if p.SWAEvictedLen < 0 || p.SWAEvictedLen%o.page != 0 {
		return nil, bad("swa evicted length", "%d is not a multiple of the page size %d", p.SWAEvictedLen, o.page)
	}
	if p.SWABranchingLen < 0 {
		return nil, bad("swa branching length", "%d is negative", p.SWABranchingLen)
	}
	if o.has(tree.SWA) {
		in.evicted = p.SWAEvictedLen
	}
	if o.has(tree.Mamba) {
		in.mamba, err = slotList(op, "mamba state", p.MambaState)
		if err != nil {
			return nil, err
		}
		if in.total > 0 && len(in.mamba) == 0 {
			return nil, bad("mamba state", "it is required for a key of %d units", in.total)
		}
	}
	return in, nil
}

// ResumeInsert goes on with the suspended insert (rule I-8).
func (o *Oracle) ResumeInsert() (tree.InsertStep, error) {
	const op = "ResumeInsert"
	if o.insert == nil {
		return tree.InsertStep{}, &tree.OrderError{Op: op, Problem: "no insert is suspended: begin one"}
	}
	return o.run(op)
}

// HasOngoingInsert reports whether an insert is suspended (rule I-10).
func (o *Oracle) HasOngoingInsert() bool { return o.insert != nil }

// EndInsert ends the suspended insert, if any, and returns the actions that
// were not handed out yet (rule I-9).
func (o *Oracle) EndInsert() []tree.Action {
	if o.insert == nil {
		return nil
	}
	pending := o.insert.pending
	o.insert = nil
	return pending
}

// run runs steps until a barrier or the end.
func (o *Oracle) run(op string) (tree.InsertStep, error) {
	in := o.insert
	for {
		if !o.alive(in.current) { // I-11
			return tree.InsertStep{}, &tree.NodeAccessError{Op: op, Node: in.current.id}
		}
		before := len(in.pending)
		switch in.phase {
		case walking:
			child := o.childFor(in.current, in.namespace, in.rest)
			if child == nil { // I-13
				in.phase = committing
			} else {
				o.walkOne(in, child)
			}
		case committing:
			o.commit(in)
			in.phase = finishing
		case finishing:
			o.tail(in)
			actions := in.pending
			o.insert = nil // I-10
			return tree.InsertStep{Actions: actions, Result: in.finish()}, nil
		}
		for _, action := range in.pending[before:] {
			if isBarrier(action) { // I-6
				actions := in.pending
				in.pending = nil
				return tree.InsertStep{Actions: actions}, nil
			}
		}
	}
}

// isBarrier: an action that is not deferrable (section 7.2).
func isBarrier(a tree.Action) bool {
	switch a.(type) {
	case tree.FreeDeviceKV, tree.FreeDeviceKVFullOnly, tree.ReplaceWriteThroughOnNodeSplit:
		return false
	}
	return true
}

func (in *insertion) finish() *tree.InsertResult {
	if in.params.TrackAdopted {
		adopted := in.adopted
		in.result.Adopted = &adopted
	}
	return &in.result
}

// walkOne is one step of WALK (section 7.4).
func (o *Oracle) walkOne(in *insertion, child *node) {
	o.touch(child) // I-14
	n := o.common(child.key, in.rest)
	at := child
	if n < len(child.key) { // I-15
		prefix, actions := o.split(child, n)
		in.emit(actions...)
		at = prefix
	}
	at.priority = max(at.priority, in.params.Priority) // I-16
	slice := clone(in.slots[:n])                       // I-17
	if o.evicted(at) {                                 // I-18
		o.unevict(in, at, slice)
	} else {
		consumed := n
		if o.has(tree.SWA) { // the only component that ever claims
			consumed = o.overlapSWA(in, at, slice)
		}
		o.freeDuplicates(in, slice, consumed)
	}
	// I-19. If SWA split the node, at is the suffix (I-27).
	if o.countHit(in, at) {
		in.emit(o.backup(in, at, in.base+n == in.total))
	}
	// I-20.
	in.current = at
	in.base += n
	in.rest = in.rest[n:]
	in.slots = in.slots[n:]
}

// overlapSWA decides who owns the slice on a node that has Full on the device
// (section 7.5). It returns the claim.
func (o *Oracle) overlapSWA(in *insertion, n *node, slice []tree.Slot) int {
	base, length, e := in.base, len(slice), in.evicted
	if in.params.PrevPrefixLen >= base+length || n.device[tree.SWA] != nil {
		return length
	}
	switch {
	case e <= base: // branch 1
		o.recoverSWA(in, n, slice, base)
		return 0
	case e < base+length: // branch 2
		s := e - base
		_, actions := o.split(n, s) // copies lock counts, so n is locked as before
		in.emit(actions...)
		o.recoverSWA(in, n, slice[s:], base+s)
		return s
	default: // branch 3
		return length
	}
}

// recoverSWA is branch 1 of rule I-21: the node is a tombstone, and all of the
// slice, which starts at position start, is live.
func (o *Oracle) recoverSWA(in *insertion, n *node, slice []tree.Slot, start int) {
	if n.locks[tree.Full] > 0 {
		in.emit(tree.RecoverSWAWithLockedFull{Node: n.id, Kept: runs(n.device[tree.Full]), Incoming: runs(slice)})
	} else {
		old := n.device[tree.Full]
		n.device[tree.Full] = clone(slice)
		in.emit(tree.FreeDeviceKVFullOnly{Slots: runs(old)})
		in.emit(tree.SWARebuild{Node: n.id, Full: runs(slice)})
		in.adopt(tree.Full, start, start+len(slice))
	}
	in.adopt(tree.SWA, start, start+len(slice))
}

// freeDuplicates frees the copies that nobody needs (rule I-23).
func (o *Oracle) freeDuplicates(in *insertion, slice []tree.Slot, consumed int) {
	d := max(0, in.params.PrevPrefixLen-in.base)
	if d >= consumed {
		return
	}
	copies := slice[d:consumed]
	below := min(max(in.evicted-(in.base+d), 0), len(copies))
	if below > 0 {
		in.emit(tree.FreeDeviceKVFullOnly{Slots: runs(copies[:below])})
	}
	if below < len(copies) {
		in.emit(tree.FreeDeviceKV{Slots: runs(copies[below:])})
	}
}

// unevict gives an evicted node fresh Full slots (section 7.6).
func (o *Oracle) unevict(in *insertion, n *node, slice []tree.Slot) {
	base, length, e := in.base, len(slice), in.evicted
	n.device[tree.Full] = slice
	o.enterDuplicate(n) // ND-14
	o.recordStored(n, tree.MediumDevice, in.params.SessionID)
	in.adopt(tree.Full, base, base+length)
	if !o.has(tree.SWA) || n.device[tree.SWA] != nil || e >= base+length {
		return
	}
	if e > base {
		_, actions := o.split(n, e-base)
		in.emit(actions...)
	}
	in.emit(tree.SWARebuild{Node: n.id, Full: runs(n.device[tree.Full])})
	in.adopt(tree.SWA, max(base, e), base+length)
}

// countHit counts a hit and reports whether it asks for a backup (rule I-26).
func (o *Oracle) countHit(in *insertion, n *node) bool {
	if o.evicted(n) || in.params.Chunked || o.switches.WriteBack {
		return false
	}
	n.hits++
	return o.wantsCopy(n) && n.hits >= int64(o.switches.WriteThroughThreshold)
}

// backup names the node and its unbacked ancestors, root-first (rule I-28).
func (o *Oracle) backup(in *insertion, n *node, endsAtPrompt bool) tree.Action {
	var chain []tree.NodeID
	for ; n != o.root && o.wantsCopy(n); n = n.parent {
		chain = append([]tree.NodeID{n.id}, chain...)
	}
	return tree.BackupKV{Nodes: chain, KeyLen: in.total, EndsAtPrompt: endsAtPrompt}
}

// commit is COMMIT (section 7.8).
func (o *Oracle) commit(in *insertion) {
	if len(in.rest) > 0 { // I-30
		leaf := o.newNode()
		leaf.parent = in.current
		leaf.namespace = in.namespace
		leaf.key = append([]unit{}, in.rest...)
		leaf.device[tree.Full] = clone(in.slots)
		leaf.priority = in.params.Priority
		in.current.children = append(in.current.children, leaf)
		o.reachHistory(leaf)
		if o.switches.Storage {
			o.fillHashes(leaf) // H-6
		}
		o.recordStored(leaf, tree.MediumDevice, in.params.SessionID)
		in.adopt(tree.Full, in.base, in.base+len(in.rest))
		in.current = leaf
		in.fresh = true
	}
	// I-31.
	in.result.PrefixLen = in.base
	in.result.LastDeviceNode = in.current.id
	// I-32.
	if o.has(tree.SWA) {
		o.commitSWA(in)
	}
	if o.has(tree.Mamba) {
		o.commitMamba(in)
	}
}

func (o *Oracle) commitSWA(in *insertion) {
	branch := in.params.SWABranchingLen
	in.result.SWABranchInserted = branch != 0 && in.total >= branch
	if !in.fresh {
		return
	}
	leaf := in.current
	length, start := len(leaf.key), in.base
	x := in.evicted - start
	if x >= length {
		return // the leaf stays a tombstone
	}
	in.adopt(tree.SWA, max(start, in.evicted), start+length)
	if x > 0 {
		_, actions := o.split(leaf, x)
		in.emit(actions...)
	}
	wholeWindow := (o.window + o.page - 1) / o.page * o.page // Wp
	if len(leaf.key) > wholeWindow {
		older, actions := o.split(leaf, len(leaf.key)-wholeWindow)
		in.emit(actions...)
		in.emit(tree.SWARebuild{Node: older.id, Full: runs(older.device[tree.Full])})
	}
	in.emit(tree.SWARebuild{Node: leaf.id, Full: runs(leaf.device[tree.Full])})
}

func (o *Oracle) commitMamba(in *insertion) {
	target := in.current
	if target.device[tree.Mamba] != nil {
		o.device[tree.Mamba].toFront(target)
		o.touch(target)
		in.result.MambaExist = true
		return
	}
	o.putDevice(target, tree.Mamba, in.mamba)
	if !in.fresh {
		o.touch(target)
	}
	if o.stateCap >= 1 {
		in.emit(tree.MambaEvictExcessPathStates{Tail: target.id})
	}
}

// tail is TAIL (section 7.9).
func (o *Oracle) tail(in *insertion) {
	target := in.current
	if o.has(tree.SWA) {
		o.device[tree.SWA].refresh(o.swaCushion(target)) // I-33
	}
	// I-34.
	if in.fresh {
		if o.countHit(in, target) {
			in.emit(o.backup(in, target, true))
		}
	} else if o.needsIncrementalBackup(target) {
		in.emit(tree.BackupKV{Nodes: []tree.NodeID{target.id}, KeyLen: in.total, EndsAtPrompt: true})
	}
}
