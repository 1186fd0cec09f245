// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/treecore/treecore/storage"
)

// store is a Redis as a storage.Store.
type store struct {
	client rueidis.Client
	id     storage.FingerprintID
	prefix string // of all names of this fingerprint
	where  string
	ttl    time.Duration
	wait   time.Duration // bound of one call
	rec    *storage.Recorder

	closing sync.RWMutex // held for reading by calls, so that Close waits for them
	closed  bool
}

func open(ctx context.Context, o rueidis.ClientOption, ttl time.Duration, f storage.Fingerprint) (storage.Store, error) {
	s := &store{id: f.ID(), ttl: ttl, wait: o.ConnWriteTimeout, where: strings.Join(o.InitAddress, ","), rec: storage.NewRecorder("redis")}
	s.prefix = "tc1:" + s.id.String() + ":"
	var err error
	if s.client, err = rueidis.NewClient(o); err != nil {
		if noSuchDatabase(o, err) {
			return nil, &storage.ConfigError{
				Field: "database", Value: fmt.Sprintf("%d, which %s does not have (%v)", o.SelectDB, s.where, err),
				Allowed: "a database of the server, which are 0 to 15 unless it is set up otherwise, and 0 on a cluster",
			}
		}
		return nil, s.fail("open", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	if err := s.client.Do(ctx, s.client.B().Exists().Key(s.prefix).Build()).Error(); err != nil {
		s.client.Close()
		return nil, s.fail("open", err)
	}
	return s, nil
}

// noSuchDatabase reports whether a server refused the database. Servers word it
// differently, and have no code for it.
func noSuchDatabase(o rueidis.ClientOption, err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	if !ok || o.SelectDB == 0 {
		return false
	}
	text := strings.ToLower(answer.Error())
	for _, words := range []string{"db index", "out of range", "select is not allowed"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

func (s *store) name(k storage.Key) string { return s.prefix + k.String() }

func (s *store) fail(op string, err error) error {
	return s.rec.Fail(op, s.where, &storage.Error{Kind: kindOf(err), Err: err})
}

// kindOf knows the first word of Redis's errors.
func kindOf(err error) storage.Kind {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		word, _, _ := strings.Cut(answer.Error(), " ")
		switch word {
		case "OOM", "MISCONF":
			return storage.NoSpace
		case "READONLY":
			return storage.ReadOnly
		case "NOAUTH", "WRONGPASS", "NOPERM":
			return storage.Denied
		case "CLUSTERDOWN", "LOADING", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS":
			return storage.Unreachable
		}
		return storage.Other
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return storage.Unreachable // the client gave up; our own Close is known before
	}
	if kind := storage.KindOf(err); kind != storage.Other {
		return kind
	}
	return storage.Unreachable
}

// enter begins a call: it is refused if the store is closed or the context over.
// The caller calls leave if the error is nil.
func (s *store) enter(ctx context.Context, op string) error {
	s.closing.RLock()
	err := ctx.Err()
	if s.closed {
		err = &storage.Error{Kind: storage.Closed}
	}
	if err != nil {
		s.closing.RUnlock()
		return s.rec.Fail(op, s.where, err)
	}
	return nil
}

func (s *store) leave() { s.closing.RUnlock() }

// Exists implements storage.Store. With a time to live it begins anew.
func (s *store) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckKeys(keys); err != nil {
		return out, err
	}
	if err := s.enter(ctx, "exists"); err != nil {
		return out, err
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	return out, s.exists(ctx, "exists", keys, out)
}

func (s *store) exists(ctx context.Context, op string, keys []storage.Key, out []bool) error {
	if len(keys) == 0 {
		return nil
	}
	commands := make([]rueidis.Completed, len(keys))
	for i, k := range keys {
		if s.ttl > 0 {
			commands[i] = s.client.B().Pexpire().Key(s.name(k)).Milliseconds(s.ttl.Milliseconds()).Build()
		} else {
			commands[i] = s.client.B().Exists().Key(s.name(k)).Build()
		}
	}
	var first error
	for i, answer := range s.client.DoMulti(ctx, commands...) {
		n, err := answer.AsInt64()
		if err != nil && first == nil {
			first = s.fail(op, err)
		}
		out[i] = err == nil && n == 1
	}
	if first == nil {
		s.rec.Good()
	}
	return first
}

// Get implements storage.Store.
func (s *store) Get(ctx context.Context, keys []storage.Key, into [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckPages(keys, into); err != nil {
		return out, err
	}
	hits, bytes := 0, 0
	defer func() {
		s.rec.Hits(hits, bytes)
		s.rec.Misses(len(keys) - hits)
	}()
	if err := s.enter(ctx, "get"); err != nil || len(keys) == 0 {
		if err == nil {
			s.leave()
		}
		return out, err
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	commands := make([]rueidis.Completed, len(keys))
	for i, k := range keys {
		commands[i] = s.client.B().Get().Key(s.name(k)).Build()
	}
	var first error
	var damaged []storage.Key
	for i, answer := range s.client.DoMulti(ctx, commands...) {
		frame, err := answer.AsBytes()
		if rueidis.IsRedisNil(err) {
			continue
		}
		if err != nil {
			if first == nil {
				first = s.fail("get", err)
			}
			continue
		}
		kind, ok := storage.DecodePage(frame, s.id, keys[i], into[i])
		if !ok {
			s.rec.Damaged(keys[i], kind, s.where)
			damaged = append(damaged, keys[i])
			continue
		}
		out[i] = true
		hits++
		bytes += len(into[i])
	}
	if first == nil {
		s.rec.Good()
	}
	if len(damaged) > 0 {
		_ = s.remove(ctx, "get", damaged) // counted; the page stays a miss
	}
	return out, first
}

// Put implements storage.Store. Pages that are there are not sent.
func (s *store) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckPages(keys, pages); err != nil {
		return out, err
	}
	written, bytes, present := 0, 0, 0
	defer func() { s.rec.Puts(written, bytes, present, len(keys)-written-present) }()
	if err := s.enter(ctx, "put"); err != nil || len(keys) == 0 {
		if err == nil {
			s.leave()
		}
		return out, err
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	if err := s.exists(ctx, "put", keys, out); err != nil {
		clear(out)
		return out, err
	}
	var commands []rueidis.Completed
	var which []int
	sent := map[storage.Key]int{} // where a key that stands twice was sent
	for i, k := range keys {
		if _, twice := sent[k]; out[i] || twice {
			continue
		}
		sent[k] = i
		frame := rueidis.BinaryString(storage.EncodePage(s.id, k, pages[i]))
		set := s.client.B().Set().Key(s.name(k)).Value(frame)
		if s.ttl > 0 {
			commands = append(commands, set.Px(s.ttl).Build())
		} else {
			commands = append(commands, set.Build())
		}
		which = append(which, i)
	}
	var first error
	if len(commands) > 0 {
		for j, answer := range s.client.DoMulti(ctx, commands...) {
			if err := answer.Error(); err != nil {
				if first == nil {
					first = s.fail("put", err)
				}
				continue
			}
			out[which[j]] = true
			written++
			bytes += len(pages[which[j]])
		}
	}
	for i, k := range keys {
		if at, ok := sent[k]; ok {
			out[i] = out[at]
		}
		if out[i] {
			present++
		}
	}
	present -= written
	if first == nil {
		s.rec.Good()
	}
	return out, first
}

// Delete implements storage.Store.
func (s *store) Delete(ctx context.Context, keys []storage.Key) error {
	if err := storage.CheckKeys(keys); err != nil {
		return err
	}
	if err := s.enter(ctx, "delete"); err != nil {
		return err
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	return s.remove(ctx, "delete", keys)
}

func (s *store) remove(ctx context.Context, op string, keys []storage.Key) error {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = s.name(k)
	}
	return s.unlink(ctx, op, names)
}

func (s *store) unlink(ctx context.Context, op string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	commands := make([]rueidis.Completed, len(names))
	for i, name := range names {
		commands[i] = s.client.B().Unlink().Key(name).Build()
	}
	for _, answer := range s.client.DoMulti(ctx, commands...) {
		if err := answer.Error(); err != nil {
			return s.fail(op, err)
		}
	}
	s.rec.Good()
	return nil
}

// Clear implements storage.Store: it walks over the names of every server. Pages
// that others write meanwhile may stay.
func (s *store) Clear(ctx context.Context) error {
	if err := s.enter(ctx, "clear"); err != nil {
		return err
	}
	defer s.leave()
	for _, node := range s.client.Nodes() {
		for cursor := uint64(0); ; {
			scan := node.B().Scan().Cursor(cursor).Match(s.prefix + "*").Count(1000).Build()
			entry, err := node.Do(ctx, scan).AsScanEntry()
			if err != nil {
				return s.fail("clear", err)
			}
			// Through the client, which knows who may be written to.
			if err := s.unlink(ctx, "clear", entry.Elements); err != nil {
				return err
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	s.rec.Good()
	return nil
}

// Stats implements storage.Store. What the server holds is its own affair.
func (s *store) Stats() storage.Stats { return s.rec.Stats() }

// Close implements storage.Store.
func (s *store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if !s.closed {
		s.closed = true
		s.client.Close()
	}
	return nil
}
