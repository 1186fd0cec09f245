// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/treecore/treecore/storage"
)

// Sizes in bytes.
const (
	DefaultSize = 16 << 30
	minSize     = 1 << 20
	minSegment  = 64 << 10
	maxSegment  = 2 << 30
	segments    = 64 // a full store has about this many
)

// Options says how a folder is kept.
type Options struct {
	// Dir is the folder; it is made if it does not exist. Required.
	Dir string
	// Size is the most bytes that the pages of this fingerprint take on disk,
	// frames included: 0 stands for DefaultSize, else at least 1 MiB. The
	// largest page is a quarter of it.
	Size int64
}

func (o Options) validate() error {
	if o.Dir == "" {
		return &storage.ConfigError{Field: "folder", Value: "empty", Allowed: "a path, as in file:/var/cache/treecore"}
	}
	if o.Size < minSize {
		return &storage.ConfigError{Field: "size", Value: strconv.FormatInt(o.Size, 10), Allowed: fmt.Sprintf("0 for the default, or at least %d bytes", minSize)}
	}
	return nil
}

func (o Options) segmentBytes() int64 {
	return min(max(o.Size/segments, minSegment), maxSegment)
}

func init() { storage.Register("file", openURL) }

// openURL reads file:DIR?size=16GiB.
func openURL(ctx context.Context, u *url.URL, f storage.Fingerprint) (storage.Store, error) {
	s := storage.NewSettings(u)
	o := Options{Dir: u.Opaque, Size: s.Bytes("size", DefaultSize, minSize)}
	if err := s.Err(); err != nil {
		return nil, err
	}
	store, err := Open(ctx, o, f)
	if err != nil {
		return nil, err
	}
	return store, nil
}
