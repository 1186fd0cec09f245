// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package abi is what libtreecore exports: one function for each operation of a
// tree core, declared in capi/treecore.h. It converts arguments and results and
// decides nothing.
//
// A call is one crossing: arguments are plain structs that are read in place, the
// result is written as words into memory of the C heap that the caller's buffer
// holds. In the long run a call allocates nothing on the C side, and what the
// tree itself returns on the Go side. Records would need an accessor a field, and
// each of these is a crossing of its own; a JSON or protobuf text would have to be
// parsed. Words are read by a cast, by numpy and by a memory view alike.
//
// The prototypes of the header are not seen here, since cgo declares exports
// without const; a test compares both.
package abi

// #cgo CFLAGS: -I${SRCDIR}/../.. -DTC_TYPES_ONLY
// #include <stdlib.h>
// #include <treecore.h>
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/treecore/treecore/tree"
)

// core is one tree core with what its calls use again.
type core struct {
	mutex sync.Mutex
	tree  *tree.Core // nil: destroyed
	// broken is the text of the first panic; until a reset all calls refuse.
	broken  string
	numbers bool // results list slots as numbers where they can
	log     *logFile

	out    writer
	read   []tree.Token // tokens of a key that a call only reads
	insert []tree.Token // those of an insert, which reads them until its end
	spaces [2]string    // the last key's extra key and salt
}

// cores holds the live cores by handle. A call looks one up without a lock;
// create and destroy put a fresh map in place.
var cores struct {
	live  atomic.Pointer[map[C.tc_core]*core]
	mutex sync.Mutex
	last  C.tc_core
}

func lookup(handle C.tc_core) *core {
	if live := cores.live.Load(); live != nil {
		return (*live)[handle]
	}
	return nil
}

// change replaces the map of cores by a copy that f has changed.
func change(f func(map[C.tc_core]*core)) {
	cores.mutex.Lock()
	defer cores.mutex.Unlock()
	next := map[C.tc_core]*core{}
	if live := cores.live.Load(); live != nil {
		for handle, c := range *live {
			next[handle] = c
		}
	}
	f(next)
	cores.live.Store(&next)
}

func add(c *core) (handle C.tc_core) {
	change(func(m map[C.tc_core]*core) {
		cores.last++
		handle = cores.last
		m[handle] = c
	})
	return handle
}

var (
	errHandle  = errors.New("there is no core of this handle (any more): create one")
	errVersion = errors.New("another version of the interface")
	errClosed  = errors.New("the core had an internal fault and is closed until tc_reset")
)

// call runs f on a core under its lock. What f writes to c.out is the result; an
// error of f, and a panic, become a code and an error record.
func call(handle C.tc_core, out *C.tc_buffer, f func(c *core) error) C.int32_t {
	return enter(handle, out, false, f)
}

func enter(handle C.tc_core, out *C.tc_buffer, evenBroken bool, f func(c *core) error) (code C.int32_t) {
	if out == nil {
		return C.TC_ARGUMENT
	}
	c := lookup(handle)
	if c == nil {
		return report(out, errHandle)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.tree == nil {
		return report(out, errHandle)
	}
	if c.broken != "" && !evenBroken {
		return report(out, fmt.Errorf("%w: %s", errClosed, c.broken))
	}
	defer func() {
		if problem := recover(); problem != nil {
			if c.broken == "" {
				c.broken = fmt.Sprint(problem)
			}
			c.out = writer{}
			code = report(out, &tree.InternalError{Op: "capi", Problem: "panic: " + c.broken})
		}
	}()
	c.out.begin(out)
	c.out.numbers = c.numbers
	if err := f(c); err != nil {
		c.out = writer{}
		return report(out, err)
	}
	c.out.end()
	return C.TC_OK
}

// plain runs f, which needs no core.
func plain(out *C.tc_buffer, f func(w *writer) error) (code C.int32_t) {
	if out == nil {
		return C.TC_ARGUMENT
	}
	defer func() {
		if problem := recover(); problem != nil {
			code = report(out, &tree.InternalError{Op: "capi", Problem: "panic: " + fmt.Sprint(problem)})
		}
	}()
	var w writer
	w.begin(out)
	if err := f(&w); err != nil {
		return report(out, err)
	}
	w.end()
	return C.TC_OK
}
