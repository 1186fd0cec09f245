// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(killDirEnv) != "" {
		writeUntilKilled()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		dir := t.TempDir()
		return storagetest.Place{
			Open: func(t *testing.T, f storage.Fingerprint) storage.Store {
				t.Helper()
				s, err := storage.Open(context.Background(), "file:"+dir, f)
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Tamper: func(t *testing.T, f storage.Fingerprint, k storage.Key, change func([]byte) []byte) {
				t.Helper()
				tamper(t, filepath.Join(dir, f.ID().String()), f, k, change)
			},
		}
	})
}

// tamper replaces the last frame of the last segment, which must be k's.
func tamper(t *testing.T, dir string, f storage.Fingerprint, k storage.Key, change func([]byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	path := names[len(names)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, []byte("TCPG"))
	id := f.ID()
	if at < 0 || !bytes.Equal(b[at+16:at+32], id[:]) || !bytes.Equal(b[at+32:at+64], k.Page[:]) {
		t.Fatalf("the last frame of %s is not that of %v", path, k)
	}
	b = append(b[:at:at], change(append([]byte(nil), b[at:]...))...)
	if err := os.WriteFile(path, b, 0o644); err != nil { // the same file, cut and written anew
		t.Fatal(err)
	}
}
