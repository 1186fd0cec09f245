// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/treecore/treecore/storage"
)

func init() { storage.Register("s3", openURL) }

// settings are what a URL says.
type settings struct {
	endpoint, bucket, prefix string
	client                   minio.Options
	transport                *http.Transport
	parallel                 int
	timeout                  time.Duration
}

func openURL(ctx context.Context, u *url.URL, f storage.Fingerprint) (storage.Store, error) {
	o, err := options(u)
	if err != nil {
		return nil, err
	}
	return open(ctx, o, f)
}

func options(u *url.URL) (settings, error) {
	s := storage.NewSettings(u)
	o := settings{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if o.bucket == "" {
		s.Bad("bucket", "empty", "a bucket's name, as in s3://BUCKET/PREFIX")
	}
	if len(o.prefix) > 512 {
		s.Bad("prefix", strconv.Itoa(len(o.prefix))+" bytes long", "at most 512 bytes")
	}
	o.endpoint = s.Text("endpoint", "s3.amazonaws.com")
	if o.endpoint == "" || strings.Contains(o.endpoint, "/") {
		s.Bad("endpoint", strconv.Quote(o.endpoint), "HOST or HOST:PORT, without http://")
	}
	o.client.Region = s.Text("region", "")
	o.client.Secure = s.Bool("tls", true)
	o.client.BucketLookup = minio.BucketLookupAuto
	if s.Bool("path-style", false) {
		o.client.BucketLookup = minio.BucketLookupPath
	}
	o.parallel = s.Int("parallel", 16, 1, storage.MaxBatch)
	if o.timeout = s.Duration("timeout", 30*time.Second); o.timeout < time.Millisecond {
		s.Bad("timeout", o.timeout.String(), "at least 1ms")
	}
	// No retries: a failed read is a miss at once, and the engine goes on.
	o.client.MaxRetries = 1
	o.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 2 * o.parallel, MaxIdleConnsPerHost: 2 * o.parallel,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}
	o.client.Transport = o.transport
	if ca := s.Text("ca", ""); ca != "" {
		pem, err := os.ReadFile(ca)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			s.Bad("ca", strconv.Quote(ca), "a readable PEM file with a certificate")
		}
		o.transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if access := u.User.Username(); access != "" {
		secret, given := u.User.Password()
		if !given {
			s.Bad("secret", "empty", "both, as in s3://ACCESS:SECRET@BUCKET, or neither")
		}
		o.client.Creds = credentials.NewStaticV4(access, secret, "")
	} else {
		o.client.Creds = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	}
	return o, s.Err()
}
