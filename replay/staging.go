// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/storage/queue"
)

// BufferOnly is the write policy under which the host is a staging area between
// device and storage, and no tier.
const BufferOnly = "buffer-only"

// mostFetches is how often what a request lacks is fetched again after what was
// fetched was lost, while it stands in line.
const mostFetches = 2

// Staging says what happened where the host is a staging area.
type Staging struct {
	// DroppedWriteTokens were not written: their node had gone or was split, what
	// it goes on from is not in storage, or it could never be staged.
	DroppedWriteTokens int64 `json:"dropped_write_tokens"`
	BacklogOverflows   int64 `json:"backlog_overflows"` // nodes
	Parked             int64 `json:"parked"`            // fetches that waited for room to be read
	RevokedBaseGone    int64 `json:"revoked_base_gone"` // before they were read
	RevokedCovered     int64 `json:"revoked_covered"`   // the device got all of it meanwhile
	Splices            int64 `json:"splices"`           // fetches that were put on the device
	DeferredSplices    int64 `json:"deferred_splices"`  // admissions that found no room for one
	Holds              Holds `json:"holds_dropped"`
	PinsGivenUp        int64 `json:"pins_given_up"`
}

// Holds counts fetches that were complete and dropped, by reason.
type Holds struct {
	Covered        int64 `json:"covered"`         // the device had all of it
	BaseGone       int64 `json:"base_gone"`       // what it goes on from had left the device
	DeviceCapacity int64 `json:"device_capacity"` // too many admissions found no room for it
	RequestGone    int64 `json:"request_gone"`    // its request, or the store, had ended
}

func stagingReport(o *Options, s *cache.StorageStats) *Staging {
	if !o.bufferOnly {
		return nil
	}
	return &Staging{
		DroppedWriteTokens: s.DroppedWriteTokens, BacklogOverflows: s.BacklogOverflows, Parked: s.Parked,
		RevokedBaseGone: s.RevokedBaseGone, RevokedCovered: s.RevokedCovered,
		Splices: s.Splices, DeferredSplices: s.DeferredSplices, PinsGivenUp: s.PinsGivenUp,
		Holds: Holds{Covered: s.HoldsCovered, BaseGone: s.HoldsShrunk, DeviceCapacity: s.HoldsDeviceCapacity, RequestGone: s.HoldsDropped},
	}
}

// table says what happened in the staging area.
func (s *Staging) table() table.Writer {
	t := newTable("staging", "")
	row := func(name string, n int64) { t.AppendRow(table.Row{name, grouped(n)}) }
	row("tokens not written", s.DroppedWriteTokens)
	row("fetches that waited for room to be read", s.Parked)
	row("put on the device", s.Splices)
	row("admissions that found no room for one", s.DeferredSplices)
	row("dropped: the device had it", s.Holds.Covered)
	row("dropped: what it goes on from had gone", s.Holds.BaseGone)
	row("dropped: no room on the device", s.Holds.DeviceCapacity)
	row("dropped: its request had gone", s.Holds.RequestGone)
	row("paths left to eviction for running requests", s.PinsGivenUp)
	return t
}

// completeWritePolicy reads the write policy and gives all problems.
func (o *Options) completeWritePolicy() (problems []error) {
	if strings.ReplaceAll(o.WritePolicy, "_", "-") != BufferOnly {
		var err error
		if o.writePolicy, err = cache.ParseWritePolicy(o.WritePolicy); err != nil {
			problems = append(problems, fmt.Errorf("%w, or %s", err, BufferOnly))
		}
		return problems
	}
	o.writePolicy, o.bufferOnly = cache.WriteThrough, true
	if o.HostBytes == 0 {
		problems = append(problems, errors.New("write policy buffer-only stages on the host what goes to storage and comes from it: give host bytes, too"))
	}
	if o.Storage == "" {
		problems = append(problems, errors.New("write policy buffer-only keeps nothing on the host, and needs storage behind it: name a store, too"))
	}
	if o.Profile.Mamba != nil {
		problems = append(problems, fmt.Errorf("write policy buffer-only does not serve model %s, which has recurrent states: take another write policy, or a model without", o.Profile.Name))
	}
	return problems
}

func (o *Options) writePolicyName() string {
	if o.bufferOnly {
		return BufferOnly
	}
	return o.writePolicy.String()
}

// stage lets the cache begin, at the end of each moment, the copies and reads that
// have room now.
func (d *driver) stage() error {
	if !d.o.bufferOnly {
		return nil
	}
	d.shelf.now = d.now
	if err := d.shelf.tick(d.cache.c); err != nil {
		return err
	}
	return d.giveWay()
}

// giveWay lets a request go on without what it waits for, where nothing is on its
// way that could bring it room: in strict order those behind it may have all of
// the staging area.
func (d *driver) giveWay() error {
	if len(d.running)+len(d.step) > 0 || d.link.busy() || d.shelf.busyNow() {
		return nil
	}
	j := d.line.first()
	if j == nil && len(d.aside) > 0 {
		j = d.aside[0]
	}
	if j == nil || !j.fetching || j.waiting == nil {
		return nil
	}
	if _, parked := j.waiting.Reading(); !parked {
		return nil
	}
	j.brought(j.waiting.Origin()) // so that what does not come is counted
	if err := d.leave(j); err != nil {
		return err
	}
	d.drop(j)
	d.arrived(j)
	if len(d.aside) > 0 && d.aside[0] == j {
		d.aside = d.aside[1:]
		d.line.join(j)
	}
	d.wakeUp(d.now)
	return nil
}

// wakeUp asks for a look at everything at a moment.
func (d *driver) wakeUp(at time.Duration) { d.events.schedule(event{at: at, kind: eventWake}) }

// lostBase reports whether an admission said that what was fetched is of no use,
// since what it goes on from has gone. Storage is asked again, but not without
// end: then the request goes on with what the device has.
func (d *driver) lostBase(j *job, err error) bool {
	var gone *cache.BaseGoneError
	if !errors.As(err, &gone) {
		return false
	}
	if j.dropped++; j.dropped <= mostFetches {
		j.asked = false
	}
	return true
}

// awaitCopies reports whether copies are on their way, whose ends let go of what
// they have locked on the device.
func (d *driver) awaitCopies() (bool, error) {
	if _, err := d.cache.c.StartLoading(); err != nil {
		return false, err
	}
	return d.link.busy(), nil
}

// finding is a job whose lookup was answered and whose read has not begun.
type finding struct {
	job   *job
	asked *cache.Request
	began time.Duration // its lookup
}

// tick lets the cache take note of what has ended. Where the host is a staging
// area that may begin any read which waited for room.
func (s *shelf) tick(c *cache.Cache) error {
	err := c.Tick()
	s.settle()
	return err
}

// settle finds out whose reads a tick has begun, and looks at those who need not
// wait any more.
func (s *shelf) settle() {
	if s == nil || !s.staging {
		return
	}
	still := s.found[:0]
	for _, f := range s.found {
		if f.job.waiting != f.asked {
			continue // it waits no more
		}
		read, parked := f.asked.Reading()
		i := slices.IndexFunc(s.flights[queue.Read], func(x errand) bool { return x.operation == read })
		switch {
		case parked:
			if over := f.began + s.timeout.For(0) + 1; s.stop == cache.WaitTimeout && over > s.now {
				s.wake(over)
			}
			still = append(still, f)
		case read == nil || i < 0:
			s.wake(s.now + 1)
		default:
			x := &s.flights[queue.Read][i]
			x.job = f.job
			full, _ := x.operation.Size()
			if over := f.began + s.timeout.For(full*s.page) + 1; s.stop == cache.WaitTimeout && over < x.end {
				s.wake(max(over, s.now+1))
			}
		}
	}
	s.found = still
}

// busyNow reports whether an operation is on its way.
func (s *shelf) busyNow() bool {
	n := 0
	for k := range s.flights {
		n += len(s.flights[k])
	}
	return n > 0
}
