// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
	"github.com/treecore/treecore/workload"
)

// Run replays a workload and reports what happened. Options that are wrong are
// reported together in an *OptionsError, a device that is too small as a
// *model.TooSmallError inside of one; any other error is a failed run. A context
// that ends stops the run with the context's error.
func Run(ctx context.Context, w *workload.Workload, o Options) (*Report, error) {
	r, err := prepare(ctx, w, o)
	if err != nil {
		return nil, &OptionsError{Err: err}
	}
	return r.run(ctx)
}

// run is everything that a run consists of.
type run struct {
	w      *workload.Workload
	o      Options
	sizes  sizes
	meter  meter
	rec    *recorder
	driver *driver
	link   *link  // nil without a host tier
	shelf  *shelf // nil without a storage tier
	store  storage.Store
	stamps *stamps
}

// prepare builds a run. Its errors are about the options. A store is opened last:
// the run closes it.
func prepare(ctx context.Context, w *workload.Workload, o Options) (*run, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := checkSpan(w, &o); err != nil {
		return nil, err
	}
	r := &run{w: w, o: o}
	if r.sizes, err = newSizes(w, &o); err != nil {
		return nil, err
	}
	if o.HostBytes != 0 {
		r.link = newLink(&r.o)
	}
	r.stamps = &stamps{}
	var copyState func(from, to tree.Slot)
	if o.Storage != "" {
		copyState = r.stamps.copyState
	}
	r.meter.c, err = cache.New(cache.Options{
		Tree: tree.Options{
			Components: o.Profile.Components(), PageSize: o.PageSize, SlidingWindow: o.Profile.Window(),
			CheckpointGrid: o.Profile.Grid(o.PageSize), Policy: o.Policy,
		},
		Pools: r.sizes.pools, KeepOutOfWindow: o.KeepOutOfWindow, NoBranching: o.NoBranching,
		TrackBuffers: model.DefaultTrackBuffers, Host: hostOptions(&r.o, &r.sizes, r.link),
		CopyState: copyState,
	})
	if err != nil {
		return nil, err
	}
	r.rec = newRecorder(&r.o, &r.sizes, len(w.Requests))
	r.driver = newDriver(w, &r.o, r.sizes, &r.meter, r.rec)
	r.driver.link = r.link
	if o.bufferOnly {
		r.link.wake = r.driver.wakeUp
	}
	if err := r.attachStorage(ctx); err != nil {
		r.meter.c.Close()
		return nil, err
	}
	return r, nil
}

func (r *run) run(ctx context.Context) (x *Report, err error) {
	c := r.meter.c
	if r.store != nil {
		defer func() {
			if closed := r.store.Close(); err == nil && closed != nil {
				x, err = nil, fmt.Errorf("the store cannot be closed: %w", closed)
			}
		}()
	}
	defer c.Close()
	if r.o.OpLog != nil {
		if err := c.Tree().SetLog(r.o.OpLog); err != nil {
			return nil, fmt.Errorf("operation log: %w", err)
		}
		if r.link != nil { // so that the log says so, too
			if err := c.Tree().SetSwitches(c.Tree().Switches()); err != nil {
				return nil, err
			}
		}
	}
	bound := boundBeside(r.w, r.o.Bound)
	defer bound.stop()

	start := time.Now()
	if err := r.driver.drive(ctx); err != nil {
		return nil, err
	}
	wall := time.Since(start)

	if err := c.Sync(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(r.nothingLost(), r.stamps.err()); err != nil {
		return nil, err
	}
	r.rec.tree.measure(c.Tree())
	r.rec.timeline.close(r.rec.last, c, &r.sizes)
	if r.o.OpLog != nil {
		if err := c.Tree().SetLog(nil); err != nil {
			return nil, fmt.Errorf("operation log: %w", err)
		}
	}
	b, err := bound.wait(ctx)
	if err != nil {
		return nil, err
	}
	return report(r, b, wall), nil
}

// nothingLost makes sure that after the last request every slot is free or the
// tree's, and nothing is locked.
func (r *run) nothingLost() error {
	for id := tree.Full; id < tree.NumComponents; id++ {
		if u := r.meter.c.Usage(id); u.Held != 0 || u.Protected != 0 {
			return fmt.Errorf("after the last request %d %s slots are held and %d locked, want none: this is a fault of the program", u.Held, id, u.Protected)
		}
		if u := r.meter.c.HostUsage(id); u.Held != 0 {
			return fmt.Errorf("after the last request %d %s slots of the host are held, want none: this is a fault of the program", u.Held, id)
		}
	}
	return nil
}

// OptionsError says that a run cannot begin with its options.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }

// Unwrap returns the problem, or several joined.
func (e *OptionsError) Unwrap() error { return e.Err }

// checkSpan makes sure that virtual time does not run out of its type.
func checkSpan(w *workload.Workload, o *Options) error {
	var prompts, outputs, think float64
	for i := range w.Requests {
		r := &w.Requests[i]
		prompts += float64(r.InputLen)
		outputs += float64(r.OutputLen)
		think += r.Think.Seconds()
	}
	seconds := prompts/o.PrefillRate + outputs/o.DecodeRate + think
	if most := workload.MaxTime.Seconds(); seconds > most {
		return errors.New("at these rates the requests could take more than 100 years: raise the prefill and decode rates, or limit the requests")
	}
	return nil
}

// boundRun computes a bound beside a run, on a goroutine of its own.
type boundRun struct {
	quit chan struct{}
	done chan struct{}
	b    *Bound
	err  error
}

// boundBeside starts to compute the bound, if it is not at hand.
func boundBeside(w *workload.Workload, known *Bound) *boundRun {
	run := &boundRun{quit: make(chan struct{}), done: make(chan struct{}), b: known}
	if known != nil {
		close(run.done)
		return run
	}
	go func() {
		defer close(run.done)
		run.b, run.err = NewBound(w, run.quit)
	}()
	return run
}

// wait gives the bound.
func (r *boundRun) wait(ctx context.Context) (*Bound, error) {
	select {
	case <-r.done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop ends the goroutine.
func (r *boundRun) stop() {
	close(r.quit)
	<-r.done
}
