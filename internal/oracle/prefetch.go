// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// CommitPrefetch attaches the aux data that came with a host insert (PF-28 to
// PF-30).
func (o *Oracle) CommitPrefetch(p tree.PrefetchCommit) (tree.PrefetchResult, error) {
	const op = "CommitPrefetch"
	anchor, err := o.resolve(op, p.Anchor)
	if err != nil {
		return tree.PrefetchResult{}, err
	}
	var target *node // nil: none
	if p.Inserted.Node != tree.NoNode {
		if target, err = o.resolve(op, p.Inserted.Node); err != nil {
			return tree.PrefetchResult{}, err
		}
	}
	if _, err := o.resolveAux(op, p.Aux); err != nil {
		return tree.PrefetchResult{}, err
	}
	if target == o.root {
		return tree.PrefetchResult{}, &tree.ArgumentError{Op: op, Field: "inserted", Problem: "the root holds no data"}
	}
	if err := o.checkAux(op, p.Aux); err != nil {
		return tree.PrefetchResult{}, err
	}
	var lists [tree.NumComponents][]tree.Slot
	var given [tree.NumComponents]bool
	for _, t := range p.Aux {
		list, err := slotList(op, "aux", t.Host)
		if err != nil {
			return tree.PrefetchResult{}, err
		}
		if t.Component == tree.SWA && len(list)%o.page != 0 {
			return tree.PrefetchResult{}, &tree.ArgumentError{Op: op, Field: "aux", Problem: fmt.Sprintf("%d swa slots are no whole pages", len(list))}
		}
		lists[t.Component], given[t.Component] = list, true
	}

	var out dropped
	var result tree.PrefetchResult
	if given[tree.SWA] {
		result.Actions = o.commitWindow(anchor, target, lists[tree.SWA], p.Found[tree.SWA], &out)
	}
	if given[tree.Mamba] { // PF-28
		state := lists[tree.Mamba]
		if p.Found[tree.Mamba] >= 1 && len(state) > 0 && target != nil && target.host[tree.Mamba] == nil {
			o.putHost(target, tree.Mamba, state)
		} else {
			out.host[tree.Mamba] = append(out.host[tree.Mamba], state...)
			result.MambaExist = true
		}
	}
	result.Frees = out.evicted().Frees
	return result, nil
}

// commitWindow attaches a window that ends where the target ends.
func (o *Oracle) commitWindow(anchor, target *node, buffer []tree.Slot, found int, out *dropped) []tree.Action {
	pages := len(buffer) / o.page
	windowPages := (o.window + o.page - 1) / o.page
	if target == nil || pages == 0 || found < pages || (anchor != o.root && pages < windowPages) { // PF-29
		out.host[tree.SWA] = append(out.host[tree.SWA], buffer...)
		return nil
	}
	// PF-30.
	var actions []tree.Action
	for n := target; len(buffer) > 0; {
		if n == anchor || n == o.root {
			out.host[tree.SWA] = append(out.host[tree.SWA], buffer...)
			break
		}
		from := max(len(buffer)-len(n.key), 0)
		part := buffer[from:]
		buffer = buffer[:from]
		if n.host[tree.SWA] != nil {
			out.host[tree.SWA] = append(out.host[tree.SWA], part...)
		} else {
			if len(part) < len(n.key) {
				_, relocation := o.split(n, len(n.key)-len(part))
				actions = append(actions, relocation...)
			}
			o.putHost(n, tree.SWA, part)
		}
		n = n.parent
	}
	return actions
}
