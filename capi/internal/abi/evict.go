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

//export tc_evict_start
func tc_evict_start(handle C.tc_core, which C.uint32_t, n C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("EvictStart", which)
		if err != nil {
			return err
		}
		return c.tree.EvictStart(id, int(n))
	})
}

//export tc_evict_next
func tc_evict_next(handle C.tc_core, which C.uint32_t, totals *C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		const op = "EvictNext"
		id, err := component(op, which)
		if err != nil {
			return err
		}
		u, err := units(op, "totals", totals)
		if err != nil {
			return err
		}
		return c.evictStep(c.tree.EvictNext(id, u))
	})
}

func (c *core) evictStep(s tree.EvictStep, err error) error {
	if err != nil {
		return err
	}
	c.out.node(s.Node)
	c.out.truth(s.MadeProgress)
	c.out.node(s.Paused)
	c.out.integer(int64(s.PausedFor))
	c.out.count(s.PausedUnits)
	c.out.evicted(&s.Evicted)
	return nil
}

//export tc_evict_leaf
func tc_evict_leaf(handle C.tc_core, node C.tc_node, writeBack C.int32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		r, err := c.tree.EvictLeaf(tree.NodeID(node), writeBack != 0)
		if err != nil {
			return err
		}
		c.out.truth(r.Backup != nil)
		if r.Backup != nil {
			c.out.backup(r.Backup)
		}
		c.out.evicted(&r.Evicted)
		return nil
	})
}

//export tc_evict_end
func tc_evict_end(handle C.tc_core, which C.uint32_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("EvictEnd", which)
		if err != nil {
			return err
		}
		return c.tree.EvictEnd(id)
	})
}

//export tc_evict
func tc_evict(handle C.tc_core, wanted *C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		u, err := units("tc_evict", "units", wanted)
		if err != nil {
			return err
		}
		return c.dropped(c.evict(u))
	})
}

// evict makes a whole eviction without backups. That a walk is open is found
// before the first one starts. An error between the steps, which only a tree in
// disorder gives, ends the eviction: it is returned if nothing went before it,
// since slots that were freed must reach their owner; the next call meets it
// again.
func (c *core) evict(wanted tree.Units) (total tree.Evicted, err error) {
	if c.tree.Switches().WriteBack {
		return total, &tree.OrderError{Op: "tc_evict", Problem: "under write-back victims must be backed up between the steps: use tc_evict_start"}
	}
	has := c.tree.Options().Components
	for id := range wanted {
		if !has.Has(tree.Component(id)) || wanted[id] <= 0 {
			wanted[id] = 0
			continue
		}
		if err := c.tree.EvictStart(tree.Component(id), wanted[id]); err != nil {
			return total, err
		}
		if err := c.tree.EvictEnd(tree.Component(id)); err != nil {
			return total, err
		}
	}
	for id := range wanted {
		if total.Freed[id] >= wanted[id] {
			continue
		}
		if err := c.evictFor(tree.Component(id), wanted[id], &total); err != nil {
			if total.Frees.Empty() {
				return total, err
			}
			break
		}
	}
	return total, nil
}

// evictFor walks for one component until the total reaches n.
func (c *core) evictFor(id tree.Component, n int, total *tree.Evicted) (err error) {
	if err := c.tree.EvictStart(id, n); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.tree.EvictEnd(id)) }()
	for {
		s, err := c.tree.EvictNext(id, total.Freed)
		if err != nil {
			return err
		}
		merge(total, &s.Evicted)
		if s.Node == tree.NoNode && !s.MadeProgress {
			return nil
		}
		if s.Node == tree.NoNode {
			continue
		}
		leaf, err := c.tree.EvictLeaf(s.Node, false)
		if err != nil {
			return err
		}
		merge(total, &leaf.Evicted)
	}
}

// merge adds what a step dropped.
func merge(total, step *tree.Evicted) {
	total.Freed.Add(step.Freed)
	total.Unbacked += step.Unbacked
	for id := range total.Frees.Device {
		total.Frees.Device[id] = total.Frees.Device[id].Append(step.Frees.Device[id])
		total.Frees.Host[id] = total.Frees.Host[id].Append(step.Frees.Host[id])
	}
}

//export tc_demote
func tc_demote(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error { return c.dropped(c.tree.Demote(tree.NodeID(node))) })
}

//export tc_drop_subtree_no_host
func tc_drop_subtree_no_host(handle C.tc_core, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		e, dropped, err := c.tree.DropSubtreeNoHost(tree.NodeID(node))
		if err != nil {
			return err
		}
		c.out.truth(dropped)
		c.out.evicted(&e)
		return nil
	})
}

//export tc_finish_state_eviction
func tc_finish_state_eviction(handle C.tc_core, which C.uint32_t, node C.tc_node, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("FinishStateEviction", which)
		if err != nil {
			return err
		}
		return c.evictStep(c.tree.FinishStateEviction(id, tree.NodeID(node)))
	})
}

//export tc_evict_host
func tc_evict_host(handle C.tc_core, which C.uint32_t, n C.int64_t, out *C.tc_buffer) C.int32_t {
	return call(handle, out, func(c *core) error {
		id, err := component("EvictHost", which)
		if err != nil {
			return err
		}
		return c.dropped(c.tree.EvictHost(id, int(n)))
	})
}
