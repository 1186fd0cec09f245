// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// operation is a kind of call whose duration is reported.
type operation uint8

const (
	opMatch  operation = iota // finding a prompt in the tree
	opInsert                  // handing a chunk or a finished request to the tree
	opLock                    // admitting a request
	opEvict                   // any call that had to evict, with all that it did
	numOperations
	opOther = numOperations // not reported unless it evicts
)

// meter is the cache, with a stopwatch at every call. The stopwatch decides
// nothing.
type meter struct {
	c     *cache.Cache
	walks int64 // eviction walks so far
	ops   [numOperations]histogram
}

// lap books the time since start. A call that had to evict counts as an eviction.
func (m *meter) lap(op operation, start time.Time) {
	spent := time.Since(start)
	if walks := int64(m.c.Stats().EvictionWalks); walks != m.walks {
		m.walks = walks
		op = opEvict
	}
	if op < numOperations {
		m.ops[op].add(spent)
	}
}

func (m *meter) newRequest(p cache.RequestParams) (*cache.Request, error) { return m.c.NewRequest(p) }

func (m *meter) prefetch(r *cache.Request) error { return m.c.Prefetch(r) }

func (m *meter) ready(r *cache.Request) (bool, error) { return m.c.Ready(r) }

func (m *meter) match(r *cache.Request) error {
	start := time.Now()
	_, err := m.c.Match(r)
	m.lap(opMatch, start)
	return err
}

func (m *meter) admit(r *cache.Request) error {
	start := time.Now()
	err := m.c.Admit(r)
	m.lap(opLock, start)
	return err
}

func (m *meter) extend(r *cache.Request, n int) error {
	start := time.Now()
	err := m.c.Extend(r, n)
	m.lap(opOther, start)
	return err
}

func (m *meter) commit(r *cache.Request, n int) error { return m.c.Commit(r, n) }

func (m *meter) cacheUnfinished(r *cache.Request) error {
	start := time.Now()
	err := m.c.CacheUnfinished(r)
	m.lap(opInsert, start)
	return err
}

func (m *meter) decode(r *cache.Request, tokens []tree.Token) (int, error) {
	start := time.Now()
	n, err := m.c.Decode(r, tokens)
	m.lap(opOther, start)
	return n, err
}

func (m *meter) finish(r *cache.Request) error {
	start := time.Now()
	err := m.c.Finish(r, true)
	m.lap(opInsert, start)
	return err
}

func (m *meter) abort(r *cache.Request) error { return m.c.Abort(r) }

// isShort tells a pool that is short for now, which is part of the game, from
// other errors.
func isShort(err error) (bool, error) {
	var exhausted *pool.ExhaustedError
	if errors.As(err, &exhausted) {
		return true, nil
	}
	return false, err
}

// neverFits gives what a request lacks whose error says that waiting is no use;
// nil for other errors.
func neverFits(err error) *Lack {
	var large *cache.TooLargeError
	if errors.As(err, &large) {
		return &Lack{Component: large.Component, Needed: large.Needed, Size: large.Size}
	}
	return nil
}
