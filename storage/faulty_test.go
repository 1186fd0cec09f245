// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// faulty returns a store in a fresh folder that holds the first four of six keys.
func faulty(t *testing.T) (*storage.Faulty, []storage.Key) {
	t.Helper()
	s, err := storage.Open(ctx, "file:"+t.TempDir(), storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	keys := storage.Keys(storagetest.Chain(6, 1, tree.Namespace{}), "full")
	if _, err := s.Put(ctx, keys[:4], storagetest.Pages(keys[:4], 100)); err != nil {
		t.Fatal(err)
	}
	return storage.WithFaults(s), keys
}

func TestFaults(t *testing.T) {
	f, keys := faulty(t)
	get := func() ([]bool, error) { return f.Get(ctx, keys[:4], storagetest.Buffers(4, 100)) }
	put := func() ([]bool, error) { return f.Put(ctx, keys[4:], storagetest.Pages(keys[4:], 100)) }
	exists := func() ([]bool, error) { return f.Exists(ctx, keys) }
	const yes, no = true, false
	for _, c := range []struct {
		name  string
		fault storage.Fault
		call  func() ([]bool, error)
		want  []bool
		kind  storage.Kind // of the error; NumKinds: none
	}{
		{"none", storage.Fault{When: storage.On(storage.OpPut)}, get, []bool{yes, yes, yes, yes}, storage.NumKinds},
		{"a failing read", storage.Fault{When: storage.On(storage.OpGet), Fail: true, Kind: storage.Unreachable}, get, []bool{no, no, no, no}, storage.Unreachable},
		{"a read that fails at its third page", storage.Fault{Fail: true, Kind: storage.TimedOut, After: 2}, get, []bool{yes, yes, no, no}, storage.TimedOut},
		{"one page less", storage.Fault{Short: 1}, get, []bool{yes, yes, yes, no}, storage.NumKinds},
		{"a missing page", storage.Fault{Drop: func(k storage.Key) bool { return k == keys[1] }}, get, []bool{yes, no, yes, yes}, storage.NumKinds},
		{"a lie", storage.Fault{Lie: true}, exists, []bool{yes, yes, yes, yes, yes, yes}, storage.NumKinds},
		{"a full store", storage.Fault{Fail: true, Kind: storage.NoSpace, After: 1}, put, []bool{yes, no}, storage.NoSpace},
		{"a page not written", storage.Fault{Drop: func(k storage.Key) bool { return k == keys[5] }}, put, []bool{yes, no}, storage.NumKinds},
		{"what the faults above left", storage.Fault{When: storage.Not(storage.Always)}, exists, []bool{yes, yes, yes, yes, yes, no}, storage.NumKinds},
	} {
		f.Set(c.fault)
		got, err := c.call()
		var e *storage.Error
		kind := storage.Kind(storage.NumKinds)
		if errors.As(err, &e) {
			kind = e.Kind
		}
		if !slices.Equal(got, c.want) || kind != c.kind || (err == nil) != (c.kind == storage.NumKinds) {
			t.Errorf("%s: %v, %v: wanted %v, %v", c.name, got, err, c.want, c.kind)
		}
	}
}

func TestFaultPredicates(t *testing.T) {
	f, keys := faulty(t)
	fail := func(w storage.When) { f.Set(storage.Fault{When: w, Fail: true, Kind: storage.Other}) }
	failed := func() bool { _, err := f.Exists(ctx, keys[:1]); return err != nil }
	fail(storage.All(storage.On(storage.OpExists), storage.Nth(2)))
	if failed() || !failed() || failed() {
		t.Error("the second look-up should fail, and no other")
	}
	fail(storage.Any(storage.From(5), storage.On(storage.OpClear)))
	if failed() || !failed() || !failed() || f.Clear(ctx) == nil || f.Delete(ctx, keys[:1]) != nil {
		t.Error("from the fifth look-up on all should fail, and Clear")
	}
	fail(storage.OnPool("swa"))
	if failed() {
		t.Error("a call without a key of the pool fails")
	}
	fail(storage.OnKey(keys[0]))
	if !failed() || f.Hit() != 5 {
		t.Errorf("a call with the key should fail; %d hits, wanted 5", f.Hit())
	}
}

// A call that is held answers what is true when it goes on, and each call has an
// answer of its own (case C-071).
func TestHeldCalls(t *testing.T) {
	f, keys := faulty(t)
	hold := make(chan struct{})
	f.Set(storage.Fault{When: storage.Nth(1), Hold: hold}, storage.Fault{When: storage.Nth(3), Hang: true})
	held := make(chan []bool)
	go func() { ok, _ := f.Exists(ctx, keys[4:5]); held <- ok }()
	for f.Hit() == 0 {
		runtime.Gosched() // until the call has begun
	}
	if ok, err := f.Exists(ctx, keys[4:5]); err != nil || ok[0] {
		t.Errorf("the second question: %v, %v", ok, err)
	}
	if _, err := f.Store.Put(ctx, keys[4:5], storagetest.Pages(keys[4:5], 100)); err != nil {
		t.Fatal(err)
	}
	close(hold)
	if ok := <-held; !ok[0] {
		t.Error("the held question should see the page")
	}
	inner, cancel := context.WithCancel(ctx)
	go cancel()
	var e *storage.Error
	if _, err := f.Exists(inner, keys); !errors.As(err, &e) || e.Kind != storage.Cancelled {
		t.Errorf("a hanging call that is cancelled: %v", err)
	}
}
