// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
)

// The errors below stand in the order in which a caller can meet them. All of
// them are found before anything has changed, unless the comment of the call
// says otherwise.

// ConfigError reports a bad field of Options (rule CF-9).
type ConfigError struct {
	Field   string // the field, in the words of Options
	Value   string // what was given
	Allowed string // what is allowed
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("option %s is %s: allowed is %s", e.Field, e.Value, e.Allowed)
}

// ArgumentError reports an argument that cannot be right whatever the tree
// holds, or that does not fit what it holds.
type ArgumentError struct {
	Op      string // the public operation
	Field   string // the argument
	Problem string // what is wrong and what would be right
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Op, e.Field, e.Problem)
}

// NodeAccessError reports a node id that was never given out, or whose node is
// gone (rule A-3). Ids are never given out twice, so a stale one stays stale.
type NodeAccessError struct {
	Op   string
	Node NodeID
}

func (e *NodeAccessError) Error() string {
	return fmt.Sprintf("%s: node %d does not exist (any more): match again to get a live one", e.Op, e.Node)
}

// ReceiptError reports a release that does not mirror its acquire (rules L-10,
// L-14, L-22). Nothing was released.
type ReceiptError struct {
	Op      string
	Node    NodeID
	Problem string
}

func (e *ReceiptError) Error() string {
	return fmt.Sprintf("%s: node %d: %s", e.Op, e.Node, e.Problem)
}

// OrderError reports a call that is out of order: an insert is suspended, a
// walk was not started, a node is not in the state that the call needs.
type OrderError struct {
	Op      string
	Problem string
}

func (e *OrderError) Error() string { return e.Op + ": " + e.Problem }

// InternalError reports that an invariant of the tree was found broken. It is a
// fault of this package, never of its input, and the call changed nothing.
type InternalError struct {
	Op      string
	Problem string
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("%s: internal inconsistency, please report: %s", e.Op, e.Problem)
}

// Violation is one finding of SanityCheck.
type Violation struct {
	Check  string // the rule's number in the behaviour specification, "V-26"
	Node   NodeID // the node it concerns; NoNode where it concerns none
	Detail string
}

// CheckError carries everything that SanityCheck found.
type CheckError struct {
	Nodes      int // nodes visited
	Violations []Violation
}

func (e *CheckError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sanity check: %d violations in %d nodes", len(e.Violations), e.Nodes)
	for _, v := range e.Violations {
		fmt.Fprintf(&b, "\n%s node %d: %s", v.Check, v.Node, v.Detail)
	}
	return b.String()
}
