// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/treecore/treecore/tree"
)

func newEngine(t testing.TB, o EngineOptions) *Engine {
	t.Helper()
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func start(t testing.TB, e *Engine, d Direction) int64 {
	t.Helper()
	id, err := e.Start(context.Background(), Copy{Direction: d, Parts: []Part{{Device: tree.Numbered(1, 1), Host: tree.Numbered(0, 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func ids(acks []Ack) []int64 {
	var list []int64
	for _, a := range acks {
		list = append(list, a.ID)
	}
	return list
}

func nothing(context.Context, Copy) error { return nil }

// X-CT-1, X-CT-2: acknowledgements come in starting order, each direction by
// itself, whatever ends first.
func TestAcksInStartingOrder(t *testing.T) {
	e := newEngine(t, EngineOptions{Copy: nothing, Manual: true})
	a, b, c := start(t, e, ToHost), start(t, e, ToHost), start(t, e, ToHost)
	other := start(t, e, ToDevice)
	if !e.Complete(c) || !e.Complete(b) || !e.Complete(other) || e.Complete(b) || e.Complete(99) {
		t.Fatal("completion")
	}
	if n := e.Finished(ToHost); n != 0 || e.Take(ToHost, 9) != nil {
		t.Fatalf("%d are finished in a row although the first is not", n)
	}
	if got := ids(e.Take(ToDevice, 9)); !slices.Equal(got, []int64{other}) {
		t.Fatalf("the other direction: %v", got)
	}
	e.Complete(a)
	if got := ids(e.Take(ToHost, 2)); !slices.Equal(got, []int64{a, b}) {
		t.Fatalf("%v", got)
	}
	if got := ids(e.Take(ToHost, 2)); !slices.Equal(got, []int64{c}) || e.InFlight(ToHost) != 0 {
		t.Fatalf("%v, %d in flight", got, e.InFlight(ToHost))
	}
}

// With workers, too, and with copies that take their time.
func TestWorkersKeepOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, 500)
	for i := range delays {
		delays[i] = time.Duration(random.IntN(200)) * time.Microsecond
	}
	e := newEngine(t, EngineOptions{Workers: 4, Queue: 8, Copy: func(_ context.Context, c Copy) error {
		_, s := c.Parts[0].Device.At(0)
		time.Sleep(delays[s])
		return nil
	}})
	var started, got []int64
	for i := range 400 {
		d := Direction(i % 2)
		id, err := e.Start(context.Background(), Copy{Direction: d, Parts: []Part{{Device: tree.Numbered(tree.Slot(i), 1), Host: tree.Numbered(0, 1)}}})
		if err != nil {
			t.Fatal(err)
		}
		if d == ToHost {
			started = append(started, id)
		}
		got = append(got, ids(e.Take(ToHost, e.Finished(ToHost)))...)
	}
	for _, d := range []Direction{ToHost, ToDevice} {
		if err := e.Wait(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
	got = append(got, ids(e.Take(ToHost, 1000))...)
	if !slices.Equal(got, started) {
		t.Fatalf("acknowledged %v, started %v", got, started)
	}
}

// A full queue makes Start wait; the wait ends with the context, and nothing was
// started then.
func TestBackPressure(t *testing.T) {
	gate := make(chan struct{})
	waited := 0
	e := newEngine(t, EngineOptions{Workers: 1, Queue: 2, Waited: func(int64) { waited++ }, Copy: func(ctx context.Context, _ Copy) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	start(t, e, ToHost)
	start(t, e, ToHost)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Start(ctx, Copy{}); !errors.Is(err, context.DeadlineExceeded) || e.InFlight(ToHost) != 2 || waited != 1 {
		t.Fatalf("%v, %d in flight, waited %d times", err, e.InFlight(ToHost), waited)
	}
	if err := e.Wait(ctx, ToHost); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	start(t, e, ToDevice) // the other direction has room
	close(gate)
	start(t, e, ToHost)
	if err := e.Wait(context.Background(), ToHost); err != nil || len(e.Take(ToHost, 9)) != 3 {
		t.Fatalf("%v", err)
	}

	manual := newEngine(t, EngineOptions{Queue: 2, Manual: true, Copy: nothing})
	for range 5 {
		start(t, manual, ToHost)
	}
	if n := manual.Finished(ToHost); n != 3 {
		t.Fatalf("%d ended for want of room, want 3", n)
	}
}

// A copy that is cancelled, fails, or is cut off by Close says so.
func TestCopyErrors(t *testing.T) {
	begun := make(chan struct{}, 9)
	e := newEngine(t, EngineOptions{Workers: 1, Copy: func(ctx context.Context, c Copy) error {
		begun <- struct{}{}
		if c.Direction == ToDevice {
			return errors.New("broken")
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	running, waiting, failing := start(t, e, ToHost), start(t, e, ToHost), start(t, e, ToDevice)
	<-begun
	if !e.Cancel(waiting) || !e.Cancel(running) || e.Cancel(99) {
		t.Fatal("cancel")
	}
	if err := errors.Join(e.Wait(context.Background(), ToHost), e.Wait(context.Background(), ToDevice)); err != nil {
		t.Fatal(err)
	}
	for _, a := range e.Take(ToHost, 2) {
		if !errors.Is(a.Err, context.Canceled) {
			t.Errorf("copy %d: %v", a.ID, a.Err)
		}
	}
	if a := e.Take(ToDevice, 1); a[0].ID != failing || a[0].Err == nil {
		t.Errorf("%+v", a)
	}
	start(t, e, ToHost)
	<-begun // of the failing one
	<-begun
	e.Close()
	e.Close()
	if a := e.Take(ToHost, 1); len(a) != 1 || !errors.Is(a[0].Err, context.Canceled) {
		t.Errorf("after close: %+v", a)
	}
	if _, err := e.Start(context.Background(), Copy{}); err == nil {
		t.Error("a closed engine starts copies")
	}

	manual := newEngine(t, EngineOptions{Manual: true, Copy: nothing})
	id := start(t, manual, ToHost)
	manual.Cancel(id)
	manual.Complete(id)
	if a := manual.Take(ToHost, 1); !errors.Is(a[0].Err, context.Canceled) {
		t.Errorf("%+v", a)
	}
	start(t, manual, ToHost)
	manual.Close()
	if a := manual.Take(ToHost, 1); len(a) != 1 || a[0].Err == nil {
		t.Errorf("%+v", a)
	}
}

func TestEngineArguments(t *testing.T) {
	var argument *ArgumentError
	for _, o := range []EngineOptions{{}, {Copy: nothing, Workers: -1}, {Copy: nothing, Queue: -1}} {
		if _, err := NewEngine(o); !errors.As(err, &argument) {
			t.Errorf("%v", err)
		}
	}
	e := newEngine(t, EngineOptions{Copy: nothing})
	for _, c := range []Copy{{Direction: 2}, {Parts: []Part{{Device: tree.Numbered(1, 2), Host: tree.Numbered(0, 1)}}}} {
		if _, err := e.Start(context.Background(), c); !errors.As(err, &argument) {
			t.Errorf("%v", err)
		}
	}
}

// The engine moves real bytes: many copies at once, each to slots of its own.
func TestEngineMovesBytes(t *testing.T) {
	m := newMemories(t, 2000, 64)
	e := newEngine(t, EngineOptions{Workers: 4, Queue: 16, Copy: m.Copy})
	for s := range tree.Slot(1000) {
		m.Device[tree.SWA].SetStamp(s, uint64(s)*7)
	}
	for i := range 100 {
		at := tree.Slot(i * 10)
		if _, err := e.Start(context.Background(), Copy{Parts: []Part{{Component: tree.SWA, Device: tree.Numbered(at, 10), Host: tree.Numbered(990-at, 10)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Wait(context.Background(), ToHost); err != nil {
		t.Fatal(err)
	}
	for _, a := range e.Take(ToHost, 100) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for s := range tree.Slot(1000) {
		if got, want := m.Host[tree.SWA].Stamp(990-s/10*10+s%10), uint64(s)*7; got != want {
			t.Fatalf("slot %d came over as %d, want %d", s, got, want)
		}
	}
}
