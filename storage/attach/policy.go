// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"

	"github.com/treecore/treecore/storage"
)

// StopPolicy says when a request no longer waits for its prefetch.
type StopPolicy uint8

// The policies.
const (
	BestEffort   StopPolicy = iota // it does not wait: what is there is used
	WaitComplete                   // until all of it is there
	Timeout                        // until all of it is there, or the time is over (Extra)

	numStopPolicies = 3
)

var stopPolicyNames = [numStopPolicies]string{"best_effort", "wait_complete", "timeout"}

// String returns the name that ParseStopPolicy reads.
func (p StopPolicy) String() string {
	if int(p) < len(stopPolicyNames) {
		return stopPolicyNames[p]
	}
	return fmt.Sprintf("StopPolicy(%d)", uint8(p))
}

// ParseStopPolicy reads the name of a policy. Another name is a
// *storage.ConfigError.
func ParseStopPolicy(name string) (StopPolicy, error) {
	for p, n := range stopPolicyNames {
		if n == name {
			return StopPolicy(p), nil
		}
	}
	return 0, &storage.ConfigError{Field: "prefetch policy", Value: quoted(name), Allowed: "best_effort, wait_complete or timeout"}
}
