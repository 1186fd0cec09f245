// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// NewMachine makes an empty machine.
type NewMachine func(tree.Options) (Machine, error)

// Mismatch says where two machines parted.
type Mismatch struct {
	Line    int    // index of the line after which they differ
	Text    string // the line
	Problem string // what differs
	kind    string // shrinking keeps to one kind of problem
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("line %d: %s\n%s", m.Line+1, m.Text, m.Problem)
}

// Compare runs the lines on a machine of each kind. After each line it compares
// the answers and all that chapter 17 of the behaviour specification calls
// observable (node numbers and boundary numbers up to renaming), and checks
// both machines' consistency and slots. A line that is not in the grammar, or
// that names what does not exist, is skipped: what is left of a script after
// lines were taken out is still a script. The result is nil if nothing differs.
func Compare(o tree.Options, newA, newB NewMachine, lines []string) (*Mismatch, error) {
	p, err := newPair(o, newA, newB)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		if problem := p.do(line); problem != "" {
			return &Mismatch{Line: i, Text: line, Problem: problem, kind: p.kind}, nil
		}
	}
	return nil, nil
}

// hashEvery is how many lines pass between two comparisons of all hashes, which
// are dear and never change.
const hashEvery = 16

// pair is two stories that are told the same lines.
type pair struct {
	options tree.Options
	a, b    *Story
	toB     map[tree.NodeID]tree.NodeID
	marks   map[uint64]uint64 // boundary numbers of a to those of b, and back
	back    map[uint64]uint64
	kind    string // of the last problem
	lines   int    // told so far
}

func newPair(o tree.Options, newA, newB NewMachine) (*pair, error) {
	a, err := newA(o)
	if err != nil {
		return nil, err
	}
	b, err := newB(o)
	if err != nil {
		return nil, err
	}
	p := &pair{
		options: o, a: NewStory(o, a), b: NewStory(o, b),
		toB: map[tree.NodeID]tree.NodeID{}, marks: map[uint64]uint64{0: 0}, back: map[uint64]uint64{0: 0},
	}
	p.a.quiet, p.b.quiet = true, true
	return p, nil
}

// do tells both stories a line; the text is what differs or is wrong.
func (p *pair) do(line string) string {
	textA, errA := p.a.Do(line)
	textB, errB := p.b.Do(line)
	p.kind = "answer"
	p.lines++
	if errA != nil || errB != nil {
		if (errA == nil) != (errB == nil) {
			return fmt.Sprintf("a: %v\nb: %v", errA, errB)
		}
		return ""
	}
	if strings.Contains(textA, "PROBLEM: panic") || strings.Contains(textB, "PROBLEM: panic") {
		p.kind = "panic"
		return "a: " + textA + "\nb: " + textB
	}
	if textA != textB {
		return "a: " + textA + "\nb: " + textB + p.drawings()
	}
	if strings.Contains(textA, "PROBLEM") {
		p.kind = "problem"
		return textA + p.drawings()
	}
	if problem := p.state(); problem != "" {
		p.kind = "state " + strings.SplitN(problem, " ", 2)[0]
		return problem + p.drawings()
	}
	return ""
}

func (p *pair) drawings() string {
	drawA, _ := p.a.drawVerb(nil)
	drawB, _ := p.b.drawVerb(nil)
	if drawA == drawB {
		return "\nboth:" + drawA
	}
	return "\na:" + drawA + "\nb:" + drawB
}

// state compares everything observable.
func (p *pair) state() string {
	infosA, infosB := p.a.inspectAll(), p.b.inspectAll()
	if len(infosA) != len(infosB) {
		return fmt.Sprintf("a has %d nodes, b has %d", len(infosA), len(infosB))
	}
	clear(p.toB)
	for i := range infosA {
		p.toB[infosA[i].ID] = infosB[i].ID
	}
	for i := range infosA {
		if what := p.nodesDiffer(&infosA[i], &infosB[i]); what != "" {
			return fmt.Sprintf("%s of a node:\na: %s\nb: %s", what, p.a.run.inspect(&infosA[i]), p.b.run.inspect(&infosB[i]))
		}
	}
	if problem := p.lists(); problem != "" {
		return problem
	}
	for _, s := range []*Story{p.a, p.b} {
		name := "a"
		if s == p.b {
			name = "b"
		}
		if err := s.sanity(); err != nil {
			return name + ": " + err.Error()
		}
		if problems := s.pools.audit(s.infos, s.staged); len(problems) > 0 {
			return name + ": " + strings.Join(problems, "\n")
		}
	}
	return ""
}

// nodesDiffer names the first thing in which two nodes differ.
func (p *pair) nodesDiffer(a, b *tree.NodeInfo) string {
	switch {
	case a.Parent != tree.NoNode && p.toB[a.Parent] != b.Parent || (a.Parent == tree.NoNode) != (b.Parent == tree.NoNode):
		return "parent"
	case !p.sameNodes(a.Children, b.Children):
		return "children"
	case a.Namespace != b.Namespace:
		return "namespace"
	case !slices.Equal(a.Tokens, b.Tokens) || a.Units != b.Units || a.Bigram != b.Bigram:
		return "key"
	case a.Hits != b.Hits:
		return "hits"
	case a.Priority != b.Priority:
		return "priority"
	case a.DeviceLeaf != b.DeviceLeaf:
		return "leaf"
	case !p.sameMark(a.SWABoundary, b.SWABoundary):
		return "boundary"
	case a.WriteThroughPending != b.WriteThroughPending || !p.sameLoad(a.LoadBackPending, b.LoadBackPending):
		return "pending marks"
	case a.Stored != b.Stored:
		return "stored mark"
	case p.a.m.IsDeviceEvictableLeaf(a.ID) != p.b.m.IsDeviceEvictableLeaf(b.ID):
		return "device leaf set"
	case p.a.m.IsHostEvictableLeaf(a.ID) != p.b.m.IsHostEvictableLeaf(b.ID):
		return "host leaf set"
	}
	for c := tree.Full; c < tree.NumComponents; c++ {
		x, y := &a.Components[c], &b.Components[c]
		switch {
		case !sameSlots(x.Device, y.Device):
			return c.String() + " device value"
		case !sameSlots(x.Host, y.Host):
			return c.String() + " host value"
		case x.Locks != y.Locks || x.HostLocks != y.HostLocks:
			return c.String() + " locks"
		case !p.sameMark(x.HostBoundary, y.HostBoundary):
			return c.String() + " host boundary"
		case x.SessionRefs != y.SessionRefs || !slices.Equal(x.Sessions, y.Sessions):
			return c.String() + " session references"
		case x.InDeviceList != y.InDeviceList || x.InHostList != y.InHostList:
			return c.String() + " list membership"
		}
	}
	if p.lines%hashEvery != 0 {
		return ""
	}
	hashesA, errA := p.a.m.Hashes(a.ID)
	hashesB, errB := p.b.m.Hashes(b.ID)
	if errA != nil || errB != nil || !slices.Equal(hashesA, hashesB) {
		return fmt.Sprintf("hashes %v and %v", hashesA, hashesB)
	}
	return ""
}

func sameSlots(a, b tree.Slots) bool { return (a == nil) == (b == nil) && a.Equal(b) }

func (p *pair) sameNodes(a, b []tree.NodeID) bool {
	return slices.EqualFunc(a, b, func(x, y tree.NodeID) bool { return p.toB[x] == y })
}

func (p *pair) sameMark(a, b uint64) bool {
	if known, ok := p.marks[a]; ok {
		return known == b
	}
	if _, taken := p.back[b]; taken {
		return false
	}
	p.marks[a], p.back[b] = b, a
	return true
}

// sameLoad compares load-back marks, which are node numbers.
func (p *pair) sameLoad(a, b int64) bool {
	if a == 0 || b == 0 {
		return a == b
	}
	return p.toB[tree.NodeID(a)] == tree.NodeID(b)
}

// lists compares recency lists, sizes and the order of the leaves.
func (p *pair) lists() string {
	for c := tree.Full; c < tree.NumComponents; c++ {
		for _, host := range []bool{false, true} {
			a, b := p.a.m.RecencyOrder(c, host), p.b.m.RecencyOrder(c, host)
			if (a == nil) != (b == nil) || !p.sameNodes(a, b) {
				return fmt.Sprintf("recency list of %s (host %t):\na: %s\nb: %s", c, host, p.a.run.nodeList(a), p.b.run.nodeList(b))
			}
		}
		if p.a.m.EvictableSize(c) != p.b.m.EvictableSize(c) || p.a.m.ProtectedSize(c) != p.b.m.ProtectedSize(c) {
			return p.sizesText()
		}
	}
	if problem := p.duplicates(); problem != "" {
		return problem
	}
	fullA, auxA := p.a.m.TotalSize()
	if fullB, auxB := p.b.m.TotalSize(); fullA != fullB || auxA != auxB {
		return p.sizesText()
	}
	if p.a.walks[tree.Full] != nil || p.a.insert != nil {
		return ""
	}
	orderA, errA := p.a.leafOrder()
	orderB, errB := p.b.leafOrder()
	if is[*tree.OrderError](errA) && is[*tree.OrderError](errB) {
		return "" // a raw call has started a walk that the story does not know
	}
	if errA != nil || errB != nil {
		return fmt.Sprintf("order of leaves: a: %v b: %v", errA, errB)
	}
	if !p.sameNodes(orderA, orderB) {
		return fmt.Sprintf("order of leaves:\na: %s\nb: %s", p.a.run.nodeList(orderA), p.b.run.nodeList(orderB))
	}
	return ""
}

// duplicates compares what only host tiers have.
func (p *pair) duplicates() string {
	a, okA := p.a.m.(HostMachine)
	b, okB := p.b.m.(HostMachine)
	if !okA || !okB {
		return ""
	}
	listA, listB := a.HostDuplicates(), b.HostDuplicates()
	if !p.sameNodes(listA, listB) {
		return fmt.Sprintf("host duplicates:\na: %s\nb: %s", p.a.run.nodesText(listA), p.b.run.nodesText(listB))
	}
	if x, y := a.ReclaimDigest(), b.ReclaimDigest(); x != y {
		return fmt.Sprintf("reclaim digest: a: %d b: %d", x, y)
	}
	return ""
}

func (p *pair) sizesText() string {
	sizesA, _ := p.a.sizesVerb(nil)
	sizesB, _ := p.b.sizesVerb(nil)
	return "sizes:\na: " + sizesA + "\nb: " + sizesB
}
