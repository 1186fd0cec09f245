// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/treecore/treecore/workload"
)

const trace = `{"timestamp": 0, "input_length": 1000, "output_length": 20, "hash_ids": [0, 1]}
{"timestamp": 250, "input_length": 1200, "output_length": 10, "hash_ids": [0, 1, 2]}
`

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "chat.jsonl")
	if err := os.WriteFile(path, []byte(trace), 0o600); err != nil {
		log.Fatal(err)
	}

	w, err := workload.Open(path, workload.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Name, w.Format, w.BlockSize)
	for i := range w.Requests {
		r := &w.Requests[i]
		fmt.Println(r.Arrival, r.InputLen, r.OutputLen, len(r.AppendPrompt(nil)))
	}
	fmt.Println("an endless cache finds", w.Stats().TokenHits, "tokens")
	// Output:
	// chat.jsonl mooncake 512
	// 0s 1000 20 1000
	// 250ms 1200 10 1200
	// an endless cache finds 1000 tokens
}

func ExampleRead() {
	broken := trace + `{"timestamp": 300, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]}`
	_, err := workload.Read(strings.NewReader(broken), "chat.jsonl", workload.Options{})
	var e *workload.LineError
	if errors.As(err, &e) {
		fmt.Println("line", e.Line, "field", e.Field)
	}
	fmt.Println(err)
	// Output:
	// line 3 field hash_ids
	// chat.jsonl:3: field "hash_ids": found 2 ids, want 1 id for 20 tokens of 512, or another block size
}

func ExampleSharedPrefix() {
	p := workload.DefaultSharedPrefix()
	p.Groups, p.PromptsPerGroup, p.Passes = 2, 2, 1
	p.SystemTokens, p.QuestionTokens, p.OutputTokens = 30, 12, 4
	w, err := workload.SharedPrefix(p)
	if err != nil {
		log.Fatal(err)
	}
	first := w.Requests[0].AppendPrompt(nil)
	for i := range w.Requests {
		prompt := w.Requests[i].AppendPrompt(nil)
		n := 0
		for n < len(first) && first[n] == prompt[n] {
			n++
		}
		fmt.Println(w.Requests[i].ID, len(prompt), "tokens,", n, "as in the first")
	}
	// Output:
	// 1/1/1 42 tokens, 42 as in the first
	// 1/1/2 42 tokens, 30 as in the first
	// 1/2/1 42 tokens, 0 as in the first
	// 1/2/2 42 tokens, 0 as in the first
}

func ExampleGenerate() {
	w, err := workload.Generate("agents", "sessions=4", "turns=1", "tool-calls=2", "sub-agent-chance=0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(w.Requests), w.Requests[1].After, w.Requests[2].After, w.Requests[3].After)
	_, err = workload.Generate("agents", "sessions=none")
	fmt.Println(err)
	// Output:
	// 12 [0] [1] []
	// workload agents: setting sessions is none, must be a whole number
}
