// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/treecore/treecore/storage"
)

// Load is what a benchmark moves: that many pages of that many bytes each.
type Load struct{ Pages, Bytes int }

// Benchmark measures an open store that is reached over the network, and may be
// shared: put, exists and get of the whole load, in batches of storage.MaxBatch.
// Beside them runs the machine's floor, which moves the same bytes over one
// connection of this machine to itself. What the store's fingerprint holds is
// removed before and after.
func Benchmark(b *testing.B, s storage.Store, loads ...Load) {
	ctx := context.Background()
	for _, load := range loads {
		batches := BenchKeys(load.Pages)
		page := Page(batches[0][0], load.Bytes)
		pages := make([][]byte, storage.MaxBatch)
		for i := range pages {
			pages[i] = page
		}
		empty := func(b *testing.B) {
			b.Helper()
			if err := s.Clear(ctx); err != nil {
				b.Fatal(err)
			}
		}
		fill := func(b *testing.B) {
			b.Helper()
			for _, keys := range batches {
				if ok, err := s.Put(ctx, keys, pages[:len(keys)]); err != nil || storage.Leading(ok) != len(keys) {
					b.Fatal(ok, err)
				}
			}
		}
		run := func(what string, moves bool, work func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/pages=%d/bytes=%d", what, load.Pages, load.Bytes), func(b *testing.B) {
				if moves {
					b.SetBytes(int64(load.Pages) * int64(load.Bytes))
				}
				work(b)
				b.ReportMetric(float64(load.Pages)*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
			})
		}
		run("floor", true, func(b *testing.B) { loopback(b, int64(load.Pages)*int64(load.Bytes)) })
		run("put", true, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				empty(b)
				b.StartTimer()
				fill(b)
			}
		})
		empty(b)
		fill(b) // put may not have been asked for
		run("exists", false, func(b *testing.B) {
			for b.Loop() {
				for _, keys := range batches {
					if ok, err := s.Exists(ctx, keys); err != nil || storage.Leading(ok) != len(keys) {
						b.Fatal(ok, err)
					}
				}
			}
		})
		run("get", true, func(b *testing.B) {
			into := Buffers(storage.MaxBatch, load.Bytes)
			for b.Loop() {
				for _, keys := range batches {
					if ok, err := s.Get(ctx, keys, into[:len(keys)]); err != nil || storage.Leading(ok) != len(keys) {
						b.Fatal(ok, err)
					}
				}
			}
		})
		empty(b)
	}
}

// BenchKeys returns n keys in batches of storage.MaxBatch.
func BenchKeys(n int) [][]storage.Key {
	var out [][]storage.Key
	for i := range n {
		k := storage.Key{Pool: "full"}
		binary.LittleEndian.PutUint64(k.Page[:], uint64(i)*0x9E3779B97F4A7C15+1)
		if i%storage.MaxBatch == 0 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], k)
	}
	return out
}

// loopback moves bytes through a connection to this machine, in pieces of 1 MiB,
// and waits each time until all have arrived.
func loopback(b *testing.B, total int64) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	arrived := make(chan error)
	go func() {
		c, err := l.Accept()
		if err != nil {
			arrived <- err
			return
		}
		defer func() { _ = c.Close() }()
		piece := make([]byte, 1<<20)
		for {
			for left := total; left > 0; {
				n, err := c.Read(piece[:min(left, int64(len(piece)))])
				left -= int64(n)
				if err == io.EOF {
					close(arrived)
					return
				}
				if err != nil {
					arrived <- err
					return
				}
			}
			arrived <- nil
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	piece := make([]byte, 1<<20)
	for b.Loop() {
		for left := total; left > 0; left -= int64(len(piece)) {
			if _, err := c.Write(piece[:min(left, int64(len(piece)))]); err != nil {
				b.Fatal(err)
			}
		}
		if err := <-arrived; err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	<-arrived
}
