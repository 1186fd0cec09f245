// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/treecore/treecore/cache"
)

// prefetchPolicyName writes a stop policy as the command line does.
func prefetchPolicyName(p cache.StopPolicy) string { return strings.ReplaceAll(p.String(), "_", "-") }

// parsePrefetchPolicy reads the name of a stop policy, with hyphens or, as
// engines write it, underscores.
func parsePrefetchPolicy(name string) (cache.StopPolicy, error) {
	p, err := cache.ParseStopPolicy(strings.ReplaceAll(name, "-", "_"))
	if err != nil {
		return 0, fmt.Errorf("prefetch policy %q: must be %s, %s or %s", name,
			prefetchPolicyName(cache.BestEffort), prefetchPolicyName(cache.WaitComplete), prefetchPolicyName(cache.WaitTimeout))
	}
	return p, nil
}

// completeStorage fills in the defaults of the storage tier and gives all
// problems.
func (o *Options) completeStorage() (problems []error) {
	bad := func(what string, value any, allowed string) {
		problems = append(problems, fmt.Errorf("%s is %v, must be %s", what, value, allowed))
	}
	if o.Storage != "" && o.HostBytes == 0 {
		problems = append(problems, errors.New("storage needs a host tier, through which everything goes: give host bytes, too"))
	}
	if o.PrefetchPolicy == "" {
		o.PrefetchPolicy = DefaultPrefetchPolicy
	}
	var err error
	if o.stopPolicy, err = parsePrefetchPolicy(o.PrefetchPolicy); err != nil {
		problems = append(problems, err)
	}
	if o.PrefetchThreshold == 0 {
		o.PrefetchThreshold = cache.DefaultPrefetchThreshold
	}
	if o.PrefetchThreshold < 0 {
		bad("prefetch threshold", o.PrefetchThreshold, "1 token or more")
	}
	if o.StorageBandwidth == 0 {
		o.StorageBandwidth = DefaultStorageBandwidth
	}
	if !(o.StorageBandwidth >= 1e3 && o.StorageBandwidth <= 1e15) {
		bad("storage bandwidth", o.StorageBandwidth, "from 1e3 to 1e15 bytes a second")
	}
	switch {
	case o.StorageLatency == 0:
		o.StorageLatency = DefaultStorageLatency
	case o.StorageLatency < 0:
		o.StorageLatency = 0
	case o.StorageLatency > time.Minute:
		bad("storage latency", o.StorageLatency, "a minute or less")
	}
	return problems
}
