// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package redis keeps pages in Redis or Valkey: one server, a set of servers
// behind Sentinel, or a Cluster. Many engines may share one.
//
//	redis://USER:PASSWORD@HOST:PORT,HOST2:PORT/DB?SETTINGS
//	rediss://...                                   the same with TLS
//
//	mode      single (default), sentinel or cluster
//	master    name of the master set; required for sentinel
//	ttl       pages go that long after their last write or look-up; 0 (default) never
//	timeout   of a connection, and of a call as a whole but Clear; default 10s
//	ca        PEM file of the authority that signed the server's certificate
//	cert, key PEM files of the client's certificate and key
//	sentinel-user, sentinel-password   where the sentinels want their own
//
// A page is one string value, a frame, under the name tc1:FINGERPRINT:KEY. A
// value is set in one step, so no reader sees half of it. A batch is one
// pipeline for each server. What the server evicts (maxmemory with an LRU
// policy) is a miss.
package redis
