// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"errors"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// Executor runs calls on a machine and renders what they returned. The text is
// complete and stable: two machines answer a call alike exactly when the texts
// are equal. Values that have their default (0, absent, false) are left out.
//
// Errors read "error: kind", kind being node-access, argument, receipt, order,
// internal, check or config; node-access is followed by the node, check by the
// rules that are violated.
type Executor struct {
	Machine Machine
	// Explain adds a match's explanation to its text.
	Explain bool

	// nameNode and showSlots replace how nodes and slots are written.
	nameNode  func(tree.NodeID) string
	showSlots func(tree.Component, tree.Slots) string
	// dropped and stored hear of every call that hands back or takes slots.
	dropped func(*tree.Evicted)
	stored  func(tree.NodeID, tree.Component, tree.Slots)
	// hosted and loaded hear of host slots that the tree took, and of device
	// slots that a load back brought.
	hosted func(tree.Component, tree.Slots)
	loaded func(full tree.Slots, aux []tree.Transfer, actions []tree.Action)
}

// Run runs one call. An unknown verb reads "error: verb"; ParseCall never
// returns one.
func (e *Executor) Run(c *Call) string {
	spec := findVerb(c.Verb)
	if spec == nil {
		return "error: verb"
	}
	return spec.run(e, c)
}

func (e *Executor) node(id tree.NodeID) string {
	if e.nameNode != nil {
		return e.nameNode(id)
	}
	return formatNode(id)
}

func (e *Executor) slots(c tree.Component, s tree.Slots) string {
	if e.showSlots != nil {
		return e.showSlots(c, s)
	}
	return formatSlots(s)
}

// value is slots with "absent" for nil.
func (e *Executor) value(c tree.Component, s tree.Slots) string {
	if s == nil {
		return "absent"
	}
	return e.slots(c, s)
}

func (e *Executor) nodeList(list []tree.NodeID) string {
	if list == nil {
		return "none"
	}
	if len(list) == 0 {
		return "empty"
	}
	parts := make([]string, len(list))
	for i, id := range list {
		parts[i] = e.node(id)
	}
	return strings.Join(parts, " ")
}

func (e *Executor) done(err error) string {
	if err != nil {
		return e.fault(err)
	}
	return "ok"
}

func (e *Executor) or(err error, text func() string) string {
	if err != nil {
		return e.fault(err)
	}
	return text()
}

func (e *Executor) boolean(v bool, err error) string {
	if err != nil {
		return e.fault(err)
	}
	return strconv.FormatBool(v)
}

func (e *Executor) integer(v int) string { return strconv.Itoa(v) }

// fault renders an error by its kind. What the message says is free.
func (e *Executor) fault(err error) string {
	var access *tree.NodeAccessError
	var check *tree.CheckError
	switch {
	case errors.As(err, &access):
		return "error: node-access " + e.node(access.Node)
	case errors.As(err, &check):
		return "error: check " + e.violations(check)
	case is[*tree.ArgumentError](err):
		return "error: argument"
	case is[*tree.ReceiptError](err):
		return "error: receipt"
	case is[*tree.OrderError](err):
		return "error: order"
	case is[*tree.InternalError](err):
		return "error: internal"
	case is[*tree.ConfigError](err):
		return "error: config"
	}
	return "error: untyped " + err.Error()
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
