// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"

	"github.com/treecore/treecore/tree"
)

// production makes up one line, or "" if it cannot now.
type production struct {
	weight int
	line   func(g *generator, s *Story) string
}

var productions = []production{
	{26, (*generator).insertLine},
	{16, (*generator).matchLine},
	{9, (*generator).lockLine},
	{9, (*generator).unlockLine},
	{3, (*generator).releaseLine},
	{3, (*generator).pinLine},
	{9, (*generator).evictLine},
	{7, (*generator).walkLine},
	{5, (*generator).sessionLine},
	{4, (*generator).hostLine},
	{4, (*generator).queryLine},
	{3, (*generator).wrongLine},
	{2, (*generator).windowLine},
	{1, (*generator).rareLine},
}

// next makes up the next line.
func (g *generator) next(s *Story) string {
	if s.insert != nil && g.chance(60) {
		return []string{"step", "step", "finish", "abandon", "has-ongoing-insert"}[g.rng.IntN(5)]
	}
	if s.insert != nil && g.real && !g.config.BufferOnly && g.chance(60) {
		// What a controller does between two steps (rule I-11).
		between := []func(*generator, *Story) string{(*generator).backupLine, (*generator).hostEvictLine, (*generator).hostLockLine, (*generator).lockLine}
		if line := between[g.rng.IntN(len(between))](g, s); line != "" {
			return line
		}
	}
	if s.insert != nil && g.linker && g.chance(40) {
		if line := g.ackOffloadLine(s); line != "" {
			return line
		}
	}
	if s.walking() && g.chance(75) {
		if line := g.pauseLine(s); line != "" && g.chance(80) {
			return line
		}
		during := []func(*generator, *Story) string{(*generator).walkLine, (*generator).walkLine, (*generator).walkLine, (*generator).walkLine,
			(*generator).lockLine, (*generator).unlockLine, (*generator).releaseLine, (*generator).pinLine, (*generator).sessionLine}
		if g.real && !g.config.BufferOnly {
			during = append(during, (*generator).ackLine, (*generator).backupLine, (*generator).hostEvictLine, (*generator).hostLockLine)
		}
		if line := during[g.rng.IntN(len(during))](g, s); line != "" {
			return line
		}
	}
	if nodes := len(s.infos); nodes > g.config.MaxNodes && g.chance(30) {
		if nodes > 2*g.config.MaxNodes || g.config.Host && g.chance(25) {
			return "reset"
		}
		return fmt.Sprintf("evict full n=%d", g.page()*(10+g.rng.IntN(60)))
	}
	if s.paused() && g.chance(60) {
		return g.pauseLine(s)
	}
	productions := productions
	switch {
	case g.real && g.config.BufferOnly:
		productions = append(productions[:len(productions):len(productions)], bufferProductions...)
	case g.linker:
		productions = append(productions[:len(productions):len(productions)], linkerProductions...)
	case g.real:
		productions = append(productions[:len(productions):len(productions)], hostProductions...)
	}
	total := 0
	for _, p := range productions {
		total += p.weight
	}
	for {
		pick := g.rng.IntN(total)
		for _, p := range productions {
			if pick -= p.weight; pick < 0 {
				if line := p.line(g, s); line != "" {
					return line
				}
				break
			}
		}
	}
}

func (g *generator) insertLine(s *Story) string {
	tokens, namespace := g.key(s)
	from := ""
	if g.chance(50) {
		node := g.node(s)
		if t, n, ok := g.pathKey(s, node); ok {
			tokens, namespace, from = t, n, node
		}
	}
	var w words
	w = append(w, "insert tokens="+formatTokens(tokens)+namespace)
	p := g.page()
	switch {
	case from != "" && g.chance(85):
		w.add("from", from)
	case !g.has(tree.SWA) && g.chance(15):
		// Any prev is honest where no tombstone can be cut by it (I-24).
		w.number("prev", g.rng.IntN(len(tokens)+p))
	}
	if g.has(tree.SWA) {
		w.number("swa-evicted", g.frontier(len(tokens)))
		if g.chance(25) {
			w.number("swa-branch", p*g.rng.IntN(len(tokens)/p+2))
		}
	}
	w.flag("chunked", g.chance(15))
	if g.chance(20) {
		w.number("priority", g.rng.IntN(7)-2)
	}
	w.flag("adopted", g.chance(50))
	if g.chance(10) {
		w.add("session", fmt.Sprintf("s%d", g.rng.IntN(3)))
	}
	w.flag("no-state", g.has(tree.Mamba) && g.chance(2))
	switch {
	case g.chance(8):
		w.number("stop-after", 1+g.rng.IntN(2))
	case g.chance(5) || g.real && g.chance(15):
		w.flag("hold", true)
	}
	w.add("as", g.newName())
	return w.String()
}

// frontier makes up swa-evicted: nothing, what a chunked prefill frees (BR-3),
// any page, or a position inside a page.
func (g *generator) frontier(n int) int {
	p := g.page()
	switch pick := g.rng.IntN(100); {
	case pick < 35:
		return 0
	case pick < 65:
		e := max(n-1-max(g.config.Options.SlidingWindow, p), 0)
		return e - e%p
	case pick < 96:
		return p * g.rng.IntN(n/p+2)
	}
	return g.rng.IntN(n + p)
}

func (g *generator) matchLine(s *Story) string {
	tokens, namespace := g.key(s)
	if g.chance(40) {
		if t, n, ok := g.pathKey(s, g.node(s)); ok {
			tokens, namespace = t, n
		}
	}
	if g.chance(15) {
		return "match-full-device-prefix tokens=" + formatTokens(tokens) + namespace
	}
	line := "match tokens=" + formatTokens(tokens) + namespace + " explain"
	if g.chance(60) {
		line += " as=" + g.newName()
	}
	return line
}

func (g *generator) lockLine(s *Story) string {
	if len(s.receipts) > 7 {
		return ""
	}
	for {
		g.holds = (g.holds + 1) % 40
		if _, taken := s.receipts[fmt.Sprintf("r%d", g.holds)]; !taken {
			break
		}
	}
	line := "lock " + g.node(s)
	switch {
	case g.chance(25) && g.has(tree.Mamba):
		line += " skip=mamba"
	case g.chance(8):
		line += " skip=" + tree.ComponentSet(g.rng.IntN(8)).String()
	}
	return line + fmt.Sprintf(" as=r%d", g.holds)
}

func (g *generator) unlockLine(s *Story) string {
	r, ok := g.held(s.receipts)
	if !ok {
		return ""
	}
	return "unlock " + r
}

func (g *generator) releaseLine(s *Story) string {
	r, ok := g.held(s.receipts)
	if !ok {
		return ""
	}
	if g.chance(25) {
		return "release-window " + r + " component=" + tree.Component(g.rng.IntN(tree.NumComponents)).String()
	}
	return "release-swa " + r
}

func (g *generator) pinLine(s *Story) string {
	name := fmt.Sprintf("p%d", g.rng.IntN(3))
	if _, held := s.pins[name]; held {
		return "unpin " + name
	}
	return "pin " + g.node(s) + " as=" + name
}

func (g *generator) evictLine(s *Story) string {
	c := g.component()
	line := fmt.Sprintf("evict %s n=%d", c, g.amount(c))
	if g.chance(10) {
		line += fmt.Sprintf(" keep=%d", 1+g.rng.IntN(2))
	}
	if g.chance(2) && !g.real {
		line += " write-back keep=3"
	}
	if g.real && g.writeBack && g.chance(15) {
		line += " no-backup"
	}
	return line
}

func (g *generator) walkLine(s *Story) string {
	c := g.component()
	if s.walks[c] == nil {
		return fmt.Sprintf("walk-start %s n=%d", c, g.amount(c))
	}
	if g.chance(15) {
		return "walk-end " + c.String()
	}
	if g.chance(15) {
		return "walk-next " + c.String() + " keep"
	}
	return "walk-next " + c.String() + g.walkFlags(s)
}

func (g *generator) sessionLine(s *Story) string {
	id := fmt.Sprintf("s%d", g.rng.IntN(3))
	switch pick := g.rng.IntN(10); {
	case pick < 2:
		return "open-session " + id
	case pick < 3:
		return "ensure-session " + id
	case pick < 5:
		return "release-session " + id
	case pick < 9:
		return "register " + id + " node=" + g.node(s)
	}
	return fmt.Sprintf("register %s node=%s generation=%d", id, g.node(s), g.rng.IntN(9))
}

func (g *generator) hostLine(s *Story) string {
	if !g.config.Host || g.real {
		return ""
	}
	node := g.leaf(s)
	if backed, err := s.m.IsBackedUp(s.nodes[node]); err == nil && backed && g.chance(80) {
		return "demote " + node
	}
	line := "host-copy " + node
	if g.has(tree.SWA) && g.chance(60) {
		line += " swa"
	}
	if g.has(tree.Mamba) && g.chance(60) {
		line += " mamba"
	}
	return line
}

func (g *generator) queryLine(s *Story) string {
	node := g.node(s)
	switch g.rng.IntN(12) {
	case 0:
		return "flatten-full"
	case 1:
		return "flatten-mamba"
	case 2:
		return "walk-canary" + []string{"", " unlocked-only", " swa-resident-only", " unlocked-only swa-resident-only"}[g.rng.IntN(4)]
	case 3:
		var list []string
		for range 1 + g.rng.IntN(6) {
			list = append(list, g.node(s))
		}
		return "dfs-weight-order nodes=" + strings.Join(list, ",")
	case 4:
		return "collect-full-device-slots from=" + node + " until=root"
	case 5:
		return "collect-full-device-slots from=" + node + " until=" + g.node(s)
	case 6:
		return "prefix-hashes " + node
	case 7:
		return "last-hash " + node
	case 8:
		return "is-full-device-evicted " + node
	case 9:
		return "prefetch-anchor " + node
	case 10:
		return "device-value node=" + node + " component=" + g.component().String()
	}
	return "take-events"
}

// leaf picks a node's name as node does, a device leaf if there is one.
func (g *generator) leaf(s *Story) string {
	name := g.node(s)
	for range 8 {
		if id, ok := s.nodes[name]; ok && s.m.IsDeviceEvictableLeaf(id) {
			break
		}
		name = g.node(s)
	}
	return name
}

// wrongLine makes up calls that must fail, or do nothing, without a trace.
func (g *generator) wrongLine(s *Story) string {
	node := g.node(s)
	switch g.rng.IntN(9) {
	case 0:
		if r, ok := g.held(s.receipts); ok {
			return "unlock " + r + " node=" + node
		}
	case 1:
		if r, ok := g.held(s.receipts); ok {
			return "release-swa " + r + " node=" + node
		}
	case 2:
		if g.has(tree.SWA) && node != "root" {
			return "unlock " + node + ":none:987654321 node=" + node
		}
	case 3:
		line := "evict-leaf " + node
		if g.real && g.writeBack {
			line += " write-back"
		}
		return line
	case 4:
		return "demote " + node
	case 5:
		if g.chance(50) {
			return "set-device node=root component=" + g.component().String() + " slots=7"
		}
		return "set-device node=" + node + " component=full slots=7"
	case 6:
		return fmt.Sprintf("begin-insert tokens=%s slots=- mamba=1", formatTokens(g.tokensOf(g.letters(2))))
	case 7:
		if s.walks[tree.Full] == nil {
			return "evict-next component=full totals=0,0,0"
		}
	case 8:
		return fmt.Sprintf("sanity-check write-through=5:%s", node)
	}
	return ""
}

func (g *generator) windowLine(s *Story) string {
	if g.has(tree.Mamba) && g.chance(30) {
		return "evict-excess-path-states " + g.node(s)
	}
	if !g.has(tree.SWA) {
		return ""
	}
	tokens, namespace, ok := g.pathKey(s, g.node(s))
	if !ok {
		return ""
	}
	p := g.page()
	pages := len(tokens) / p
	start := g.rng.IntN(pages + 1)
	end := start + g.rng.IntN(pages-start+2)
	verb := "swa-tombstone-ranges"
	if g.chance(70) {
		verb = "attach"
	}
	return fmt.Sprintf("%s tokens=%s%s start=%d end=%d", verb, formatTokens(tokens), namespace, start*p, end*p)
}

func (g *generator) rareLine(s *Story) string {
	switch g.rng.IntN(4) {
	case 0:
		return "backfill-hashes"
	case 1:
		if g.chance(30) {
			return "reset"
		}
	case 2:
		storage := g.storage || g.chance(30)
		if g.real {
			return g.switchesLine(storage)
		}
		if g.linker {
			return g.linkerLine(storage)
		}
		line := "switches"
		if g.config.Host {
			line += " host-tier swa-host-pool"
		}
		if storage {
			line += " storage"
		}
		return line + fmt.Sprintf(" write-through-threshold=%d", 1+g.rng.IntN(4))
	}
	return "record-all-cleared"
}
