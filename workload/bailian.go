// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"time"
)

// bailian reads the Bailian format: a JSON object a line, with chat_id,
// parent_chat_id (-1: none), timestamp (seconds), input_length, output_length
// and hash_ids, one id a block of 16 tokens. An id stands for the block alone:
// it may follow different predecessors and is the same run of tokens everywhere.
// A request's session is the chat that its chain of parents begins with; it
// starts at its time, not when its parent has finished.
type bailian struct {
	b     *builder
	unit  time.Duration
	clock clock
	roots map[string]string // chat to the first of its chain
	ids   []uint64
}

func newBailian(b *builder, o Options) parser {
	b.note(outputsUnique)
	return &bailian{b: b, unit: o.TimeUnit, roots: map[string]string{}}
}

func (p *bailian) line(text []byte) *fieldError {
	var (
		r                                          Request
		parent                                     string
		at                                         []byte
		hasChat, hasTime, hasIn, hasOut, hasBlocks bool
	)
	s := scanner{text: text}
	err := s.line(func(key []byte) (err *fieldError) {
		switch string(key) {
		case "chat_id":
			hasChat = true
			r.ID, err = s.name()
		case "parent_chat_id":
			parent, err = s.name()
		case "timestamp":
			hasTime = true
			r.Arrival, at, err = s.time(p.unit)
		case "input_length":
			hasIn = true
			r.InputLen, err = s.length(1)
		case "output_length":
			hasOut = true
			r.OutputLen, err = s.length(0)
		case "hash_ids":
			hasBlocks = true
			p.ids, err = s.wholes(p.ids[:0], math.MaxUint64)
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !hasChat:
		return missing("chat_id", "the chat's number")
	case parent == "":
		return missing("parent_chat_id", "the number of the chat this one continues, or -1")
	case !hasTime:
		return missing("timestamp", "the time in seconds since the start")
	case !hasIn:
		return missing("input_length", "the number of prompt tokens")
	case !hasOut:
		return missing("output_length", "the number of generated tokens")
	case !hasBlocks:
		return missing("hash_ids", "an id for each block of the prompt")
	}
	if err := blocksFit(len(p.ids), r.InputLen, p.b.w.BlockSize); err != nil {
		return err
	}
	if err := p.clock.tick(r.Arrival, at, p.b.line); err != nil {
		return err.under("timestamp")
	}
	heads, err := p.b.ids.number(p.ids)
	if err != nil {
		return err.under("hash_ids")
	}
	r.Session = r.ID
	if parent != "-1" {
		// A parent that the file does not hold stands for the chain's beginning.
		r.Session = parent
		if root, known := p.roots[parent]; known {
			r.Session = root
		}
	}
	p.roots[r.ID] = r.Session
	r.prompt = &blockList{size: p.b.w.BlockSize, ids: heads}
	p.b.add(r)
	return nil
}
