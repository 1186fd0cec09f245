// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// WritePolicy says when data is copied to the host.
type WritePolicy uint8

// The write policies.
const (
	// WriteThrough backs a node up when the first insert has passed it.
	WriteThrough WritePolicy = iota
	// WriteThroughSelective backs a node up when the second insert has.
	WriteThroughSelective
	// WriteBack backs a node up when it is evicted from the device.
	WriteBack

	numWritePolicies = 3
)

var writePolicyNames = [numWritePolicies]string{"write-through", "write-through-selective", "write-back"}

// String returns the policy's name.
func (p WritePolicy) String() string {
	if p < numWritePolicies {
		return writePolicyNames[p]
	}
	return "unknown"
}

// ParseWritePolicy reads the name of a write policy; underscores may stand for
// its hyphens.
func ParseWritePolicy(name string) (WritePolicy, error) {
	for p, n := range writePolicyNames {
		if n == strings.ReplaceAll(name, "_", "-") {
			return WritePolicy(p), nil
		}
	}
	return 0, fmt.Errorf("write policy %q: must be %s, %s or %s", name, writePolicyNames[0], writePolicyNames[1], writePolicyNames[2])
}

// DefaultLoadBackThreshold is the fewest Full tokens for which a load back from
// the host is worth its while when no other component needs one.
const DefaultLoadBackThreshold = 10

// HostOptions configures the host tier. Pools.Full is required, and Pools.Mamba
// with Mamba; without Pools.SWA windows stay on the device.
type HostOptions struct {
	Pools  PoolSizes // slots in host memory
	Policy WritePolicy
	// BufferOnly makes host memory a staging area between device and storage, and
	// no tier: nothing is found there, and nothing is loaded back. What is to be
	// written waits for room, in order, and what is fetched from storage is copied
	// to the device when its request is admitted. The components must be {Full} or
	// {Full, SWA}; with SWA, Pools.SWA must be two windows or more, in whole pages;
	// WriteBack is refused.
	BufferOnly bool
	// LoadBackThreshold is the fewest Full tokens that are loaded back where no
	// other component needs it. Zero: DefaultLoadBackThreshold; 1: always.
	LoadBackThreshold int
	// SlotBytes is the memory of a slot of each component. Zero: 8, a content
	// stamp. It is not looked at with Copy.
	SlotBytes [tree.NumComponents]int
	// Copy moves bytes where the cache's own memory is not used, for engines
	// whose slots are in GPU memory. It runs on worker goroutines. nil: the cache
	// has memory of its own for both tiers, see Cache.Memory.
	Copy func(context.Context, pool.Copy) error
	// Page returns the bytes of the page of a pool, or of the state, that begins
	// at a host slot, where Copy moves the bytes; a storage tier reads and writes
	// them. pool is a component's name or a sidecar's.
	Page func(pool string, first tree.Slot) []byte
	// Sidecars keep something beside a component's slots, at the same slots: an
	// indexer, or the state of a draft model. Where there is Copy, it copies them,
	// too.
	Sidecars []Sidecar
	// Workers and Queue are those of pool.EngineOptions, and so are Manual,
	// Started and Waited. At most 1024 workers, and 1<<20 copies in the queue.
	Workers, Queue int
	Manual         bool
	Started        func(id int64, c pool.Copy)
	Waited         func(id int64)
	// Context ends what waits inside of calls: an eviction under write-back for
	// its copies, a copy for room in the queue, Reset for what is in flight. The
	// call then returns a *BackupError. nil: never.
	Context context.Context
}

// Sidecar is memory beside that of a component.
type Sidecar struct {
	Name      string         // of its pages in storage
	Source    tree.Component // whose slots it lies beside
	SlotBytes int            // of each slot. Zero: 8
}

// hostTier is the host side of a cache: pools, the transfer engine and the books
// of what is in flight (rule CT-2).
type hostTier struct {
	opts        HostOptions
	ctx         context.Context
	pools       [tree.NumComponents]*pool.Host // nil: the component has none
	group       *pool.HostGroup
	engine      *pool.Engine
	memory      *pool.Memories // nil with HostOptions.Copy
	backups     []*backup      // in flight, the oldest first
	loads       []*load        // in flight or queued, the oldest first
	lastSeq     int64          // of the latest load
	lastFailure error          // of a load
	// mirrorsGo: the tree has been told of nodes that are in storage, whose copies
	// on the host it may give up.
	mirrorsGo bool
	// released are host slots that wait for the next tick to be freed.
	released [tree.NumComponents]tree.Slots

	buffer *buffering // nil where the host is a tier

	copyTime [2]atomic.Int64 // by direction, in nanoseconds

	faults *faults // nil but in tests
}

// faults lets tests make things fail.
type faults struct {
	backup func(node tree.NodeID) error // raises an error in the middle of a backup
	alloc  func(id tree.Component, host bool) bool
	copy   func(pool.Copy) error
}

// BackupError says that a copy to the host could not be started or waited for,
// for another reason than a lack of room. The cache and its requests can be used
// on; what was not backed up asks again.
type BackupError struct{ Err error }

func (e *BackupError) Error() string { return fmt.Sprintf("backup to the host: %v", e.Err) }

// Unwrap returns the cause.
func (e *BackupError) Unwrap() error { return e.Err }

// LoadError says that a load back from the host failed: a request that was to
// read what it loads cannot go on. Finish or abort it, and send it again.
type LoadError struct {
	Request int64
	Err     error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("request %d: what it reuses could not be loaded from the host, end it and send it again: %v", e.Request, e.Err)
}

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

func (h *HostOptions) validate(c *Cache, page int) error {
	var problems []error
	check := func(ok bool, field string, value int, allowed string) {
		if !ok {
			problems = append(problems, &tree.ConfigError{Field: field, Value: strconv.Itoa(value), Allowed: allowed})
		}
	}
	const most = 1<<32 - 1<<12
	onePage := fmt.Sprintf("%d (one page) to %d", page, most)
	check(h.Pools.Full >= page && h.Pools.Full <= most, "Host.Pools.Full", h.Pools.Full, onePage)
	if c.swa {
		check(h.Pools.SWA == 0 || h.Pools.SWA >= page && h.Pools.SWA <= most, "Host.Pools.SWA", h.Pools.SWA, "0 (none), or "+onePage)
	}
	if c.mamba {
		check(h.Pools.Mamba >= 1 && h.Pools.Mamba <= most, "Host.Pools.Mamba", h.Pools.Mamba, fmt.Sprintf("1 (one state) to %d", most))
	}
	check(h.Policy < numWritePolicies, "Host.Policy", int(h.Policy), "WriteThrough, WriteThroughSelective or WriteBack")
	check(h.Workers >= 0 && h.Workers <= maxWorkers, "Host.Workers", h.Workers, fmt.Sprintf("1 to %d, or 0 for the default", maxWorkers))
	check(h.Queue >= 0 && h.Queue <= maxQueue, "Host.Queue", h.Queue, fmt.Sprintf("1 to %d, or 0 for the default", maxQueue))
	check(h.LoadBackThreshold >= 0, "Host.LoadBackThreshold", h.LoadBackThreshold, "1 or more, or 0 for the default")
	for _, n := range h.SlotBytes {
		check(n == 0 || n >= pool.StampBytes, "Host.SlotBytes", n, fmt.Sprintf("%d or more, or 0 for that", pool.StampBytes))
	}
	return errors.Join(append(problems, h.validateBuffer(c))...)
}

// openHost makes the host tier. The device pools exist already.
func (c *Cache) openHost(o HostOptions) error {
	if err := o.validate(c, c.page); err != nil {
		return err
	}
	if o.LoadBackThreshold == 0 {
		o.LoadBackThreshold = DefaultLoadBackThreshold
	}
	h := &hostTier{opts: o, ctx: o.Context}
	if h.ctx == nil {
		h.ctx = context.Background()
	}
	pages := [tree.NumComponents]int{c.page, c.page, 1}
	sizes := [tree.NumComponents]int{o.Pools.Full, o.Pools.SWA, o.Pools.Mamba}
	for id := tree.Full; id < tree.NumComponents; id++ {
		if c.pool(id) == nil || sizes[id] == 0 {
			continue
		}
		p, err := pool.NewHost(id.String(), sizes[id], pages[id])
		if err != nil {
			return err
		}
		h.pools[id] = p
		if id == tree.Full {
			h.group = pool.NewHostGroup(p, c.deviceSide(id), c.hostEvictor(id))
		} else if err := h.group.Register(p, c.deviceSide(id), c.hostEvictor(id)); err != nil {
			return err
		}
	}
	copying := o.Copy
	if copying == nil {
		h.memory = &pool.Memories{}
		copying = h.memory.Copy
		for id, p := range h.pools {
			if p == nil {
				continue
			}
			each := max(o.SlotBytes[id], pool.StampBytes)
			device := c.pool(tree.Component(id))
			var err error
			if h.memory.Host[id], err = pool.NewMemory(p.Size(), each); err != nil {
				return err
			}
			if h.memory.Device[id], err = pool.NewMemory(device.PageSize()+device.Size(), each); err != nil {
				return err
			}
		}
	}
	if err := c.addSidecars(h); err != nil {
		return err
	}
	move := copying
	copying = func(ctx context.Context, x pool.Copy) error {
		if f := h.faults; f != nil && f.copy != nil {
			if err := f.copy(x); err != nil {
				return err
			}
		}
		began := c.now()
		defer func() { h.copyTime[x.Direction].Add(c.now() - began) }()
		return move(ctx, x)
	}
	if o.BufferOnly {
		h.buffer = newBuffering()
	}
	c.host = h
	err := c.tree.SetSwitches(c.switches())
	if err != nil {
		return err
	}
	h.engine, err = pool.NewEngine(pool.EngineOptions{
		Copy: copying, Workers: o.Workers, Queue: o.Queue, Manual: o.Manual, Started: o.Started, Waited: o.Waited,
	})
	return err
}

// addSidecars registers the sidecars and gives them memory.
func (c *Cache) addSidecars(h *hostTier) error {
	for i, s := range h.opts.Sidecars {
		field := fmt.Sprintf("Host.Sidecars[%d]", i)
		if s.Source >= tree.NumComponents || h.pools[s.Source] == nil {
			return &tree.ConfigError{Field: field + ".Source", Value: s.Source.String(), Allowed: "a component with a host pool"}
		}
		if s.SlotBytes != 0 && s.SlotBytes < pool.StampBytes {
			return &tree.ConfigError{Field: field + ".SlotBytes", Value: strconv.Itoa(s.SlotBytes), Allowed: fmt.Sprintf("%d or more, or 0 for that", pool.StampBytes)}
		}
		if err := storage.CheckKeys([]storage.Key{{Pool: s.Name}}); err != nil {
			return &tree.ConfigError{Field: field + ".Name", Value: strconv.Quote(s.Name), Allowed: fmt.Sprintf("1 to %d of a-z, 0-9, - and _", storage.MaxPoolName)}
		}
		host, device := h.pools[s.Source], c.pool(s.Source)
		if err := h.group.RegisterSidecar(s.Name, s.Source.String(), host.Size()); err != nil {
			return err
		}
		if h.memory == nil {
			continue
		}
		each := max(s.SlotBytes, pool.StampBytes)
		m := pool.SidecarMemory{Name: s.Name, Source: s.Source}
		var err error
		if m.Host, err = pool.NewMemory(host.Size(), each); err != nil {
			return err
		}
		if m.Device, err = pool.NewMemory(device.PageSize()+device.Size(), each); err != nil {
			return err
		}
		h.memory.Sidecars = append(h.memory.Sidecars, m)
	}
	return nil
}

// deviceSide says how load backs get device slots of one component alone (rule
// AL-30).
func (c *Cache) deviceSide(id tree.Component) pool.Device {
	p := c.pool(id)
	return pool.Device{
		Alloc: func(n int) (tree.Slots, error) {
			if err := c.injected(id, false); err != nil {
				return nil, err
			}
			return p.Alloc(n)
		},
		Free: p.Free,
		Evict: func(n int) error {
			var want tree.Units
			want[id] = n
			_, err := c.evict(want)
			return err
		},
	}
}

// injected makes an allocation fail for a test.
func (c *Cache) injected(id tree.Component, host bool) error {
	if f := c.host.faults; f != nil && f.alloc != nil && f.alloc(id, host) {
		return &pool.ExhaustedError{Pool: id.String()}
	}
	return nil
}

func (c *Cache) hostEvictor(id tree.Component) pool.Evictor {
	return func(n int) error {
		_, err := c.evictHost(id, n)
		return err
	}
}

// evictHost frees n slots of a component on the host if it can, and returns how
// many of it were freed (rule HE-1).
func (c *Cache) evictHost(id tree.Component, n int) (int, error) {
	e, err := c.tree.EvictHost(id, n)
	c.stats.HostEvicted.Add(e.Freed)
	if e.Freed != (tree.Units{}) {
		c.epoch++
	}
	return e.Freed[id], errors.Join(err, c.release(&e))
}

// freeHost returns slots to the host pools.
func (h *hostTier) freeHost(lists *[tree.NumComponents]tree.Slots) error {
	var err error
	for id, s := range lists {
		if len(s) > 0 {
			err = errors.Join(err, h.pools[id].Free(s))
		}
	}
	return err
}

// writeBack reports whether eviction backs up.
func (c *Cache) writeBack() bool { return c.host != nil && c.host.opts.Policy == WriteBack }

// Memory returns the content of the slots of both tiers; nil without a host tier
// or where HostOptions.Copy moves the bytes.
func (c *Cache) Memory() *pool.Memories {
	if c.host == nil {
		return nil
	}
	return c.host.memory
}

// Engine returns the transfer engine; nil without a host tier. It is for driving
// a manual engine, and for questions.
func (c *Cache) Engine() *pool.Engine {
	if c.host == nil {
		return nil
	}
	return c.host.engine
}

// drainBackups waits for all backups in flight (rule WB-1). If the wait is cut
// short, those of evictions get the lock that the others have, so that nothing
// touches their nodes before they have ended.
func (c *Cache) drainBackups() error {
	if c.host == nil || c.host.engine.InFlight(pool.ToHost) == 0 {
		return nil
	}
	if err := c.host.engine.Wait(c.host.ctx, pool.ToHost); err != nil {
		for _, b := range c.host.backups {
			if !b.locked {
				receipt, lock := c.tree.Lock(b.node, 0)
				if lock != nil {
					return lock
				}
				b.receipt, b.locked = receipt, true
			}
		}
		return &BackupError{err}
	}
	return c.takeBackups(c.host.engine.InFlight(pool.ToHost))
}

// drain waits for everything that was started, so that its locks go.
func (c *Cache) drain() (waited bool, err error) {
	h := c.host
	if h == nil || h.engine.InFlight(pool.ToHost)+h.engine.InFlight(pool.ToDevice) == 0 {
		return false, nil
	}
	if err := c.drainBackups(); err != nil {
		return true, err
	}
	if err := h.engine.Wait(h.ctx, pool.ToDevice); err != nil {
		return true, &BackupError{err}
	}
	return true, c.takeLoads(h.engine.InFlight(pool.ToDevice))
}

// Close ends the storage queue and the transfer engine and waits for their
// goroutines. What is in flight is cut off; the cache must not be used
// afterwards. Without a host tier, and a second time, it does nothing. Ranks need
// not close together.
func (c *Cache) Close() {
	c.closed = true
	if c.host == nil {
		return
	}
	if c.storage != nil {
		// A store that hangs for longer than HostOptions.Context keeps its
		// goroutines; nothing more can be done here.
		_ = c.storage.queue.Close(c.host.ctx)
	}
	c.host.engine.Close()
}

// resetHost ends every operation before the tree goes (rule CT-3).
func (c *Cache) resetHost() error {
	h := c.host
	if err := c.resetStorage(); err != nil {
		return err
	}
	for _, d := range []pool.Direction{pool.ToHost, pool.ToDevice} {
		if err := h.engine.Wait(h.ctx, d); err != nil {
			return &BackupError{err}
		}
	}
	for _, d := range []pool.Direction{pool.ToHost, pool.ToDevice} {
		h.engine.Take(d, h.engine.InFlight(d))
	}
	if err := c.resetBuffer(); err != nil {
		return err
	}
	h.backups, h.loads = nil, nil
	h.released = [tree.NumComponents]tree.Slots{}
	h.group.Clear()
	return nil
}

// HostUsage counts the slots of one component on the host. Size is Free +
// Cached + Held.
type HostUsage struct {
	Size   int
	Free   int
	Cached int // in the tree
	Held   int // of retracted requests, prefetches and copies that failed, staged, and waiting to be freed
}

// HostUsage returns the counts of a component on the host; all 0 where it has no
// pool.
func (c *Cache) HostUsage(id tree.Component) HostUsage {
	if c.host == nil || id >= tree.NumComponents || c.host.pools[id] == nil {
		return HostUsage{}
	}
	p := c.host.pools[id]
	u := HostUsage{Size: p.Size(), Free: p.Available(), Held: c.host.released[id].Len()}
	for _, b := range c.host.backups {
		u.Held += b.orphans[id].Len()
	}
	for _, p := range c.fetches() {
		u.Held += p.held(id).Len()
	}
	for _, x := range c.staging() {
		if x.component == id {
			u.Held += x.slots.Len()
		}
	}
	for r := c.live.first; r != nil; r = r.next {
		if r.saved != nil {
			u.Held += r.saved.host[id].Len()
		}
	}
	u.Cached = u.Size - u.Free - u.Held
	return u
}
