// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/tree"
)

// pageWrite is a write of a node's host copy to the store (rule CT-2).
type pageWrite struct {
	operation    *queue.Operation
	launch       *launch     // what is staged, where the host is no tier; else nil
	node, parent tree.NodeID // the parent when it began
	receipt      tree.Receipt
}

// write starts the write of a node that is on the host (rule ST-12). Its host
// slots stay locked until the acknowledgement.
func (c *Cache) write(id tree.NodeID) error {
	st := c.storage
	if st == nil || st.closing {
		return nil
	}
	spec, ok, err := c.tree.BuildStorageSpec(id, false)
	if err != nil || !ok || len(spec.Hashes) == 0 {
		return err
	}
	parent, _, err := c.tree.Place(id)
	if err != nil {
		return err
	}
	w := &pageWrite{node: id, parent: parent}
	if w.receipt, err = c.tree.LockHost(id); err != nil {
		return err
	}
	full := queue.Batch{Pool: tree.Full.String()}
	var aux []queue.Batch
	for i, x := range c.poolsOf(tree.Full) {
		switch {
		case i > 0: // a sidecar
			aux = append(aux, c.batch(x, spec.Full, spec.Hashes))
		case !st.opts.FullElsewhere:
			full = c.batch(x, spec.Full, spec.Hashes)
		}
	}
	for _, t := range spec.Aux {
		for _, x := range c.poolsOf(t.Component) {
			aux = append(aux, c.batch(x, t.Host, t.Keys))
		}
	}
	w.operation = st.queue.Write(full, aux)
	st.writes = append(st.writes, w)
	c.stats.Storage.Writes++
	return nil
}

// takeWrites processes the acknowledgements of the n oldest writes, which have
// ended. What all ranks have stored is marked so.
func (c *Cache) takeWrites(n int) error {
	done := c.storage.queue.Take(queue.Write, n)
	stored := make([]bool, len(done))
	for i, o := range done {
		stored[i] = o.Complete()
	}
	if err := c.agreeAll(stored); err != nil {
		return err
	}
	return c.written(done, stored)
}

// endWrites is takeWrites for the end of the storage tier, where ranks agree on
// nothing (rule MR-9).
func (c *Cache) endWrites(n int) error {
	done := c.storage.queue.Take(queue.Write, n)
	for _, w := range c.storage.writes {
		if w.launch != nil {
			w.launch.forgotten = true // it may have been cut off
		}
	}
	return c.written(done, make([]bool, len(done)))
}

// written gives back what the oldest writes have locked, whether or not they
// worked.
func (c *Cache) written(done []*queue.Operation, stored []bool) error {
	st := c.storage
	for i, o := range done {
		if len(st.writes) == 0 || st.writes[0].operation != o {
			return fmt.Errorf("write %d ended, which is not the oldest", o.ID())
		}
		w := st.writes[0]
		st.writes = st.writes[1:]
		pages, _ := o.Progress()
		c.stats.Storage.WrittenTokens += int64(pages * c.page)
		if !o.Complete() {
			c.stats.Storage.WritesFailed++
		}
		if w.launch != nil {
			if err := c.stored(w.launch); err != nil {
				return err
			}
			continue
		}
		err := c.tree.UnlockHost(w.node, w.receipt)
		if stored[i] {
			err = errors.Join(err, c.tree.MarkStored(w.node, w.parent))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
