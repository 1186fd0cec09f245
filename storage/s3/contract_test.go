// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"go.uber.org/goleak"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// inProcess starts a server that keeps objects in memory.
func inProcess(t *testing.T) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("pages"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return "s3://k:s@pages/some/where?tls=0&region=us-east-1&endpoint=" + strings.TrimPrefix(server.URL, "http://")
}

// place is a bucket at a URL; apart keeps tests that share one from each other.
func place(rawURL, apart string) storagetest.Place {
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
			u, err := url.Parse(rawURL)
			if err != nil {
				t.Fatal(err)
			}
			o, err := options(u)
			if err != nil {
				t.Fatal(err)
			}
			c, err := minio.New(o.endpoint, &o.client)
			if err != nil {
				t.Fatal(err)
			}
			defer o.transport.CloseIdleConnections()
			name := o.prefix + "/" + f.ID().String() + "/" + k.String()[:2] + "/" + k.String()
			object, err := c.GetObject(ctx, o.bucket, name, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			frame, err := io.ReadAll(object)
			if err != nil {
				t.Fatal(err)
			}
			_ = object.Close()
			if frame = change(frame); len(frame) == 0 && strings.HasPrefix(rawURL, "s3://k:s@") {
				t.Skip("gofakes3 takes no empty objects; the real server does")
			}
			if _, err := c.PutObject(ctx, o.bucket, name, bytes.NewReader(frame), int64(len(frame)), minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		Fingerprint: func(f storage.Fingerprint) storage.Fingerprint {
			f.Layout += " " + apart
			return f
		},
	}
}

func TestContractInProcess(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Place { return place(inProcess(t), "") })
}

// A real server: scripts/services.sh starts it and prints the variable.
func TestContractOnServer(t *testing.T) {
	rawURL := os.Getenv("TREECORE_S3_URL")
	if rawURL == "" {
		t.Skip("TREECORE_S3_URL is not set: start a server with scripts/services.sh")
	}
	n := 0
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		n++
		return place(rawURL, fmt.Sprintf("%d %d %d", os.Getpid(), time.Now().UnixNano(), n))
	})
}

// The server in process looks at no credentials; a real one does.
func TestWrongCredentialsOnServer(t *testing.T) {
	rawURL := os.Getenv("TREECORE_S3_URL")
	if rawURL == "" {
		t.Skip("TREECORE_S3_URL is not set: start a server with scripts/services.sh")
	}
	right, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	access := right.User.Username()
	for _, user := range []*url.Userinfo{url.UserPassword(access, "guess"), url.UserPassword("nobody", "guess")} {
		wrong := *right
		wrong.User = user
		_, err := storage.Open(ctx, wrong.String(), storagetest.Fingerprint())
		var e *storage.Error
		if !errors.As(err, &e) || e.Kind != storage.Denied || e.Op != "open" {
			t.Errorf("as %s: %v, wanted kind denied", user.Username(), err)
		}
		if err != nil && strings.Contains(err.Error(), "guess") {
			t.Errorf("the message holds the password: %v", err)
		}
	}
}

// A server that fails is misses and failed writes, counted by kind.
func TestServerErrors(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("pages"); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(backend).Server()
	status, code := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == 0 || r.Method != http.MethodPut {
			inner.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said so</Message></Error>", code)
	}))
	rawURL := "s3://k:s@pages?tls=0&parallel=1&region=us-east-1&timeout=5s&endpoint=" + strings.TrimPrefix(server.URL, "http://")
	s, err := storage.Open(ctx, rawURL, storagetest.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	keys := storage.Keys(storagetest.Chain(2, 1, tree.Namespace{}), "full")
	for _, c := range []struct {
		status int
		code   string
		kind   storage.Kind
	}{
		{403, "AccessDenied", storage.Denied},
		{400, "EntityTooLarge", storage.TooLarge},
		{507, "XMinioStorageFull", storage.NoSpace},
		{503, "SlowDown", storage.Unreachable},
		{400, "InvalidRequest", storage.Other},
		{403, "NobodyWeKnow", storage.Denied},
		{413, "SomethingLarge", storage.TooLarge},
		{507, "SomethingFull", storage.NoSpace},
		{429, "SomethingBusy", storage.Unreachable},
		{504, "SomethingSlow", storage.TimedOut},
	} {
		status, code = c.status, c.code
		ok, err := s.Put(ctx, keys, storagetest.Pages(keys, 100))
		var e *storage.Error
		if !errors.As(err, &e) || e.Kind != c.kind || ok[0] || ok[1] {
			t.Errorf("%s: %v, %v: wanted kind %v", c.code, ok, err, c.kind)
		}
	}
	status = 0
	if ok, err := s.Put(ctx, keys, storagetest.Pages(keys, 100)); err != nil || !ok[1] {
		t.Errorf("afterwards: %v, %v", ok, err)
	}
	server.Close()
	ok, err := s.Get(ctx, keys, storagetest.Buffers(2, 100))
	var e *storage.Error
	if !errors.As(err, &e) || e.Kind != storage.Unreachable || ok[0] {
		t.Errorf("without a server: %v, %v", ok, err)
	}
	if _, err := storage.Open(ctx, rawURL, storagetest.Fingerprint()); !errors.As(err, &e) || e.Op != "open" {
		t.Errorf("opening without a server: %v", err)
	}
}

func TestNoSuchBucket(t *testing.T) {
	rawURL := strings.Replace(inProcess(t), "@pages/", "@other/", 1)
	_, err := storage.Open(ctx, rawURL, storagetest.Fingerprint())
	var e *storage.ConfigError
	if !errors.As(err, &e) || e.Field != "bucket" || !strings.Contains(err.Error(), `"other"`) || !strings.Contains(e.Allowed, "make it") {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range []struct{ url, field string }{
		{"s3://", "bucket"},
		{"s3://b?endpoint=http://h", "endpoint"},
		{"s3://b?tls=maybe", "tls"},
		{"s3://b?ca=/no/such/file", "ca"},
		{"s3://b?parallel=0", "parallel"},
		{"s3://b?timeout=0", "timeout"},
		{"s3://access@b", "secret"},
		{"s3://b/" + strings.Repeat("p", 600), "prefix"},
		{"s3://b?bucket=c", "setting \"bucket\""},
	} {
		_, err := storage.Open(ctx, c.url, storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != c.field || e.Allowed == "" {
			t.Errorf("%s: %v, wanted field %s", c.url, err, c.field)
		}
	}
}
