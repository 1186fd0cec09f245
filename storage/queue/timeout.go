// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// Timeout is how long a prefetch may take before its request goes on with what
// is there.
type Timeout struct {
	Base       time.Duration // whatever the length. Zero: DefaultTimeout's; below 0: none
	PerKiToken time.Duration // for each 1,024 tokens that were found. Zero: DefaultTimeout's; below 0: none
}

// DefaultTimeout is what the zero Timeout stands for.
var DefaultTimeout = Timeout{Base: time.Second, PerKiToken: 250 * time.Millisecond}

// For returns the time that a prefetch of so many tokens may take; the longest
// there is, if it is longer.
func (t Timeout) For(tokens int) time.Duration {
	if t.Base == 0 {
		t.Base = DefaultTimeout.Base
	}
	if t.PerKiToken == 0 {
		t.PerKiToken = DefaultTimeout.PerKiToken
	}
	total := float64(max(t.Base, 0)) + float64(max(t.PerKiToken, 0))*float64(tokens)/1024
	if total >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(total)
}

// Passed reports whether an operation was started longer ago than a prefetch of
// so many tokens may take.
func (t Timeout) Passed(o *Operation, tokens int) bool { return o.Age() > t.For(tokens) }

// Clock tells the time.
type Clock = func() time.Time
