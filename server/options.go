// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// Defaults of Options.
const (
	DefaultMaxBody      = 32 << 20
	DefaultMaxQueue     = 1024
	DefaultMaxParallel  = 64
	DefaultDrainTimeout = 30 * time.Second
	DefaultSlowClient   = 30 * time.Second
)

// Options configures a Server. Engine and Model are required.
type Options struct {
	// Engine serves the requests. It is the server's from New on, which closes it.
	Engine *engine.Engine
	// Model is the name that clients know the model by.
	Model string
	// TokenLimit is the number of token ids that prompts may hold, 0 to
	// TokenLimit-1. Zero: every id of 32 bits, for a model that takes them all.
	TokenLimit int

	// APIKey is asked for in all calls but /health and /metrics, as
	// "Authorization: Bearer KEY". Empty: nobody is asked.
	APIKey string

	MaxBody   int64 // bytes of a request's body. Zero: DefaultMaxBody
	MaxPrompt int   // tokens of a prompt. Zero: what the device holds
	MaxQueue  int   // requests that wait at once. Zero: DefaultMaxQueue
	// MaxParallel is the most prompts and outputs that one call asks for. Zero:
	// DefaultMaxParallel.
	MaxParallel int
	// DrainTimeout is how long a server that ends waits for what runs. Zero:
	// DefaultDrainTimeout.
	DrainTimeout time.Duration
	// SlowClient is how long a client may take to send a body, or to take a piece
	// of the answer. Zero: DefaultSlowClient.
	SlowClient time.Duration

	// Fingerprint says what the pages are that an attached store keeps. Without a
	// model's name in it no store can be attached.
	Fingerprint storage.Fingerprint

	// Info is shown at /server_info beside what the server knows itself.
	Info map[string]any
	// Log gets what an operator should know. nil: nothing is logged.
	Log *slog.Logger
}

func (o Options) complete() (Options, error) {
	var problems []error
	check := func(ok bool, field, value, allowed string) {
		if !ok {
			problems = append(problems, &tree.ConfigError{Field: field, Value: value, Allowed: allowed})
		}
	}
	check(o.Engine != nil, "Engine", "nil", "an engine")
	check(o.Model != "", "Model", `""`, "the name that clients know the model by")
	check(o.TokenLimit >= 0, "TokenLimit", strconv.Itoa(o.TokenLimit), "1 or more, or 0 for every id")
	check(o.MaxBody >= 0, "MaxBody", strconv.FormatInt(o.MaxBody, 10), "1 byte or more, or 0 for the default")
	check(o.MaxPrompt >= 0, "MaxPrompt", strconv.Itoa(o.MaxPrompt), "1 token or more, or 0 for what the device holds")
	check(o.MaxQueue >= 0, "MaxQueue", strconv.Itoa(o.MaxQueue), "1 or more, or 0 for the default")
	check(o.MaxParallel >= 0, "MaxParallel", strconv.Itoa(o.MaxParallel), "1 or more, or 0 for the default")
	check(o.DrainTimeout >= 0, "DrainTimeout", o.DrainTimeout.String(), "a time, or 0 for the default")
	check(o.SlowClient >= 0, "SlowClient", o.SlowClient.String(), "a time, or 0 for the default")
	if err := errors.Join(problems...); err != nil {
		return o, err
	}
	o.MaxBody = orElse(o.MaxBody, DefaultMaxBody)
	o.MaxQueue = orElse(o.MaxQueue, DefaultMaxQueue)
	o.MaxParallel = orElse(o.MaxParallel, DefaultMaxParallel)
	o.DrainTimeout = orElse(o.DrainTimeout, DefaultDrainTimeout)
	o.SlowClient = orElse(o.SlowClient, DefaultSlowClient)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
