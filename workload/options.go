// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"strings"
	"time"
)

const (
	defaultMaxLine = 256 << 20
	maxBlockSize   = 1 << 20
	maxGroups      = 1 << 20
)

// Options say how a trace is read. The zero value detects the format and takes
// its defaults.
type Options struct {
	// Format is one of Formats; empty: detect it from the first line.
	Format string
	// BlockSize is the number of tokens a block id stands for. 0: what the file
	// says, else 512 for mooncake, 64 for sessions, 16 for bailian. Not allowed
	// for formats without blocks.
	BlockSize int
	// TimeUnit is the unit of times given as plain numbers. 0: milliseconds for
	// mooncake and tokens, seconds for sessions, bailian and burstgpt. Not
	// allowed for azure, which gives dates.
	TimeUnit time.Duration
	// Chained says whether a block id stands for the block and everything
	// before it. It fills in Workload.Chained and changes no tokens.
	Chained Chaining
	// Limit ends reading after that many requests; 0: all. What follows is not
	// looked at.
	Limit int
	// TolerateCutLine accepts a file that ends inside its last line, or a gzip
	// stream that breaks off: the line is dropped and counted in
	// Workload.Truncated.
	TolerateCutLine bool
	// MaxLineBytes is the longest line accepted; 0: 256 MiB.
	MaxLineBytes int
	// Sharing invents how prompts share prefixes. Only for the formats that give
	// lengths alone: azure and burstgpt.
	Sharing Sharing
}

// Chaining says what a block id stands for.
type Chaining int

const (
	FormatChaining Chaining = iota // what the format says: chained for mooncake and sessions
	Chained                        // the block and everything before it
	Unchained                      // the block alone
)

// Sharing is a made-up model of how prompts share prefixes, for traces that give
// nothing but lengths. A prompt is the system prompt, then the prefix of its
// group, then tokens of its own, all cut to the length in the trace. The zero
// value shares nothing.
type Sharing struct {
	// SystemTokens is the length of the system prompt that all requests share.
	SystemTokens int
	// Groups is the number of groups, each with a prefix of its own, and
	// GroupTokens the prefix's length. Both or neither.
	Groups      int
	GroupTokens int
	// ZipfExponent says how unequal groups are: group k is chosen with a weight
	// of 1/k^exponent. 0: all alike.
	ZipfExponent float64
	// Seed of the choice of groups.
	Seed uint64
}

func (s Sharing) none() bool { return s.SystemTokens == 0 && s.Groups == 0 }

// validate reports everything that is wrong whatever the format.
func (o Options) validate() error {
	var p problems
	if o.Format != "" && formatNamed(o.Format) == nil {
		p.add("format %s", unknownFormat(o.Format))
	}
	p.check("block size", o.BlockSize, 0, maxBlockSize)
	if o.TimeUnit < 0 || o.TimeUnit > 24*time.Hour {
		p.add("time unit is %v, must be positive and at most a day", o.TimeUnit)
	}
	if o.Chained < FormatChaining || o.Chained > Unchained {
		p.add("chaining is %d, must be FormatChaining, Chained or Unchained", o.Chained)
	}
	p.check("limit", o.Limit, 0, int(maxRequests))
	p.check("longest line in bytes", o.MaxLineBytes, 0, math.MaxInt32)
	s := o.Sharing
	p.check("shared system prompt in tokens", s.SystemTokens, 0, MaxLength)
	p.check("number of sharing groups", s.Groups, 0, maxGroups)
	p.check("group prefix in tokens", s.GroupTokens, 0, MaxLength)
	if s.Groups > 0 != (s.GroupTokens > 0) {
		p.add("%d sharing groups with prefixes of %d tokens: give both or neither", s.Groups, s.GroupTokens)
	}
	if !(s.ZipfExponent >= 0 && s.ZipfExponent <= 100) {
		p.add("zipf exponent is %v, must be from 0 to 100", s.ZipfExponent)
	}
	if s.ZipfExponent != 0 && s.Groups == 0 {
		p.add("a zipf exponent needs sharing groups")
	}
	return p.err("options")
}

// validateFor reports what does not go with the format, once it is known.
func (o Options) validateFor(f *format) error {
	var p problems
	if f.block == 0 && o.BlockSize != 0 {
		p.add("a block size does not apply: the format has no blocks")
	}
	if f.block == 0 && o.Chained != FormatChaining {
		p.add("chaining does not apply: the format has no blocks")
	}
	if f.unit == 0 && o.TimeUnit != 0 {
		p.add("a time unit does not apply: the format gives dates")
	}
	if !f.lengthsOnly && o.Sharing != (Sharing{}) {
		p.add("a sharing model does not apply: the format says what prompts share")
	}
	return p.err("options for format " + f.name)
}

// format is what the readers need to know about a format in advance.
type format struct {
	name        string
	block       int           // default block size; 0: no blocks
	unit        time.Duration // default unit of times; 0: dates
	chained     bool
	lengthsOnly bool
	parser      func(*builder, Options) parser
}

// parser takes the lines of a file one by one and adds requests to a builder. A
// line that gives an error adds nothing.
type parser interface {
	line(text []byte) *fieldError
}

// formats lists what can be read, by name.
func formats() []format {
	return []format{
		{name: "azure", lengthsOnly: true, parser: newAzure},
		{name: "bailian", block: 16, unit: time.Second, parser: newBailian},
		{name: "burstgpt", unit: time.Second, lengthsOnly: true, parser: newBurstGPT},
		{name: "mooncake", block: 512, unit: time.Millisecond, chained: true, parser: newMooncake},
		{name: "sessions", block: 64, unit: time.Second, chained: true, parser: newSessions},
		{name: "tokens", unit: time.Millisecond, parser: newTokens},
	}
}

// Formats gives the names of the trace formats that can be read, sorted.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

func formatNamed(name string) *format {
	all := formats()
	i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func unknownFormat(name string) string {
	text := clip([]byte(name)) + " is not known; known are " + strings.Join(Formats(), ", ")
	if strings.EqualFold(name, "sharegpt") {
		text += " (sharegpt holds texts: a tokenizer must turn it into the tokens format first)"
	}
	return text
}
