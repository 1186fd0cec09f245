// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// document is an answer of an OpenAI call, or a piece of a stream.
type document struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   *usage `json:"usage,omitempty"`
}

func (c *openAICall) document(piece bool) document {
	object := "text_completion"
	if c.chat {
		object = "chat.completion"
		if piece {
			object += ".chunk"
		}
	}
	return document{ID: c.id, Object: object, Created: c.created, Model: c.model}
}

type usage struct {
	Prompt     int           `json:"prompt_tokens"`
	Completion int           `json:"completion_tokens"`
	Total      int           `json:"total_tokens"`
	Details    promptDetails `json:"prompt_tokens_details"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

// usage counts a prompt once, however many outputs it has.
func (c *openAICall) usage() *usage {
	u := &usage{}
	for i, j := range c.jobs {
		p := j.look()
		if i%c.each == 0 {
			u.Prompt += len(j.params.Tokens)
			u.Details.Cached += p.reuse.cached
		}
		u.Completion += len(p.tokens)
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// cacheReport is what answers say beyond OpenAI's: why so much was reused.
type cacheReport struct {
	Tokens reuseReport `json:"cached_tokens_details"`
	Match  matchReport `json:"match"`
}

// choice is one output, or what a stream has of it.
type choice struct {
	Index    int          `json:"index"`
	Text     *string      `json:"text,omitempty"`
	Message  *message     `json:"message,omitempty"`
	Delta    *message     `json:"delta,omitempty"`
	LogProbs any          `json:"logprobs"`
	Finish   *string      `json:"finish_reason"`
	Cache    *cacheReport `json:"cache,omitempty"` // with the end
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// choice makes a choice of the tokens from one on and their text.
func (c *openAICall) choice(i int, p progress, from int, text string) choice {
	x := choice{Index: i, LogProbs: c.logs(p, from)}
	if p.finish != engine.Unfinished {
		reason := p.finish.String() // stop or length, as OpenAI says it
		x.Finish = &reason
		x.Cache = &cacheReport{p.reuse.byTier(), p.reuse.match()}
	}
	if c.chat {
		x.Message = &message{Role: "assistant", Content: &text}
	} else {
		x.Text = &text
	}
	return x
}

// delta is a choice of a stream.
func (c *openAICall) delta(i int, p progress, from int, text string) choice {
	x := c.choice(i, p, from, text)
	if c.chat {
		x.Delta, x.Message = x.Message, nil
		if from > 0 {
			x.Delta.Role = ""
			if text == "" {
				x.Delta.Content = nil
			}
		}
	}
	return x
}

// tokenText is a token as text. A part of a character is a replacement character;
// its bytes stand beside it.
func tokenText(t tree.Token) string {
	d := decoder{}
	return d.next([]tree.Token{t}) + d.end("")
}

// logs are the log-probabilities of the tokens from one on; nil if nobody asked.
func (c *openAICall) logs(p progress, from int) any {
	if !c.logProbs {
		return nil
	}
	if c.chat {
		type entry struct {
			Token   string  `json:"token"`
			LogProb float32 `json:"logprob"`
			Bytes   []int   `json:"bytes"`
			Top     []any   `json:"top_logprobs"`
		}
		list := []entry{}
		for k := from; k < len(p.tokens); k++ {
			e := entry{Token: tokenText(p.tokens[k]), LogProb: p.logs[k], Bytes: []int{}, Top: []any{}}
			if p.tokens[k] < endOfText {
				e.Bytes = []int{int(p.tokens[k])}
			}
			list = append(list, e)
		}
		return map[string]any{"content": list, "refusal": json.RawMessage("null")}
	}
	type lists struct {
		Tokens  []string  `json:"tokens"`
		Logs    []float32 `json:"token_logprobs"`
		Top     []any     `json:"top_logprobs"`
		Offsets []int     `json:"text_offset"`
	}
	l := lists{Tokens: []string{}, Logs: []float32{}, Offsets: []int{}}
	offset := 0
	for k, t := range p.tokens {
		text := tokenText(t)
		if k >= from {
			l.Tokens, l.Logs, l.Offsets = append(l.Tokens, text), append(l.Logs, p.logs[k]), append(l.Offsets, offset)
		}
		offset += len([]rune(text))
	}
	return l
}
