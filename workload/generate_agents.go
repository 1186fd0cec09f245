// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// AgentsParams describe the workload agents: sessions of tool-using agents that
// share a system prompt and whose prompts grow turn by turn.
//
// A turn begins with the user's message and takes one request, and one more for
// each tool call: the prompt is everything before, then the previous answer,
// then the tool's result. Requests of a session wait for each other.
type AgentsParams struct {
	Sessions     int
	SessionEvery Span  // time between the starts of sessions
	Turns        Range // user messages a session
	ToolCalls    Range // a turn

	SystemTokens int // system prompt and tool definitions, shared by all sessions
	UserTokens   Range
	ToolTokens   Range // a tool's result
	OutputTokens Range // an answer

	ToolTime   Span    // from the answer to the request with the tool's result
	ThinkTime  Span    // from the last answer of a turn to the next message
	IdleChance float64 // that the user is away between two turns
	IdleTime   Span    // instead of ThinkTime, when away

	// CutChance is the chance that a turn does not continue the latest context
	// but branches off from the end of an earlier turn, or of the system prompt.
	CutChance float64
	// SubAgentChance is the chance that a tool call is a sub-agent: a context of
	// its own that begins with the shared system prompt and a task as long as a
	// user's message, SubAgentCalls requests long. The session waits for it and
	// gets its result as that of a tool.
	SubAgentChance float64
	SubAgentCalls  Range

	Seed uint64
}

// DefaultAgents gives 16 sessions that look like coding agents at work: tens of
// thousands of tokens after a few turns, now and then minutes of idle time, a
// branch or a sub-agent.
func DefaultAgents() AgentsParams {
	return AgentsParams{
		Sessions: 16, SessionEvery: Span{0, 20 * time.Second}, Turns: Range{3, 12}, ToolCalls: Range{0, 8},
		SystemTokens: 16384, UserTokens: Range{20, 800}, ToolTokens: Range{100, 4000}, OutputTokens: Range{50, 800},
		ToolTime: Span{100 * time.Millisecond, 5 * time.Second}, ThinkTime: Span{5 * time.Second, time.Minute},
		IdleChance: 0.1, IdleTime: Span{5 * time.Minute, 30 * time.Minute},
		CutChance: 0.1, SubAgentChance: 0.05, SubAgentCalls: Range{2, 10},
		Seed: 42,
	}
}

func (p *AgentsParams) settings() []setting {
	return []setting{
		{"sessions", &p.Sessions}, {"session-every", &p.SessionEvery}, {"turns", &p.Turns}, {"tool-calls", &p.ToolCalls},
		{"system-tokens", &p.SystemTokens}, {"user-tokens", &p.UserTokens}, {"tool-tokens", &p.ToolTokens},
		{"output-tokens", &p.OutputTokens}, {"tool-time", &p.ToolTime}, {"think-time", &p.ThinkTime},
		{"idle-chance", &p.IdleChance}, {"idle-time", &p.IdleTime}, {"cut-chance", &p.CutChance},
		{"sub-agent-chance", &p.SubAgentChance}, {"sub-agent-calls", &p.SubAgentCalls}, {"seed", &p.Seed},
	}
}

func (p *AgentsParams) validate() error {
	const most = 1 << 20
	var bad problems
	bad.check("sessions", p.Sessions, 1, most)
	bad.checkSpan("session-every", p.SessionEvery)
	bad.checkRange("turns", p.Turns, 1, most)
	bad.checkRange("tool-calls", p.ToolCalls, 0, most)
	bad.check("system-tokens", p.SystemTokens, 0, most)
	bad.checkRange("user-tokens", p.UserTokens, 1, most)
	bad.checkRange("tool-tokens", p.ToolTokens, 1, most)
	bad.checkRange("output-tokens", p.OutputTokens, 1, most)
	bad.checkSpan("tool-time", p.ToolTime)
	bad.checkSpan("think-time", p.ThinkTime)
	bad.checkChance("idle-chance", p.IdleChance)
	bad.checkSpan("idle-time", p.IdleTime)
	bad.checkChance("cut-chance", p.CutChance)
	bad.checkChance("sub-agent-chance", p.SubAgentChance)
	bad.checkRange("sub-agent-calls", p.SubAgentCalls, 1, most)
	return bad.err("workload agents")
}

// errTooMuch says which limit the parameters lead over.
func errTooMuch(p *AgentsParams, what string) error {
	return fmt.Errorf("workload agents: %s, use fewer sessions (%d), turns (%v), tool-calls (%v) or sub-agent-calls (%v), or shorter ones",
		what, p.Sessions, p.Turns, p.ToolCalls, p.SubAgentCalls)
}

// Agents makes the workload agents. Equal parameters give equal workloads. A
// request's output is what the following prompts of its session quote.
func Agents(p AgentsParams) (*Workload, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	w := &Workload{Name: "agents", Format: "agents"}
	a := &agents{AgentsParams: &p, b: newBuilder(w, 0), random: rand.New(rand.NewPCG(p.Seed, 0))}
	var system *piece
	if p.SystemTokens > 0 {
		system = system.then(a.b.fresh(), p.SystemTokens)
	}
	var start time.Duration
	for k := range p.Sessions {
		if k > 0 {
			start += p.SessionEvery.pick(a.random)
		}
		if start > MaxTime {
			return nil, errTooMuch(&p, "sessions start after more than 100 years")
		}
		if err := a.session(fmt.Sprintf("session-%d", k+1), system, start); err != nil {
			return nil, err
		}
	}
	return w, nil
}

type agents struct {
	*AgentsParams
	b      *builder
	random *rand.Rand
}

// talk is a chain of requests with a growing context.
type talk struct {
	session, agent string
	context        *piece
	after          []int
	think          time.Duration
	start          time.Duration // of the session
}

func (a *agents) session(name string, system *piece, start time.Duration) error {
	t := &talk{session: name, context: system, start: start}
	branches := []*piece{system} // contexts at the ends of turns
	subAgents := 0
	for turn := range a.Turns.pick(a.random) {
		if turn > 0 {
			t.think = a.ThinkTime.pick(a.random)
			if a.random.Float64() < a.IdleChance {
				t.think = a.IdleTime.pick(a.random)
			}
			if a.random.Float64() < a.CutChance {
				t.context = branches[a.random.IntN(len(branches)-1)]
			}
		}
		t.context = t.context.then(a.b.fresh(), a.UserTokens.pick(a.random))
		if err := a.ask(t); err != nil {
			return err
		}
		for range a.ToolCalls.pick(a.random) {
			t.think = a.ToolTime.pick(a.random)
			if a.random.Float64() < a.SubAgentChance {
				subAgents++
				s := &talk{session: name, agent: fmt.Sprintf("agent-%d", subAgents), context: system, after: t.after, start: start}
				if err := a.subAgent(s); err != nil {
					return err
				}
				t.after = append(t.after[:len(t.after):len(t.after)], s.after...)
			}
			t.context = t.context.then(a.b.fresh(), a.ToolTokens.pick(a.random))
			if err := a.ask(t); err != nil {
				return err
			}
		}
		branches = append(branches, t.context)
	}
	return nil
}

func (a *agents) subAgent(t *talk) error {
	next := a.UserTokens.pick(a.random)
	for range a.SubAgentCalls.pick(a.random) {
		t.context = t.context.then(a.b.fresh(), next)
		if err := a.ask(t); err != nil {
			return err
		}
		t.think = a.ToolTime.pick(a.random)
		next = a.ToolTokens.pick(a.random)
	}
	return nil
}

// ask adds a request with the context as its prompt and puts the answer behind.
func (a *agents) ask(t *talk) error {
	answer, length := a.b.fresh(), a.OutputTokens.pick(a.random)
	if len(a.b.w.Requests) >= maxGenerated {
		return errTooMuch(a.AgentsParams, fmt.Sprintf("more than %d requests", maxGenerated))
	}
	if t.context.size() > MaxLength {
		return errTooMuch(a.AgentsParams, fmt.Sprintf("a prompt of more than %d tokens", MaxLength))
	}
	r := Request{
		Session: t.session, Agent: t.agent,
		After: t.after, Think: t.think,
		InputLen: t.context.size(), OutputLen: length,
		prompt: t.context, output: run(answer),
	}
	r.Arrival = t.start
	t.context = t.context.then(answer, length)
	t.after = []int{a.b.add(r)}
	return nil
}
