// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves an engine over HTTP: SGLang's native /generate, OpenAI's
// completions and chat completions, metrics for Prometheus, and a view of what is
// cached and why it was reused or not.
//
// One goroutine owns the engine and calls its steps. Handlers hand it commands and
// get tokens through mailboxes that never block it. A client that goes away ends
// its request, and everything that this held comes back.
package server
