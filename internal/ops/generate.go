// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/treecore/treecore/tree"
)

// RandomConfig says what kind of stories RandomTest makes up.
type RandomConfig struct {
	Options tree.Options
	// Host turns the host tier on. On machines that are a HostMachine stories
	// use it; on others nodes get host copies through their HostDoor.
	Host bool
	// WriteBack and Threshold are the write policy of a story with a host tier:
	// threshold 1 is write-through (as 0 is), 2 selective.
	WriteBack bool
	Threshold int
	// Changing makes stories change the write policy now and then.
	Changing bool
	// BufferOnly makes the host a staging area: nothing stays there.
	BufferOnly bool
	// Linker makes the stories offload to an external linker. Not with Host.
	Linker bool
	// MaxNodes is the size from which on trees are cut back; 0: 50.
	MaxNodes int
}

// generator makes up lines. It looks at the story so far to pick nodes that are
// alive and keys that overlap; what it makes up is text that stands on its own.
type generator struct {
	config RandomConfig
	rng    *rand.Rand
	docs   [][]int // letters, one a page
	names  int     // nodes named so far
	holds  int     // receipts named so far

	storage   bool // storage is on from the start and stays on
	real      bool // the machines have a host tier
	writeBack bool // the policy now
	threshold int
	linker    bool // they have an external linker
	noWindows bool // and it has no pool for windows
}

const (
	nodeNames = 24 // names of nodes are used in turn
	letters   = 3  // kinds of pages, so that keys overlap all the time
	docCount  = 6
)

func newGenerator(config RandomConfig, seed uint64, machines ...Machine) *generator {
	if config.MaxNodes == 0 {
		config.MaxNodes = 50
	}
	g := &generator{config: config, rng: rand.New(rand.NewPCG(seed, 0x7265636f7265))}
	g.storage = config.Options.Events && seed%2 == 0
	g.real = config.Host && isHostMachine(machines...)
	g.writeBack, g.threshold = config.WriteBack, max(config.Threshold, 1)
	g.linker = config.Linker && isHostMachine(machines...)
	g.noWindows = seed%5 == 4
	for range docCount {
		g.docs = append(g.docs, g.letters(g.maxPages()))
	}
	return g
}

// startLines are the first lines of every story of the generator.
func (g *generator) startLines() []string {
	if g.real {
		return []string{g.switchesLine(g.storage), g.poolsLine()}
	}
	if g.linker {
		return []string{g.linkerLine(g.storage)}
	}
	var w words
	w.flag("host-tier swa-host-pool write-through-threshold=3", g.config.Host)
	w.flag("storage", g.storage)
	if len(w) == 0 {
		return nil
	}
	return []string{"switches " + w.String()}
}

func (g *generator) page() int { return max(g.config.Options.PageSize, 1) }

func (g *generator) maxPages() int {
	switch {
	case g.page() == 1:
		return 16
	case g.page() <= 8:
		return 9
	}
	return 6
}

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *generator) letters(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = g.rng.IntN(letters)
	}
	return out
}

func (g *generator) has(c tree.Component) bool { return g.config.Options.Components.Has(c) }

// tokensOf writes letters as tokens: one a unit on pages of one, else a rising
// run a page.
func (g *generator) tokensOf(pages []int) []tree.Token {
	if g.page() == 1 {
		out := make([]tree.Token, len(pages))
		for i, l := range pages {
			out[i] = tree.Token(l + 1)
		}
		return out
	}
	out := make([]tree.Token, 0, len(pages)*g.page())
	for _, l := range pages {
		for i := range g.page() {
			out = append(out, tree.Token(1000*(l+1)+i))
		}
	}
	return out
}

// key makes up a key: the beginning of a document, or the path of a node, with
// or without a tail, sometimes broken inside its last page.
func (g *generator) key(s *Story) (tokens []tree.Token, namespace string) {
	if g.chance(2) {
		g.docs[g.rng.IntN(docCount)] = g.letters(g.maxPages())
	}
	if g.chance(12) {
		namespace = []string{` extra="a"`, ` salt="a"`, ` extra="" salt="b"`}[g.rng.IntN(3)]
	}
	doc := g.docs[g.rng.IntN(docCount)]
	tokens = g.tokensOf(doc[:g.rng.IntN(len(doc)+1)])
	if g.chance(45) {
		tokens = append(tokens, g.tokensOf(g.letters(g.rng.IntN(g.maxPages()/3+1)))...)
	}
	if g.page() > 1 && g.chance(25) && len(tokens) > 0 {
		if at := len(tokens) - 1 - g.rng.IntN(min(len(tokens), g.page())); g.chance(50) {
			tokens = tokens[:at]
		} else {
			tokens[at] = 9
		}
	}
	if g.config.Options.Eagle && !g.has(tree.Mamba) && g.chance(70) {
		tokens = append(tokens, tree.Token(1+g.rng.IntN(2))) // completes the last pair
	}
	return tokens, namespace
}

// pathKey makes up a key that goes through a live node, and its namespace.
func (g *generator) pathKey(s *Story, node string) (tokens []tree.Token, namespace string, ok bool) {
	id, err := s.resolve(node)
	if err != nil {
		return nil, "", false
	}
	var parts [][]tree.Token
	for id != tree.NoNode {
		info, err := s.m.Inspect(id)
		if err != nil {
			return nil, "", false
		}
		part := info.Tokens
		if info.Bigram && info.Parent != tree.NoNode {
			if up, err := s.m.Inspect(info.Parent); err == nil && up.Parent != tree.NoNode && len(part) > 0 {
				part = part[1:] // shared with the parent's last pair
			}
		}
		parts = append(parts, part)
		if len(parts) == 1 {
			namespace = namespaceFields(info.Namespace)
		}
		id = info.Parent
	}
	for i := len(parts) - 1; i >= 0; i-- {
		tokens = append(tokens, parts[i]...)
	}
	limit := g.page() * g.maxPages()
	if len(tokens) < limit {
		tokens = append(tokens, g.tokensOf(g.letters(g.rng.IntN(g.maxPages()/2+1)))...)
	}
	return tokens, namespace, len(parts) > 1
}

func namespaceFields(n tree.Namespace) string {
	var b strings.Builder
	if n.HasExtraKey || n.ExtraKey != "" {
		fmt.Fprintf(&b, " extra=%q", n.ExtraKey)
	}
	if n.Salt != "" {
		fmt.Fprintf(&b, " salt=%q", n.Salt)
	}
	return b.String()
}

// node picks a node's name: a live one as a rule, sometimes any, sometimes one
// that never was.
func (g *generator) node(s *Story) string {
	if g.chance(2) {
		return []string{"null", "root", "-1", "99999999"}[g.rng.IntN(4)]
	}
	name := "root"
	for range 6 {
		name = fmt.Sprintf("n%d", g.rng.IntN(nodeNames))
		if id, ok := s.nodes[name]; ok && s.m.Contains(id) {
			break
		}
	}
	return name
}

func (g *generator) newName() string {
	g.names++
	return fmt.Sprintf("n%d", g.names%nodeNames)
}

// held picks a receipt in use, in the order of their names.
func (g *generator) held(names map[string]*heldLock) (string, bool) {
	var live []string
	for i := range 40 {
		name := fmt.Sprintf("r%d", i)
		if _, ok := names[name]; ok {
			live = append(live, name)
		}
	}
	if len(live) == 0 {
		return "", false
	}
	return live[g.rng.IntN(len(live))], true
}

func (g *generator) component() tree.Component {
	for {
		if c := tree.Component(g.rng.IntN(tree.NumComponents)); g.has(c) {
			return c
		}
	}
}

// amount is how much to evict.
func (g *generator) amount(c tree.Component) int {
	if c == tree.Mamba {
		return 1 + g.rng.IntN(3)
	}
	return 1 + g.rng.IntN(g.page()*8)
}
