// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// hostProductions are added where the machines have a host tier.
var hostProductions = []production{
	{10, (*generator).backupLine},
	{12, (*generator).ackLine},
	{8, (*generator).loadBackLine},
	{7, (*generator).ackLoadLine},
	{8, (*generator).hostInsertLine},
	{6, (*generator).fetchLine},
	{6, (*generator).hostEvictLine},
	{6, (*generator).storedLine},
	{6, (*generator).hostLockLine},
	{6, (*generator).demoteLine},
	{6, (*generator).hostQueryLine},
	{3, (*generator).wrongHostLine},
	{2, (*generator).undoLine},
	{1, (*generator).policyLine},
	{1, (*generator).rareHostLine},
}

// bufferProductions are added instead where the host is a staging area.
var bufferProductions = []production{
	{8, (*generator).hostQueryLine},
	{2, (*generator).hostEvictLine},
	{3, (*generator).hostLockLine},
	{1, (*generator).hostInsertLine},
	{1, (*generator).storedLine},
	{2, (*generator).wrongHostLine},
}

const inFlightLimit = 6 // backups in flight before acks are delivered first

// switchesLine turns the switches of a story with a host tier on.
func (g *generator) switchesLine(storage bool) string {
	w := words{"switches host-tier"}
	w.flag("swa-host-pool", !g.noWindows)
	w.flag("storage", storage)
	w.flag("write-back", g.writeBack)
	w.flag("host-buffer-only", g.config.BufferOnly)
	w.add("write-through-threshold", fmt.Sprint(g.threshold))
	return w.String()
}

// poolsLine makes up sizes of the host pools, which are short all the time, or
// now and then.
func (g *generator) poolsLine() string {
	w := words{"host-pools"}
	scale := 1 + g.rng.IntN(4)
	w.number("full", g.page()*scale*(6+g.rng.IntN(20)))
	if g.has(tree.SWA) {
		w.number("swa", g.page()*scale*(4+g.rng.IntN(12)))
	}
	if g.has(tree.Mamba) {
		w.number("mamba", scale*(1+g.rng.IntN(6)))
	}
	return w.String()
}

// pick picks a node's name as node does, one that fits if there is one.
func (g *generator) pick(s *Story, fits func(*tree.NodeInfo) bool) string {
	name := g.node(s)
	for range 10 {
		if id, ok := s.nodes[name]; ok {
			if info, err := s.m.Inspect(id); err == nil && info.Parent != tree.NoNode && fits(&info) {
				return name
			}
		}
		name = g.node(s)
	}
	return name
}

func onDevice(n *tree.NodeInfo) bool { return n.Components[tree.Full].Device != nil }
func backedUp(n *tree.NodeInfo) bool { return n.Components[tree.Full].Host != nil }

// mayBackup reports whether a backup keeps rule ND-6: outside write-back
// ancestors go first.
func (g *generator) mayBackup(s *Story, n *tree.NodeInfo) bool {
	if !onDevice(n) {
		return false
	}
	if g.writeBack {
		return true
	}
	up, err := s.m.Inspect(n.Parent)
	return err == nil && (up.Parent == tree.NoNode || backedUp(&up))
}

// missing reports whether something of the node has no host copy.
func missing(n *tree.NodeInfo) bool {
	for c := range n.Components {
		if n.Components[c].Device != nil && n.Components[c].Host == nil {
			return true
		}
	}
	return false
}

func (g *generator) backupLine(s *Story) string {
	name := g.pick(s, func(n *tree.NodeInfo) bool { return missing(n) && g.mayBackup(s, n) })
	id, err := s.resolve(name)
	if err != nil {
		return ""
	}
	if info, err := s.m.Inspect(id); err == nil && onDevice(&info) && info.Parent != tree.NoNode && !g.mayBackup(s, &info) {
		return "" // would break the order of backups
	}
	line := "backup " + name
	if g.chance(8) {
		line += " fail"
	}
	return line
}

func (g *generator) ackLine(s *Story) string {
	switch {
	case len(s.host.writes) == 0:
		return ""
	case len(s.host.writes) > inFlightLimit || g.chance(10):
		return "ack all"
	}
	return "ack"
}

func (g *generator) loadBackLine(s *Story) string {
	if len(s.host.loads) > 3 {
		return ""
	}
	name := g.pick(s, func(n *tree.NodeInfo) bool {
		for c := range n.Components {
			if n.Components[c].Host != nil && n.Components[c].Device == nil {
				return true
			}
		}
		return false
	})
	line := "load-back " + name
	if g.chance(8) {
		line += " fail"
	}
	return line
}

func (g *generator) ackLoadLine(s *Story) string {
	if len(s.host.loads) == 0 {
		return ""
	}
	return "ack-load"
}

// below makes up tokens that go on from a node: the beginning of a document, or
// of what is there, with another end.
func (g *generator) below(s *Story, node string) []tree.Token {
	id, err := s.resolve(node)
	if err != nil {
		return nil
	}
	info, err := s.m.Inspect(id)
	if err != nil {
		return g.tokensOf(g.letters(2))
	}
	var tokens []tree.Token
	at := info
	for depth := 0; depth < 3 && len(at.Children) > 0 && g.chance(60); depth++ {
		child, err := s.m.Inspect(at.Children[g.rng.IntN(len(at.Children))])
		if err != nil || info.Parent != tree.NoNode && child.Namespace != info.Namespace {
			break
		}
		tokens = append(tokens, child.Tokens[:child.Units]...)
		at = child
	}
	if g.chance(30) && len(tokens) > 0 {
		tokens = tokens[:g.rng.IntN(len(tokens)+1)]
	}
	if room := g.page()*g.maxPages() - len(tokens); room > 0 {
		tokens = append(tokens, g.tokensOf(g.letters(g.rng.IntN(g.maxPages()/2+1)))...)
	}
	if g.config.Options.Eagle && !g.has(tree.Mamba) {
		if info.Parent != tree.NoNode && len(info.Tokens) > info.Units {
			// Pairs go on from the last token of the path.
			last := info.Tokens[len(info.Tokens)-1]
			if len(tokens) == 0 || tokens[0] != last {
				tokens = append([]tree.Token{last}, tokens...)
			}
		}
		tokens = append(tokens, tree.Token(1+g.rng.IntN(2)))
	}
	return tokens
}

// anchorOf picks where a read hangs: in a tree without write-back below what has
// a host copy, as a rule.
func (g *generator) anchorOf(s *Story) string {
	if g.chance(25) {
		return "root"
	}
	name := g.pick(s, backedUp)
	id, err := s.resolve(name)
	if err != nil {
		return "root"
	}
	if info, err := s.m.Inspect(id); err == nil && info.Parent != tree.NoNode && !backedUp(&info) && !g.writeBack && g.chance(90) {
		return "root"
	}
	return name
}

// fetchFields are the fields of a read from storage.
func (g *generator) fetchFields(s *Story) string {
	anchor := g.anchorOf(s)
	tokens := g.below(s, anchor)
	w := words{"under=" + anchor, "tokens=" + formatTokens(tokens)}
	if anchor == "root" && g.chance(12) {
		w = append(w, []string{`extra="a"`, `salt="a"`, `extra="" salt="b"`}[g.rng.IntN(3)])
	}
	pages := len(tokens) / g.page()
	if g.chance(25) {
		w.add("pages", fmt.Sprint(g.rng.IntN(pages+2)))
	}
	if g.has(tree.SWA) && !g.noWindows && g.chance(70) {
		window := (max(g.config.Options.SlidingWindow, 1) + g.page() - 1) / g.page()
		n := min(window, pages)
		if g.chance(20) {
			n = g.rng.IntN(pages + 1)
		}
		w.number("swa", n)
		if g.chance(15) {
			w.add("found", fmt.Sprint(g.rng.IntN(n+1)))
		}
	}
	if g.has(tree.Mamba) && g.chance(60) {
		w = append(w, "mamba")
		if g.chance(15) {
			w.add("found-state", "0")
		}
	}
	w.flag("hashed", g.chance(60))
	w.flag("no-lock", g.chance(10))
	w.flag("fail", g.chance(5))
	return w.String()
}

func (g *generator) hostInsertLine(s *Story) string {
	return "host-insert " + g.fetchFields(s) + " as=" + g.newName()
}

// fetchLine begins a read or ends one that is on.
func (g *generator) fetchLine(s *Story) string {
	reads := sortedKeys(s.host.fetches)
	if len(reads) < 3 && g.chance(50) {
		for i := range 3 {
			if name := fmt.Sprintf("f%d", i); s.host.fetches[name] == nil {
				return "prefetch " + g.fetchFields(s) + " as=" + name
			}
		}
	}
	if len(reads) == 0 {
		return ""
	}
	read := reads[g.rng.IntN(len(reads))]
	if g.chance(20) {
		return "drop " + read
	}
	return "graft " + read + " as=" + g.newName()
}

func (g *generator) hostEvictLine(s *Story) string {
	c := g.component()
	n := g.amount(c)
	if g.chance(20) {
		n *= 4
	}
	return fmt.Sprintf("evict-host %s n=%d", c, n)
}

func (g *generator) hostLockLine(s *Story) string {
	var live []string
	free := ""
	for i := range 5 {
		name := fmt.Sprintf("h%d", i)
		if _, ok := s.receipts[name]; ok {
			live = append(live, name)
		} else if free == "" {
			free = name
		}
	}
	if free == "" || len(live) > 0 && g.chance(55) {
		return "unlock-host " + live[g.rng.IntN(len(live))]
	}
	name := g.pick(s, backedUp)
	if id, err := s.resolve(name); err == nil && !g.writeBack {
		// An anchor without host copy could be deleted under its lock.
		if info, err := s.m.Inspect(id); err == nil && info.Parent != tree.NoNode && !backedUp(&info) && g.chance(90) {
			return ""
		}
	}
	return "lock-host " + name + " as=" + free
}

func (g *generator) demoteLine(s *Story) string {
	return "demote " + g.pick(s, func(n *tree.NodeInfo) bool {
		return n.DeviceLeaf && backedUp(n) && n.WriteThroughPending == 0
	})
}

func (g *generator) hostQueryLine(s *Story) string {
	node := g.node(s)
	prefix := ""
	if g.chance(40) {
		prefix = " with-prefix"
	}
	switch g.rng.IntN(10) {
	case 8:
		return "build-offload " + node
	case 0:
		return "build-backup " + node
	case 1:
		return "build-load-back " + node
	case 2:
		return "build-storage " + node + prefix
	case 3:
		return "snapshot-buffer " + node + prefix
	case 4:
		return fmt.Sprintf("validate-buffer %s units=%d", node, g.page()*g.rng.IntN(4))
	case 5:
		return "host-duplicates"
	case 6:
		return "has-host-value-only node=" + node + " component=" + g.component().String()
	case 7:
		return "is-backed-up " + node
	}
	if s.paused() {
		return ""
	}
	return "match tokens=" + formatTokens(g.tokensOf(g.docs[g.rng.IntN(docCount)])) + " best=" + g.newName()
}

func (s *Story) paused() bool { return s.host.paused != [tree.NumComponents]tree.NodeID{} }

// wrongHostLine makes up calls of the host tier that must fail, or do nothing.
func (g *generator) wrongHostLine(s *Story) string {
	node, other := g.node(s), g.node(s)
	c := g.component()
	id, err := s.resolve(node)
	isRoot := err == nil && id == s.m.Root()
	switch g.rng.IntN(14) {
	case 0:
		return fmt.Sprintf("commit-backup node=%s slots=900000..%d", node, 900000+g.page()*g.maxPages()*2)
	case 1:
		return fmt.Sprintf("commit-backup node=%s aux=swa::900000..%d:%s,%s", node, 900000+g.page()*g.maxPages()*4, other, node)
	case 2:
		return fmt.Sprintf("commit-backup node=%s aux=%s::-:%s", node, c, other)
	case 3:
		return fmt.Sprintf("mark-write-through-pending nodes=%s,%s ack=0", node, other)
	case 4:
		if len(s.host.writes) > 0 {
			if name := s.labels[s.host.writes[0].target]; name != "" && !isRoot {
				return fmt.Sprintf("mark-write-through-pending nodes=%s,%s ack=987654", name, node)
			}
		}
	case 5:
		if !isRoot {
			return fmt.Sprintf("finish-write-through nodes=%s,%s ack=987654", node, node)
		}
	case 6:
		return fmt.Sprintf("commit-load-back node=%s slots=900000..900001 full=full::0:%s,%s", node, other, node)
	case 7:
		return fmt.Sprintf("commit-load-back node=%s aux=%s:900000..%d::%s,%s", node, c, 900000+g.page()*g.maxPages()*4, other, node)
	case 8:
		if !s.paused() {
			return fmt.Sprintf("finish-state-eviction component=%s node=%s", c, node)
		}
	case 9:
		return fmt.Sprintf("insert-host anchor=%s tokens=%s slots=900000", node, formatTokens(g.below(s, node)))
	case 10:
		return "unlock-host " + node + ":none:0:987654321:987654321 node=" + node
	case 11:
		return "finish-load-back " + node
	case 13:
		return g.wrongOffloadLine(s)
	case 12:
		return fmt.Sprintf("commit-prefetch anchor=%s inserted=%s aux=swa::900000:-;swa::900001:- found=0,1,0", node, other)
	}
	return ""
}

func (g *generator) rareHostLine(s *Story) string {
	switch g.rng.IntN(4) {
	case 0:
		return fmt.Sprintf("host-fail n=%d", 1+g.rng.IntN(3))
	case 1:
		return g.poolsLine()
	case 2:
		return "drop-subtree " + g.leaf(s)
	}
	return "reclaim-digest"
}

// pauseLine ends or disturbs a pause.
func (g *generator) pauseLine(s *Story) string {
	for c := range s.host.paused {
		if s.host.paused[c] == tree.NoNode {
			continue
		}
		name := tree.Component(c).String()
		switch pick := g.rng.IntN(10); {
		case pick < 4:
			return "finish-pause " + name
		case pick < 6:
			return "finish-pause " + name + " no-backup"
		case pick < 7:
			return "walk-next " + name
		case pick < 8:
			return "walk-end " + name
		case pick < 9:
			return "evict-host " + name + " n=1"
		}
		return "finish-state-eviction component=" + name + " node=root"
	}
	return ""
}

// walkFlags are how steps of a walk treat pauses.
func (g *generator) walkFlags(s *Story) string {
	if !g.real || !g.writeBack {
		return ""
	}
	switch pick := g.rng.IntN(10); {
	case pick < 3:
		return " leave"
	case pick < 5:
		return " no-backup"
	}
	return ""
}

// isHostMachine reports whether all machines have a host tier.
func isHostMachine(machines ...Machine) bool {
	for _, m := range machines {
		if _, ok := m.(HostMachine); !ok {
			return false
		}
	}
	return true
}

// hostName is the part of a configuration's name that tells host modes apart.
func (c RandomConfig) hostName() string {
	switch {
	case !c.Host:
		return ""
	case c.BufferOnly:
		return "/buffer-only"
	case c.Changing:
		return "/changing"
	case c.WriteBack:
		return "/write-back"
	case c.Threshold > 1:
		return "/selective"
	}
	return "/write-through"
}
