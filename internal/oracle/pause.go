// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	"github.com/treecore/treecore/tree"
)

// pause is an eviction step that waits for a backup (rules E-17, EV-7).
type pause struct {
	node   *node
	isLeaf bool // whether it was a D-leaf at the step: the cascade is that step's
}

// wantsBackup reports whether a value that is about to be tombstoned in place
// should be offered for a backup first (rule EV-7).
func (o *Oracle) wantsBackup(x *node, c tree.Component) bool {
	if !o.switches.WriteBack || !o.switches.HostTier || o.switches.HostBufferOnly {
		return false
	}
	if c == tree.SWA && !o.switches.SWAHostPool {
		return false
	}
	return x.host[c] == nil && x.writePending == 0
}

// FinishStateEviction completes the step that paused at the node. What became
// of it meanwhile (another component's walk may have run) is respected: a value
// that is gone, or must not be taken any more, is not dropped.
func (o *Oracle) FinishStateEviction(c tree.Component, id tree.NodeID) (tree.EvictStep, error) {
	const op = "FinishStateEviction"
	x, err := o.resolve(op, id)
	if err != nil {
		return tree.EvictStep{}, err
	}
	if c == tree.Full || !o.walkIsOn(c) || o.auxWalks[c].paused == nil || o.auxWalks[c].paused.node != x {
		return tree.EvictStep{}, &tree.OrderError{Op: op, Problem: fmt.Sprintf("no eviction of %v waits at node %d", c, id)}
	}
	w := o.auxWalks[c]
	if !o.device[c].contains(x) || !o.evictable(x, c) {
		w.cursor = o.restart(c, x)
		w.paused = nil
		return tree.EvictStep{}, nil
	}
	// A leaf was tombstoned and not deleted because a session referred to it.
	others, err := o.tombstoneCascade(op, x, c, w.paused.isLeaf && !o.mayDelete(x, c))
	if err != nil {
		return tree.EvictStep{}, err
	}
	w.paused = nil
	return o.tombstone(x, c, others), nil
}

// restart returns the candidate after x, which may have left the list (E-16).
func (o *Oracle) restart(c tree.Component, x *node) *node {
	if o.device[c].contains(x) || o.sessions {
		return o.advance(c, x)
	}
	return o.nextUnlocked(c, nil)
}
