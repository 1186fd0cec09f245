// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package model holds model profiles: what a model keeps for each token and for
// each prefix, and how much of it fits a device.
//
// A profile is a YAML file. The known ones are built in; [Load] takes the name
// of one of them or the path of a file of the user's own. [Profile.Pools] turns
// "40 GiB for cached state" into slots of each component.
//
// # Profile files
//
//	name: my-model                  # required
//	full:
//	  bytes_per_token: 131072       # required: all full-attention layers, keys and values
//	swa:                            # only with sliding-window layers
//	  bytes_per_token: 24576        # all sliding-window layers
//	  window: 128                   # tokens that a query sees
//	mamba:                          # only with recurrent layers of any kind
//	  bytes_per_state: 77266944     # all such layers, one state
//	  checkpoint_grid: 64           # tokens between states that may be kept; default 64
//	page_size: 16                   # default 16, with mamba 64
//	prefill_tokens_per_second: 9000 # optional, per rank
//	decode_tokens_per_second: 40    # optional, of one request
//
// Bytes are those of one rank. Unknown fields are errors.
package model
