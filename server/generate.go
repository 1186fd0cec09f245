// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// generateCall is a call of SGLang's native /generate.
type generateCall struct {
	jobs     []*job
	rids     []string
	list     bool // the answer is a list
	stream   bool
	logProbs bool
}

func (s *Server) readGenerate(f *fields) (*generateCall, *apiError) {
	c := &generateCall{}
	texts, manyTexts := s.prompts(f, "text")
	lists, manyLists := s.prompts(f, "input_ids")
	switch {
	case texts != nil && lists != nil:
		f.bad("input_ids", "is given beside text: leave one of them out")
	case texts == nil && lists == nil:
		f.bad("text", "is missing: give text, or token ids as input_ids")
	}
	if f.has("text") && f.raw["text"][0] == '[' && !manyTexts {
		f.bad("text", "holds numbers, must be a string or a list of strings: token ids go into input_ids")
	}
	if f.has("input_ids") && f.raw["input_ids"][0] == '"' {
		f.bad("input_ids", "is a string, must be a list of token ids: texts go into text")
	}
	list := append(texts, lists...)
	c.stream, c.logProbs = f.boolean("stream"), f.boolean("return_logprob")
	f.neutral("logprob_start_len", "-1")
	f.neutral("top_logprobs_num", "0")
	f.neutral("return_hidden_states", "false")
	for _, name := range []string{"token_ids_logprob", "session_params", "lora_path", "custom_logit_processor", "image_data", "video_data", "audio_data", "input_embeds"} {
		f.neutral(name)
	}
	f.ignore("return_text_in_logprobs", "log_metrics")
	ns, priority := namespace(f), f.integer("priority", math.MinInt32, math.MaxInt32, 0)
	c.rids = f.texts("rid", len(list))

	p := f.object("sampling_params")
	x := sampling{
		maxTokens:   int(p.integer("max_new_tokens", 1, math.MaxInt32, engine.DefaultMaxTokens)),
		temperature: p.number("temperature", 0, maxTemperature, 1),
		seed:        uint64(p.integer("sampling_seed", math.MinInt64, math.MaxInt64, 0)),
	}
	x.stopFields(p, p.boolean("ignore_eos"))
	n := int(p.integer("n", 1, int64(s.opts.MaxParallel), 1))
	neutralSampling(p)
	p.neutral("min_new_tokens", "0")
	p.neutral("no_stop_trim", "false")
	for _, name := range []string{"json_schema", "regex", "ebnf", "structural_tag", "stop_regex", "custom_params"} {
		p.neutral(name)
	}
	p.ignore("skip_special_tokens", "spaces_between_special_tokens", "stream_interval")
	if err := f.end(); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	c.list = manyTexts || manyLists || n > 1
	var err *apiError
	if c.jobs, err = s.makeJobs(list, n, x, "sampling_params.max_new_tokens", ns, priority); err != nil {
		return nil, err
	}
	switch len(c.rids) {
	case 0:
		for range c.jobs {
			c.rids = append(c.rids, newID(""))
		}
	case len(list):
		given := c.rids
		c.rids = make([]string, len(c.jobs))
		for i := range c.rids {
			if c.rids[i] = given[i/n]; n > 1 {
				c.rids[i] += fmt.Sprintf("-%d", i%n)
			}
		}
	default:
		return nil, badField("rid", "has %d ids for %d prompts", len(c.rids), len(list))
	}
	return c, nil
}

// neutralSampling refuses settings of the sampler that the engine does not have.
func neutralSampling(f *fields) {
	f.neutral("top_p", "1", "1.0")
	f.neutral("top_k", "-1")
	f.neutral("min_p", "0", "0.0")
	f.neutral("frequency_penalty", "0", "0.0")
	f.neutral("presence_penalty", "0", "0.0")
	f.neutral("repetition_penalty", "1", "1.0")
	f.neutral("logit_bias", "{}")
}

// generated is an answer of /generate, and a piece of a stream.
type generated struct {
	Text      string       `json:"text"`
	OutputIDs []tree.Token `json:"output_ids"`
	Meta      metaInfo     `json:"meta_info"`
	Index     *int         `json:"index,omitempty"` // in the stream of a list
}

type metaInfo struct {
	ID               string      `json:"id"`
	FinishReason     any         `json:"finish_reason"` // nil: it goes on
	PromptTokens     int         `json:"prompt_tokens"`
	CompletionTokens int         `json:"completion_tokens"`
	CachedTokens     int         `json:"cached_tokens"`
	Cached           reuseReport `json:"cached_tokens_details"`
	Match            matchReport `json:"match"`
	LogProbs         [][3]any    `json:"output_token_logprobs,omitempty"`
	Latency          float64     `json:"e2e_latency,omitempty"` // seconds; with the end
}

func (c *generateCall) answer(i int, p progress, text string) generated {
	j := c.jobs[i]
	g := generated{Text: text, OutputIDs: ids(p.tokens), Meta: metaInfo{
		ID: c.rids[i], FinishReason: finishReason(p), PromptTokens: len(j.params.Tokens), CompletionTokens: len(p.tokens),
		CachedTokens: p.reuse.cached, Cached: p.reuse.byTier(), Match: p.reuse.match(),
	}}
	if c.logProbs {
		g.Meta.LogProbs = make([][3]any, len(p.logs))
		for k, l := range p.logs {
			g.Meta.LogProbs[k] = [3]any{l, p.tokens[k], nil}
		}
	}
	if p.finish != engine.Unfinished {
		g.Meta.Latency = p.ended.Sub(j.begun).Seconds()
	}
	return g
}

// finishReason is SGLang's: an object that says what the output ended with.
func finishReason(p progress) any {
	type length struct {
		Type   string `json:"type"`
		Length int    `json:"length"`
	}
	type stop struct {
		Type    string `json:"type"`
		Matched any    `json:"matched"`
	}
	switch {
	case p.finish == engine.Unfinished:
		return nil
	case p.finish == engine.FinishLength:
		return length{"length", len(p.tokens)}
	case p.stop != nil:
		return stop{"stop", *p.stop}
	}
	return stop{"stop", p.matched}
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	f, problem := s.readBody(w, r)
	var c *generateCall
	if problem == nil {
		c, problem = s.readGenerate(f)
	}
	if problem != nil {
		writeError(w, r, problem)
		return
	}
	if c.stream {
		s.streamGenerate(w, r, c)
		return
	}
	if problem = s.follow(r, c.jobs, nil); problem != nil {
		writeError(w, r, problem)
		return
	}
	answers := make([]generated, len(c.jobs))
	for i, j := range c.jobs {
		o := j.outcome()
		answers[i] = c.answer(i, o.progress, o.text)
	}
	if c.list {
		writeJSON(w, http.StatusOK, answers)
		return
	}
	writeJSON(w, http.StatusOK, answers[0])
}

// streamGenerate sends what there is each time that there is more: as SGLang
// does, each piece has all of the text so far.
func (s *Server) streamGenerate(w http.ResponseWriter, r *http.Request, c *generateCall) {
	events := s.newEvents(w)
	decoders := make([]*decoder, len(c.jobs))
	texts, taken := make([]string, len(c.jobs)), make([]int, len(c.jobs))
	for i, j := range c.jobs {
		decoders[i] = newDecoder(j.stops)
	}
	problem := s.follow(r, c.jobs, func(i int, p progress) error {
		texts[i] += decoders[i].next(p.tokens[taken[i]:])
		taken[i] = len(p.tokens)
		if p.finish != engine.Unfinished {
			texts[i] += decoders[i].end(p.matched)
		}
		g := c.answer(i, p, texts[i])
		if c.list {
			g.Index = &i
		}
		return events.send(g)
	})
	events.end(r, problem)
}

// writeJSON answers with a JSON document.
func writeJSON(w http.ResponseWriter, status int, x any) {
	b, err := marshal(x)
	if err != nil { // numbers that are none cannot come up: all are counted or checked
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be written"}}`+"\n")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have gone
}

// marshal writes a document and a new line, and leaves characters of HTML as they
// are: nothing here is put into a page.
func marshal(x any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(x)
	return b.Bytes(), err
}
