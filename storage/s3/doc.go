// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package s3 keeps pages in a bucket of any S3-compatible store. Many engines
// may share one. Latency is that of a request over the network, so it suits
// large pages and long prefixes.
//
//	s3://ACCESS:SECRET@BUCKET/PREFIX?SETTINGS
//
//	endpoint    HOST:PORT of the store; default s3.amazonaws.com
//	region      default empty: asked of the store
//	tls         1 (default) or 0
//	ca          PEM file of the authority that signed the store's certificate
//	path-style  1: the bucket in the path and not in the host's name; default 0
//	            (stores that are not Amazon's mostly take the path by themselves)
//	parallel    requests at once for a batch, 1 to 128; default 16
//	timeout     of a call as a whole but Clear; default 30s
//
// Without credentials in the URL they come from the variables AWS_ACCESS_KEY_ID
// and AWS_SECRET_ACCESS_KEY, or the file ~/.aws/credentials.
//
// A page is one object, a frame, under the name
// PREFIX/FINGERPRINT/HH/KEY, where HH are the key's first two digits. Stores
// show an object only when it is whole. Pages do not expire by themselves: use a
// lifecycle rule of the bucket.
package s3
