// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <treecore.h>
import "C"

import (
	"errors"

	"github.com/treecore/treecore/tree"
)

// detail is one row of an error record.
type detail struct {
	node tree.NodeID
	text [3]string
}

// report writes an error record and returns the error's code.
func report(out *C.tc_buffer, err error) C.int32_t {
	code, node, details := C.int32_t(C.TC_INTERNAL), tree.NoNode, []detail(nil)
	one := func(c C.int32_t, id tree.NodeID, op, field, problem string) {
		code, node, details = c, id, []detail{{id, [3]string{op, field, problem}}}
	}
	var access *tree.NodeAccessError
	var check *tree.CheckError
	var argument *tree.ArgumentError
	var order *tree.OrderError
	var receipt *tree.ReceiptError
	var internal *tree.InternalError
	var config *tree.ConfigError
	switch {
	case errors.Is(err, errHandle):
		code = C.TC_HANDLE
	case errors.Is(err, errVersion):
		code = C.TC_VERSION
	case errors.Is(err, errClosed):
		code = C.TC_CLOSED
	case errors.As(err, &access):
		one(C.TC_NODE_ACCESS, access.Node, access.Op, "", "the node does not exist (any more)")
	case errors.As(err, &check):
		code, node = C.TC_CHECK_FAILED, tree.NodeID(check.Nodes)
		for _, v := range check.Violations {
			details = append(details, detail{v.Node, [3]string{v.Check, v.Detail, ""}})
		}
	case errors.As(err, &argument):
		one(C.TC_ARGUMENT, tree.NoNode, argument.Op, argument.Field, argument.Problem)
	case errors.As(err, &receipt):
		one(C.TC_RECEIPT, receipt.Node, receipt.Op, "", receipt.Problem)
	case errors.As(err, &order):
		one(C.TC_ORDER, tree.NoNode, order.Op, "", order.Problem)
	case errors.As(err, &internal):
		one(C.TC_INTERNAL, tree.NoNode, internal.Op, "", internal.Problem)
	case errors.As(err, &config):
		code, details = C.TC_CONFIG, configDetails(err, nil)
	}
	var w writer
	w.begin(out)
	w.integer(int64(code))
	w.node(node)
	w.text(err.Error())
	w.integer(int64(len(details)))
	for _, d := range details {
		w.node(d.node)
		for _, s := range d.text {
			w.text(s)
		}
	}
	w.end()
	return code
}

// configDetails adds a row for each bad field that err joins.
func configDetails(err error, rows []detail) []detail {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			rows = configDetails(e, rows)
		}
		return rows
	}
	var c *tree.ConfigError
	if errors.As(err, &c) {
		rows = append(rows, detail{tree.NoNode, [3]string{c.Field, c.Value, c.Allowed}})
	}
	return rows
}
