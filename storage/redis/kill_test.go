// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
)

const killsEnv = "TREECORE_KILLS" // how often the server is killed; 1 by default

// A server that is killed while pages are written, and started again on what it
// left on disk, never makes a wrong hit.
func TestServerKilledWhileWriting(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: scripts/services.sh install")
	}
	kills := 1
	if v := os.Getenv(killsEnv); v != "" {
		if kills, err = strconv.Atoi(v); err != nil || kills < 1 {
			t.Fatalf("%s is %q: give a number of at least 1", killsEnv, v)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	dir := t.TempDir()
	start := func() *exec.Cmd {
		c := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	connect := func() storage.Store {
		for deadline := time.Now().Add(30 * time.Second); ; {
			s, err := storage.Open(ctx, "redis://127.0.0.1:"+port, storagetest.Fingerprint())
			if err == nil {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // another process starts: there is nothing to wait on
		}
	}
	key := func(n int) (storage.Key, int) {
		k := storage.Key{Pool: "full"}
		binary.LittleEndian.PutUint64(k.Page[:], uint64(n)+1)
		return k, []int{100, 5000, 200 << 10}[n%3]
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	next, hits := 0, 0
	for range kills {
		server := start()
		s := connect()
		first := next
		started, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				var keys []storage.Key
				var pages [][]byte
				for range 6 {
					k, size := key(next)
					keys, pages = append(keys, k), append(pages, storagetest.Page(k, size))
					next++
				}
				if _, err := s.Put(ctx, keys, pages); err != nil {
					return
				}
				if next == first+6 {
					close(started)
				}
			}
		}()
		<-started
		time.Sleep(time.Duration(rnd.IntN(40_000)) * time.Microsecond)
		_ = server.Process.Kill()
		_ = server.Wait()
		<-stopped
		_ = s.Close()

		server = start()
		s = connect()
		for n := max(0, first-300); n < next; n++ {
			k, size := key(n)
			into := make([]byte, size)
			ok, err := s.Get(ctx, []storage.Key{k}, [][]byte{into})
			if err != nil {
				t.Fatal(err)
			}
			if ok[0] && !bytes.Equal(into, storagetest.Page(k, size)) {
				t.Fatalf("page %d is a hit with wrong bytes", n)
			}
			if ok[0] {
				hits++
			}
		}
		_ = s.Clear(ctx)
		_ = s.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	if hits == 0 {
		t.Error("no page survived: the test looks in the wrong place")
	}
	t.Logf("%d kills: %d hits, all right", kills, hits)
}
