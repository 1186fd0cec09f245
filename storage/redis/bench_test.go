// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

// One operation is the whole load. The servers are those of scripts/services.sh.
func BenchmarkStore(b *testing.B) {
	for _, env := range []string{"TREECORE_REDIS_URL", "TREECORE_REDIS_CLUSTER_URL", "TREECORE_REDIS_TLS_URL"} {
		b.Run(env, func(b *testing.B) {
			rawURL := os.Getenv(env)
			if rawURL == "" {
				b.Skipf("%s is not set: start servers with scripts/services.sh", env)
			}
			f := storagetest.Fingerprint()
			f.Layout = fmt.Sprintf("bench %d %d", os.Getpid(), time.Now().UnixNano())
			s, err := storage.Open(ctx, rawURL, f)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			storagetest.Benchmark(b, s, storagetest.Load{Pages: 20_000, Bytes: 64}, storagetest.Load{Pages: 20_000, Bytes: 1 << 10}, storagetest.Load{Pages: 64, Bytes: 1 << 20})
		})
	}
}
