// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

// request is one insert of a story.
type request struct {
	params tree.InsertParams
	as     string
	steps  int
	result *tree.InsertResult
	lines  []string
}

func (s *Story) insertVerb(a *arguments) (string, error) {
	r, stopAfter, err := s.newRequest(a)
	if err != nil {
		return "", err
	}
	step, err := s.m.BeginInsert(r.params)
	if err != nil {
		s.pools.endRequest(s.m)
		return s.run.fault(err), nil
	}
	s.insert = r
	s.advance(&step)
	if a.has("hold") {
		if r.result != nil {
			s.close()
		}
		return r.text(), nil
	}
	for r.result == nil && (stopAfter == 0 || r.steps < stopAfter) {
		if !s.resume() {
			break
		}
	}
	s.close()
	return r.text(), nil
}

// newRequest reads the fields of an insert and takes the slots it needs.
func (s *Story) newRequest(a *arguments) (*request, int, error) {
	k, err := s.key(a)
	if err != nil {
		return nil, 0, err
	}
	p := tree.InsertParams{Key: k, Chunked: a.has("chunked"), TrackAdopted: a.has("adopted")}
	numbers := []struct {
		name  string
		place *int
	}{{"prev", &p.PrevPrefixLen}, {"swa-evicted", &p.SWAEvictedLen}, {"swa-branch", &p.SWABranchingLen}}
	for _, n := range numbers {
		if *n.place, err = argument(a, n.name, parseInt, 0); err != nil {
			return nil, 0, err
		}
	}
	if p.Priority, err = argument(a, "priority", parseInt64, 0); err != nil {
		return nil, 0, err
	}
	if p.SessionID, err = argument(a, "session", parseString, ""); err != nil {
		return nil, 0, err
	}
	stopAfter, err := argument(a, "stop-after", parseInt, 0)
	if err != nil {
		return nil, 0, err
	}
	if err = s.chooseSlots(a, &p); err != nil {
		return nil, 0, err
	}
	if err = s.chooseState(a, &p); err != nil {
		return nil, 0, err
	}
	as, _ := a.text("as")
	return &request{params: p, as: as}, stopAfter, nil
}

// chooseSlots finds the Full slots of an insert and makes the request own those
// that it brings itself, with their SWA twins from swa-evicted on.
func (s *Story) chooseSlots(a *arguments, p *tree.InsertParams) error {
	var own []uint32 // slots the request brings; position i has own[i-from]
	from := 0
	switch {
	case a.has("token-slots"):
		own = append(own, p.Key.Tokens...)
	case a.has("slots"):
		var err error
		if p.Slots, err = argument(a, "slots", parseSlots, nil); err != nil {
			return err
		}
		if own, err = numbersOf(p.Slots, 0); err != nil {
			return &ParseError{Verb: a.verb, Field: "slots", Problem: err.Error()}
		}
		// The first slots are the tree's by the caller's word.
		from = min(max(p.PrevPrefixLen, 0), len(own))
		own = own[from:]
	default:
		var prefix tree.Slots
		if a.has("from") {
			node, err := required(a, "from", s.resolve)
			if err != nil {
				return err
			}
			var ok bool
			if prefix, ok = s.pathSlots(node, p.Key); ok {
				p.PrevPrefixLen = prefix.Len()
			}
		} else if p.PrevPrefixLen > 0 {
			prefix = s.treeSlots(p.Key, p.PrevPrefixLen)
		}
		from = prefix.Len()
		own = s.pools.full.alloc(max(len(p.Key.Tokens)-from, 0))
		for _, f := range own {
			s.pools.full.release(f) // bring takes them
		}
		p.Slots = tree.Slots{}.Append(prefix).Append(slotsFrom(own, 0))
	}
	s.pools.bring(own)
	for i, f := range own {
		if from+i < p.SWAEvictedLen {
			s.pools.freeTwin(f)
		}
	}
	return nil
}

// pathSlots returns the Full slots from the root to the node, if the key begins
// with its path and all of it is on the device.
func (s *Story) pathSlots(node tree.NodeID, k tree.Key) (tree.Slots, bool) {
	var path []tree.NodeInfo
	for id := node; id != tree.NoNode; {
		info, err := s.m.Inspect(id)
		if err != nil {
			return nil, false
		}
		path = append(path, info)
		id = info.Parent
	}
	var out tree.Slots
	at := 0
	for i := len(path) - 2; i >= 0; i-- {
		n := &path[i]
		if n.Components[tree.Full].Device == nil || at+len(n.Tokens) > len(k.Tokens) || n.Namespace != canonical(k.Namespace) {
			return nil, false
		}
		for j, t := range n.Tokens {
			if k.Tokens[at+j] != t {
				return nil, false
			}
		}
		at += n.Units
		out = out.Append(n.Components[tree.Full].Device)
	}
	return out, len(path) > 1
}

// treeSlots returns the first n Full slots that the tree holds for the key, or
// fewer if it holds fewer, ending at the last node that is whole on the device.
func (s *Story) treeSlots(k tree.Key, n int) tree.Slots {
	var out tree.Slots
	at, id := 0, s.m.Root()
	for at < n {
		info, err := s.m.Inspect(id)
		if err != nil {
			return out
		}
		next := tree.NoNode
		for _, child := range info.Children {
			ci, err := s.m.Inspect(child)
			if err != nil || ci.Namespace != canonical(k.Namespace) || ci.Components[tree.Full].Device == nil {
				continue
			}
			units := commonUnits(ci.Tokens, k.Tokens[at:], ci.Units, s.options.PageSize)
			if units == 0 {
				continue
			}
			out = out.AppendSlice(ci.Components[tree.Full].Device, 0, min(units, n-at))
			if units == ci.Units {
				next = child
			}
			at += units
			break
		}
		if next == tree.NoNode {
			return out
		}
		id = next
	}
	return out
}

// commonUnits counts the units of a node that a key shares, in whole pages.
func commonUnits(node, key []tree.Token, units, page int) int {
	extra := len(node) - units
	n := 0
	for n < len(node) && n < len(key) && node[n] == key[n] {
		n++
	}
	n = max(n-extra, 0)
	page = max(page, 1)
	return n - n%page
}

func canonical(n tree.Namespace) tree.Namespace {
	if n.ExtraKey != "" {
		n.HasExtraKey = true
	}
	return n
}

func (s *Story) chooseState(a *arguments, p *tree.InsertParams) error {
	if !s.options.Components.Has(tree.Mamba) || a.has("no-state") {
		return nil
	}
	var states []uint32
	if a.has("mamba") {
		slots, err := argument(a, "mamba", parseSlots, nil)
		if err != nil {
			return err
		}
		if states, err = numbersOf(slots, 0); err != nil {
			return &ParseError{Verb: a.verb, Field: "mamba", Problem: err.Error()}
		}
		p.MambaState = slots
	} else {
		states = s.pools.mamba.alloc(1)
		s.pools.mamba.release(states[0])
		p.MambaState = slotsFrom(states, 0)
	}
	for _, state := range states {
		if s.pools.mamba.has(state) {
			s.pools.problem("state slot %d is in use already", state)
			continue
		}
		s.pools.mamba.take(state)
		s.pools.mineState = append(s.pools.mineState, state)
	}
	return nil
}

// resume makes the next step of the suspended insert; false: it failed.
func (s *Story) resume() bool {
	step, err := s.m.ResumeInsert()
	if err != nil {
		s.insert.lines = append(s.insert.lines, s.run.fault(err))
		return false
	}
	s.advance(&step)
	return true
}

// advance shows a step and executes its actions.
func (s *Story) advance(step *tree.InsertStep) {
	r := s.insert
	r.steps++
	text := fmt.Sprintf("step %d: %s", r.steps, s.run.actions(step.Actions))
	if step.Result != nil {
		r.result = step.Result
		s.name(r.as, r.result.LastDeviceNode)
		text = fmt.Sprintf("step %d: %s", r.steps, s.run.step(step))
	}
	r.lines = append(r.lines, text)
	s.execute(step.Actions)
}

// execute applies actions as a controller does (rule CT-8).
func (s *Story) execute(actions []tree.Action) {
	l := &s.pools
	for _, a := range actions {
		switch a := a.(type) {
		case tree.FreeDeviceKV:
			for _, f := range l.numbers(a.Slots, 0) {
				l.freeBoth(f)
			}
		case tree.FreeDeviceKVFullOnly:
			l.freeFullOnly(a.Slots)
		case tree.SWARebuild:
			s.storeSWA(a.Node, a.Full)
		case tree.RecoverSWAWithLockedFull:
			s.recover(a)
		case tree.RebuildFullToSWAMapping:
			l.rebuildMapping(a)
		case tree.ReplaceWriteThroughOnNodeSplit:
			s.relocate([]tree.Action{a})
		case tree.BackupKV:
			lines := s.runBackupAction(&a)
			if s.insert != nil {
				s.insert.lines = append(s.insert.lines, lines...)
			}
		case tree.MambaEvictExcessPathStates:
			v, err := s.m.EvictExcessPathStates(a.Tail)
			if text := s.run.evicted(v, err); s.insert != nil {
				s.insert.lines = append(s.insert.lines, "  excess states: "+text)
			}
		}
	}
}

// storeSWA gives a node the twins of these Full slots.
func (s *Story) storeSWA(node tree.NodeID, full tree.Slots) {
	var twins []uint32
	for _, f := range s.pools.numbers(full, 0) {
		twin, ok := s.pools.twin(f)
		if !ok {
			s.pools.problem("Full slot %d is to be rebuilt and has no SWA twin", f)
			return
		}
		twins = append(twins, twin)
	}
	if err := s.m.SetComponentDeviceValue(node, tree.SWA, slotsFrom(twins, swaBase)); err != nil {
		s.pools.problem("storing SWA: %v", err)
	}
}

func (s *Story) recover(a tree.RecoverSWAWithLockedFull) {
	l := &s.pools
	kept, incoming := l.numbers(a.Kept, 0), l.numbers(a.Incoming, 0)
	if len(kept) != len(incoming) {
		l.problem("recover: %d kept slots and %d incoming ones", len(kept), len(incoming))
		return
	}
	for i, f := range incoming {
		twin, ok := l.twin(f)
		if !ok {
			l.problem("recover: incoming slot %d has no SWA twin", f)
			return
		}
		if old, ok := l.twin(kept[i]); ok {
			l.problem("recover: kept slot %d still has the twin s%d", kept[i], old)
		}
		l.setTwin(kept[i], twin)
		l.twins[f] = 0
		l.freeFull(f)
	}
	s.storeSWA(a.Node, a.Kept)
}

// close ends the insert at hand in all cases (rule CT-6), and the request.
func (s *Story) close() {
	r := s.insert
	left := s.m.EndInsert()
	if len(left) > 0 {
		r.lines = append(r.lines, "end: "+s.run.actions(left))
		s.execute(left)
	}
	if r.result == nil {
		r.lines = append(r.lines, "ended early")
	}
	full, states := s.pools.endRequest(s.m)
	if len(full) > 0 {
		r.lines = append(r.lines, "kept "+formatSlots(slotsFrom(full, 0)))
	}
	if len(states) > 0 {
		r.lines = append(r.lines, "kept state "+formatSlots(slotsFrom(states, 0)))
	}
	s.insert = nil
}

func (s *Story) abandon() string {
	r := s.insert
	s.close()
	return r.text()
}

// text gives the lines that were not shown yet.
func (r *request) text() string {
	lines := r.lines
	r.lines = nil
	if len(lines) == 1 {
		return strings.TrimPrefix(lines[0], "step 1: ")
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

const noInsert = "no insert is suspended"

func (s *Story) stepVerb(*arguments) (string, error) {
	r := s.insert
	if r == nil {
		return noInsert, nil
	}
	if s.resume() && r.result != nil {
		s.close()
	}
	return r.text(), nil
}

func (s *Story) finishVerb(*arguments) (string, error) {
	r := s.insert
	if r == nil {
		return noInsert, nil
	}
	for r.result == nil && s.resume() {
	}
	s.close()
	return r.text(), nil
}

func (s *Story) abandonVerb(*arguments) (string, error) {
	if s.insert == nil {
		return noInsert, nil
	}
	return s.abandon(), nil
}
