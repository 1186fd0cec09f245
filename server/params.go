// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

const (
	maxStops       = 16
	maxStopLength  = 1024
	maxTemperature = 100
)

// prompt is what one request is about.
type prompt struct {
	tokens []tree.Token
	param  string // the field that it came from
}

// namespace reads the fields that keep cached state apart. They may not differ in
// what they keep apart: two requests share a prefix if both are equal.
func namespace(f *fields) (n tree.Namespace) {
	n.ExtraKey, n.HasExtraKey = f.text("extra_key")
	n.Salt, _ = f.text("cache_salt")
	return n
}

// prompts reads one prompt or a list of them: a string, a list of strings, a list
// of token ids or a list of such lists. many says that it was a list of prompts.
func (s *Server) prompts(f *fields, name string) (list []prompt, many bool) {
	if !f.has(name) {
		return nil, false
	}
	raw := f.raw[name]
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []prompt{{encode(one), name}}, false
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		f.bad(name, "is %s, must be a string, a list of strings, a list of token ids or a list of such lists", short(raw))
		return nil, false
	}
	if len(items) == 0 {
		f.bad(name, "is empty: a prompt has one token or more")
		return nil, false
	}
	if c := bytes.TrimSpace(items[0])[0]; c != '"' && c != '[' {
		return []prompt{{f.tokens(name, raw, s.opts.TokenLimit), name}}, false
	}
	if len(items) > s.opts.MaxParallel {
		f.bad(name, "has %d prompts, at most %d are taken at once", len(items), s.opts.MaxParallel)
		return nil, true
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", name, i)
		switch {
		case json.Unmarshal(item, &one) == nil && !isNull(item):
			list = append(list, prompt{encode(one), at})
		case bytes.TrimSpace(item)[0] == '[':
			list = append(list, prompt{f.tokens(at, item, s.opts.TokenLimit), at})
		default:
			f.bad(at, "is %s, must be a string or a list of token ids", short(item))
		}
	}
	return list, true
}

// checkLength says whether a prompt and its output can fit.
func (s *Server) checkLength(p prompt, output int, outputParam string) *apiError {
	n := len(p.tokens)
	switch {
	case n == 0:
		return badField(p.param, "is empty: a prompt has one token or more")
	case n > s.maxPrompt:
		return tooLong(p.param, "has %d tokens, at most %d are taken: send fewer, or raise --max-prompt-tokens or --device-tokens", n, s.maxPrompt)
	case n+output > s.context:
		return tooLong(outputParam, "is %d, which with a prompt of %d tokens is more than the %d that the device holds: ask for at most %d, or raise --device-tokens",
			output, n, s.context, s.context-n)
	}
	return nil
}

// sampling is how an output is made.
type sampling struct {
	maxTokens   int
	temperature float64
	seed        uint64
	stopTokens  []tree.Token
	stops       []string
}

// stopFields reads what ends an output.
func (x *sampling) stopFields(f *fields, ignoreEnd bool) {
	x.stops = f.texts("stop", maxStops)
	for _, t := range x.stops {
		if t == "" || len(t) > maxStopLength {
			f.bad("stop", "has a text of %d bytes, must be 1 to %d", len(t), maxStopLength)
		}
	}
	if !ignoreEnd {
		x.stopTokens = append(x.stopTokens, endOfText)
	}
	if f.has("stop_token_ids") {
		x.stopTokens = append(x.stopTokens, f.tokens("stop_token_ids", f.raw["stop_token_ids"], 0)...)
	}
}

// params are the engine's, for one prompt and the i-th output of it.
func (x *sampling) params(p prompt, n tree.Namespace, priority int64, i int) engine.Params {
	return engine.Params{
		Tokens: p.tokens, Namespace: n, Priority: priority,
		MaxTokens: x.maxTokens, Temperature: x.temperature, Seed: x.seed + uint64(i), Stop: x.stopTokens,
	}
}

// makeJobs checks what was asked for and makes the jobs: n outputs of each prompt,
// those of one prompt side by side.
func (s *Server) makeJobs(list []prompt, n int, x sampling, outputParam string, ns tree.Namespace, priority int64) ([]*job, *apiError) {
	if len(list)*n > s.opts.MaxParallel {
		return nil, badField("n", "%d outputs of %d prompts are more than the %d that one call may ask for", n, len(list), s.opts.MaxParallel)
	}
	for _, p := range list {
		if err := s.checkLength(p, x.maxTokens, outputParam); err != nil {
			return nil, err
		}
	}
	jobs := newJobs(len(list) * n)
	for i, j := range jobs {
		j.params = x.params(list[i/n], ns, priority, i%n)
		j.stops = x.stops
	}
	return jobs, nil
}
