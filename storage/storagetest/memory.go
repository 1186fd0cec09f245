// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/treecore/treecore/storage"
)

// Memory is a store in the memory of the process, for tests of what uses one.
type Memory struct {
	id  storage.FingerprintID
	rec *storage.Recorder

	mu     sync.Mutex
	frames map[storage.Key][]byte
	closed bool
}

// NewMemory returns an empty store.
func NewMemory(f storage.Fingerprint) *Memory {
	return &Memory{id: f.ID(), rec: storage.NewRecorder("memory"), frames: map[storage.Key][]byte{}}
}

func (m *Memory) begin(ctx context.Context, op string, err error) error {
	switch {
	case err != nil:
		return err
	case m.closed:
		return &storage.Error{Backend: "memory", Op: op, Kind: storage.Closed}
	case ctx.Err() != nil:
		return m.rec.Fail(op, "", ctx.Err())
	}
	return nil
}

// Exists implements storage.Store.
func (m *Memory) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]bool, len(keys))
	if err := m.begin(ctx, "exists", storage.CheckKeys(keys)); err != nil {
		return out, err
	}
	for i, k := range keys {
		_, out[i] = m.frames[k]
	}
	return out, nil
}

// Get implements storage.Store.
func (m *Memory) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]bool, len(keys))
	if err := m.begin(ctx, "get", storage.CheckPages(keys, into)); err != nil {
		m.rec.Misses(len(keys))
		return out, err
	}
	for i, k := range keys {
		frame, found := m.frames[k]
		if !found {
			m.rec.Misses(1)
			continue
		}
		kind, ok := storage.DecodePage(frame, m.id, k, into[i])
		if !ok {
			m.rec.Damaged(k, kind, "")
			m.rec.Misses(1)
			delete(m.frames, k)
			continue
		}
		out[i] = true
		m.rec.Hits(1, len(into[i]))
	}
	return out, nil
}

// Put implements storage.Store.
func (m *Memory) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]bool, len(keys))
	if err := m.begin(ctx, "put", storage.CheckPages(keys, pages)); err != nil {
		m.rec.Puts(0, 0, 0, len(keys))
		return out, err
	}
	for i, k := range keys {
		out[i] = true
		if _, ok := m.frames[k]; ok {
			m.rec.Puts(0, 0, 1, 0)
			continue
		}
		m.frames[k] = storage.EncodePage(m.id, k, pages[i])
		m.rec.Puts(1, len(pages[i]), 0, 0)
	}
	return out, nil
}

// Delete implements storage.Store.
func (m *Memory) Delete(ctx context.Context, keys []storage.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.begin(ctx, "delete", storage.CheckKeys(keys)); err != nil {
		return err
	}
	for _, k := range keys {
		delete(m.frames, k)
	}
	return nil
}

// Clear implements storage.Store.
func (m *Memory) Clear(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.begin(ctx, "clear", nil); err != nil {
		return err
	}
	clear(m.frames)
	return nil
}

// Stats implements storage.Store.
func (m *Memory) Stats() storage.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.rec.Stats()
	s.Pages, s.Bytes = int64(len(m.frames)), 0
	for _, f := range m.frames {
		s.Bytes += int64(len(f))
	}
	return s
}

// Close implements storage.Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Keys returns the keys of all pages, sorted by their text.
func (m *Memory) Keys() []storage.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]storage.Key, 0, len(m.frames))
	for k := range m.frames {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b storage.Key) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Tamper changes the frame of a page that is there.
func (m *Memory) Tamper(k storage.Key, change func(frame []byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if frame, ok := m.frames[k]; ok {
		m.frames[k] = change(frame)
	}
}
