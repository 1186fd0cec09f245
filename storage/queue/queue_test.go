// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type rig struct {
	*testing.T
	store  *storagetest.Memory
	faulty *storage.Faulty
	queue  *queue.Queue
}

func newRig(t *testing.T, o queue.Options) *rig {
	store := storagetest.NewMemory(storagetest.Fingerprint())
	r := &rig{T: t, store: store, faulty: storage.WithFaults(store)}
	if o.Store == nil {
		o.Store = r.faulty
	}
	r.queue = queue.New(o)
	t.Cleanup(func() {
		if err := r.queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func digests(n int) []tree.Digest {
	out := make([]tree.Digest, n)
	for i := range out {
		out[i][0], out[i][1] = byte(i), byte(i>>8)
	}
	return out
}

// pages is a batch of n pages whose bytes are their number and a mark.
func pages(pool string, n int, mark byte) queue.Batch {
	b := queue.Batch{Pool: pool, Pages: digests(n)}
	for i := range n {
		b.Bytes = append(b.Bytes, []byte{byte(i), mark})
	}
	return b
}

func (r *rig) wait(k queue.Kind) {
	r.Helper()
	if err := r.queue.Wait(context.Background(), k); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) put(n int) {
	r.Helper()
	r.queue.Write(pages("full", n, 1), []queue.Batch{pages("swa", n, 2)})
	r.wait(queue.Write)
	for _, o := range r.queue.Take(queue.Write, 1) {
		if full, aux := o.Progress(); !o.Complete() || full != n || aux[0] != n || o.Err() != nil {
			r.Fatalf("wrote %d and %v of %d: %v", full, aux, n, o.Err())
		}
	}
}

func TestWhatWasWrittenIsFoundAndRead(t *testing.T) {
	for _, manual := range []bool{false, true} {
		r := newRig(t, queue.Options{Manual: manual, Batch: 3})
		r.put(8)
		o := r.queue.Lookup(func() []tree.Digest { return digests(9) }, []storage.Need{{Pool: "swa", Policy: storage.TrailingPages, Trailing: 2}})
		r.wait(queue.Lookup)
		hashes, found := o.Found()
		if len(hashes) != 9 || found.Usable != 8 || o.Err() != nil {
			t.Fatalf("%d hashes, %+v, %v", len(hashes), found, o.Err())
		}
		full, window := pages("full", 8, 0), queue.Batch{Pool: "swa", Pages: digests(8)[6:], Bytes: [][]byte{make([]byte, 2), make([]byte, 2)}}
		for _, b := range full.Bytes {
			b[0] = 99
		}
		o = r.queue.Read(full, []queue.Batch{window})
		r.wait(queue.Read)
		if !o.Complete() {
			t.Fatal(o.Err())
		}
		for i, b := range full.Bytes {
			if int(b[0]) != i || b[1] != 1 {
				t.Errorf("page %d holds %v", i, b)
			}
		}
		if window.Bytes[0][0] != 6 || window.Bytes[1][1] != 2 {
			t.Errorf("the window holds %v", window.Bytes)
		}
	}
}

// A page that is missing ends a read, and then nothing else is read; a page that
// cannot be written ends a write of its pool (rules PF-16, ST-13).
func TestTheFirstPageThatFailsIsTheEnd(t *testing.T) {
	r := newRig(t, queue.Options{Manual: true, Batch: 2})
	r.put(8)
	third := digests(8)[3]
	if err := r.store.Delete(context.Background(), []storage.Key{{Page: third, Pool: "full"}}); err != nil {
		t.Fatal(err)
	}
	o := r.queue.Read(pages("full", 8, 0), []queue.Batch{pages("swa", 8, 0)})
	r.wait(queue.Read)
	if full, aux := o.Progress(); full != 3 || aux[0] != 0 || o.Complete() || o.Err() != nil || !o.Ended() {
		t.Errorf("read %d and %v, %v", full, aux, o.Err())
	}
	r.faulty.Set(storage.Fault{When: storage.OnPool("other"), Fail: true, Kind: storage.NoSpace, After: 1})
	o = r.queue.Write(pages("other", 8, 0), []queue.Batch{pages("swa", 8, 0)})
	r.wait(queue.Write)
	var failure *storage.Error
	if full, aux := o.Progress(); full != 1 || aux[0] != 8 || o.Complete() || !errors.As(o.Err(), &failure) {
		t.Errorf("wrote %d and %v, %v", full, aux, o.Err())
	}
}

// held is a store whose calls wait, whatever their context says.
type held struct {
	storage.Store
	began chan struct{}
	over  chan struct{}
}

func (h *held) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	h.began <- struct{}{}
	<-h.over
	return h.Store.Get(context.WithoutCancel(ctx), keys, into)
}

// CT-12: what ended early waits for what was started before. And after a stop no
// page counts that comes later.
func TestOrderAndStop(t *testing.T) {
	h := &held{began: make(chan struct{}, 2), over: make(chan struct{}, 2)}
	r := newRig(t, queue.Options{Store: h})
	h.Store = r.store
	r.put(4)
	first := r.queue.Read(pages("full", 4, 0), nil)
	<-h.began
	second := r.queue.Read(pages("full", 4, 0), nil)
	<-h.began
	if n := r.queue.Finished(queue.Read); n != 0 || r.queue.InFlight(queue.Read) != 2 {
		t.Fatalf("%d have ended", n)
	}
	if n := first.Stop(); n != 0 {
		t.Errorf("%d pages before the stop", n)
	}
	h.over <- struct{}{}
	h.over <- struct{}{}
	r.wait(queue.Read)
	if n, _ := first.Progress(); n != 0 || first.Complete() {
		t.Errorf("%d pages count after the stop", n)
	}
	taken := r.queue.Take(queue.Read, 5)
	if len(taken) != 2 || taken[0] != first || taken[1] != second || !second.Complete() {
		t.Errorf("taken %v", taken)
	}
	close(h.over)
}

// X-AT-6: a store that does not return keeps the queue from closing; later it
// closes.
func TestCloseWithAHangingStore(t *testing.T) {
	h := &held{began: make(chan struct{}, 1), over: make(chan struct{})}
	r := newRig(t, queue.Options{Store: h})
	h.Store = r.store
	o := r.queue.Read(pages("full", 1, 0), nil)
	<-h.began
	soon, cancel := context.WithCancel(context.Background())
	cancel()
	var stuck *queue.StuckError
	if err := r.queue.Close(soon); !errors.As(err, &stuck) || stuck.Operations != 1 || o.Ended() {
		t.Fatalf("%v", err)
	}
	late := r.queue.Write(pages("full", 1, 0), nil)
	if !late.Ended() || late.Err() == nil {
		t.Error("a closed queue began a write")
	}
	close(h.over)
	if err := r.queue.Close(context.Background()); err != nil || !o.Ended() {
		t.Fatalf("%v", err)
	}
}

type panicking struct{ storage.Store }

func (panicking) Exists(context.Context, []storage.Key) ([]bool, error) { panic("no such thing") }

// FL-23.
func TestAPanicIsAnAnswer(t *testing.T) {
	r := newRig(t, queue.Options{Store: panicking{}})
	o := r.queue.Lookup(func() []tree.Digest { return digests(1) }, nil)
	r.wait(queue.Lookup)
	var e *queue.PanicError
	if !errors.As(o.Err(), &e) || !r.queue.Panicked() {
		t.Errorf("%v", o.Err())
	}
}

// Writes that pile up delay no read, and all of them are done (FL-18).
func TestKindsHaveLinesOfTheirOwn(t *testing.T) {
	r := newRig(t, queue.Options{Workers: 1})
	r.put(1)
	over := make(chan struct{})
	r.faulty.Set(storage.Fault{When: storage.On(storage.OpPut), Hold: over})
	for range 100 {
		r.queue.Write(pages("full", 4, 1), nil)
	}
	o := r.queue.Read(pages("full", 1, 0), nil)
	r.wait(queue.Read)
	if !o.Complete() || r.queue.Finished(queue.Write) != 0 {
		t.Fatal("the read waited for the writes")
	}
	close(over)
	r.wait(queue.Write)
	for _, o := range r.queue.Take(queue.Write, 100) {
		if !o.Complete() {
			t.Fatal(o.Err())
		}
	}
}

func TestManualOperationsRunWhenTold(t *testing.T) {
	var started []int64
	var lock sync.Mutex
	r := newRig(t, queue.Options{Manual: true, Started: func(o *queue.Operation) {
		lock.Lock()
		defer lock.Unlock()
		started = append(started, o.ID())
	}})
	a, b := r.queue.Write(pages("full", 1, 1), nil), r.queue.Write(pages("full", 1, 1), nil)
	if !r.queue.Complete(b.ID()) || r.queue.Complete(b.ID()) || a.Ended() || r.queue.Finished(queue.Write) != 0 {
		t.Fatal("the second is not the one that ended")
	}
	if !r.queue.Complete(a.ID()) || r.queue.Finished(queue.Write) != 2 || len(started) != 2 {
		t.Fatal("not both have ended")
	}
}

// X-AT-8, and the ends of the range.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		timeout queue.Timeout
		tokens  int
		want    time.Duration
	}{
		{queue.Timeout{}, 0, time.Second},
		{queue.Timeout{}, 4096, 2 * time.Second},
		{queue.Timeout{Base: -1}, 64, 15_625 * time.Microsecond},
		{queue.Timeout{Base: -1, PerKiToken: -1}, 1 << 20, 0},
		{queue.Timeout{PerKiToken: math.MaxInt64}, 1 << 20, math.MaxInt64},
	} {
		if got := c.timeout.For(c.tokens); got != c.want {
			t.Errorf("%+v for %d tokens: %v, want %v", c.timeout, c.tokens, got, c.want)
		}
	}
}

// Options that make no sense do not keep operations waiting for ever.
func TestDefaults(t *testing.T) {
	r := newRig(t, queue.Options{Workers: -1, Batch: -1})
	w := r.queue.Write(pages("full", 3, 1), nil)
	if err := r.queue.Wait(context.Background(), queue.Write); err != nil || !w.Complete() {
		t.Errorf("%v, complete %v, %v", err, w.Complete(), w.Err())
	}
}

// A kind that is none has no operations, and fewer than none are not taken.
func TestUnknownKind(t *testing.T) {
	r := newRig(t, queue.Options{Manual: true})
	w := r.queue.Write(pages("full", 3, 1), nil)
	for _, k := range []queue.Kind{queue.NumKinds, math.MaxUint8} {
		if n, m := r.queue.InFlight(k), r.queue.Finished(k); n != 0 || m != 0 {
			t.Errorf("%v: %d in flight, %d finished", k, n, m)
		}
		if got := r.queue.Take(k, 1); len(got) != 0 {
			t.Errorf("%v: took %d", k, len(got))
		}
		if err := r.queue.Wait(context.Background(), k); err != nil || w.Ended() {
			t.Errorf("%v: %v", k, err)
		}
	}
	r.queue.Complete(w.ID())
	if got := r.queue.Take(queue.Write, -1); len(got) != 0 || r.queue.InFlight(queue.Write) != 1 {
		t.Errorf("took %d, %d are left", len(got), r.queue.InFlight(queue.Write))
	}
}
