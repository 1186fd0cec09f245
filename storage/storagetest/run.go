// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
)

// Place is somewhere a backend can keep pages, empty when the test begins.
type Place struct {
	// Open opens it. Stores of one fingerprint are not open at the same time.
	Open func(t *testing.T, f storage.Fingerprint) storage.Store
	// Tamper replaces the stored frame of a key, which is the last that was
	// written, behind the back of an open store.
	Tamper func(t *testing.T, f storage.Fingerprint, k storage.Key, change func(frame []byte) []byte)
	// Fingerprint changes the fingerprints of a test, so that tests that share a
	// server have a place of their own; nil leaves them.
	Fingerprint func(f storage.Fingerprint) storage.Fingerprint
	// Forgets says that an opening after Close may find nothing, as with a
	// backend in memory.
	Forgets bool
}

// rig is an open store and what tests do with it.
type rig struct {
	*testing.T
	storage.Store
	ctx   context.Context
	place Place
}

const pageSize = 200

func (p Place) fingerprint() storage.Fingerprint {
	f := Fingerprint()
	if p.Fingerprint != nil {
		f = p.Fingerprint(f)
	}
	return f
}

func open(t *testing.T, p Place, f storage.Fingerprint) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r := &rig{T: t, Store: p.Open(t, f), ctx: ctx, place: p}
	t.Cleanup(func() { r.close() })
	return r
}

func (r *rig) close() {
	r.Helper()
	if err := r.Store.Close(); err != nil {
		r.Errorf("close: %v", err)
	}
}

// put writes pages that follow from their keys and wants every answer to be true.
func (r *rig) put(keys []storage.Key) {
	r.Helper()
	ok, err := r.Store.Put(r.ctx, keys, Pages(keys, pageSize))
	if err != nil || storage.Leading(ok) != len(keys) || len(ok) != len(keys) {
		r.Fatalf("put of %d pages: %v, %v", len(keys), ok, err)
	}
}

// get reads keys, checks the bytes of every hit, and returns the answers.
func (r *rig) get(keys []storage.Key) []bool {
	r.Helper()
	into := Buffers(len(keys), pageSize)
	ok, err := r.Store.Get(r.ctx, keys, into)
	if err != nil || len(ok) != len(keys) {
		r.Fatalf("get of %d pages: %d answers, %v", len(keys), len(ok), err)
	}
	for i := range ok {
		if ok[i] && !bytes.Equal(into[i], Page(keys[i], pageSize)) {
			r.Fatalf("get says that it read page %d (%v), and the bytes are wrong", i, keys[i])
		}
	}
	return ok
}

func (r *rig) exists(keys []storage.Key) []bool {
	r.Helper()
	ok, err := r.Store.Exists(r.ctx, keys)
	if err != nil || len(ok) != len(keys) {
		r.Fatalf("exists of %d keys: %d answers, %v", len(keys), len(ok), err)
	}
	return ok
}

// wantFound wants Exists and Get to answer want for each key.
func (r *rig) wantFound(keys []storage.Key, want ...bool) {
	r.Helper()
	for i, ok := range r.exists(keys) {
		if ok != want[i] {
			r.Errorf("exists: key %d: %v, wanted %v", i, ok, want[i])
		}
	}
	for i, ok := range r.get(keys) {
		if ok != want[i] {
			r.Errorf("get: key %d: %v, wanted %v", i, ok, want[i])
		}
	}
}

func (r *rig) wantAll(keys []storage.Key, want bool) {
	r.Helper()
	all := make([]bool, len(keys))
	for i := range all {
		all[i] = want
	}
	r.wantFound(keys, all...)
}

func wantKind(t *testing.T, what string, err error, want storage.Kind) {
	t.Helper()
	var e *storage.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Errorf("%s: %v, wanted an *Error of kind %v", what, err, want)
	}
}

// Run runs the contract. newPlace makes a fresh place for each test.
func Run(t *testing.T, newPlace func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p Place)
	}{
		{"what was put is read", testRoundTrip},
		{"pools are apart", testPools},
		{"C-017 one differing field of the fingerprint finds nothing", testFingerprints},
		{"C-069 namespaces are apart", testNamespaces},
		{"C-015 damaged pages are misses", testDamage},
		{"a page of another length is a miss", testLength},
		{"delete and clear", testDelete},
		{"closing and opening again keeps pages", testWarm},
		{"C-025 C-035 pages may vanish between look-up and read", testVanish},
		{"long batches", testLongBatch},
		{"bad keys do nothing", testBadKeys},
		{"cancelled calls", testCancelled},
		{"closed stores", testClosed},
		{"counters add up", testCounters},
		{"random calls against a map", testModel},
		{"many goroutines", testConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newPlace(t)) })
	}
}
