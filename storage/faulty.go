// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"slices"
	"sync"
)

// Op is a call of a store.
type Op string

// The calls that faults can hit.
const (
	OpExists Op = "exists"
	OpGet    Op = "get"
	OpPut    Op = "put"
	OpDelete Op = "delete"
	OpClear  Op = "clear"
)

// Call is a call as predicates see it.
type Call struct {
	Op   Op
	Nth  int   // the how-manyth call of this Op it is, from 1
	Keys []Key // read only; nil for OpClear
}

// When says whether a fault hits a call.
type When func(c Call) bool

// Always hits every call.
func Always(Call) bool { return true }

// On hits the calls of one kind.
func On(op Op) When { return func(c Call) bool { return c.Op == op } }

// Nth hits the n-th call of each kind, from 1.
func Nth(n int) When { return func(c Call) bool { return c.Nth == n } }

// From hits the n-th call of each kind and all later ones.
func From(n int) When { return func(c Call) bool { return c.Nth >= n } }

// OnPool hits calls with a key of that pool.
func OnPool(pool string) When {
	return func(c Call) bool { return slices.ContainsFunc(c.Keys, func(k Key) bool { return k.Pool == pool }) }
}

// OnKey hits calls with that key.
func OnKey(key Key) When {
	return func(c Call) bool { return slices.Contains(c.Keys, key) }
}

// All hits where all of the predicates do.
func All(all ...When) When {
	return func(c Call) bool {
		for _, w := range all {
			if !w(c) {
				return false
			}
		}
		return true
	}
}

// Any hits where one of the predicates does.
func Any(any ...When) When {
	return func(c Call) bool {
		for _, w := range any {
			if w(c) {
				return true
			}
		}
		return false
	}
}

// Not hits where the predicate does not.
func Not(w When) When { return func(c Call) bool { return !w(c) } }

// Fault is what happens to the calls that When hits. Of several fields all apply,
// in the order in which they stand here. The zero value of a field does nothing.
type Fault struct {
	When When
	// Hold makes the call wait until the channel is closed or gives a value, or
	// the call's context is over. A nil channel does not wait.
	Hold <-chan struct{}
	// Hang makes the call wait until its context is over.
	Hang bool
	// Fail makes the call fail with an *Error of Kind, before it did anything.
	Fail bool
	Kind Kind
	// After lets the first keys through before Fail hits, so that a batch fails
	// in its middle.
	After int
	// Lie makes Exists say that every page is there.
	Lie bool
	// Drop makes the answers of the keys that it hits false: a page that is
	// missing or could not be written. The call itself works.
	Drop func(k Key) bool
	// Short makes the last keys' answers false: a read of that many pages less.
	Short int
}

// Faulty is a store with faults. It is safe for concurrent use; Nth then counts
// in the order in which calls begin.
type Faulty struct {
	Store
	mu     sync.Mutex
	faults []Fault
	nth    map[Op]int
	hit    int
}

// WithFaults wraps a store. The first fault that hits a call decides.
func WithFaults(s Store, faults ...Fault) *Faulty {
	return &Faulty{Store: s, faults: faults, nth: map[Op]int{}}
}

// Set replaces the faults; calls go on being counted.
func (f *Faulty) Set(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Hit returns how many calls a fault has hit, so that a test can see that its
// fault happened.
func (f *Faulty) Hit() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

func (f *Faulty) fault(op Op, keys []Key) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nth[op]++
	c := Call{Op: op, Nth: f.nth[op], Keys: keys}
	for _, fault := range f.faults {
		if fault.When == nil || fault.When(c) {
			f.hit++
			return fault
		}
	}
	return Fault{}
}

// wait does what Hold and Hang say.
func (x Fault) wait(ctx context.Context, op Op) error {
	if x.Hold != nil {
		select {
		case <-x.Hold:
		case <-ctx.Done():
		}
	}
	if x.Hang {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil && (x.Hold != nil || x.Hang) {
		return &Error{Backend: "faulty", Op: string(op), Kind: KindOf(err), Err: err}
	}
	return nil
}

func (x Fault) failure(op Op) error {
	if !x.Fail {
		return nil
	}
	return &Error{Backend: "faulty", Op: string(op), Kind: x.Kind}
}

// answers runs a call that answers for each key.
func (f *Faulty) answers(ctx context.Context, op Op, keys []Key, call func(n int) ([]bool, error)) ([]bool, error) {
	x := f.fault(op, keys)
	out := make([]bool, len(keys))
	if err := x.wait(ctx, op); err != nil {
		return out, err
	}
	n := len(keys)
	failure := x.failure(op)
	if failure != nil {
		n = min(n, max(0, x.After))
	}
	if n > 0 || failure == nil {
		got, err := call(n)
		copy(out, got)
		if err != nil {
			return out, err
		}
	}
	for i, k := range keys[:n] {
		out[i] = (out[i] || x.Lie && op == OpExists) && (x.Drop == nil || !x.Drop(k)) && i < len(keys)-x.Short
	}
	return out, failure
}

// Exists implements Store.
func (f *Faulty) Exists(ctx context.Context, keys []Key) ([]bool, error) {
	return f.answers(ctx, OpExists, keys, func(n int) ([]bool, error) { return f.Store.Exists(ctx, keys[:n]) })
}

// Get implements Store.
func (f *Faulty) Get(ctx context.Context, keys []Key, into [][]byte) ([]bool, error) {
	if err := CheckPages(keys, into); err != nil {
		return make([]bool, len(keys)), err
	}
	return f.answers(ctx, OpGet, keys, func(n int) ([]bool, error) { return f.Store.Get(ctx, keys[:n], into[:n]) })
}

// Put implements Store. Keys that Drop or Short hit are not written.
func (f *Faulty) Put(ctx context.Context, keys []Key, pages [][]byte) ([]bool, error) {
	if err := CheckPages(keys, pages); err != nil {
		return make([]bool, len(keys)), err
	}
	x := f.fault(OpPut, keys)
	out := make([]bool, len(keys))
	if err := x.wait(ctx, OpPut); err != nil {
		return out, err
	}
	n := len(keys)
	failure := x.failure(OpPut)
	if failure != nil {
		n = min(n, max(0, x.After))
	}
	var kept []Key
	var data [][]byte
	var at []int
	for i, k := range keys[:n] {
		if (x.Drop == nil || !x.Drop(k)) && i < len(keys)-x.Short {
			kept, data, at = append(kept, k), append(data, pages[i]), append(at, i)
		}
	}
	if len(kept) > 0 {
		got, err := f.Store.Put(ctx, kept, data)
		for i := range got {
			out[at[i]] = got[i]
		}
		if err != nil {
			return out, err
		}
	}
	return out, failure
}

// Delete implements Store.
func (f *Faulty) Delete(ctx context.Context, keys []Key) error {
	x := f.fault(OpDelete, keys)
	if err := x.wait(ctx, OpDelete); err != nil {
		return err
	}
	if err := x.failure(OpDelete); err != nil {
		return err
	}
	return f.Store.Delete(ctx, keys)
}

// Clear implements Store.
func (f *Faulty) Clear(ctx context.Context) error {
	x := f.fault(OpClear, nil)
	if err := x.wait(ctx, OpClear); err != nil {
		return err
	}
	if err := x.failure(OpClear); err != nil {
		return err
	}
	return f.Store.Clear(ctx)
}
