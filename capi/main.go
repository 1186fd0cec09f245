// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Command capi is libtreecore, the tree core as a C library:
//
//	go build -buildmode=c-shared -o libtreecore.so ./capi
//
// The header that belongs to it is treecore.h beside this file, written by hand;
// what the Go command writes next to the library is not meant for use. README.md
// tells builders of engines how to use it.
package main

import _ "github.com/treecore/treecore/capi/internal/abi" // the exported functions

func main() {}
