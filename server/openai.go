// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/treecore/treecore/engine"
)

// openAICall is a call of /v1/completions or /v1/chat/completions.
type openAICall struct {
	chat         bool
	id, model    string
	created      int64
	jobs         []*job
	each         int // outputs of each prompt
	stream       bool
	includeUsage bool
	logProbs     bool
}

// defaultCompletion is OpenAI's number of tokens for a completion.
const defaultCompletion = 16

func (s *Server) readOpenAI(f *fields, chat bool) (*openAICall, *apiError) {
	c := &openAICall{chat: chat, id: newID("cmpl-"), created: s.now().Unix()}
	var given bool
	if c.model, given = f.text("model"); !given {
		c.model = s.opts.Model
	}
	var list []prompt
	output := int64(defaultCompletion)
	outputParam := "max_tokens"
	if chat {
		c.id, output = newID("chatcmpl-"), engine.DefaultMaxTokens
		list = []prompt{s.messages(f)}
		if f.has("max_completion_tokens") {
			outputParam = "max_completion_tokens"
			f.ignore("max_tokens")
		}
		c.logProbs = f.boolean("logprobs")
		f.neutral("top_logprobs", "0")
		f.neutral("tools", "[]")
		f.neutral("tool_choice", `"none"`, `"auto"`)
		f.neutral("functions", "[]")
		f.neutral("function_call", `"none"`, `"auto"`)
		f.neutral("response_format", `{"type":"text"}`)
		f.neutral("modalities", `["text"]`)
		f.neutral("audio")
		f.neutral("prediction")
		f.neutral("web_search_options")
		f.ignore("parallel_tool_calls", "reasoning_effort", "verbosity")
	} else {
		if list, _ = s.prompts(f, "prompt"); list == nil {
			f.bad("prompt", "is missing: give a string, a list of strings, or token ids")
		}
		c.logProbs = f.has("logprobs")
		f.neutral("logprobs", "0")
		f.neutral("echo", "false")
		f.neutral("best_of", "1")
		f.neutral("suffix", `""`)
	}
	x := sampling{
		maxTokens:   int(f.integer(outputParam, 1, math.MaxInt32, output)),
		temperature: f.number("temperature", 0, 2, 1),
		seed:        uint64(f.integer("seed", math.MinInt64, math.MaxInt64, 0)),
	}
	x.stopFields(f, f.boolean("ignore_eos"))
	c.each = int(f.integer("n", 1, int64(s.opts.MaxParallel), 1))
	c.stream = f.boolean("stream")
	o := f.object("stream_options")
	c.includeUsage = o.boolean("include_usage")
	o.ignore("include_obfuscation")
	ns, priority := namespace(f), f.integer("priority", math.MinInt32, math.MaxInt32, 0)
	neutralSampling(f)
	f.neutral("min_tokens", "0")
	f.ignore("user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier")
	if err := f.end(); err != nil {
		return nil, err
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	if given && c.model != s.opts.Model {
		return nil, &apiError{
			status: http.StatusNotFound, kind: invalidRequest, param: "model", code: "model_not_found",
			message: fmt.Sprintf("model %q is not served here: ask for %q, or leave the field out", short([]byte(c.model)), s.opts.Model),
		}
	}
	var err *apiError
	c.jobs, err = s.makeJobs(list, c.each, x, outputParam, ns, priority)
	return c, err
}

// roles that a message may have.
var roles = map[string]bool{"system": true, "developer": true, "user": true, "assistant": true, "tool": true, "function": true}

// messages reads a conversation as one prompt. What a later turn adds stands
// behind all that was there, so that each turn finds the one before it cached.
func (s *Server) messages(f *fields) prompt {
	const name = "messages"
	p := prompt{param: name}
	var list []map[string]any
	if !f.read(name, &list, "a list of messages with role and content") || len(list) == 0 {
		f.bad(name, "is missing or empty: give one message or more")
		return p
	}
	var text strings.Builder
	for i, m := range list {
		at := fmt.Sprintf("%s[%d]", name, i)
		role, ok := m["role"].(string)
		if !ok || !roles[role] {
			f.bad(at+".role", "must be system, developer, user, assistant, tool or function")
			return p
		}
		if m["tool_calls"] != nil || m["function_call"] != nil {
			f.bad(at, "has calls of tools, which this server does not offer: leave them out")
			return p
		}
		content, ok := contentText(m["content"])
		if !ok {
			f.bad(at+".content", "must be a string or a list of parts of type text")
			return p
		}
		fmt.Fprintf(&text, "<|%s|>\n%s\n", role, content)
	}
	text.WriteString("<|assistant|>\n")
	p.tokens = encode(text.String())
	return p
}

// contentText joins the parts of a message.
func contentText(content any) (string, bool) {
	parts, ok := content.([]any)
	if !ok {
		text, ok := content.(string)
		return text, ok
	}
	var b strings.Builder
	for _, x := range parts {
		part, _ := x.(map[string]any)
		text, ok := part["text"].(string)
		if kind, _ := part["type"].(string); !ok || kind != "text" {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) { s.openAI(w, r, false) }

func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) { s.openAI(w, r, true) }

func (s *Server) openAI(w http.ResponseWriter, r *http.Request, chat bool) {
	f, problem := s.readBody(w, r)
	var c *openAICall
	if problem == nil {
		c, problem = s.readOpenAI(f, chat)
	}
	if problem != nil {
		writeError(w, r, problem)
		return
	}
	if c.stream {
		s.streamOpenAI(w, r, c)
		return
	}
	if problem = s.follow(r, c.jobs, nil); problem != nil {
		writeError(w, r, problem)
		return
	}
	d := c.document(false)
	d.Choices = []any{}
	for i, j := range c.jobs {
		o := j.outcome()
		d.Choices = append(d.Choices, c.choice(i, o.progress, 0, o.text))
	}
	d.Usage = c.usage()
	writeJSON(w, http.StatusOK, d)
}

// streamOpenAI sends what is new each time that there is something.
func (s *Server) streamOpenAI(w http.ResponseWriter, r *http.Request, c *openAICall) {
	events := s.newEvents(w)
	decoders, taken := make([]*decoder, len(c.jobs)), make([]int, len(c.jobs))
	for i, j := range c.jobs {
		decoders[i] = newDecoder(j.stops)
	}
	problem := s.follow(r, c.jobs, func(i int, p progress) error {
		text := decoders[i].next(p.tokens[taken[i]:])
		if p.finish != engine.Unfinished {
			text += decoders[i].end(p.matched)
		}
		d := c.document(true)
		d.Choices = []any{c.delta(i, p, taken[i], text)}
		taken[i] = len(p.tokens)
		return events.send(d)
	})
	if problem == nil && c.includeUsage {
		d := c.document(true)
		d.Choices, d.Usage = []any{}, c.usage()
		if events.send(d) != nil {
			problem = errGone
		}
	}
	events.end(r, problem)
}
