// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

const (
	defaultNodes = 256
	mostNodes    = 1024
)

// treePage is a part of the tree. Ids are never given out twice, so that pages
// fit together although the tree goes on changing: what comes new has a higher id.
type treePage struct {
	PageSize   int        `json:"page_size"`
	Components []string   `json:"components"`
	Total      int        `json:"total"` // nodes, the root included
	Nodes      []treeNode `json:"nodes"` // by rising id
	// Next is what to pass as after for the next page; absent on the last one.
	Next tree.NodeID `json:"next,omitempty"`
}

type treeNode struct {
	ID       tree.NodeID    `json:"id"`
	Parent   tree.NodeID    `json:"parent"` // 0 for the root
	Children int            `json:"children"`
	Length   int            `json:"length"`
	ExtraKey *string        `json:"extra_key,omitempty"`
	Salted   bool           `json:"salted,omitempty"` // the salt itself is a secret of its clients
	Hits     int64          `json:"hits"`
	Priority int64          `json:"priority,omitempty"`
	Device   map[string]int `json:"device"` // tokens, or states, by component
	Host     map[string]int `json:"host,omitempty"`
	Locks    map[string]int `json:"locks,omitempty"`
	HostLock map[string]int `json:"host_locks,omitempty"`
	Stored   bool           `json:"stored,omitempty"`
	InFlight bool           `json:"in_flight,omitempty"` // a copy to or from the host
}

// tree shows the tree in pages: ?after=ID&limit=N.
func (s *Server) tree(w http.ResponseWriter, r *http.Request) {
	after, limit := int64(0), int64(defaultNodes)
	for name, to := range map[string]struct {
		value       *int64
		least, most int64
	}{"after": {&after, 0, 1<<63 - 1}, "limit": {&limit, 1, mostNodes}} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < to.least || n > to.most {
			writeError(w, r, badField(name, "is %q, must be a whole number from %d to %d", short([]byte(text)), to.least, to.most))
			return
		}
		*to.value = n
	}
	var page treePage
	var failed error
	err := s.loop.do(r.Context(), func(e *engine.Engine) {
		page, failed = readTree(e.Cache().Tree(), tree.NodeID(after), int(limit))
	})
	switch {
	case err != nil:
		writeError(w, r, s.unavailable(err))
	case failed != nil:
		writeError(w, r, internal(failed))
	default:
		writeJSON(w, http.StatusOK, page)
	}
}

func readTree(c *tree.Core, after tree.NodeID, limit int) (treePage, error) {
	o := c.Options()
	p := treePage{PageSize: o.PageSize, Total: c.NodeCount(), Nodes: []treeNode{}}
	for id := range tree.Component(tree.NumComponents) {
		if o.Components.Has(id) {
			p.Components = append(p.Components, id.String())
		}
	}
	all := slices.DeleteFunc(c.Nodes(), func(id tree.NodeID) bool { return id <= after })
	slices.Sort(all)
	if len(all) > limit {
		all = all[:limit]
		p.Next = all[limit-1]
	}
	for _, id := range all {
		n, err := c.Inspect(id)
		if err != nil {
			return p, err
		}
		x := treeNode{
			ID: id, Parent: n.Parent, Children: len(n.Children), Length: n.Units, Hits: n.Hits, Priority: n.Priority,
			Device: map[string]int{}, Host: map[string]int{}, Locks: map[string]int{}, HostLock: map[string]int{},
			Salted: n.Namespace.Salt != "", Stored: n.Stored, InFlight: n.WriteThroughPending != 0 || n.LoadBackPending != 0,
		}
		if n.Parent == tree.NoNode {
			x.Priority = 0 // the root has the lowest there is, which says nothing
		}
		if n.Namespace.HasExtraKey {
			x.ExtraKey = &n.Namespace.ExtraKey
		}
		for id := range tree.Component(tree.NumComponents) {
			count := func(m map[string]int, v int) {
				if v > 0 {
					m[id.String()] = v
				}
			}
			k := n.Components[id]
			count(x.Device, k.Device.Len())
			count(x.Host, k.Host.Len())
			count(x.Locks, k.Locks)
			count(x.HostLock, k.HostLocks)
		}
		p.Nodes = append(p.Nodes, x)
	}
	return p, nil
}
