// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"github.com/treecore/treecore/pool"
	"github.com/treecore/treecore/tree"
)

// Stats counts what a cache did since it was made. Units are tokens for Full
// and SWA, states for Mamba.
type Stats struct {
	Requests, Matches, Inserts int64

	ReusedTokens   int64 // of prompts, at admission
	ReusedFromHost int64 // those of them that were loaded back for it
	// ReusedFromStorage are those that were fetched from the store for it.
	ReusedFromStorage int64
	ComputedTokens    int64 // of prompts
	DecodedTokens     int64

	Evicted       tree.Units // by eviction and early release
	Tombstones    tree.Units // nodes that lost only this component (and what hangs on it)
	Leaves        int64      // nodes evicted whole
	EvictionWalks int64
	EvictionTime  int64 // nanoseconds, with Options.Now

	DuplicatesFreed   int64 // Full slots that turned out to be copies
	OutOfWindowFreed  int64 // SWA slots of requests that left the window
	EarlyReleases     int64 // window locks given back before the request's end
	PathStatesDropped int64 // states beyond MaxStatesPerPath

	BranchesSeen, BranchesInserted tree.Units // branch points, by the component they are for

	StatesCached   int64 // checkpoints that the tree took
	StatesExisting int64 // checkpoints that the tree had already
	// StatesNotKept counts chunks that were not cached because no state slot
	// was to be had, and checkpoints dropped so that a request could go on.
	StatesNotKept int64
	// ReuseGivenUp counts admissions that started from nothing because the
	// lock on what they matched would have left no room in the SWA pool.
	ReuseGivenUp int64
	// ShortRematches counts inserts after which the request went on from a
	// node where nobody else could resume.
	ShortRematches int64

	Retractions, Restores int64
	RetractionsRefused    int64 // for lack of room on the host

	// With a host tier. Units and bytes count when a copy has ended, bytes with
	// the slot sizes of HostOptions.
	Backups, LoadBacks               int64 // copies that ended well; loads of one batch count one by one
	BackedUp, LoadedBack             tree.Units
	BackedUpBytes, LoadedBackBytes   int64
	BackupTime, LoadBackTime         int64 // nanoseconds of copying, with Options.Now; failed copies count
	BackupsRefused, LoadBacksGivenUp int64 // for lack of room; load backs also for being too small
	CopiesFailed                     int64
	HostEvicted                      tree.Units // on the host, duplicates too
	// DroppedHostPressure are units that write-back had to drop because the host
	// had no room for them; DropsDeclined are victims that a lock kept.
	DroppedHostPressure tree.Units
	DropsDeclined       int64
	Unbacked            int64 // evicted Full tokens that were never on the host

	Storage StorageStats
}

// StorageStats counts what the storage tier did (rules MX-4 to MX-6).
type StorageStats struct {
	Attempts, Issued    int64 // prefetches that were asked for, and that were begun
	DeclinedTooShort    int64
	DeclinedRateLimited int64
	DeclinedUnbacked    int64 // what they would go under has no host copy
	RevokedInsufficient int64 // the store had too little
	RevokedFullMiss     int64 // it had nothing
	RevokedNoRoom       int64 // the host had none
	RevokedUnanswered   int64 // the request did not wait for the answer
	RefillsDropped      int64 // what they went under had lost its host copy
	StaleAnswers        int64 // lookups that ended after their request
	LookupsFailed       int64
	ReadsFailed         int64

	PrefetchedTokens     int64 // that the tree did not have
	LostTokens           int64 // that were found and did not come
	AuxAllocFailedTokens int64 // of prefetches given up for want of room for a window or a state

	// Of the lookups that were answered: how many, what they asked for, what the
	// store did not have, the whole prompts, the sum of missed shares of the prompt,
	// and that of missed shares of the request weighted by the prompt.
	DemandRequests, DemandTokens, MissTokens, DemandTotalTokens int64
	MissRateSum, MissRateWeighted                               float64

	Writes, WritesFailed, WrittenTokens int64
	HashesBackfilled                    int64

	// The rest counts with HostOptions.BufferOnly only.

	// DroppedWriteTokens were to be written and will not be until an insert passes
	// their node again: it has gone or was split, what it goes on from is not in
	// the store, or it can never be staged. Windows count beside Full.
	DroppedWriteTokens int64
	// BacklogOverflows counts nodes that were turned down since too much waited to
	// be written: twice the device. That should never be.
	BacklogOverflows int64
	Parked           int64 // fetches that waited for room to be read
	RevokedBaseGone  int64 // what they go on from has left the device
	RevokedCovered   int64 // the device got all of it meanwhile
	Splices          int64 // fetches that admissions have put on the device
	DeferredSplices  int64 // admissions that found no room on the device for what was fetched
	// Fetches that were dropped when they were complete, by reason: the device had
	// all of it, what it goes on from had gone, too many admissions found no room,
	// or their request or the store went.
	HoldsCovered, HoldsShrunk, HoldsDeviceCapacity, HoldsDropped int64
	// PinsGivenUp counts what fetches go on from and was left to eviction, since
	// running requests found no room.
	PinsGivenUp int64
}

func (s *Stats) seen(swa, mamba int) {
	if swa > 0 {
		s.BranchesSeen[tree.SWA]++
	}
	if mamba > 0 {
		s.BranchesSeen[tree.Mamba]++
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	s := c.stats
	if c.host != nil {
		s.BackupTime, s.LoadBackTime = c.host.copyTime[pool.ToHost].Load(), c.host.copyTime[pool.ToDevice].Load()
	}
	return s
}

// now reads the clock for durations, if there is one.
func (c *Cache) now() int64 {
	if c.opts.Now == nil {
		return 0
	}
	return c.opts.Now()
}
