// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

func TestMain(m *testing.M) {
	// The cluster client closes connections to nodes that left five seconds
	// later, also after it was closed itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

var ctx = context.Background()

// place is a Redis at a URL; apart keeps tests that share one from each other.
func place(rawURL, apart string) storagetest.Place {
	move := func(f storage.Fingerprint) storage.Fingerprint {
		f.Layout += " " + apart
		return f
	}
	return storagetest.Place{
		Open: func(t *testing.T, f storage.Fingerprint) storage.Store {
			t.Helper()
			s, err := storage.Open(ctx, rawURL, f)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Tamper: func(t *testing.T, f storage.Fingerprint, k storage.Key, change func([]byte) []byte) {
			t.Helper()
			u, _ := url.Parse(rawURL)
			o, _, err := options(u)
			if err != nil {
				t.Fatal(err)
			}
			c, err := rueidis.NewClient(o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			name := "tc1:" + f.ID().String() + ":" + k.String()
			frame, err := c.Do(ctx, c.B().Get().Key(name).Build()).AsBytes()
			if err != nil {
				t.Fatal(err)
			}
			set := c.B().Set().Key(name).Value(rueidis.BinaryString(change(frame))).Build()
			if err := c.Do(ctx, set).Error(); err != nil {
				t.Fatal(err)
			}
		},
		Fingerprint: move,
	}
}

func TestContractInProcess(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return place("redis://"+miniredis.RunT(t).Addr(), "")
	})
	t.Run("with a time to live", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storagetest.Place {
			return place("redis://"+miniredis.RunT(t).Addr()+"/3?ttl=1h", "")
		})
	})
}

// Real servers: scripts/services.sh starts them and prints the variables.
func TestContractOnServers(t *testing.T) {
	for _, env := range []string{"TREECORE_REDIS_URL", "TREECORE_REDIS_CLUSTER_URL", "TREECORE_REDIS_SENTINEL_URL", "TREECORE_REDIS_TLS_URL"} {
		t.Run(env, func(t *testing.T) {
			rawURL := os.Getenv(env)
			if rawURL == "" {
				t.Skipf("%s is not set: start servers with scripts/services.sh", env)
			}
			n := 0
			storagetest.Run(t, func(t *testing.T) storagetest.Place {
				n++
				return place(rawURL, fmt.Sprintf("%d %d %d", os.Getpid(), time.Now().UnixNano(), n))
			})
		})
	}
}

func TestTimeToLive(t *testing.T) {
	server := miniredis.RunT(t)
	s, err := storage.Open(ctx, "redis://"+server.Addr()+"?ttl=1h", storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	keys := storage.Keys(storagetest.Chain(2, 1, tree.Namespace{}), "full")
	if _, err := s.Put(ctx, keys, storagetest.Pages(keys, 100)); err != nil {
		t.Fatal(err)
	}
	server.FastForward(40 * time.Minute)
	if ok, err := s.Exists(ctx, keys[:1]); err != nil || !ok[0] {
		t.Fatalf("before the end: %v, %v", ok, err)
	}
	server.FastForward(40 * time.Minute)
	if ok, err := s.Exists(ctx, keys); err != nil || !ok[0] || ok[1] {
		t.Errorf("the look-up begins the time anew for the first page only: %v, %v", ok, err)
	}
}

// A server that fails is misses and failed writes, counted by kind.
func TestServerErrors(t *testing.T) {
	server := miniredis.RunT(t)
	s, err := storage.Open(ctx, "redis://"+server.Addr()+"?timeout=200ms", storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	keys := storage.Keys(storagetest.Chain(2, 1, tree.Namespace{}), "full")
	for answer, kind := range map[string]storage.Kind{
		"OOM command not allowed when used memory > 'maxmemory'.": storage.NoSpace,
		"READONLY You can't write against a read only replica.":   storage.ReadOnly,
		"NOPERM this user has no permissions":                     storage.Denied,
		"LOADING Redis is loading the dataset in memory":          storage.Unreachable,
		"ERR something": storage.Other,
	} {
		server.SetError(answer)
		ok, err := s.Put(ctx, keys, storagetest.Pages(keys, 100))
		var e *storage.Error
		if !errors.As(err, &e) || e.Kind != kind || ok[0] || ok[1] {
			t.Errorf("%s: %v, %v: wanted kind %v", answer, ok, err, kind)
		}
	}
	server.SetError("")
	if ok, err := s.Put(ctx, keys, storagetest.Pages(keys, 100)); err != nil || !ok[1] {
		t.Errorf("afterwards: %v, %v", ok, err)
	}
	address := server.Addr()
	server.Close()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ok, err := s.Get(short, keys, storagetest.Buffers(2, 100))
	var e *storage.Error
	if !errors.As(err, &e) || e.Kind != storage.Unreachable && e.Kind != storage.TimedOut || ok[0] {
		t.Errorf("without a server: %v, %v", ok, err)
	}
	if _, err := storage.Open(ctx, "redis://"+address+"?timeout=200ms", storagetest.Fingerprint()); !errors.As(err, &e) || e.Op != "open" {
		t.Errorf("opening without a server: %v", err)
	}
}

func TestAuthentication(t *testing.T) {
	server := miniredis.RunT(t)
	server.RequireUserAuth("engine", "secret")
	s, err := storage.Open(ctx, "redis://engine:secret@"+server.Addr(), storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_, err = storage.Open(ctx, "redis://engine:guess@"+server.Addr(), storagetest.Fingerprint())
	var e *storage.Error
	if !errors.As(err, &e) || e.Kind != storage.Denied {
		t.Errorf("a wrong password: %v, wanted kind denied", err)
	}
}

// A server that has fewer databases says so in one way or another.
func TestNoSuchDatabase(t *testing.T) {
	for _, answer := range []string{
		"ERR DB index is out of range", "ERR invalid DB index", "ERR value is out of range", "ERR SELECT is not allowed in cluster mode",
	} {
		server := miniredis.RunT(t)
		server.Server().SetPreHook(func(p *miniserver.Peer, command string, _ ...string) bool {
			if command != "SELECT" {
				return false
			}
			p.WriteError(answer)
			return true
		})
		_, err := storage.Open(ctx, "redis://"+server.Addr()+"/99", storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != "database" || !strings.HasPrefix(e.Value, "99") || !strings.Contains(e.Allowed, "0 to 15") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// What was not given is not quoted as if it were.
func TestMissingHost(t *testing.T) {
	for _, c := range []struct{ url, value string }{
		{"redis://", "missing"}, {"redis:///3", "missing"}, {"redis:h", "missing"}, {"redis://,h:1?mode=cluster", "missing"}, {"redis://:1", `":1"`},
	} {
		_, err := storage.Open(ctx, c.url, storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != "host" || e.Value != c.value || !strings.Contains(e.Allowed, "HOST:PORT") {
			t.Errorf("%s: %v, wanted a host that is %s", c.url, err, c.value)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range []struct{ url, field string }{
		{"redis://", "host"},
		{"redis://h:1,h:2", "host"},
		{"redis://h:1/x", "database"},
		{"redis://h:1/2?mode=cluster", "database"},
		{"redis://h:1?mode=ring", "mode"},
		{"redis://h:1?mode=sentinel", "master"},
		{"redis://h:1?master=m", "master"},
		{"redis://h:1?ttl=forever", "ttl"},
		{"redis://h:1?ttl=1ms", "ttl"},
		{"redis://h:1?timeout=0", "timeout"},
		{"redis://h:1?ca=/x", "scheme"},
		{"rediss://h:1?ca=/no/such/file", "ca"},
		{"rediss://h:1?cert=/no/such/file", "cert, key"},
		{"redis://h:1?tls=1", "setting \"tls\""},
	} {
		_, err := storage.Open(ctx, c.url, storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != c.field || e.Allowed == "" {
			t.Errorf("%s: %v, wanted field %s", c.url, err, c.field)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the message holds the password", c.url)
		}
	}
}
