// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/spf13/pflag"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/replay"
	_ "github.com/treecore/treecore/storage/all" // every scheme of --storage
)

// storageFlags are the flags of a storage tier.
type storageFlags struct{ url, bandwidth string }

func (s *storageFlags) add(f *pflag.FlagSet, o *replay.Options) {
	f.StringVar(&s.url, "storage", "", "store below the host tier: file:DIR?size=16GiB, redis://HOST:PORT/DB or s3://BUCKET/PREFIX; it keeps a stamp of 8 bytes for each token, and what earlier runs left there is found (default: none)")
	f.StringVar(&o.PrefetchPolicy, "prefetch-policy", replay.DefaultPrefetchPolicy, "how long a request waits for what is in storage: best-effort (it takes what is there), wait-complete or timeout (1s, and 250ms for each 1,024 tokens)")
	f.IntVar(&o.PrefetchThreshold, "prefetch-threshold", cache.DefaultPrefetchThreshold, "fewest tokens that are fetched from storage")
	f.StringVar(&s.bandwidth, "storage-bandwidth", "5GB", "bytes of the model's state that reads and writes of storage each move in a second: a fast disk, or 40 Gbit/s")
	f.DurationVar(&o.StorageLatency, "storage-latency", replay.DefaultStorageLatency, "time that each operation on storage takes besides; an object store needs 20ms or more")
}

// options checks the flags and fills in what they say.
func (s *storageFlags) options(flags *pflag.FlagSet, o *replay.Options, host bool) error {
	if flags.Changed("storage") && s.url == "" {
		return errors.New("--storage is empty: name a store, as file:DIR, or leave the flag out")
	}
	if s.url == "" {
		for _, name := range []string{"prefetch-policy", "prefetch-threshold", "storage-bandwidth", "storage-latency"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s applies to a storage tier: give --storage, too", name)
			}
		}
	}
	if s.url != "" && !host {
		return errors.New("--storage needs a host tier, through which everything goes: add --host-bytes, as --host-bytes 20GiB")
	}
	if o.PrefetchThreshold < 1 {
		return fmt.Errorf("--prefetch-threshold is %d: must be 1 token or more", o.PrefetchThreshold)
	}
	bandwidth, err := model.ParseSize(s.bandwidth)
	if err != nil || bandwidth == model.Unlimited {
		return fmt.Errorf("--storage-bandwidth is %q: must be bytes a second, as 5GB", s.bandwidth)
	}
	if o.StorageLatency < 0 {
		return fmt.Errorf("--storage-latency is %v: must be 0 or more", o.StorageLatency)
	}
	if o.StorageLatency == 0 {
		o.StorageLatency = -1 // asked for, not left open
	}
	o.Storage, o.StorageBandwidth = s.url, float64(bandwidth)
	return nil
}

// quiet keeps the log of a store off the terminal until the function that it
// returns is called: the report counts the same by kind, and an error is a line
// of its own.
func (s *storageFlags) quiet() (undo func()) {
	if s.url == "" {
		return func() {}
	}
	logger, out, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	return func() {
		slog.SetDefault(logger)
		log.SetOutput(out)
		log.SetFlags(flags)
	}
}
