// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// rig is a tree with its pools and the shortest code that makes them one: what
// the published workload calls a cache. Its numbers hold the allocator's part.
type rig struct {
	page   int
	core   *tree.Core
	full   *pool.Paged  // Full alone
	dual   *pool.Dual   // Full and SWA
	states *pool.States // nil without Mamba
}

// Sizes of the published workload's pools.
const (
	workloadSlots  = 500_000
	workloadStates = 10_200
	workloadWindow = 128
)

func newRig(components tree.ComponentSet, page int) (*rig, error) {
	r := &rig{page: page}
	o := tree.Options{Components: components, PageSize: page}
	var err error
	if components.Has(tree.SWA) {
		o.SlidingWindow = workloadWindow
		r.dual, err = pool.NewDual(workloadSlots, workloadSlots, page)
	} else {
		r.full, err = pool.NewPaged("full", workloadSlots, page)
	}
	if err == nil && components.Has(tree.Mamba) {
		r.states, err = pool.NewStates("mamba", workloadStates)
	}
	if err == nil {
		r.core, err = tree.New(o)
	}
	return r, err
}

// alloc takes n slots, rounded up to whole pages; it does not evict.
func (r *rig) alloc(n int) (tree.Slots, error) {
	n = (n + r.page - 1) / r.page * r.page
	if r.dual != nil {
		return r.dual.Alloc(n)
	}
	return r.full.Alloc(n)
}

// take is alloc, evicting twice the length and two states where it fails.
func (r *rig) take(n int) (full, state tree.Slots, err error) {
	full, err = r.alloc(n)
	if err == nil && r.states != nil {
		state, err = r.states.Alloc(1)
		if err != nil {
			err = errors.Join(err, r.free(full))
		}
	}
	var short *pool.ExhaustedError
	if !errors.As(err, &short) {
		return full, state, err
	}
	if err := r.evict(tree.Full, 2*n); err != nil {
		return nil, nil, err
	}
	if r.states != nil {
		if err := r.evict(tree.Mamba, 2); err != nil {
			return nil, nil, err
		}
	}
	if full, err = r.alloc(n); err == nil && r.states != nil {
		state, err = r.states.Alloc(1)
	}
	return full, state, err
}

func (r *rig) free(s tree.Slots) error {
	if len(s) == 0 {
		return nil
	}
	if r.dual != nil {
		return r.dual.Free(s)
	}
	return r.full.Free(s)
}

// insert hands slots to the tree, executes what it asks for, and takes the
// state back if the tree has one already.
func (r *rig) insert(p tree.InsertParams) error {
	step, err := r.core.BeginInsert(p)
	for err == nil {
		for _, a := range step.Actions {
			if err := r.apply(a); err != nil {
				return err
			}
		}
		if step.Result != nil {
			break
		}
		step, err = r.core.ResumeInsert()
	}
	r.core.EndInsert()
	if err == nil && step.Result.MambaExist && len(p.MambaState) > 0 {
		err = r.states.Free(p.MambaState)
	}
	if err != nil {
		return err
	}
	return r.freeTail(p.Slots, len(p.Key.Tokens))
}

// freeTail gives back the slots of the last, partly filled page.
func (r *rig) freeTail(full tree.Slots, n int) error {
	if whole := n / r.page * r.page; whole < full.Len() {
		return r.free(full.Slice(whole, full.Len()))
	}
	return nil
}

func (r *rig) apply(a tree.Action) error {
	switch a := a.(type) {
	case tree.FreeDeviceKV:
		return r.free(a.Slots)
	case tree.FreeDeviceKVFullOnly:
		if r.dual != nil {
			return r.dual.FreeFullOnly(a.Slots)
		}
		return r.full.Free(a.Slots)
	case tree.SWARebuild:
		swa, err := r.dual.Translate(a.Full)
		if err != nil {
			return err
		}
		return r.core.SetComponentDeviceValue(a.Node, tree.SWA, swa)
	case tree.RecoverSWAWithLockedFull:
		swa, err := r.dual.MoveMap(a.Kept, a.Incoming)
		if err == nil {
			err = r.dual.FreeFullOnly(a.Incoming)
		}
		if err != nil {
			return err
		}
		return r.core.SetComponentDeviceValue(a.Node, tree.SWA, swa)
	}
	return nil
}

// evict frees n units of a component; freed is how many of it came back.
func (r *rig) evict(id tree.Component, n int) error {
	_, err := r.evictCount(id, n)
	return err
}

func (r *rig) evictCount(id tree.Component, n int) (freed int, err error) {
	if err := r.core.EvictStart(id, n); err != nil {
		return 0, err
	}
	var totals tree.Units
	for {
		step, err := r.core.EvictNext(id, totals)
		if err != nil {
			return 0, err
		}
		if err := r.release(&step.Evicted, &totals); err != nil {
			return 0, err
		}
		if step.Node != tree.NoNode {
			leaf, err := r.core.EvictLeaf(step.Node, false)
			if err != nil {
				return 0, err
			}
			if err := r.release(&leaf.Evicted, &totals); err != nil {
				return 0, err
			}
		} else if !step.MadeProgress {
			return totals[id], r.core.EvictEnd(id)
		}
	}
}

// release gives back what an eviction step freed: SWA through its Full slots
// before those go.
func (r *rig) release(e *tree.Evicted, totals *tree.Units) error {
	totals.Add(e.Freed)
	if s := e.Frees.Device[tree.SWA]; len(s) > 0 {
		if err := r.dual.FreeSWA(s); err != nil {
			return err
		}
	}
	if s := e.Frees.Device[tree.Full]; len(s) > 0 {
		if err := r.apply(tree.FreeDeviceKVFullOnly{Slots: s}); err != nil {
			return err
		}
	}
	if s := e.Frees.Device[tree.Mamba]; len(s) > 0 {
		return r.states.Free(s)
	}
	return nil
}
