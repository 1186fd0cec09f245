// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage is the third tier: a store of pages that outlives the process
// and may be shared by many engines.
//
// A Store knows nothing of trees. It keeps pages under keys: a Key is the hash
// of a page, which names the whole prefix up to the page's end and the
// namespace it belongs to (tree.HashPages), and the name of the pool whose part
// of the page it is. Every store is opened for one Fingerprint, which says what
// the bytes mean: model, revision, data type, page size, components, window and
// rank layout. Stores of different fingerprints never see each other's pages,
// also where they share a folder, a Redis or a bucket.
//
// Pages are stored in a frame (see Frame) with their key, their fingerprint and
// a checksum. A page that is torn, cut short, altered, of another layout or of
// another length is a miss: it is counted by kind, logged once and removed where
// that is possible, and its bytes are never reported as read.
//
// Three backends implement the interface and pass the contract test of package
// storagetest:
//
//	storage/file   a folder of this machine (file:DIR), the default
//	storage/redis  Redis or Valkey: single, Sentinel, Cluster (redis://, rediss://)
//	storage/s3     any S3-compatible store (s3://BUCKET/PREFIX)
//
// A backend registers its URL scheme when its package is imported; package
// storage/all imports all three. Open takes the URL and the fingerprint.
//
// Lookup answers how many leading pages of a prefix can be used, over all pools
// at once (Usable). A read may still find fewer: pages can vanish between the
// two, so what counts is the leading run of successes of Get (Leading).
//
// Faulty wraps a store and injects failures where small predicates say so.
package storage
