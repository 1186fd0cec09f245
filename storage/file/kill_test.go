// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

const (
	killDirEnv   = "TREECORE_KILL_DIR"
	killFirstEnv = "TREECORE_KILL_FIRST"
	killsEnv     = "TREECORE_KILLS" // how often TestKilledWhileWriting kills; 1 by default
)

// killKey is the n-th key that the killed process writes; its size follows too.
func killKey(n int) (storage.Key, int) {
	var k storage.Key
	binary.LittleEndian.PutUint64(k.Page[:], uint64(n)+1)
	k.Page[31] = 1
	k.Pool = tree.Full.String()
	return k, []int{100, 5000, 100 << 10, 300 << 10}[n%4]
}

// writeUntilKilled is what the child process does: it writes pages and says
// after each batch how many there are.
func writeUntilKilled() {
	s, err := Open(context.Background(), Options{Dir: os.Getenv(killDirEnv), Size: 64 << 20}, storagetest.Fingerprint())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	first, _ := strconv.Atoi(os.Getenv(killFirstEnv))
	for n := first; ; {
		var keys []storage.Key
		var pages [][]byte
		for range 8 {
			k, size := killKey(n)
			keys, pages = append(keys, k), append(pages, storagetest.Page(k, size))
			n++
		}
		if _, err := s.Put(context.Background(), keys, pages); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if n%64 == 0 {
			_ = s.Delete(context.Background(), keys[:1])
		}
		fmt.Println(n)
	}
}

// A process that is killed while it writes leaves a folder that opens, that has
// every page of which the process said that it was written (the size cap
// permitting), and no wrong page.
func TestKilledWhileWriting(t *testing.T) {
	kills := 1
	if v := os.Getenv(killsEnv); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil || kills < 1 {
			t.Fatalf("%s is %q: give a number of at least 1", killsEnv, v)
		}
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(4, 2))
	first, hits, cut := 0, 0, 0
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), killDirEnv+"="+dir, killFirstEnv+"="+strconv.Itoa(first))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is random within a batch, and after at least one.
		line := make([]byte, 64)
		if _, err := out.Read(line); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.IntN(40_000)) * time.Microsecond)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(out)
		_ = child.Wait()
		said := append(bytes.TrimRight(line, "\x00"), rest...)
		lines := bytes.Fields(said)
		last, err := strconv.Atoi(string(lines[len(lines)-1]))
		if err != nil {
			t.Fatalf("the child says %q", said)
		}
		h, c := checkKilled(t, dir, first, last)
		hits += h
		cut += c
		first = last + 100
	}
	if hits == 0 {
		t.Error("no page survived: the test looks in the wrong place")
	}
	t.Logf("%d kills: %d hits, all right; %d torn ends cut off", kills, hits, cut)
}

// checkKilled opens the folder and reads everything that may be in it.
func checkKilled(t *testing.T, dir string, first, last int) (hits, cut int) {
	t.Helper()
	s, err := Open(context.Background(), Options{Dir: dir, Size: 64 << 20}, storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	cut = int(s.Stats().Errors[storage.Torn])
	for n := max(0, first-1000); n < last+100; n++ {
		k, size := killKey(n)
		into := make([]byte, size)
		ok, err := s.Get(context.Background(), []storage.Key{k}, [][]byte{into})
		if err != nil {
			t.Fatal(err)
		}
		if ok[0] && !bytes.Equal(into, storagetest.Page(k, size)) {
			t.Fatalf("page %d is a hit with wrong bytes", n)
		}
		if ok[0] {
			hits++
		} else if n >= last-100 && n >= first && n < last-8 && (n%8 != 0) {
			t.Fatalf("page %d was written, and lost (%d to %d were written)", n, first, last)
		}
	}
	if got := s.Stats(); got.Errors[storage.Checksum] != 0 || got.Errors[storage.Foreign] != 0 {
		t.Fatalf("damaged pages after a kill: %v", got.Errors)
	}
	return hits, cut
}
