// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package attach reads the settings with which a store is attached to a cache,
// as an operator writes them: when a prefetch is worth it and how long a request
// waits for one. Everything is checked before anything changes (rule AT-2); what
// is wrong is one or more *storage.ConfigError, joined.
//
// It is a package of its own so that neither package storage nor its backends
// bring readers for TOML and YAML along.
package attach
