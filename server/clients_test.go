// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/treecore/treecore/tree"
)

// Two hundred clients at once, many of whom go away in the middle: those who stay
// all get the answer that belongs to their prompt, and nothing is left over. With
// TREECORE_LONG it runs for a minute.
func TestManyClients(t *testing.T) {
	for _, states := range []bool{false, true} {
		t.Run(fmt.Sprintf("states %v", states), func(t *testing.T) { manyClients(t, states) })
	}
}

func manyClients(t *testing.T, states bool) {
	r := newRig(t, setup{tokens: 1024, running: 16, states: states})
	post[storageReport](r, "/storage/attach", attachBody(t.TempDir(), `, "prefetch_policy": "timeout", "extra": {"prefetch_threshold": 1}`))
	r.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	rounds := 3
	if os.Getenv("TREECORE_LONG") != "" && !testing.Short() {
		rounds = 1 << 30
		ctx, stop = context.WithTimeout(t.Context(), time.Minute/2)
		defer stop()
	}
	answers := &answers{by: map[string]string{}}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			c := &visitor{rig: r, draw: rand.New(rand.NewPCG(1, uint64(i))), answers: answers}
			for range rounds {
				if ctx.Err() != nil {
					return
				}
				c.visit()
			}
		})
	}
	all.Wait()
	t.Logf("%d whole answers, %d left in the middle, to %d prompts", answers.whole, answers.left, len(answers.by))
	if answers.whole == 0 || answers.left == 0 {
		t.Error("nobody stayed, or nobody went")
	}
}

// answers are what prompts were answered, which must not change.
type answers struct {
	sync.Mutex
	by          map[string]string
	whole, left int
}

type visitor struct {
	*rig
	draw    *rand.Rand
	answers *answers
}

// visit asks one thing, and may go away before the answer is whole.
func (c *visitor) visit() {
	shape := c.draw.IntN(4)
	first := 1000 * c.draw.IntN(6)
	var prompt []int
	for i := range 24 * (1 + c.draw.IntN(3)) {
		prompt = append(prompt, first+i)
	}
	if c.draw.IntN(2) == 0 {
		prompt = append(prompt, 7000+c.draw.IntN(2), 1, 2, 3)
	}
	tokens := 5 + 35*c.draw.IntN(2)
	listed := string(must(json.Marshal(prompt)))
	path, body := "/generate", fmt.Sprintf(`{"input_ids": %s, "stream": %t, "sampling_params": {"max_new_tokens": %d, "ignore_eos": true}}`, listed, shape == 1, tokens)
	if shape > 1 {
		path, body = "/v1/completions", fmt.Sprintf(`{"prompt": %s, "stream": %t, "max_tokens": %d, "ignore_eos": true}`, listed, shape == 3, tokens)
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	patience := -1 // pieces after which it goes
	switch c.draw.IntN(3) {
	case 0:
		patience = c.draw.IntN(4)
	case 1:
		wait := time.Duration(c.draw.IntN(20)) * time.Millisecond
		time.AfterFunc(wait, leave)
	}
	q := must(http.NewRequestWithContext(ctx, "POST", c.web.URL+path, strings.NewReader(body)))
	a, err := c.client.Do(q)
	if err != nil {
		c.gone(ctx, err)
		return
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		b, err := io.ReadAll(a.Body)
		if err == nil {
			c.Errorf("%s: status %d: %s", body, a.StatusCode, b)
		}
		return
	}
	var data []string
	read := bufio.NewReader(a.Body)
	for {
		line, err := read.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			c.gone(ctx, err)
			return
		}
		if line = strings.TrimPrefix(strings.TrimSpace(line), "data: "); line != "" && line != "[DONE]" {
			data = append(data, line)
		}
		if patience >= 0 && len(data) > patience {
			c.gone(ctx, context.Canceled)
			return
		}
	}
	c.check(fmt.Sprintf("%s %d", listed, tokens), shape, data)
}

func (c *visitor) gone(ctx context.Context, err error) {
	if ctx.Err() == nil && err != context.Canceled {
		c.Errorf("the connection broke: %v", err)
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	c.answers.left++
}

// check compares a whole answer with what others got for the same.
func (c *visitor) check(question string, shape int, data []string) {
	var text string
	var ids []tree.Token
	switch shape {
	case 0, 1:
		var g generated
		if err := json.Unmarshal([]byte(data[len(data)-1]), &g); err != nil {
			c.Error(err)
		}
		text, ids = g.Text, g.OutputIDs
	default:
		for _, line := range data {
			var d struct{ Choices []choice }
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				c.Error(err)
			}
			if len(d.Choices) > 0 && d.Choices[0].Text != nil {
				text += *d.Choices[0].Text
			}
		}
	}
	c.answers.Lock()
	defer c.answers.Unlock()
	c.answers.whole++
	if before, ok := c.answers.by[question]; ok && before != text {
		c.Errorf("%s: %q, before %q", question, text, before)
	}
	c.answers.by[question] = text
	if ids != nil {
		d := newDecoder(nil)
		if whole := d.next(ids) + d.end(""); whole != text {
			c.Errorf("%s: ids %v are %q, the text is %q", question, slices.Clone(ids), whole, text)
		}
	}
}
