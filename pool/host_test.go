// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newHost(t testing.TB, name string, size, page int) *Host {
	t.Helper()
	h, err := NewHost(name, size, page)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A host pool hands out slot 0, in whole pages of its own.
func TestHostPool(t *testing.T) {
	h := newHost(t, "full", 18, 4)
	if h.Size() != 16 || h.Available() != 16 || h.PageSize() != 4 || h.Name() != "full" {
		t.Fatalf("size %d, %d free", h.Size(), h.Available())
	}
	a, err := h.Alloc(8)
	if err != nil || !a.Equal(tree.Numbered(0, 8)) {
		t.Fatalf("%v %v", a, err)
	}
	b, err := h.Alloc(8)
	if err != nil || !b.Equal(tree.Numbered(8, 8)) {
		t.Fatalf("%v %v", b, err)
	}
	var short *ExhaustedError
	if _, err := h.Alloc(4); !errors.As(err, &short) || short.Want != 4 || short.Free != 0 {
		t.Fatalf("%v", err)
	}
	var argument *ArgumentError
	if _, err := h.Alloc(3); !errors.As(err, &argument) {
		t.Fatalf("%v", err)
	}
	if err := h.Free(tree.Numbered(0, 4)); err != nil || h.Available() != 4 {
		t.Fatalf("%v, %d free", err, h.Available())
	}
	if !h.FreeSlots().Equal(tree.Numbered(0, 4)) {
		t.Fatalf("%v", h.FreeSlots())
	}
	for _, list := range []tree.Slots{tree.Numbered(0, 1), tree.Numbered(2, 4), tree.Numbered(16, 1), {{First: 4, Length: 4}, {First: 4, Length: 4}}} {
		var wrong *FreeError
		if err := h.Free(list); !errors.As(err, &wrong) || h.Available() != 4 {
			t.Errorf("free %v: %v, %d free", list, err, h.Available())
		}
	}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	h.Clear()
	if h.Available() != 16 {
		t.Fatalf("%d free after clear", h.Available())
	}
}

// X-FL-6: a second free names the slot and changes nothing.
func TestHostDoubleFree(t *testing.T) {
	h := newHost(t, "full", 8, 1)
	if _, err := h.Alloc(8); err != nil {
		t.Fatal(err)
	}
	if err := h.Free(tree.SlotsOf(5)); err != nil {
		t.Fatal(err)
	}
	var wrong *FreeError
	if err := h.Free(tree.SlotsOf(5)); !errors.As(err, &wrong) || !wrong.Slots.Equal(tree.SlotsOf(5)) || h.Available() != 1 {
		t.Fatalf("%v, %d free", err, h.Available())
	}
}

// Slots may come back from several goroutines at once.
func TestHostPoolIsSynchronised(t *testing.T) {
	h := newHost(t, "full", 1024, 1)
	var wait sync.WaitGroup
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 200 {
				s, err := h.Alloc(7)
				if err == nil {
					err = h.Free(s)
				}
				if err != nil {
					t.Error(err)
				}
				h.Available()
			}
		}()
	}
	wait.Wait()
	if h.Available() != 1024 {
		t.Fatalf("%d free", h.Available())
	}
}

func TestGroupNamesAndSidecars(t *testing.T) {
	full, swa := newHost(t, "full", 8, 1), newHost(t, "swa", 4, 1)
	g := NewHostGroup(full, Device{}, nil)
	if err := g.Register(swa, Device{}, nil); err != nil {
		t.Fatal(err)
	}
	var argument *ArgumentError
	for _, err := range []error{
		g.Register(newHost(t, "swa", 4, 1), Device{}, nil), g.RegisterSidecar("full", "swa", 9),
		g.RegisterSidecar("indexer", "none", 9), g.RegisterSidecar("indexer", "full", 7),
	} {
		if !errors.As(err, &argument) {
			t.Errorf("%v", err)
		}
	}
	if err := g.RegisterSidecar("indexer", "full", 8); err != nil {
		t.Fatal(err)
	}
	s, err := g.Alloc(3)
	if err != nil || g.Available() != 5 || g.Size() != 8 || full.Available() != 5 || g.Pool("swa") != swa || g.Pool("x") != nil || g.Pool("indexer") != nil {
		t.Fatalf("%v, %d free", err, g.Available())
	}
	if err := g.Free(s); err != nil || g.Available() != 8 {
		t.Fatal(err)
	}
}

// X-AL-12: what one pool lacks rolls back what another gave.
func TestResolveRollsBack(t *testing.T) {
	full, swa := newHost(t, "full", 8, 1), newHost(t, "swa", 2, 1)
	asked := 0
	g := NewHostGroup(full, Device{}, nil)
	if err := g.Register(swa, Device{}, func(n int) error { asked += n; return nil }); err != nil {
		t.Fatal(err)
	}
	moves := []Move{{Pool: "full", Device: tree.Numbered(1, 8)}, {Pool: "swa", Device: tree.Numbered(1, 4)}}
	var short *ExhaustedError
	if err := g.Resolve(ToHost, Move{}, moves); !errors.As(err, &short) || short.Pool != "swa" {
		t.Fatalf("%v", err)
	}
	if full.Available() != 8 || swa.Available() != 2 || moves[0].Host != nil || moves[1].Host != nil {
		t.Fatalf("%d and %d free, moves %+v", full.Available(), swa.Available(), moves)
	}
	if asked != 2 {
		t.Errorf("eviction of %d was asked for, 2 are missing", asked)
	}
}

// X-AL-13: a sidecar whose source takes no part fails the copy.
func TestResolveMissingSource(t *testing.T) {
	full, swa := newHost(t, "full", 8, 1), newHost(t, "swa", 8, 1)
	g := NewHostGroup(full, Device{}, nil)
	if err := errors.Join(g.Register(swa, Device{}, nil), g.RegisterSidecar("draft", "swa", 8), g.RegisterSidecar("indexer", "full", 8)); err != nil {
		t.Fatal(err)
	}
	moves := []Move{{Pool: "full", Device: tree.Numbered(1, 4)}, {Pool: "draft", Source: "swa"}}
	var missing *MissingSourceError
	if err := g.Resolve(ToHost, Move{}, moves); !errors.As(err, &missing) || full.Available() != 8 || moves[0].Host != nil {
		t.Fatalf("%v, %d free, %+v", err, full.Available(), moves)
	}
	moves = []Move{
		{Pool: "swa", Device: tree.Numbered(1, 4)}, {Pool: "draft", Source: "swa"}, {Pool: "indexer", Source: "full"}, {Pool: "other", Device: tree.Numbered(1, 2)},
	}
	if err := g.Resolve(ToHost, Move{Pool: "full", Device: tree.Numbered(9, 2), Host: tree.Numbered(0, 2)}, moves); err != nil {
		t.Fatal(err)
	}
	if !moves[1].Host.Equal(moves[0].Host) || moves[0].Host.Len() != 4 || !moves[2].Host.Equal(tree.Numbered(0, 2)) || moves[3].Host != nil {
		t.Fatalf("%+v", moves)
	}
}

// To the device, the device side is allocated, after an eviction of what lacks.
func TestResolveToDevice(t *testing.T) {
	device, err := NewToken("full", 6)
	if err != nil {
		t.Fatal(err)
	}
	held, err := device.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	var asked []int
	g := NewHostGroup(newHost(t, "full", 8, 1), Device{Alloc: device.Alloc, Free: device.Free, Evict: func(n int) error {
		asked = append(asked, n)
		return device.Free(held.Slice(0, n))
	}}, nil)
	moves := []Move{{Pool: "full", Host: tree.Numbered(0, 3)}}
	if err := g.Resolve(ToDevice, Move{}, moves); err != nil || moves[0].Device.Len() != 3 || !slices.Equal(asked, []int{1}) {
		t.Fatalf("%v, %+v, asked for %v", err, moves, asked)
	}
}

func newMemories(t testing.TB, slots, each int) *Memories {
	t.Helper()
	m := &Memories{}
	for id := range tree.Component(tree.NumComponents) {
		for _, side := range []**Memory{&m.Device[id], &m.Host[id]} {
			x, err := NewMemory(slots, each)
			if err != nil {
				t.Fatal(err)
			}
			*side = x
		}
	}
	return m
}

// What is copied there and back, over any runs, is what was written.
func TestMemoryCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, each := range []int{8, 24, 1<<20 + 8} {
		slots := 64
		m := newMemories(t, slots, each)
		for s := range tree.Slot(slots) {
			m.Device[tree.Full].SetStamp(s, uint64(s)+1000)
			if each > 8 {
				m.Device[tree.Full].At(s)[each-1] = byte(s)
			}
		}
		pick := func() tree.Slots {
			var list []tree.Slot
			for _, s := range random.Perm(slots)[:20] {
				list = append(list, tree.Slot(s))
			}
			slices.Sort(list[:10])
			return tree.SlotsOf(list...)
		}
		from, over, back := pick(), pick(), pick()
		part := Part{Component: tree.Full, Device: from, Host: over}
		if err := m.Copy(context.Background(), Copy{Direction: ToHost, Parts: []Part{part}}); err != nil {
			t.Fatal(err)
		}
		want := make([]uint64, 20)
		for i := range want {
			_, s := from.At(i)
			want[i] = uint64(s) + 1000
		}
		if err := m.Copy(context.Background(), Copy{Direction: ToDevice, Parts: []Part{{Component: tree.Full, Device: back, Host: over}}}); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			_, s := back.At(i)
			if m.Device[tree.Full].Stamp(s) != want[i] {
				t.Fatalf("slot %d holds %d, want %d", s, m.Device[tree.Full].Stamp(s), want[i])
			}
			if each > 8 && m.Device[tree.Full].At(s)[each-1] != byte(want[i]-1000) {
				t.Fatalf("slot %d was copied in part", s)
			}
		}
	}
}

func TestMemoryErrors(t *testing.T) {
	var argument *ArgumentError
	if _, err := NewMemory(4, 7); !errors.As(err, &argument) {
		t.Errorf("%v", err)
	}
	if _, err := NewMemory(-1, 8); !errors.As(err, &argument) {
		t.Errorf("%v", err)
	}
	m := newMemories(t, 4, 8)
	for _, p := range []Part{
		{Component: tree.Full, Device: tree.Numbered(2, 3), Host: tree.Numbered(0, 3)},
		{Component: tree.Full, Device: tree.Numbered(0, 3), Host: tree.Numbered(0, 2)},
		{Component: 9, Device: tree.Numbered(0, 1), Host: tree.Numbered(0, 1)},
		{Component: tree.SWA, Device: tree.Slots{{Buffer: 1, First: 0, Length: 1}}, Host: tree.Numbered(0, 1)},
	} {
		if err := m.Copy(context.Background(), Copy{Direction: ToDevice, Parts: []Part{p}}); !errors.As(err, &argument) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := m.Copy(ctx, Copy{Parts: []Part{{Component: tree.Full, Device: tree.Numbered(0, 1), Host: tree.Numbered(0, 1)}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
