// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// hostFetch is data on its way from storage to the host: its slots belong to
// neither the tree nor the free lists.
type hostFetch struct {
	params tree.HostInsertParams
	aux    []tree.Transfer
	found  [tree.NumComponents]int
	locked bool
	lock   tree.Receipt
}

// prefetchVerb takes the host slots of a read from storage and a host lock on
// its anchor (rules PF-5 and PF-6).
func (s *Story) prefetchVerb(a *arguments) (string, error) {
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	as, ok := a.text("as")
	if !ok {
		return "", &ParseError{Verb: a.verb, Field: "as", Problem: "the field is missing", Remedy: "name the read with as=name"}
	}
	if s.host.fetches[as] != nil {
		return "", &ParseError{Verb: a.verb, Field: "as", Problem: "a read of this name is on", Remedy: "graft or drop it first"}
	}
	f, text, err := s.newFetch(m, a)
	if f == nil || err != nil {
		return text, err
	}
	if s.host.fetches == nil {
		s.host.fetches = map[string]*hostFetch{}
	}
	s.host.fetches[as] = f
	return s.withNotes(text), nil
}

// hostInsertVerb is a read from storage that ends at once.
func (s *Story) hostInsertVerb(a *arguments) (string, error) {
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	f, text, err := s.newFetch(m, a)
	if f == nil || err != nil {
		return text, err
	}
	notes := s.takeNotes()
	as, _ := a.text("as")
	lines := append(append(notes, text), s.graft(m, f, as)...)
	return "\n  " + strings.Join(lines, "\n  "), nil
}

// newFetch reads the fields of a read and takes its slots. Without a result the
// text says why.
func (s *Story) newFetch(m HostMachine, a *arguments) (*hostFetch, string, error) {
	anchor, err := required(a, "under", s.resolve)
	if err != nil {
		return nil, "", err
	}
	k, err := s.key(a)
	if err != nil {
		return nil, "", err
	}
	ns, err := m.PrefetchAnchor(anchor)
	if err != nil {
		return nil, s.run.fault(err), nil
	}
	if anchor != m.Root() {
		k.Namespace = ns
	}
	page := max(s.options.PageSize, 1)
	units := len(k.Tokens)
	if k.Bigram || s.options.Eagle && !s.options.Components.Has(tree.Mamba) {
		units = max(units-1, 0)
	}
	all := units / page
	pages, err := argument(a, "pages", parseInt, all)
	if err != nil {
		return nil, "", err
	}
	pages = max(min(pages, all), 0)
	window, err := argument(a, "swa", parseInt, 0)
	if err != nil {
		return nil, "", err
	}
	window = min(max(window, 0), all)
	f := &hostFetch{params: tree.HostInsertParams{Anchor: anchor, Key: k}, locked: !a.has("no-lock")}
	if f.found[tree.SWA], err = argument(a, "found", parseInt, window); err != nil {
		return nil, "", err
	}
	if f.found[tree.Mamba], err = argument(a, "found-state", parseInt, 1); err != nil {
		return nil, "", err
	}
	f.found[tree.Full] = pages
	if a.has("fail") {
		s.host.fails++
	}
	if f.locked {
		if f.lock, err = m.LockHost(anchor); err != nil {
			return nil, s.run.fault(err), nil
		}
	}
	given, err := argument(a, "slots", parseSlots, nil)
	if err != nil {
		return nil, "", err
	}
	text, ok := s.allocFetch(m, f, given, pages, window*page, all*page, a.has("mamba"))
	if !ok {
		s.endFetch(m, f)
		return nil, s.withNotes(text), nil
	}
	if a.has("hashed") {
		f.params.Hashes = s.fetchHashes(anchor, k, pages)
	}
	// The key ends where the pages that came end.
	f.params.Key.Tokens = k.Tokens[:min(len(k.Tokens), pages*page+len(k.Tokens)-units)]
	return f, text, nil
}

// allocFetch takes the Full slots of all pages, and those of a window and a
// state.
func (s *Story) allocFetch(m HostMachine, f *hostFetch, given tree.Slots, pages, window, units int, state bool) (string, bool) {
	w := words{"host"}
	if window > 0 {
		slots, ok := s.hostAlloc(m, tree.SWA, window)
		if !ok {
			return "no room", false
		}
		f.aux = append(f.aux, tree.Transfer{Component: tree.SWA, Host: slotsFrom(slots, 0)})
		w.add("swa", formatSlots(slotsFrom(slots, 0)))
	}
	if state {
		slots, ok := s.hostAlloc(m, tree.Mamba, 1)
		if !ok {
			return "no room", false
		}
		f.aux = append(f.aux, tree.Transfer{Component: tree.Mamba, Host: slotsFrom(slots, 0)})
		w.add("mamba", formatSlots(slotsFrom(slots, 0)))
	}
	if given != nil {
		s.hosted(tree.Full, given)
		f.params.Slots = given
	} else {
		slots, ok := s.hostAlloc(m, tree.Full, units)
		if !ok {
			return "no room", false
		}
		f.params.Slots = slotsFrom(slots, 0)
	}
	w.add("full", formatSlots(f.params.Slots))
	return w.String(), true
}

// fetchHashes are the storage hashes of the key's pages, chained on the path of
// the anchor.
func (s *Story) fetchHashes(anchor tree.NodeID, k tree.Key, pages int) []tree.Digest {
	var above []tree.Token
	page := max(s.options.PageSize, 1)
	k.Bigram = k.Bigram || s.options.Eagle && !s.options.Components.Has(tree.Mamba)
	start := 0
	for id := anchor; id != tree.NoNode; {
		info, err := s.m.Inspect(id)
		if err != nil {
			return nil
		}
		above = append(slices.Clone(info.Tokens[:info.Units]), above...)
		start += info.Units
		id = info.Parent
	}
	k.Tokens = append(above, k.Tokens...)
	hashes := tree.HashPages(k, page)
	return hashes[min(start/page, len(hashes)):min(start/page+pages, len(hashes))]
}

// graft hands what was read to the tree (rules PF-25 to PF-31) and ends the
// read.
func (s *Story) graft(m HostMachine, f *hostFetch, as string) []string {
	r, err := m.InsertHost(f.params)
	if err != nil {
		s.endFetch(m, f)
		return []string{s.run.fault(err)}
	}
	if !r.Dropped && r.Node != tree.NoNode {
		s.name(as, r.Node)
	}
	lines := []string{s.run.hostInsert(&r)}
	s.relocate(r.Actions)
	if r.Dropped {
		s.endFetch(m, f)
		return lines
	}
	full := f.params.Slots
	if r.PrefixLen > r.TotalLen || r.TotalLen > full.Len() {
		s.pools.problem("host insert: %d of %d units were there, %d slots were given", r.PrefixLen, r.TotalLen, full.Len())
		return lines
	}
	f.params.Slots = full.Slice(0, r.PrefixLen).AppendSlice(full, r.TotalLen, full.Len())
	if len(f.aux) > 0 {
		aux := f.aux
		c, err := m.CommitPrefetch(tree.PrefetchCommit{Anchor: f.params.Anchor, Inserted: r, Aux: aux, Found: f.found})
		if err != nil {
			lines = append(lines, s.run.fault(err))
		} else {
			f.aux = nil // the tree's, or among the frees
			lines = append(lines, s.run.prefetch(&c))
			s.relocate(c.Actions)
		}
	}
	s.endFetch(m, f)
	return lines
}

// endFetch gives back what a read still owns.
func (s *Story) endFetch(m HostMachine, f *hostFetch) {
	s.hostRelease(tree.Full, s.pools.numbers(f.params.Slots, 0))
	for _, t := range f.aux {
		s.hostRelease(t.Component, s.pools.numbers(t.Host, 0))
	}
	f.params.Slots, f.aux = nil, nil
	if !f.locked {
		return
	}
	f.locked = false
	if err := m.UnlockHost(f.params.Anchor, f.lock); err != nil && m.Contains(f.params.Anchor) {
		s.pools.problem("releasing the host lock of a read: %v", err)
	}
}

func (s *Story) fetch(a *arguments) (HostMachine, *hostFetch, error) {
	name, _ := a.text("read")
	f := s.host.fetches[name]
	m, ok := s.m.(HostMachine)
	if f == nil || !ok {
		return nil, nil, &ParseError{Verb: a.verb, Field: "read", Problem: "no read has this name", Remedy: "begin one with prefetch ... as=name"}
	}
	delete(s.host.fetches, name)
	return m, f, nil
}

func (s *Story) graftVerb(a *arguments) (string, error) {
	m, f, err := s.fetch(a)
	if err != nil {
		return "", err
	}
	as, _ := a.text("as")
	lines := s.graft(m, f, as)
	if len(lines) == 1 {
		return lines[0], nil
	}
	return "\n  " + strings.Join(lines, "\n  "), nil
}

func (s *Story) dropVerb(a *arguments) (string, error) {
	m, f, err := s.fetch(a)
	if err != nil {
		return "", err
	}
	s.endFetch(m, f)
	return "ok", nil
}

// staged lists the host slots of a component that reads own.
func (s *Story) staged(c tree.Component) (list []tree.Slots) {
	for _, name := range sortedKeys(s.host.fetches) {
		f := s.host.fetches[name]
		if c == tree.Full {
			list = append(list, f.params.Slots)
		}
		for _, t := range f.aux {
			if t.Component == c {
				list = append(list, t.Host)
			}
		}
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
