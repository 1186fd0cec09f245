// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Opener opens a store of one scheme. The URL has been parsed and its scheme is
// the one that the opener was registered for; the fingerprint is valid.
type Opener func(ctx context.Context, u *url.URL, f Fingerprint) (Store, error)

var openers struct {
	sync.Mutex
	schemes []string // sorted
	open    []Opener // by index of the scheme
}

// Register makes Open know a scheme. The packages of the backends call it when
// they are imported; the last one to register a scheme has it. A nil opener is
// ignored: a scheme that nobody else registered stays unknown to Open.
func Register(scheme string, open Opener) {
	if open == nil {
		return
	}
	openers.Lock()
	defer openers.Unlock()
	i, found := slices.BinarySearch(openers.schemes, scheme)
	if found {
		openers.open[i] = open
		return
	}
	openers.schemes = slices.Insert(openers.schemes, i, scheme)
	openers.open = slices.Insert(openers.open, i, open)
}

// Open opens the store that a URL names, for pages of one fingerprint:
//
//	file:DIR?size=16GiB
//	redis://HOST:PORT/DB?ttl=24h     rediss:// with TLS; see storage/redis
//	s3://BUCKET/PREFIX?endpoint=HOST:PORT     see storage/s3
//
// A bad URL or fingerprint is one or more *ConfigError, joined; so is a folder,
// a database or a bucket that cannot be what the URL says. A backend that does
// not answer is an *Error, a folder in use a *LockedError.
func Open(ctx context.Context, rawURL string, f Fingerprint) (Store, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	// A user may write any character in a folder's name: only what follows a
	// question mark is read as settings.
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	openers.Lock()
	i, found := slices.BinarySearch(openers.schemes, u.Scheme)
	known := strings.Join(openers.schemes, ", ")
	var open Opener
	if found {
		open = openers.open[i]
	}
	openers.Unlock()
	if !found {
		if known == "" {
			known = "none, since no backend is imported: import storage/file, storage/redis, storage/s3 or storage/all"
		}
		return nil, &ConfigError{Field: "scheme", Value: "\"" + u.Scheme + "\"", Allowed: known}
	}
	return open(ctx, u, f)
}

func parseURL(raw string) (*url.URL, error) {
	if rest, ok := strings.CutPrefix(raw, "file:"); ok {
		if slashes, ok := strings.CutPrefix(rest, "//"); ok && strings.HasPrefix(slashes, "/") {
			rest = slashes
		}
		dir, query, _ := strings.Cut(rest, "?")
		return &url.URL{Scheme: "file", Opaque: dir, RawQuery: query}, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's error repeats the URL, which may hold a password.
		return nil, &ConfigError{Field: "url", Value: "not a URL", Allowed: "file:DIR, redis://HOST:PORT/DB or s3://BUCKET/PREFIX"}
	}
	if u.Scheme == "" {
		return nil, &ConfigError{Field: "url", Value: "without a scheme", Allowed: "file:DIR, redis://HOST:PORT/DB or s3://BUCKET/PREFIX"}
	}
	return u, nil
}
