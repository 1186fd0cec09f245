// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"testing"

	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// A request whose admission waits for a load, to make room for its states, and
// then learns that the load has failed, which was to bring what it reuses: it is
// admitted with what is left of its match, or waits on.
func TestLoadFailsDuringAdmission(t *testing.T) {
	// Loading it once more needs a state too many; where that is not possible,
	// there is room to compute it.
	for _, again := range []bool{false, true} {
		m := newModel(t, Options{
			Tree:  tree.Options{Components: components(false, true), CheckpointGrid: 4},
			Pools: PoolSizes{Full: 32, Mamba: 4}, TrackBuffers: 1,
			Host: &HostOptions{Pools: PoolSizes{Full: 32, Mamba: 4}, LoadBackThreshold: 1, Manual: true},
		})
		t.Cleanup(m.cache.Close)
		m.serve(span(1, 5)...)
		m.sync()
		m.evict(tree.Full, 32, 4)
		noRoom := false
		m.cache.host.faults = &faults{alloc: func(id tree.Component, host bool) bool {
			return noRoom && !host && id == tree.Full
		}, copy: func(x pool.Copy) error {
			if x.Direction == pool.ToDevice {
				return errors.New("broken")
			}
			return nil
		}}
		var rs [2]*Request
		for i := range rs {
			r, err := m.cache.NewRequest(RequestParams{Tokens: span(1, 9)})
			m.ok(err)
			rs[i] = r
		}
		first, second := rs[0], rs[1]
		m.ok(m.cache.Admit(first))
		wantInt(t, "reused by the first", first.Len(), 4)
		_, err := m.cache.StartLoading()
		m.ok(err)
		found, err := m.cache.Match(second)
		m.ok(err)
		wantInt(t, "matched by the second", found.DeviceLen, 4)
		noRoom = !again
		err = m.cache.Admit(second) // its states need the place of the one that is loaded
		m.check()
		if first.State() != Lost {
			t.Fatalf("the first request is %v: the test shows nothing", first.State())
		}
		m.cache.host.faults = nil
		reused := 0
		if again {
			wantExhausted(t, err, "mamba")
			if second.State() != Waiting {
				t.Fatalf("the second request is %v", second.State())
			}
			m.ok(m.cache.Abort(first))
			err = m.cache.Admit(second)
			reused = 4
		}
		m.ok(err)
		wantInt(t, "reused by the second", second.Len(), reused)
		m.admitted(second)
		m.prefill(second, 9)
		m.finish(second)
		if first.State() == Lost {
			m.ok(m.cache.Abort(first))
		}
		m.sync()
		m.nothingLocked()
	}
}
