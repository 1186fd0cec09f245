// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// Core is the TreeCore: one radix tree that holds the cached state of all
// configured components. It decides; its caller owns the memory and executes.
//
// A Core is not safe for concurrent use: callers serialise their calls. No
// call blocks, starts goroutines or reads a clock, and equal sequences of calls
// on two cores give equal answers.
type Core struct {
	opts     Options
	switches Switches
	// looseHost: the policy was write-back at some time since the reset, so
	// nodes may be there that keep rule ND-7 only (rule WT-1).
	looseHost bool
	extra     int // raw tokens that a span has beyond its units: 1 for bigrams
	comps     []hooks
	policy    policy
	tails     *tailPolicy // the policy if it is tlru, which needs bookkeeping

	nodes arena
	root  *node
	names namespaces
	edges edgeIndex

	tick  uint64 // last tick given out
	uuid  uint64 // last lock boundary uuid given out
	sizes [NumComponents]componentSize

	leaves     leafIndex // device-evictable leaves
	hostLeaves leafIndex // host-evictable leaves
	leafSeq    uint64    // counts joins and leaves of both
	device     [NumComponents]recency
	host       [NumComponents]recency
	walks      [NumComponents]*walk // those that are on
	walkMemory [NumComponents]walk

	firstDuplicate, lastDuplicate *node
	duplicateSeq                  uint64 // last place given out in the registry
	digest                        uint64 // of reclaimed host copies (rule HE-5)

	insert   *insertion // suspended insert, nil: none
	sessions sessionBook
	events   []Event
	buffers  map[BufferID]int64 // units held of each opaque buffer
	dead     []BufferID         // buffers whose last unit has gone

	log *opLog

	// Reused by matches, so that a match allocates its result only.
	chunk   Slots
	receipt Receipt // the one of the lock or release that is running
	states  [2 * NumComponents]int
}

// New returns an empty core. Its error joins a *ConfigError for each field of o
// that is wrong.
func New(o Options) (*Core, error) {
	o, p, err := o.complete()
	if err != nil {
		return nil, err
	}
	c := &Core{opts: o, policy: p, switches: Switches{WriteThroughThreshold: defaultWriteThroughThreshold}}
	c.tails, _ = p.(*tailPolicy)
	if o.Eagle {
		c.extra = 1
	}
	c.nodes.width = 1
	for id := Full; id < NumComponents; id++ {
		if o.Components.Has(id) {
			c.comps = append(c.comps, newHooks(c, id))
			c.nodes.width = int(id) + 1
		}
	}
	c.clear()
	return c, nil
}

// clear builds the state of an empty core, keeping counters that never restart.
func (c *Core) clear() {
	c.nodes.clear()
	c.names.clear()
	c.edges.clear()
	c.edges.span = c.opts.PageSize + c.extra
	c.leaves.clear()
	c.hostLeaves.clear()
	for id := range c.device {
		c.device[id].component, c.host[id].component = Component(id), Component(id)
		c.device[id].clear()
		c.host[id].clear()
		c.walks[id] = nil
		c.sizes[id] = componentSize{}
	}
	c.insert = nil
	c.looseHost = c.switches.WriteBack
	c.firstDuplicate, c.lastDuplicate, c.digest = nil, nil, 0
	c.sessions.clear()
	c.root = c.newNode()
	c.root.ns = nil
	c.root.priority = minPriority
	c.root.state[Full].device = Slots{}
	for _, h := range c.comps {
		c.root.state[h.id()].locks = 1
	}
	c.root.extend().hashes = []Digest{}
}

const minPriority = -1 << 63

// Options returns the options of the core with its defaults filled in.
func (c *Core) Options() Options { return c.opts }

// Switches returns the switches as they stand.
func (c *Core) Switches() Switches { return c.switches }

// SetSwitches changes the switches. A threshold below 1, and an external linker
// where there cannot be one, are an *ArgumentError that changes nothing; with a
// linker the threshold becomes 1 (rule XL-1). Change the policy while no copy is
// in flight (rule AT-1); nodes stay as they are.
func (c *Core) SetSwitches(s Switches) error {
	if c.log != nil {
		c.log.switches(s)
	}
	if s.WriteThroughThreshold < 1 {
		return &ArgumentError{Op: "SetSwitches", Field: "WriteThroughThreshold", Problem: "it must be 1 or more"}
	}
	if err := c.checkLinker(s); err != nil {
		return err
	}
	if s.ExternalLinker {
		s.WriteThroughThreshold = 1
	}
	c.switches = s
	c.looseHost = c.looseHost || s.WriteBack
	return nil
}

// Reset drops everything the tree holds and builds a new root. Ids from before
// stay stale for ever; queued events and the switches are kept (rule N-10).
func (c *Core) Reset() {
	if c.log != nil {
		c.log.plain("reset")
	}
	if c.buffers != nil {
		for n := c.root; n != nil; n = n.following() {
			for id := range n.state {
				c.forgetBuffers(n.state[id].device)
				c.forgetBuffers(n.state[id].host)
			}
		}
	}
	c.clear()
}

// Root returns the root's id. One root serves all namespaces (rule K-12).
func (c *Core) Root() NodeID { return c.root.id }

// IsRoot reports whether id is the root.
func (c *Core) IsRoot(id NodeID) (bool, error) {
	if c.log != nil {
		c.log.nodes("is-root", id)
	}
	n, err := c.resolve("IsRoot", id)
	return n == c.root && err == nil, err
}

// IsBackedUp reports whether the node has a Full host value.
func (c *Core) IsBackedUp(id NodeID) (bool, error) {
	if c.log != nil {
		c.log.nodes("is-backed-up", id)
	}
	n, err := c.resolve("IsBackedUp", id)
	return err == nil && n.backedUp(), err
}

// IsFullDeviceEvicted reports whether the node has lost its Full device value.
// The root never has.
func (c *Core) IsFullDeviceEvicted(id NodeID) (bool, error) {
	if c.log != nil {
		c.log.nodes("is-full-device-evicted", id)
	}
	n, err := c.resolve("IsFullDeviceEvicted", id)
	return err == nil && n.evicted(), err
}

// resolve is the one place where ids become nodes (rule A-3).
func (c *Core) resolve(op string, id NodeID) (*node, error) {
	if n := c.nodes.find(id); n != nil {
		return n, nil
	}
	return nil, &NodeAccessError{Op: op, Node: id}
}

func (c *Core) nextTick() uint64 {
	c.tick++
	return c.tick
}

// newNode makes a node without key, parent or data, with fresh stamps (N-5).
func (c *Core) newNode() *node {
	n := c.nodes.make()
	n.stamp = c.nextTick()
	n.created = c.nextTick()
	return n
}

// touch gives n a fresh access stamp and moves it in the leaf index.
func (c *Core) touch(n *node) {
	n.stamp = c.nextTick()
	c.reorderLeaf(n)
}

// view brings a key into the form that the core sees: bigrams for an eagle
// core (rule K-8), cut to whole pages (rule K-7).
func (c *Core) view(op string, k Key) (v view, units int, err error) {
	if k.Bigram && !c.opts.Eagle {
		return v, 0, &ArgumentError{Op: op, Field: "key", Problem: "it is marked as bigrams, but this core has plain keys: set Options.Eagle or pass a plain key"}
	}
	units = len(k.Tokens)
	if c.extra == 1 && units > 0 {
		units--
	}
	return view{raw: k.Tokens, units: units - units%c.opts.PageSize, extra: c.extra}, units, nil
}
