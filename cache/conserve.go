// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"strings"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// ConservationError lists what CheckConservation found.
type ConservationError struct{ Findings []Finding }

// Finding is one violated invariant.
type Finding struct {
	Rule    string // its number in the behaviour specification, "IN-5"
	Problem string
}

func (e *ConservationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conservation: %d findings", len(e.Findings))
	for _, f := range e.Findings {
		b.WriteString("\n" + f.Rule + ": " + f.Problem)
	}
	return b.String()
}

// CheckConservation verifies that every slot has exactly one owner, that the
// map between Full and SWA says what the tree says, and that locks and marks are
// those of the live requests and the copies in flight (rules IN-1 to IN-9, IN-11
// to IN-13); then the books of the pools and the tree's own check, which is IN-10. It is for tests: its cost is the
// size of pools and tree.
func (c *Cache) CheckConservation() error {
	if c.broken != nil {
		return c.broken
	}
	a := audit{cache: c, nodes: map[tree.NodeID]tree.NodeInfo{}}
	for _, id := range c.tree.Nodes() {
		n, err := c.tree.Inspect(id)
		if err != nil {
			return err
		}
		a.nodes[id] = n
		a.order = append(a.order, id)
	}
	a.owners()
	a.mapping()
	a.locks()
	if c.host != nil {
		a.hostOwners()
		a.hostLocks(a.hostHolders())
		a.pending()
	}
	if c.bufferOnly() {
		a.buffer()
	}
	a.sizes()
	a.books()
	if len(a.found) > 0 {
		return &ConservationError{Findings: a.found}
	}
	return nil
}

type audit struct {
	cache *Cache
	nodes map[tree.NodeID]tree.NodeInfo
	order []tree.NodeID // all nodes, parents first
	found []Finding
}

func (a *audit) fault(rule, format string, args ...any) {
	if len(a.found) < 20 {
		a.found = append(a.found, Finding{rule, fmt.Sprintf(format, args...)})
	}
}

// ledger notes the owner of each slot of one pool.
type ledger struct {
	audit *audit
	rule  string
	pool  string
	first int      // slots of the pool begin here
	owner []string // by slot
}

func (a *audit) ledger(rule string, p *pool.Paged) *ledger {
	l := &ledger{audit: a, rule: rule, pool: p.Name(), first: p.PageSize(), owner: make([]string, p.PageSize()+p.Size())}
	l.own("the free list", p.FreeSlots())
	return l
}

func (l *ledger) own(name string, list tree.Slots) {
	for _, r := range list {
		for i := range int(r.Length) {
			s := int(r.First) + i
			switch {
			case s < l.first || s >= len(l.owner):
				l.audit.fault("AL-1", "slot %d of pool %s does not exist, but %s has it", s, l.pool, name)
			case l.owner[s] != "":
				l.audit.fault("IN-5", "slot %d of pool %s is owned by %s and by %s", s, l.pool, l.owner[s], name)
			default:
				l.owner[s] = name
			}
		}
	}
}

func (l *ledger) close() {
	for s := l.first; s < len(l.owner); s++ {
		if l.owner[s] == "" {
			l.audit.fault(l.rule, "slot %d of pool %s is owned by nobody", s, l.pool)
		}
	}
}

// owners checks IN-1, IN-2, IN-3 and IN-5.
func (a *audit) owners() {
	c := a.cache
	var pools [tree.NumComponents]*ledger
	for id, rule := range [...]string{"IN-1", "IN-2", "IN-3"} {
		if p := c.pool(tree.Component(id)); p != nil {
			pools[id] = a.ledger(rule, p)
		}
	}
	for _, id := range a.order {
		n := a.nodes[id]
		for component, l := range pools {
			if l != nil && n.Components[component].Device != nil && n.Parent != tree.NoNode {
				l.own(fmt.Sprintf("node %d", id), n.Components[component].Device)
			}
		}
	}
	for r := c.live.first; r != nil; r = r.next {
		name := fmt.Sprintf("request %d", r.id)
		pages := wholePages(r.own.runs, c.page)
		pools[tree.Full].own(name, pages)
		if c.swa {
			twins := a.translate(pages.Slice(a.firstTwin(r), pages.Len()))
			for i := range twins {
				if twins[i].First == 0 {
					a.fault("IN-6", "request %d has no SWA slots at some position from %d on", r.id, max(r.frontier, r.protected))
					twins = nil
					break
				}
			}
			pools[tree.SWA].own(name, twins)
		}
		if c.mamba && r.checkpoint.state != 0 {
			list := tree.SlotsOf(r.checkpoint.state)
			pools[tree.Mamba].own(name, list.Append(tree.SlotsOf(r.checkpoint.buffers[:c.opts.TrackBuffers]...)))
		}
	}
	if l := pools[tree.SWA]; l != nil {
		l.own("a copy that it is superfluous to", c.superfluous())
	}
	for _, l := range pools {
		if l != nil {
			l.close()
		}
	}
}

// firstTwin returns the place in r's own row from which on it has SWA slots.
func (a *audit) firstTwin(r *Request) int {
	whole := pool.PagesFor(r.own.length, a.cache.page) * a.cache.page
	return min(max(r.frontier-r.protected, 0), whole)
}

// wholePages completes the last page of a row that begins with a page.
func wholePages(row tree.Slots, page int) tree.Slots {
	row = row.Clone()
	if rest := row.Len() % page; rest > 0 {
		row[len(row)-1].Length += uint32(page - rest)
	}
	return row
}

func (a *audit) translate(full tree.Slots) tree.Slots {
	swa, err := a.cache.dual.Translate(full)
	if err != nil {
		a.fault("IN-6", "%v", err)
	}
	return swa
}

// mapping checks IN-6, and that a request's prefix is what the tree has there.
func (a *audit) mapping() {
	c := a.cache
	for _, id := range a.order {
		n := a.nodes[id]
		full, swa := n.Components[tree.Full].Device, n.Components[tree.SWA].Device
		if !c.swa || full == nil || n.Parent == tree.NoNode {
			continue
		}
		twins := a.translate(full)
		if swa == nil {
			for _, r := range twins {
				if r.First != 0 {
					a.fault("IN-6", "tombstone %d has SWA slots %v in the map", id, r)
				}
			}
			continue
		}
		if !twins.Equal(swa) {
			a.fault("IN-6", "node %d has SWA slots %v, the map says %v", id, swa, twins)
		}
	}
	for r := c.live.first; r != nil; r = r.next {
		if c.swa && a.firstTwin(r) > 0 {
			for _, twin := range a.translate(r.own.appendTo(nil, 0, min(a.firstTwin(r), r.own.length))) {
				if twin.First != 0 {
					a.fault("IN-6", "request %d has SWA slots %v below its frontier %d", r.id, twin, r.frontier)
				}
			}
		}
		if r.state != Running {
			continue
		}
		path, err := c.tree.CollectFullDeviceSlots(r.node, c.tree.Root())
		if err != nil || !path.Equal(r.prefix) || r.prefix.Len() != r.protected {
			a.fault("RQ-1", "request %d reuses %v up to %d, the tree has %v there (%v)", r.id, r.prefix, r.protected, path, err)
		}
	}
}

// held is a lock that somebody holds on a tier.
type held struct {
	name     string
	node     tree.NodeID
	receipt  tree.Receipt
	released bool // its window was given back early
}

// holders lists the device locks of requests and of copies in flight.
func (a *audit) holders() []held {
	var list []held
	for r := a.cache.live.first; r != nil; r = r.next {
		if r.locked {
			list = append(list, held{fmt.Sprintf("request %d", r.id), r.node, r.receipt, r.swaReleased})
		}
	}
	if h := a.cache.host; h != nil {
		for _, b := range h.backups {
			if b.locked {
				list = append(list, held{fmt.Sprintf("backup %d", b.copy), b.node, b.receipt, false})
			}
		}
		for _, l := range h.loads {
			list = append(list, held{fmt.Sprintf("load %d", l.seq), l.node, l.device, false})
		}
		list = append(list, a.bufferHolders()...)
	}
	return list
}

// locks checks IN-7 and IN-12: each node's lock counts are those of the receipts
// that are held.
func (a *audit) locks() {
	c := a.cache
	var want [tree.NumComponents]map[tree.NodeID]int
	for id := range want {
		want[id] = map[tree.NodeID]int{}
	}
	for _, r := range a.holders() {
		window := c.swa && !r.released
		if c.mamba && !r.released && !r.receipt.Skipped.Has(tree.Mamba) {
			want[tree.Mamba][r.node]++
		}
		for id := r.node; ; id = a.nodes[id].Parent {
			n, known := a.nodes[id]
			if !known {
				a.fault("IN-7", "%s locks node %d, which is gone", r.name, id)
				break
			}
			if n.Parent == tree.NoNode {
				break
			}
			want[tree.Full][id]++
			if window {
				want[tree.SWA][id]++
				b := r.receipt.Boundary[tree.SWA]
				window = b == 0 || n.SWABoundary != b
			}
		}
	}
	for _, id := range a.order {
		n := a.nodes[id]
		for component := range tree.Component(tree.NumComponents) {
			state := n.Components[component]
			if n.Parent != tree.NoNode && state.Locks != want[component][id] {
				a.fault("IN-7", "node %d has %d %v locks, %d are held", id, state.Locks, component, want[component][id])
			}
			if state.Locks > n.Components[tree.Full].Locks {
				a.fault("IN-12", "node %d has %d %v locks and %d full locks", id, state.Locks, component, n.Components[tree.Full].Locks)
			}
		}
	}
}

// sizes checks IN-11.
func (a *audit) sizes() {
	for component := range tree.Component(tree.NumComponents) {
		evictable, protected := 0, 0
		for _, id := range a.order {
			n := a.nodes[id]
			if n.Parent == tree.NoNode {
				continue
			}
			if state := n.Components[component]; state.Locks > 0 {
				protected += state.Device.Len()
			} else {
				evictable += state.Device.Len()
			}
		}
		core := a.cache.tree
		if evictable != core.EvictableSize(component) || protected != core.ProtectedSize(component) {
			a.fault("IN-11", "%v: nodes add up to %d evictable and %d protected, the tree says %d and %d",
				component, evictable, protected, core.EvictableSize(component), core.ProtectedSize(component))
		}
		if u := a.cache.Usage(component); u.Free < 0 || u.Held < 0 || u.Evictable < 0 || u.Protected < 0 {
			a.fault("IN-11", "%v: negative counts %+v", component, u)
		}
	}
}

// books checks the pools and the tree.
func (a *audit) books() {
	c := a.cache
	var err error
	if c.swa {
		err = c.dual.Check(c.superfluous())
	} else {
		err = c.full.Check()
	}
	if err == nil && c.mamba {
		err = c.states.Check()
	}
	if err != nil {
		a.fault("AL-3", "%v", err)
	}
	if c.tree.HasOngoingInsert() {
		a.fault("CT-6", "an insert is suspended between two calls")
	}
	if err := c.tree.SanityCheck(a.inFlight()); err != nil {
		a.fault("V", "%v", err)
	}
	running := 0
	for r := c.live.first; r != nil; r = r.next {
		if r.state == Running || r.state == Lost {
			running++
		}
		if r.frontier%c.page != 0 || r.protected%c.page != 0 || r.committed > r.Allocated() && r.state != Retracted || r.own.length != r.own.runs.Len() {
			a.fault("RQ-1", "request %d: protected %d, frontier %d, committed %d, allocated %d, %d slots of its own",
				r.id, r.protected, r.frontier, r.committed, r.Allocated(), r.own.runs.Len())
		}
	}
	if running != c.running {
		a.fault("RQ-21", "%d requests run, %d are counted", running, c.running)
	}
}
