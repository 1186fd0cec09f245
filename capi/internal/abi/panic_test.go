// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package abi

import (
	"errors"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// fresh makes a value of a type that only cgo can name.
func fresh[T any](*T) *T { return new(T) }

// TestPanic shows that a panic ends a call and not the process, that the core is
// closed then, with the first panic's text, that others go on, and that a reset
// opens it again.
func TestPanic(t *testing.T) {
	newCore := func() *tree.Core {
		c, err := tree.New(tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	broken := &core{tree: newCore()}
	handle, other := add(broken), add(&core{tree: newCore()})
	out := fresh(writer{}.out)
	defer tc_buffer_free(out)
	root := broken.tree.Root()

	code := call(handle, out, func(c *core) error {
		c.out.text("half a result")
		panic("first")
	})
	if code != 7 || out.words == nil || int64(*out.words) != 7 {
		t.Fatalf("a panic is code %d", code)
	}
	if broken.out.out != nil {
		t.Error("the buffer of the caller is kept")
	}
	code = call(handle, out, func(*core) error { t.Error("a closed core was entered"); return nil })
	if code != 10 || !strings.Contains(broken.broken, "first") {
		t.Errorf("the next call is code %d, after %q", code, broken.broken)
	}
	if code := tc_root(other, out); code != 0 {
		t.Errorf("another core answers %d", code)
	}
	if code := tc_reset(handle, out); code != 0 {
		t.Errorf("the reset is code %d", code)
	}
	if code := tc_root(handle, out); code != 0 || tree.NodeID(*out.words) <= root {
		t.Errorf("after the reset the root is code %d, node %d, was %d", code, *out.words, root)
	}
	if code := tc_destroy(handle, out); code != 0 {
		t.Errorf("destroy is code %d", code)
	}
	if code := tc_destroy(other, out); code != 0 {
		t.Errorf("destroy is code %d", code)
	}
}

// TestPanicWithoutCore is the same where there is no core to close.
func TestPanicWithoutCore(t *testing.T) {
	out := fresh(writer{}.out)
	defer tc_buffer_free(out)
	if code := plain(out, func(*writer) error { panic("x") }); code != 7 {
		t.Errorf("a panic is code %d", code)
	}
	if code := plain(out, func(*writer) error { return errors.New("untyped") }); code != 7 {
		t.Errorf("an untyped error is code %d", code)
	}
}
