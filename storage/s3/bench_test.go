// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

// One operation is the whole load. The server is that of scripts/services.sh.
func BenchmarkStore(b *testing.B) {
	rawURL := os.Getenv("TREECORE_S3_URL")
	if rawURL == "" {
		b.Skip("TREECORE_S3_URL is not set: start a server with scripts/services.sh")
	}
	f := storagetest.Fingerprint()
	f.Layout = fmt.Sprintf("bench %d %d", os.Getpid(), time.Now().UnixNano())
	s, err := storage.Open(ctx, rawURL, f)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storagetest.Benchmark(b, s, storagetest.Load{Pages: 1000, Bytes: 1 << 10}, storagetest.Load{Pages: 1000, Bytes: 64 << 10}, storagetest.Load{Pages: 32, Bytes: 4 << 20})
}
