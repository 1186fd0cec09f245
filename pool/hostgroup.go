// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"fmt"

	"github.com/treecore/treecore/tree"
)

// HostGroup is the host pools of a cache by name: the anchor pool, which is that
// of Full, those of other components, and sidecars, which keep something beside
// another pool at the same indices and so have no slots of their own.
type HostGroup struct {
	anchor  *Host
	members []member // in the order of registration
}

type member struct {
	name    string
	host    *Host // nil: a sidecar
	source  string
	size    int
	evictor Evictor
	device  Device
}

// Evictor frees n slots of a pool if it can; what it could not free shows in the
// next allocation.
type Evictor func(n int) error

// Device is the other side of a host pool: where its slots are loaded to. The
// zero value is for pools that nothing is loaded from.
type Device struct {
	Alloc func(n int) (tree.Slots, error)
	Free  func(tree.Slots) error
	Evict Evictor // nil: nothing can be evicted
}

// Move is what one pool moves in a copy. The side that is nil is to be
// allocated.
type Move struct {
	Pool         string
	Device, Host tree.Slots
	// Source names the pool whose move's indices are used, for a sidecar.
	Source string
}

// MissingSourceError says that a sidecar rides on a move that is not there.
type MissingSourceError struct{ Pool, Source string }

func (e *MissingSourceError) Error() string {
	return fmt.Sprintf("pool %s: it rides on pool %s, which moves nothing in this copy: add its move, or leave the sidecar out", e.Pool, e.Source)
}

// NewHostGroup returns a group with the anchor pool.
func NewHostGroup(anchor *Host, d Device, evict Evictor) *HostGroup {
	return &HostGroup{anchor: anchor, members: []member{{name: anchor.Name(), host: anchor, size: anchor.Size(), device: d, evictor: evict}}}
}

// Register adds a pool. A name that is taken is an *ArgumentError.
func (g *HostGroup) Register(h *Host, d Device, evict Evictor) error {
	return g.add("Register", member{name: h.Name(), host: h, size: h.Size(), device: d, evictor: evict})
}

// RegisterSidecar adds a pool of size slots that lies beside the pool source. It
// must have as many slots as that, else it is an *ArgumentError that names both
// sizes.
func (g *HostGroup) RegisterSidecar(name, source string, size int) error {
	const op = "RegisterSidecar"
	s := g.find(source)
	switch {
	case s == nil:
		return &ArgumentError{Op: op, Field: "source", Problem: fmt.Sprintf("pool %q is not registered", source)}
	case size < s.size:
		return &ArgumentError{Op: op, Field: "size", Problem: fmt.Sprintf("%d slots: its source %s has %d, it needs as many", size, source, s.size)}
	}
	return g.add(op, member{name: name, source: source, size: size})
}

func (g *HostGroup) add(op string, m member) error {
	if g.find(m.name) != nil {
		return &ArgumentError{Op: op, Field: "name", Problem: fmt.Sprintf("pool %q is registered already", m.name)}
	}
	g.members = append(g.members, m)
	return nil
}

func (g *HostGroup) find(name string) *member {
	for i := range g.members {
		if g.members[i].name == name {
			return &g.members[i]
		}
	}
	return nil
}

// Pool finds a pool by name; nil if there is none, or it is a sidecar.
func (g *HostGroup) Pool(name string) *Host {
	if m := g.find(name); m != nil {
		return m.host
	}
	return nil
}

// Size, Available, Alloc and Free are those of the anchor pool.
func (g *HostGroup) Size() int { return g.anchor.Size() }

// Available returns the number of free slots of the anchor pool.
func (g *HostGroup) Available() int { return g.anchor.Available() }

// Alloc returns n slots of the anchor pool; see Host.Alloc.
func (g *HostGroup) Alloc(n int) (tree.Slots, error) { return g.anchor.Alloc(n) }

// Free takes back slots of the anchor pool; see Host.Free.
func (g *HostGroup) Free(list tree.Slots) error { return g.anchor.Free(list) }

// Clear brings all pools back to their initial state.
func (g *HostGroup) Clear() {
	for _, m := range g.members {
		if m.host != nil {
			m.host.Clear()
		}
	}
}

// Resolve allocates what is missing in the moves of a copy: the host side of
// those to the host, the device side of those to the device (rule AL-29). A pool
// that is short evicts exactly what it is short of, once. Moves of sidecars get
// the indices of their source's move, or of full if that is the anchor pool.
// Moves of pools that are not registered are left alone. After an error
// everything that this call allocated is free again and the moves are as they
// were; a shortage is an *ExhaustedError.
func (g *HostGroup) Resolve(d Direction, full Move, moves []Move) error {
	before := append([]Move(nil), moves...)
	var taken []int // moves that were filled here from a pool
	fail := func(err error) error {
		for _, i := range taken {
			m := g.find(moves[i].Pool)
			if d == ToHost {
				err = errors.Join(err, m.host.Free(moves[i].Host))
			} else {
				err = errors.Join(err, m.device.Free(moves[i].Device))
			}
		}
		copy(moves, before)
		return err
	}
	for i := range moves {
		m := g.find(moves[i].Pool)
		if m == nil || moves[i].Source != "" {
			continue
		}
		given, missing := moves[i].Device, &moves[i].Host
		if d == ToDevice {
			given, missing = moves[i].Host, &moves[i].Device
		}
		n := given.Len()
		if n == 0 || len(*missing) > 0 {
			continue
		}
		list, err := m.alloc(d, n)
		if err != nil {
			return fail(err)
		}
		*missing = list
		taken = append(taken, i)
	}
	for i := range moves {
		if moves[i].Source == "" || g.find(moves[i].Pool) == nil {
			continue
		}
		source := g.sourceOf(moves[i].Source, full, moves)
		if source == nil {
			return fail(&MissingSourceError{Pool: moves[i].Pool, Source: moves[i].Source})
		}
		moves[i].Device, moves[i].Host = source.Device, source.Host
	}
	return nil
}

func (g *HostGroup) sourceOf(name string, full Move, moves []Move) *Move {
	if name == g.anchor.Name() && full.Device.Len()+full.Host.Len() > 0 {
		return &full
	}
	for i := range moves {
		if moves[i].Pool == name && moves[i].Source == "" {
			return &moves[i]
		}
	}
	return nil
}

// alloc allocates on the side that the direction fills: it tries, evicts what is
// missing, and tries once more.
func (m *member) alloc(d Direction, n int) (tree.Slots, error) {
	alloc, evict := m.device.Alloc, m.device.Evict
	if d == ToHost {
		alloc, evict = m.host.Alloc, m.evictor
	}
	if alloc == nil {
		return nil, &ArgumentError{Op: "Resolve", Field: "moves", Problem: fmt.Sprintf("pool %s has no device side", m.name)}
	}
	list, err := alloc(n)
	var short *ExhaustedError
	if !errors.As(err, &short) || evict == nil {
		return list, err
	}
	if err := evict(short.Want - short.Free); err != nil {
		return nil, err
	}
	return alloc(n)
}
