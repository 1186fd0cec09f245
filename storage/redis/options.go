// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/treecore/treecore/storage"
)

func init() {
	storage.Register("redis", openURL)
	storage.Register("rediss", openURL)
}

func openURL(ctx context.Context, u *url.URL, f storage.Fingerprint) (storage.Store, error) {
	client, ttl, err := options(u)
	if err != nil {
		return nil, err
	}
	return open(ctx, client, ttl, f)
}

// options turns a URL into the client's options and the time to live of pages.
func options(u *url.URL) (rueidis.ClientOption, time.Duration, error) {
	s := storage.NewSettings(u)
	// No retries: a failed read is a miss at once, and the engine goes on.
	o := rueidis.ClientOption{DisableCache: true, DisableRetry: true, ClientName: "treecore"}
	for _, given := range strings.Split(u.Host, ",") {
		host := given
		if !strings.Contains(host, ":") {
			host += ":6379"
		}
		if given == "" {
			s.Bad("host", "missing", "HOST or HOST:PORT, as in redis://HOST:PORT/0, several joined by commas")
		} else if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			s.Bad("host", strconv.Quote(given), "HOST or HOST:PORT, several joined by commas")
		}
		o.InitAddress = append(o.InitAddress, host)
	}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if db := strings.Trim(u.Path, "/"); db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 {
			s.Bad("database", strconv.Quote(db), "a number, as in redis://HOST:PORT/0")
		}
		o.SelectDB = n
	}
	mode, master := s.Text("mode", "single"), s.Text("master", "")
	sentinelUser, sentinelPassword := s.Text("sentinel-user", ""), s.Text("sentinel-password", "")
	switch mode {
	case "single":
		o.ForceSingleClient = true
		if len(o.InitAddress) > 1 {
			s.Bad("host", strconv.Quote(u.Host), "one HOST:PORT, or mode=cluster or mode=sentinel")
		}
	case "cluster":
		o.ShuffleInit = true
		if o.SelectDB != 0 {
			s.Bad("database", strconv.Itoa(o.SelectDB), "0 with mode=cluster")
		}
	case "sentinel":
		if master == "" {
			s.Bad("master", "empty", "the name of the master set, as the sentinels know it")
		}
		o.Sentinel = rueidis.SentinelOption{MasterSet: master, Username: sentinelUser, Password: sentinelPassword}
	default:
		s.Bad("mode", strconv.Quote(mode), "single, sentinel or cluster")
	}
	if mode != "sentinel" && master != "" {
		s.Bad("master", strconv.Quote(master), "only with mode=sentinel")
	}
	ttl := s.Duration("ttl", 0)
	if ttl > 0 && ttl < time.Second {
		s.Bad("ttl", ttl.String(), "0 for never, or at least 1s")
	}
	timeout := s.Duration("timeout", 10*time.Second)
	if timeout < time.Millisecond {
		s.Bad("timeout", timeout.String(), "at least 1ms")
	}
	o.Dialer.Timeout, o.ConnWriteTimeout = timeout, timeout
	ca, cert, key := s.Text("ca", ""), s.Text("cert", ""), s.Text("key", "")
	if u.Scheme == "rediss" {
		o.TLSConfig = tlsConfig(s, ca, cert, key)
		if mode == "sentinel" {
			o.Sentinel.TLSConfig = o.TLSConfig
		}
	} else if ca+cert+key != "" {
		s.Bad("scheme", `"redis"`, "rediss, since ca, cert or key is given")
	}
	return o, ttl, s.Err()
}

func tlsConfig(s *storage.Settings, ca, cert, key string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		c.RootCAs = x509.NewCertPool()
		if err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			s.Bad("ca", strconv.Quote(ca), "a readable PEM file with a certificate")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			s.Bad("cert, key", strconv.Quote(cert+", "+key), "two readable PEM files that belong together")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
