// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Host says what happened on the host tier. Units are tokens for Full and SWA,
// states for Mamba.
type Host struct {
	Bytes       *int64  `json:"bytes"` // null: unlimited
	WritePolicy string  `json:"write_policy"`
	Bandwidth   float64 `json:"bytes_per_second"`
	Latency     float64 `json:"latency_seconds"`
	Pools       Pools   `json:"pools"`

	Backups           int64            `json:"backups"`   // copies to the host
	BackedUp          map[string]int64 `json:"backed_up"` // units by component
	BackupsRefused    int64            `json:"backups_refused"`
	BytesToHost       int64            `json:"bytes_to_host"`
	LoadBacks         int64            `json:"load_backs"` // admissions that loaded something
	LoadedBack        map[string]int64 `json:"loaded_back"`
	LoadBacksGivenUp  int64            `json:"load_backs_given_up"`
	BytesToDevice     int64            `json:"bytes_to_device"`
	Evictions         map[string]int64 `json:"evictions"` // from the host
	Dropped           map[string]int64 `json:"dropped"`   // by write-back, for want of room on the host
	UnbackedEvictions int64            `json:"unbacked_evictions"`
	// StallSeconds is the simulated time for which calls waited for
	// copies: evictions under write-back for their own, others for locks of copies,
	// or of writes to storage.
	StallSeconds float64 `json:"stall_seconds"`
	// CouldHaveGiven are prompt tokens that were on the host and not loaded: too
	// few to be worth it, or no room for them on the device.
	CouldHaveGiven int64 `json:"could_have_given"`
}

// HostUse counts the slots of a component on the host.
type HostUse struct {
	Free   int `json:"free"`
	Cached int `json:"cached"`
}

// HostSample is the use of the host pools at a moment.
type HostSample struct {
	Full  HostUse  `json:"full"`
	SWA   *HostUse `json:"swa,omitempty"`
	Mamba *HostUse `json:"mamba,omitempty"`
}

func hostSample(c *cache.Cache, s *sizes) *HostSample {
	if c.Engine() == nil {
		return nil
	}
	use := func(id tree.Component, size int) HostUse {
		u := c.HostUsage(id)
		return HostUse{Free: u.Free + size - u.Size, Cached: u.Cached + u.Held}
	}
	x := &HostSample{Full: use(tree.Full, s.hostSize.Full)}
	if s.hostSize.SWA > 0 {
		u := use(tree.SWA, s.hostSize.SWA)
		x.SWA = &u
	}
	if s.hostSize.Mamba > 0 {
		u := use(tree.Mamba, s.hostSize.Mamba)
		x.Mamba = &u
	}
	return x
}

// hostOptions gives the cache its host tier, in virtual time; nil: none.
func hostOptions(o *Options, s *sizes, l *link) *cache.HostOptions {
	if o.HostBytes == 0 {
		return nil
	}
	return &cache.HostOptions{
		Pools: s.host, Policy: o.writePolicy, BufferOnly: o.bufferOnly, Manual: true, Queue: 1 << 20,
		Started: l.started, Waited: l.waited,
	}
}

func hostReport(run *run, x *Report) *Host {
	o, l := &run.o, run.driver.link
	if l == nil {
		return nil
	}
	s := run.meter.c.Stats()
	h := &Host{
		WritePolicy: o.writePolicyName(), Bandwidth: o.HostBandwidth, Latency: o.HostLatency.Seconds(),
		Pools:   Pools{Full: run.sizes.hostSize.Full, SWA: run.sizes.hostSize.SWA, Mamba: run.sizes.hostSize.Mamba},
		Backups: s.Backups, BackedUp: byComponent(o, s.BackedUp), BackupsRefused: s.BackupsRefused,
		BytesToHost: int64(l.moved[pool.ToHost]), LoadBacks: s.LoadBacks, LoadedBack: byComponent(o, s.LoadedBack),
		LoadBacksGivenUp: s.LoadBacksGivenUp, BytesToDevice: int64(l.moved[pool.ToDevice]),
		Evictions: byComponent(o, s.HostEvicted), Dropped: byComponent(o, s.DroppedHostPressure),
		UnbackedEvictions: s.Unbacked, StallSeconds: l.stalled.Seconds(),
		CouldHaveGiven: x.MissesByReason[tree.ReasonHostOnly.String()],
	}
	if o.HostBytes != model.Unlimited {
		h.Bytes = &o.HostBytes
	}
	return h
}

func (h *Host) text() string {
	size := "unlimited"
	if h.Bytes != nil {
		size = model.FormatSize(*h.Bytes)
	}
	return size
}

func (r *Report) hostTable() table.Writer {
	h := r.Host
	t := newTable("host", "slots", "backed up", "loaded back", "evicted", "dropped", "use at the end")
	for id := tree.Full; id < tree.NumComponents; id++ {
		slots := [...]int{h.Pools.Full, h.Pools.SWA, h.Pools.Mamba}[id]
		if slots == 0 {
			continue
		}
		name, used := id.String(), 0
		if n := len(r.Occupancy); n > 0 && r.Occupancy[n-1].Host != nil {
			x := r.Occupancy[n-1].Host
			use := [...]*HostUse{&x.Full, x.SWA, x.Mamba}[id]
			used = use.Cached
		}
		t.AppendRow(table.Row{
			name, grouped(int64(slots)), grouped(h.BackedUp[name]), grouped(h.LoadedBack[name]), grouped(h.Evictions[name]),
			grouped(h.Dropped[name]), percent(share(int64(used), int64(slots))),
		})
	}
	return t
}
