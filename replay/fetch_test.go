// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// watched is a context that ends when too much waits to happen.
type watched struct {
	context.Context
	events *eventQueue
}

var errFlood = errors.New("events breed events")

func (w watched) Err() error {
	if w.events.Len() > 10_000 {
		return errFlood
	}
	return w.Context.Err()
}

// Many wait for storage while copies to the host come one after the other: a look
// at them all is one look, and asks for one more.
func TestManyWaitForStorage(t *testing.T) {
	var lines []string
	for k := range 8 { // these wait, and what follows is too short to be looked up
		lines = append(lines, tokensLine(1000*k+1, 1000*k+40, 1, `, "timestamp": 0`))
	}
	for k := range 100 {
		lines = append(lines, tokensLine(10*k+10_001, 10*k+10_008, 1, `, "timestamp": 0`))
	}
	w := prompts(t, lines...)
	o := Options{
		Profile: tiny("full", 0, 0), DeviceBytes: 2000, HostBytes: 2000, Chunk: 8, PrefillRate: 100, DecodeRate: 1e6,
		HostBandwidth: 1e3, PrefetchPolicy: "wait-complete", PrefetchThreshold: 8,
		Storage: folder(t), StorageBandwidth: 1e3, StorageLatency: 5 * time.Second,
	}
	for _, latency := range []time.Duration{200 * time.Millisecond, -1} {
		if o.HostLatency = latency; latency < 0 {
			// A copy that takes no time, begun by a step that ends with a lookup.
			o.HostBandwidth, o.StorageLatency = 1e15, 40*time.Millisecond
			o.Storage = folder(t)
		}
		run, err := prepare(context.Background(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.run(watched{context.Background(), &run.driver.events})
		if err != nil || r.RequestsDone != len(lines) || r.Host.Backups == 0 {
			t.Errorf("copies of %v: %+v, %v", latency, r, err)
		}
	}
}

// Who is told that the store is full can do something about it.
func TestRemarkOfAFullStore(t *testing.T) {
	for _, c := range []struct {
		bytes, evicted int64
		want           string
	}{{900, 5, "its cap of"}, {400, 5, "the disk is full"}, {900, 0, ""}} {
		s := Storage{Store: StoreStats{Bytes: c.bytes, CapBytes: 1000, Evicted: uint64(c.evicted)}}
		s.remark(&Options{}, 1)
		if got := strings.Join(s.Remarks, ";"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d of 1000 bytes, %d evicted: %q, want %q", c.bytes, c.evicted, got, c.want)
		}
	}
}
