// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/treecore/treecore/tree"
)

// Workload is the published input of the tree benchmarks: token sequences that
// grow like a tree, and queries over them.
type Workload struct{ Sequences, Queries [][]tree.Token }

// LoadWorkload reads the two files of a folder.
func LoadWorkload(folder string) (*Workload, error) {
	sequences, err := loadSequences(filepath.Join(folder, "sequences_5000.bin.gz"))
	if err != nil {
		return nil, err
	}
	queries, err := loadSequences(filepath.Join(folder, "match_queries_5000.bin.gz"))
	if err != nil {
		return nil, err
	}
	return &Workload{Sequences: sequences, Queries: queries}, nil
}

// loadSequences reads a header line, the lengths, and all tokens in a row.
func loadSequences(path string) ([][]tree.Token, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := bufio.NewReaderSize(z, 1<<20)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: no header line: %w", path, err)
	}
	var header struct {
		Format string
		Count  int
	}
	if err := json.Unmarshal(line, &header); err != nil || header.Format != "seqs-u32le-v1" || header.Count < 1 || header.Count > 1<<20 {
		return nil, fmt.Errorf("%s: header %q is not that of a seqs-u32le-v1 file", path, line)
	}
	lengths := make([]uint32, header.Count)
	if err := binary.Read(r, binary.LittleEndian, lengths); err != nil {
		return nil, fmt.Errorf("%s: lengths: %w", path, err)
	}
	out := make([][]tree.Token, header.Count)
	for i, n := range lengths {
		if n > 1<<20 {
			return nil, fmt.Errorf("%s: sequence %d has %d tokens", path, i, n)
		}
		out[i] = make([]tree.Token, n)
		if err := binary.Read(r, binary.LittleEndian, out[i]); err != nil {
			return nil, fmt.Errorf("%s: sequence %d: %w", path, i, err)
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("%s: bytes follow the last sequence", path)
	}
	return out, nil
}

// warmUp is how many operations of a benchmark are not timed.
const warmUp = 20

// stopwatch keeps the time of each operation; the median is what a row reports.
type stopwatch struct{ times []time.Duration }

func (s *stopwatch) time(f func() error) error {
	start := time.Now()
	err := f()
	s.times = append(s.times, time.Since(start))
	return err
}

func (s *stopwatch) report(b *testing.B) {
	slices.Sort(s.times)
	b.ReportMetric(float64(s.times[len(s.times)/2].Nanoseconds()), "median-ns")
	b.ReportMetric(float64(s.times[len(s.times)*99/100].Nanoseconds()), "p99-ns")
}

// Cases returns the rows of the published workload: with pools for each
// component set and page that has reference figures, and the tree alone.
func (w *Workload) Cases() []Case {
	var cases []Case
	for _, set := range []struct {
		name       string
		components tree.ComponentSet
		pages      []int
	}{
		{"full", tree.SetOf(tree.Full), []int{1, 64}},
		{"full+swa", tree.SetOf(tree.Full, tree.SWA), []int{1, 64}},
		{"full+mamba", tree.SetOf(tree.Full, tree.Mamba), []int{1}},
	} {
		for _, page := range set.pages {
			row := func(op string, run func(*rig, *stopwatch) error) {
				cases = append(cases, Case{
					Name: fmt.Sprintf("workload/%s/page=%d/%s", set.name, page, op),
					Run:  timed(func() (*rig, error) { return newRig(set.components, page) }, run),
				})
			}
			row("insert", w.inserts)
			row("match", w.matches)
			row("evict", w.evictions)
			row("lock+unlock", w.locks)
			row("finish", w.finishes)
		}
	}
	for _, page := range []int{1, 64} {
		for i, op := range []string{"insert", "match", "evict"} {
			cases = append(cases, Case{
				Name: fmt.Sprintf("workload/tree-alone/page=%d/%s", page, op),
				Run:  func(b *testing.B) { w.treeAlone(b, page, i) },
			})
		}
	}
	return cases
}

// timed runs a row on a fresh rig each time and reports the median operation.
func timed(fresh func() (*rig, error), run func(*rig, *stopwatch) error) func(*testing.B) {
	return func(b *testing.B) {
		var s stopwatch
		for range b.N {
			r, err := fresh()
			if err == nil {
				err = run(r, &s)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		s.report(b)
	}
}

// inserts: for each sequence, take its slots and insert it.
func (w *Workload) inserts(r *rig, s *stopwatch) error {
	for i, tokens := range w.Sequences {
		one := func() error {
			full, state, err := r.take(len(tokens))
			if err != nil {
				return err
			}
			return r.insert(tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: full, MambaState: state})
		}
		if err := s.after(i, one); err != nil {
			return err
		}
	}
	return nil
}

// after times f unless it is a warm-up.
func (s *stopwatch) after(i int, f func() error) error {
	if i < warmUp {
		return f()
	}
	return s.time(f)
}

// populate caches the first half of the sequences.
func (w *Workload) populate(r *rig) error {
	for _, tokens := range w.Sequences[:len(w.Sequences)/2] {
		full, state, err := r.take(len(tokens))
		if err == nil {
			err = r.insert(tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: full, MambaState: state})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Workload) matches(r *rig, s *stopwatch) error {
	if err := w.populate(r); err != nil {
		return err
	}
	for i, q := range w.Queries {
		if err := s.after(i, func() error {
			_, err := r.core.Match(tree.Key{Tokens: q})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// evictions: fill until nothing fits, then evict 2,500 tokens a call.
func (w *Workload) evictions(r *rig, s *stopwatch) error {
	for _, tokens := range w.Sequences {
		full, err := r.alloc(len(tokens))
		if err != nil {
			break
		}
		var state tree.Slots
		if r.states != nil {
			if state, err = r.states.Alloc(1); err != nil {
				break
			}
		}
		if err := r.insert(tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: full, MambaState: state}); err != nil {
			return err
		}
	}
	for {
		start := time.Now()
		freed, err := r.evictCount(tree.Full, 2500)
		took := time.Since(start)
		if err != nil || freed == 0 {
			return err
		}
		s.times = append(s.times, took)
	}
}

func (w *Workload) locks(r *rig, s *stopwatch) error {
	if err := w.populate(r); err != nil {
		return err
	}
	var nodes []tree.NodeID
	for _, tokens := range w.Sequences[:len(w.Sequences)/2] {
		m, err := r.core.Match(tree.Key{Tokens: tokens})
		if err != nil {
			return err
		}
		nodes = append(nodes, m.LastDeviceNode)
	}
	random := rand.New(rand.NewPCG(99, 0))
	for range 5000 {
		id := nodes[random.IntN(len(nodes))]
		if err := s.time(func() error {
			receipt, err := r.core.Lock(id, 0)
			if err != nil {
				return err
			}
			return r.core.Unlock(id, receipt, false)
		}); err != nil {
			return err
		}
	}
	return nil
}

// finishes: requests that were matched, locked and computed end one by one.
func (w *Workload) finishes(r *rig, s *stopwatch) error {
	type request struct {
		params  tree.InsertParams
		node    tree.NodeID
		receipt tree.Receipt
	}
	var requests []request
	for _, tokens := range w.Sequences {
		m, err := r.core.Match(tree.Key{Tokens: tokens})
		if err != nil {
			return err
		}
		receipt, err := r.core.Lock(m.LastDeviceNode, 0)
		if err != nil {
			return err
		}
		rest, state, err := r.take(len(tokens) - m.DeviceLen)
		if err != nil { // does not fit
			if err := r.core.Unlock(m.LastDeviceNode, receipt, false); err != nil {
				return err
			}
			continue
		}
		requests = append(requests, request{
			params: tree.InsertParams{
				Key: tree.Key{Tokens: tokens}, Slots: m.DeviceSlots.Append(rest), MambaState: state, PrevPrefixLen: m.DeviceLen,
			},
			node: m.LastDeviceNode, receipt: receipt,
		})
	}
	for _, q := range requests {
		if err := s.time(func() error {
			if err := r.insert(q.params); err != nil {
				return err
			}
			return r.core.Unlock(q.node, q.receipt, false)
		}); err != nil {
			return err
		}
	}
	return nil
}

// treeAlone inserts all sequences without pools or eviction, matches all
// queries, and evicts until the tree is empty; which of the three is reported.
func (w *Workload) treeAlone(b *testing.B, page, which int) {
	var times [3]stopwatch
	for range b.N {
		c := newCore(page)
		next := 1
		for i, tokens := range w.Sequences {
			slots := tree.Numbered(tree.Slot(next), len(tokens))
			next += len(tokens)
			if err := times[0].after(i, func() error {
				insert(c, tree.InsertParams{Key: tree.Key{Tokens: tokens}, Slots: slots})
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
		for i, q := range w.Queries {
			if err := times[1].after(i, func() error {
				_, err := c.Match(tree.Key{Tokens: q})
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
		for c.NodeCount() > 1 {
			if err := times[2].time(func() error {
				evict(c, 2500)
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
	}
	times[which].report(b)
}
