// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/treecore/treecore/storage"
)

// store is a bucket as a storage.Store.
type store struct {
	settings
	client *minio.Client
	id     storage.FingerprintID
	folder string // of all names of this fingerprint, with a slash at the end
	where  string
	rec    *storage.Recorder

	closing sync.RWMutex // held for reading by calls, so that Close waits for them
	closed  bool
}

func open(ctx context.Context, o settings, f storage.Fingerprint) (storage.Store, error) {
	s := &store{settings: o, id: f.ID(), where: o.endpoint + "/" + o.bucket, rec: storage.NewRecorder("s3")}
	s.folder = s.id.String() + "/"
	if o.prefix != "" {
		s.folder = o.prefix + "/" + s.folder
	}
	var err error
	if s.client, err = minio.New(o.endpoint, &o.client); err != nil {
		return nil, &storage.ConfigError{Field: "endpoint", Value: o.endpoint, Allowed: "HOST or HOST:PORT: " + err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// The fingerprint in words lies beside the pages. Writing it also shows
	// whether the bucket is there and may be written to.
	text := f.Describe()
	_, err = s.client.PutObject(ctx, s.bucket, s.folder+"fingerprint.json", bytes.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "application/json", DisableMultipart: true})
	if err != nil {
		s.transport.CloseIdleConnections()
		if minio.ToErrorResponse(err).Code == "NoSuchBucket" {
			return nil, &storage.ConfigError{
				Field: "bucket", Value: fmt.Sprintf("%q, which %s does not have", s.bucket, s.endpoint),
				Allowed: "a bucket that exists: make it, or name another, as in s3://BUCKET/PREFIX",
			}
		}
		return nil, s.fail("open", err)
	}
	return s, nil
}

func (s *store) name(k storage.Key) string {
	key := k.String()
	return s.folder + key[:2] + "/" + key
}

func (s *store) fail(op string, err error) error {
	return s.rec.Fail(op, s.where, &storage.Error{Kind: kindOf(err), Err: err})
}

// kindOf knows the codes of S3, and for others the statuses of HTTP.
func kindOf(err error) storage.Kind {
	if kind := storage.KindOf(err); kind != storage.Other {
		return kind
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccountProblem", "AllAccessDisabled", "XAdminUserNotFound":
		return storage.Denied
	case "EntityTooLarge":
		return storage.TooLarge
	case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull":
		return storage.NoSpace
	case "SlowDown", "ServiceUnavailable", "InternalError", "":
		return storage.Unreachable
	case "RequestTimeout":
		return storage.TimedOut
	}
	// Stores have codes of their own; what HTTP says is common to them.
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return storage.Denied
	case http.StatusRequestEntityTooLarge:
		return storage.TooLarge
	case http.StatusInsufficientStorage:
		return storage.NoSpace
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return storage.Unreachable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return storage.TimedOut
	}
	return storage.Other
}

func absent(err error) bool { return minio.ToErrorResponse(err).Code == "NoSuchKey" }

// enter begins a call: it is refused if the store is closed or the context over.
// Otherwise the caller calls leave, which ends the call's own context too.
func (s *store) enter(ctx context.Context, op string) (inner context.Context, leave func(), err error) {
	s.closing.RLock()
	err = ctx.Err()
	if s.closed {
		err = &storage.Error{Kind: storage.Closed}
	}
	if err != nil {
		s.closing.RUnlock()
		return nil, nil, s.rec.Fail(op, s.where, err)
	}
	inner, cancel := context.WithTimeout(ctx, s.timeout)
	return inner, func() { cancel(); s.closing.RUnlock() }, nil
}

// each runs work for the indexes 0 to n-1 on a few goroutines, and returns the
// failure with the smallest index, counted once.
func (s *store) each(op string, n int, work func(i int) error) error {
	failures := make([]error, n)
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(n, s.parallel) {
		wait.Go(func() {
			for i := range next {
				failures[i] = work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return s.fail(op, err)
		}
	}
	s.rec.Good()
	return nil
}

func (s *store) has(ctx context.Context, k storage.Key) (bool, error) {
	_, err := s.client.StatObject(ctx, s.bucket, s.name(k), minio.StatObjectOptions{})
	if err != nil && absent(err) {
		return false, nil
	}
	return err == nil, err
}

// Exists implements storage.Store: one request a key.
func (s *store) Exists(ctx context.Context, keys []storage.Key) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckKeys(keys); err != nil {
		return out, err
	}
	ctx, leave, err := s.enter(ctx, "exists")
	if err != nil {
		return out, err
	}
	defer leave()
	return out, s.each("exists", len(keys), func(i int) (err error) {
		out[i], err = s.has(ctx, keys[i])
		return err
	})
}

// Get implements storage.Store: one request a key.
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
	ctx, leave, err := s.enter(ctx, "get")
	if err != nil {
		return out, err
	}
	defer leave()
	err = s.each("get", len(keys), func(i int) (err error) {
		out[i], err = s.read(ctx, keys[i], into[i])
		return err
	})
	for i, ok := range out {
		if ok {
			hits++
			bytes += len(into[i])
		}
	}
	return out, err
}

// read reads one page. An absent or damaged one is false without an error.
func (s *store) read(ctx context.Context, k storage.Key, into []byte) (bool, error) {
	object, err := s.client.GetObject(ctx, s.bucket, s.name(k), minio.GetObjectOptions{})
	if err != nil {
		return false, err
	}
	defer func() { _ = object.Close() }()
	// One byte more than the frame has shows one that is too long.
	frame := make([]byte, storage.FrameHeader+len(into)+1)
	n, err := io.ReadFull(object, frame)
	switch {
	case err == nil, err == io.EOF, err == io.ErrUnexpectedEOF:
	case absent(err):
		return false, nil
	default:
		return false, err
	}
	kind, ok := storage.DecodePage(frame[:n], s.id, k, into)
	if ok {
		return true, nil
	}
	s.rec.Damaged(k, kind, s.where)
	if err := s.client.RemoveObject(ctx, s.bucket, s.name(k), minio.RemoveObjectOptions{}); err != nil {
		return false, err
	}
	return false, nil
}

// Put implements storage.Store. Pages that are there are not sent.
func (s *store) Put(ctx context.Context, keys []storage.Key, pages [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	if err := storage.CheckPages(keys, pages); err != nil {
		return out, err
	}
	written, sent, present := 0, 0, 0
	defer func() { s.rec.Puts(written, sent, present, len(keys)-written-present) }()
	ctx, leave, err := s.enter(ctx, "put")
	if err != nil {
		return out, err
	}
	defer leave()
	// A key that stands twice is sent once.
	first := map[storage.Key]int{}
	for i, k := range keys {
		if _, twice := first[k]; !twice {
			first[k] = i
		}
	}
	wrote := make([]bool, len(keys))
	err = s.each("put", len(keys), func(i int) error {
		if first[keys[i]] != i {
			return nil
		}
		there, err := s.has(ctx, keys[i])
		if err != nil || there {
			out[i] = there
			return err
		}
		frame := storage.EncodePage(s.id, keys[i], pages[i])
		_, err = s.client.PutObject(ctx, s.bucket, s.name(keys[i]), bytes.NewReader(frame), int64(len(frame)),
			minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
		out[i], wrote[i] = err == nil, err == nil
		return err
	})
	for i, k := range keys {
		out[i] = out[first[k]]
		switch {
		case wrote[i]:
			written++
			sent += len(pages[i])
		case out[i]:
			present++
		}
	}
	return out, err
}

// Delete implements storage.Store.
func (s *store) Delete(ctx context.Context, keys []storage.Key) error {
	if err := storage.CheckKeys(keys); err != nil {
		return err
	}
	ctx, leave, err := s.enter(ctx, "delete")
	if err != nil {
		return err
	}
	defer leave()
	return s.each("delete", len(keys), func(i int) error { return s.remove(ctx, s.name(keys[i])) })
}

func (s *store) remove(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{})
	if err != nil && absent(err) {
		return nil
	}
	return err
}

// Clear implements storage.Store. Pages that others write meanwhile may stay.
func (s *store) Clear(outer context.Context) error {
	_, leave, err := s.enter(outer, "clear")
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(outer)
	defer cancel() // ends the listing if a removal fails
	const batch = 1000
	names := make([]string, 0, batch)
	flush := func() error {
		err := s.each("clear", len(names), func(i int) error { return s.remove(ctx, names[i]) })
		names = names[:0]
		return err
	}
	for object := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.folder, Recursive: true}) {
		if object.Err != nil {
			return s.fail("clear", object.Err)
		}
		if object.Key == s.folder+"fingerprint.json" {
			continue
		}
		if names = append(names, object.Key); len(names) == batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// Stats implements storage.Store. What the bucket holds is its own affair.
func (s *store) Stats() storage.Stats { return s.rec.Stats() }

// Close implements storage.Store.
func (s *store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	s.transport.CloseIdleConnections()
	return nil
}
