// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// StopPolicy says how long a request waits for what is fetched for it.
type StopPolicy uint8

// The stop policies.
const (
	// BestEffort takes what is there when the request is to be admitted.
	BestEffort StopPolicy = iota
	// WaitComplete waits for everything that was found.
	WaitComplete
	// WaitTimeout waits for everything, but not longer than a timeout.
	WaitTimeout

	numStopPolicies = 3
)

var stopPolicyNames = [numStopPolicies]string{"best-effort", "wait-complete", "timeout"}

// String returns the policy's name.
func (p StopPolicy) String() string {
	if p < numStopPolicies {
		return stopPolicyNames[p]
	}
	return "unknown"
}

// ParseStopPolicy reads the name of a stop policy; underscores may stand for its
// hyphens.
func ParseStopPolicy(name string) (StopPolicy, error) {
	for p, n := range stopPolicyNames {
		if n == strings.ReplaceAll(name, "_", "-") {
			return StopPolicy(p), nil
		}
	}
	return 0, fmt.Errorf("prefetch policy %q: must be %s, %s or %s", name, stopPolicyNames[0], stopPolicyNames[1], stopPolicyNames[2])
}

// DefaultPrefetchThreshold is the fewest tokens that are worth a prefetch.
const DefaultPrefetchThreshold = 256

// StorageOptions says how a cache uses a store. Store is required.
type StorageOptions struct {
	// Store keeps the pages. It stays the caller's: close it after the detach. It
	// must have been opened for a fingerprint that says what this cache keeps: the
	// cache cannot see it.
	Store storage.Store
	// StopPolicy and Timeout say how long requests wait for a prefetch.
	StopPolicy StopPolicy
	Timeout    queue.Timeout
	// WritePolicy, if it is not nil, becomes the write policy of the host tier.
	WritePolicy *WritePolicy
	// PrefetchThreshold is the fewest tokens that a prefetch is started for, and
	// the fewest that must be found; a page at least. Zero:
	// DefaultPrefetchThreshold.
	PrefetchThreshold int
	// FullElsewhere says that another rank has the same Full state and writes it:
	// this one writes the other components only (rule ST-14).
	FullElsewhere bool
	// Workers, Batch, Manual, Started and Now are those of queue.Options; at most
	// 1024 workers.
	Workers int
	Batch   int
	Manual  bool
	Started func(*queue.Operation)
	Now     queue.Clock
}

// storageTier is the storage side of a cache: the queue and the books of what is
// on its way (rule CT-2).
type storageTier struct {
	opts  StorageOptions
	queue *queue.Queue
	least int // tokens for which a prefetch is worth its while

	lookups   []*prefetch // by their queries, the oldest first
	reads     []*prefetch // by their reads, the oldest first
	writes    []*pageWrite
	occupancy int // tokens that prefetches, holds and splices have reserved
	closing   bool
}

// BusyError refuses to attach or detach while work is in flight. Nothing has
// changed.
type BusyError struct {
	Op                                                 string
	Backups, Loads, Lookups, Reads, Prefetches, Writes int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: in flight are %d backups, %d loads, %d lookups, %d reads, %d writes and %d prefetches: tick until they have ended, or detach with force",
		e.Op, e.Backups, e.Loads, e.Lookups, e.Reads, e.Writes, e.Prefetches)
}

// StorageError says that the storage tier was switched off, since its store
// failed in a way that no answer covers. The cache and its requests can be used
// on.
type StorageError struct{ Err error }

func (e *StorageError) Error() string {
	return fmt.Sprintf("storage was switched off: attach a store that works: %v", e.Err)
}

// Unwrap returns the cause.
func (e *StorageError) Unwrap() error { return e.Err }

func (o *StorageOptions) validate(c *Cache) error {
	var problems []error
	bad := func(field, value, allowed string) {
		problems = append(problems, &tree.ConfigError{Field: field, Value: value, Allowed: allowed})
	}
	if c.host == nil {
		bad("Storage.Store", "given", "a cache with a host tier, through which everything goes: set Options.Host")
	} else if c.host.memory == nil && c.host.opts.Page == nil {
		bad("Storage.Store", "given", "a host tier whose bytes can be reached: set HostOptions.Page beside HostOptions.Copy")
	}
	if o.Store == nil {
		bad("Storage.Store", "nil", "a store, for example of storage.Open")
	}
	if o.StopPolicy >= numStopPolicies {
		bad("Storage.StopPolicy", strconv.Itoa(int(o.StopPolicy)), "BestEffort, WaitComplete or WaitTimeout")
	}
	if p := o.WritePolicy; p != nil && *p >= numWritePolicies {
		bad("Storage.WritePolicy", strconv.Itoa(int(*p)), "WriteThrough, WriteThroughSelective or WriteBack")
	} else if p != nil && *p == WriteBack && c.bufferOnly() {
		bad("Storage.WritePolicy", p.String(), fmt.Sprintf("%v or %v, with Host.BufferOnly", WriteThrough, WriteThroughSelective))
	}
	if o.PrefetchThreshold < 0 {
		bad("Storage.PrefetchThreshold", strconv.Itoa(o.PrefetchThreshold), "1 or more, or 0 for the default")
	}
	if o.Batch < 0 {
		bad("Storage.Batch", strconv.Itoa(o.Batch), "1 or more pages, or 0 for the default")
	}
	if o.Workers < 0 || o.Workers > maxWorkers {
		bad("Storage.Workers", strconv.Itoa(o.Workers), fmt.Sprintf("1 to %d, or 0 for the default", maxWorkers))
	}
	return errors.Join(problems...)
}

// AttachStorage adds a storage tier below the host: from now on what is backed up
// is written to the store as well, and Prefetch reads from it. Nodes that have no
// storage hashes get them; those that are on the host already are written when
// they are backed up the next time. With HostOptions.BufferOnly nodes are written
// when an insert passes them, and wait for room in host memory without a copy
// there. The store that is attached already only gets the new policies, threshold
// and timeout.
//
// Options that are wrong are one or more *tree.ConfigError, joined; work in
// flight, or another store that is attached, is a *BusyError or an
// *AttachedError, a cache that was closed a *ClosedError. Nothing has changed then.
func (c *Cache) AttachStorage(o StorageOptions) error {
	const op = "AttachStorage"
	if c.broken != nil {
		return c.broken
	}
	if c.closed {
		return &ClosedError{Op: op}
	}
	if err := o.validate(c); err != nil {
		return err
	}
	if st := c.storage; st != nil && (st.closing || !same(st.opts.Store, o.Store)) {
		return &AttachedError{}
	}
	if busy := c.inFlight(op); busy != nil {
		return busy
	}
	if o.PrefetchThreshold == 0 {
		o.PrefetchThreshold = DefaultPrefetchThreshold
	}
	if o.WritePolicy != nil {
		c.host.opts.Policy = *o.WritePolicy
	}
	switches := c.switches()
	switches.Storage = true
	if c.storage == nil {
		c.stats.Storage.HashesBackfilled += int64(c.tree.BackfillHashes()) // before the flag (rule AT-6)
	}
	if err := c.tree.SetSwitches(switches); err != nil {
		return c.fail(op, err)
	}
	if c.storage == nil {
		c.storage = &storageTier{queue: queue.New(queue.Options{
			Store: o.Store, Workers: o.Workers, Batch: o.Batch, Manual: o.Manual, Started: o.Started, Now: o.Now,
		})}
	}
	c.host.mirrorsGo = true
	c.storage.opts, c.storage.least = o, max(o.PrefetchThreshold, c.page)
	return nil
}

// same reports whether two stores are one. Those that Go cannot compare are not.
func same(a, b storage.Store) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// AttachedError refuses a second store. Nothing has changed.
type AttachedError struct{}

func (e *AttachedError) Error() string {
	return "another store is attached: detach it first"
}

// switches returns the tree's switches for the cache's tiers as they are.
func (c *Cache) switches() tree.Switches {
	s := c.tree.Switches()
	h := c.host
	s.HostTier, s.WriteBack, s.SWAHostPool = true, h.opts.Policy == WriteBack, h.pools[tree.SWA] != nil
	s.HostBufferOnly = h.opts.BufferOnly
	s.WriteThroughThreshold = 1
	if h.opts.Policy == WriteThroughSelective {
		s.WriteThroughThreshold = 2
	}
	return s
}

// inFlight says what an attach or a detach would have to wait for; nil: nothing.
func (c *Cache) inFlight(op string) error {
	e := BusyError{Op: op}
	if c.host != nil {
		e.Backups, e.Loads = len(c.host.backups), len(c.host.loads)
		if b := c.host.buffer; b != nil {
			e.Backups = len(b.intents) + len(b.copying)
		}
	}
	if st := c.storage; st != nil {
		e.Lookups, e.Reads, e.Writes = st.queue.InFlight(queue.Lookup), st.queue.InFlight(queue.Read), len(st.writes)
		for r := c.live.first; r != nil; r = r.next {
			if r.fetch != nil || r.hold != nil {
				e.Prefetches++
			}
		}
	}
	if e == (BusyError{Op: op}) {
		return nil
	}
	return &e
}

// Storage returns the queue of the storage tier; nil without one. It is for
// driving a manual queue, and for questions.
func (c *Cache) Storage() *queue.Queue {
	if c.storage == nil {
		return nil
	}
	return c.storage.queue
}

// DetachStorage ends the storage tier. Work in flight is a *BusyError, and nothing
// has changed. Without a storage tier it does nothing. Hashes stay on the nodes;
// the store stays open.
func (c *Cache) DetachStorage(ctx context.Context) error {
	const op = "DetachStorage"
	if c.broken != nil || c.storage == nil {
		return c.broken
	}
	if busy := c.inFlight(op); busy != nil {
		return busy
	}
	return c.detach(ctx, op)
}

// DetachStorageNow is DetachStorage that cuts off what is in flight: prefetches
// end with nothing, writes with what they have written. If the store does not
// return from a call before the context ends, it is a *queue.StuckError: what
// that call may touch stays locked, and the detach can be tried again.
func (c *Cache) DetachStorageNow(ctx context.Context) error {
	if c.broken != nil || c.storage == nil {
		return c.broken
	}
	return c.detach(ctx, "DetachStorageNow")
}

// detach follows rule AT-8.
func (c *Cache) detach(ctx context.Context, op string) error {
	st := c.storage
	st.closing = true
	if err := c.endWrites(len(st.writes)); err != nil {
		return c.fail(op, err)
	}
	if err := st.queue.Close(ctx); err != nil {
		return err
	}
	// Nothing touches memory any more.
	if err := c.endStorage(); err != nil {
		return c.fail(op, err)
	}
	if c.bufferOnly() {
		c.host.buffer.beliefs.clear() // the next store may be another one
	}
	c.storage = nil
	switches := c.tree.Switches()
	switches.Storage = false
	if err := c.tree.SetSwitches(switches); err != nil {
		return c.fail(op, err)
	}
	return nil
}

// endStorage empties the books of the storage tier when all operations have
// ended.
func (c *Cache) endStorage() error {
	st := c.storage
	var err error
	for r := c.live.first; r != nil; r = r.next {
		if r.fetch != nil {
			err = errors.Join(err, c.dropPrefetch(r.fetch))
		}
		r.loaded = 0
	}
	err = errors.Join(err, c.endBuffer(), c.endWrites(len(st.writes)), c.takeReads(len(st.reads)))
	st.queue.Take(queue.Lookup, len(st.lookups))
	st.lookups = nil
	return errors.Join(err, c.freeReleased())
}

// ClearStorage removes every page of this model from the store.
func (c *Cache) ClearStorage(ctx context.Context) error {
	if c.broken != nil || c.storage == nil {
		return c.broken
	}
	err := c.storage.opts.Store.Clear(ctx)
	if b := c.host.buffer; b != nil {
		// A clear that failed may have removed pages, too, or only on some ranks.
		b.beliefs.clear()
		for _, w := range c.storage.writes {
			w.launch.forgotten = true
		}
	}
	return err
}

// page returns the bytes of a host page: of a component, or of the sidecar
// beside it.
func (c *Cache) pageBytes(x poolRef, first tree.Slot) []byte {
	n := c.page
	if x.component == tree.Mamba {
		n = 1
	}
	if c.host.opts.Page != nil {
		return c.host.opts.Page(x.name, first)
	}
	if x.sidecar == none {
		return c.host.memory.Host[x.component].Run(first, n)
	}
	return c.host.memory.Sidecars[x.sidecar].Host.Run(first, n)
}

// poolRef names a pool whose pages are stored: a component's, or a sidecar's
// beside it.
type poolRef struct {
	name      string
	component tree.Component
	sidecar   int // index; none
}

// poolsOf returns a component's pool and the sidecars beside it.
func (c *Cache) poolsOf(id tree.Component) []poolRef {
	out := []poolRef{{name: id.String(), component: id, sidecar: none}}
	for i, s := range c.host.opts.Sidecars {
		if s.Source == id {
			out = append(out, poolRef{name: s.Name, component: id, sidecar: i})
		}
	}
	return out
}

// batch names the pages of a list of slots, whole pages, with their hashes.
func (c *Cache) batch(x poolRef, slots tree.Slots, pages []tree.Digest) queue.Batch {
	b := queue.Batch{Pool: x.name, Pages: pages, Bytes: make([][]byte, 0, len(pages))}
	step := uint32(c.page)
	if x.component == tree.Mamba {
		step = 1
	}
	for _, run := range slots {
		for at := uint32(0); at < run.Length; at += step {
			b.Bytes = append(b.Bytes, c.pageBytes(x, run.First+tree.Slot(at)))
		}
	}
	return b
}

// hostRelease puts host slots into the release queue of their pool.
func (h *hostTier) release(id tree.Component, s tree.Slots) {
	if len(s) > 0 {
		h.released[id] = h.released[id].Append(s)
	}
}

// freeReleased frees what the release queues hold.
func (c *Cache) freeReleased() error {
	released := c.host.released
	c.host.released = [tree.NumComponents]tree.Slots{}
	return c.host.freeHost(&released)
}

// hostRoom allocates host slots of a component, after evicting as many as it is
// asked for where there are not enough; nil if there are none to be had.
func (c *Cache) hostRoom(id tree.Component, n int) (tree.Slots, error) {
	p := c.host.pools[id]
	try := func() (tree.Slots, error) {
		if err := c.injected(id, true); err != nil {
			return nil, err
		}
		return p.Alloc(n)
	}
	s, err := try()
	if !momentary(err) {
		return s, err
	}
	if _, err := c.evictHost(id, n); err != nil {
		return nil, err
	}
	if s, err = try(); momentary(err) {
		return nil, nil
	}
	return s, err
}
