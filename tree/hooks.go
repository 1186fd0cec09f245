// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// tiers says which tiers count for a validator.
type tiers uint8

const (
	deviceOnly tiers = iota
	anyTier
)

// hooks is what the tree asks of a component. The walks contain no case for a
// particular component: whatever differs between Full, SWA and Mamba is here.
// A further component is one more implementation and one line in newHooks.
//
// All hooks run on one goroutine, in component order unless said otherwise.
type hooks interface {
	id() Component
	// internalPriority orders components for cascades on internal nodes
	// (rule E-26): dropping one pulls those of equal or lower priority.
	internalPriority() int

	// accept asks whether a request may resume at the end of n, where state
	// is this validator's memory along the walk, 0 at its start (rule M-12).
	// Walks call it on every node from the root side down.
	accept(state *int, n *node, t tiers) bool
	// refresh moves the component's recency after a match that ended at best
	// or an insert that ended there (rules M-13, I-33).
	refresh(best *node, afterInsert bool)
	// hostHit returns how much of the component a resume at best must load
	// back from the host (rules M-19, M-20). Full's is M-18, in the match.
	hostHit(best *node) int
	// branching returns the position at which this component's data would
	// have let the match resume, given how far Full reaches and how far the
	// match got; 0: none (rules M-21, M-22).
	branching(fullHit, boundary int) int
	// missing names the reason of a refusal on the device.
	missing() Reason

	// split divides the component's data between the new prefix node and n,
	// which is the suffix, at units (rules S-4 to S-7).
	split(prefix, n *node, at int)

	// overlap decides who owns the slots that an insert brings for the next
	// length units, which are n's, when n has Full on the device. It returns
	// the index from which on the component consumed them (length: not at
	// all), and the node that the insert counts from here on (rules I-21, I-27).
	overlap(in *insertion, n *node, length int) (claim int, at *node)
	// unevicted runs after an insert gave an evicted node fresh Full slots
	// (rule I-25); it returns the node on which the insert goes on.
	unevicted(in *insertion, n *node, length int) *node
	// commit runs on the node where the key ends; fresh says that this insert
	// made it (rule I-32). Splits leave the node the deepest fragment.
	commit(in *insertion, target *node, fresh bool)

	// lock and unlock raise and lower the component's span from the anchor
	// up; unlock is called only after canUnlock said that it can be done.
	lock(anchor *node, r *Receipt)
	canUnlock(anchor *node, r *Receipt) bool
	unlock(anchor *node, r *Receipt)

	// The same for the host tier (rule HL-1). A component that does not count
	// the anchor notes that in the receipt's Skipped.
	lockHost(anchor *node, r *Receipt)
	canUnlockHost(anchor *node, r *Receipt) bool
	unlockHost(anchor *node, r *Receipt)

	// devicePayload returns what to free for the node's device value.
	devicePayload(n *node) Slots

	// Session coverage (rule SR-11): a session's frontier moves from old (nil:
	// none) down to fresh; a frontier goes; a frontier dies and its coverage
	// recedes to fallback (nil: none).
	advance(s *sessionFrontier, old, fresh *node)
	remove(s *sessionFrontier, frontier *node)
	recede(s *sessionFrontier, dying, fallback *node)

	// backupNodes returns the nodes whose device value of this component a
	// backup of n copies to the host, the root side first (rules BK-6 to
	// BK-10); nil: none.
	backupNodes(n *node) []*node
	// loadBackNodes returns the nodes that are on the host only and must be
	// loaded to resume at best, the deepest first (rule LB-7); missing is one
	// that is needed and on neither tier.
	loadBackNodes(best *node) (nodes []*node, missing *node)
}

func newHooks(c *Core, id Component) hooks {
	switch id {
	case Full:
		return &fullHooks{core: c}
	case SWA:
		return &swaHooks{core: c, window: c.opts.SlidingWindow}
	case Mamba:
		return &mambaHooks{core: c, grid: c.opts.CheckpointGrid}
	}
	return nil
}
