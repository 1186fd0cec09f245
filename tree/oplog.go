// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
)

// opLog writes every call on a core as one line of text, before the call runs.
// Package internal/ops documents the grammar, reads it back and replays it, so
// that a fault report is a file.
type opLog struct {
	w   *bufio.Writer
	b   []byte
	err error
}

// SetLog makes the core write every later call to w, after a header line with
// its options; nil ends that and flushes. A core that is not empty can not be
// rebuilt from its log, so set it before the first call. Lines are buffered;
// FlushLog returns the first error of writing.
func (c *Core) SetLog(w io.Writer) error {
	err := c.FlushLog()
	c.log = nil
	if w == nil {
		return err
	}
	c.log = &opLog{w: bufio.NewWriter(w)}
	c.log.header(c.opts)
	if c.switches != (Switches{WriteThroughThreshold: defaultWriteThroughThreshold}) {
		c.log.switches(c.switches)
	}
	return err
}

// FlushLog writes out what the log has buffered.
func (c *Core) FlushLog() error {
	if c.log == nil {
		return nil
	}
	if err := c.log.w.Flush(); c.log.err == nil {
		c.log.err = err
	}
	return c.log.err
}

func (l *opLog) header(o Options) {
	l.verb("treecore-log 1")
	l.word("components", o.Components.String())
	l.int("page", o.PageSize)
	l.int("window", o.SlidingWindow)
	l.int("grid", o.CheckpointGrid)
	l.int("max-states", o.MaxStatesPerPath)
	l.word("eagle", strconv.FormatBool(o.Eagle))
	name := strings.ToLower(o.Policy.Name)
	if name == "" {
		name = "lru"
	}
	l.word("policy", name)
	var params []string
	for p := range o.Policy.Params {
		params = append(params, p)
	}
	slices.Sort(params)
	for _, p := range params {
		l.int(p, o.Policy.Params[p])
	}
	l.flag("events", o.Events)
	l.flag("sessions", o.Sessions)
	l.end()
}

func (l *opLog) verb(v string) { l.b = append(l.b[:0], v...) }

func (l *opLog) field(name string) {
	l.b = append(l.b, ' ')
	l.b = append(l.b, name...)
	l.b = append(l.b, '=')
}

func (l *opLog) word(name, value string) {
	l.field(name)
	l.b = append(l.b, value...)
}

func (l *opLog) string(name, value string) {
	l.field(name)
	l.b = strconv.AppendQuote(l.b, value)
}

func (l *opLog) int(name string, value int) {
	l.field(name)
	l.b = strconv.AppendInt(l.b, int64(value), 10)
}

func (l *opLog) someInt(name string, value int) {
	if value != 0 {
		l.int(name, value)
	}
}

func (l *opLog) flag(name string, set bool) {
	if set {
		l.b = append(l.b, ' ')
		l.b = append(l.b, name...)
	}
}

func (l *opLog) slots(name string, s Slots) {
	if s != nil {
		l.word(name, s.String())
	}
}

func (l *opLog) end() {
	l.b = append(l.b, '\n')
	if _, err := l.w.Write(l.b); l.err == nil {
		l.err = err
	}
}

// key writes the four fields of a key. Tokens stand as the longest repetition,
// else the longest rising range, else alone.
func (l *opLog) key(k Key) {
	l.field("tokens")
	t := k.Tokens
	if len(t) == 0 {
		l.b = append(l.b, '-')
	}
	for i := 0; i < len(t); {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = strconv.AppendUint(l.b, uint64(t[i]), 10)
		j := i + 1
		for j < len(t) && t[j] == t[i] {
			j++
		}
		if n := j - i; n > 1 {
			l.b = append(l.b, '*')
			l.b = strconv.AppendInt(l.b, int64(n), 10)
			i = j
			continue
		}
		for j < len(t) && t[j-1] != ^Token(0) && t[j] == t[j-1]+1 {
			j++
		}
		if j > i+1 {
			l.b = append(l.b, ".."...)
			l.b = strconv.AppendUint(l.b, uint64(t[j-1]), 10)
		}
		i = j
	}
	if n := k.Namespace.canonical(); n.HasExtraKey {
		l.string("extra", n.ExtraKey)
	}
	if k.Namespace.Salt != "" {
		l.string("salt", k.Namespace.Salt)
	}
	l.flag("bigram", k.Bigram)
}

func (l *opLog) receipt(r Receipt) {
	l.word("receipt", strconv.FormatInt(int64(r.Node), 10)+":"+r.Skipped.String()+":"+strconv.FormatUint(r.Boundary[SWA], 10))
	if r.HostBound[Full] != 0 || r.HostBound[SWA] != 0 {
		l.b = append(l.b, ':')
		l.b = strconv.AppendUint(l.b, r.HostBound[Full], 10)
		l.b = append(l.b, ':')
		l.b = strconv.AppendUint(l.b, r.HostBound[SWA], 10)
	}
}

func (l *opLog) plain(verb string) {
	l.verb(verb)
	l.end()
}

func (l *opLog) match(verb string, k Key) {
	l.verb(verb)
	l.key(k)
	l.end()
}

func (l *opLog) insert(p InsertParams) {
	l.verb("begin-insert")
	l.key(p.Key)
	l.slots("slots", p.Slots)
	l.slots("mamba", p.MambaState)
	l.someInt("prev", p.PrevPrefixLen)
	l.someInt("swa-evicted", p.SWAEvictedLen)
	l.someInt("swa-branch", p.SWABranchingLen)
	l.flag("chunked", p.Chunked)
	l.someInt("priority", int(p.Priority))
	l.flag("adopted", p.TrackAdopted)
	if p.SessionID != "" {
		l.string("session", p.SessionID)
	}
	l.end()
}

func (l *opLog) switches(s Switches) {
	l.verb("switches")
	l.flag("host-tier", s.HostTier)
	l.flag("storage", s.Storage)
	if s.WriteThroughThreshold != defaultWriteThroughThreshold {
		l.int("write-through-threshold", s.WriteThroughThreshold)
	}
	l.flag("write-back", s.WriteBack)
	l.flag("swa-host-pool", s.SWAHostPool)
	l.flag("host-buffer-only", s.HostBufferOnly)
	l.flag("external-linker", s.ExternalLinker)
	l.flag("swa-ring-layout", s.SWARingLayout)
	l.end()
}

// nodes writes a call whose arguments are one or two nodes.
func (l *opLog) nodes(verb string, ids ...NodeID) {
	names := []string{"node"}
	if len(ids) == 2 {
		names = []string{"from", "until"}
	}
	l.verb(verb)
	for i, id := range ids {
		l.int(names[i], int(id))
	}
	l.end()
}

func (l *opLog) nodeList(verb string, ids []NodeID) {
	l.verb(verb)
	l.field("nodes")
	l.nodeIDs(ids)
	l.end()
}

// nodeComponent writes a plain read; op is the method's name.
func (l *opLog) nodeComponent(op string, id NodeID, component Component) {
	verb := "device-value"
	if op == "ComponentHasHostValueOnly" {
		verb = "has-host-value-only"
	}
	l.verb(verb)
	l.int("node", int(id))
	l.word("component", component.String())
	l.end()
}

func (l *opLog) setDevice(id NodeID, component Component, s Slots) {
	l.verb("set-device")
	l.int("node", int(id))
	l.word("component", component.String())
	l.slots("slots", s)
	l.end()
}

func (l *opLog) window(verb string, k Key, start, end int, swa Slots) {
	l.verb(verb)
	l.key(k)
	l.int("start", start)
	l.int("end", end)
	l.slots("slots", swa)
	l.end()
}

func (l *opLog) lock(id NodeID, skip ComponentSet) {
	l.verb("lock")
	l.int("node", int(id))
	if skip != 0 {
		l.word("skip", skip.String())
	}
	l.end()
}

func (l *opLog) unlock(verb string, id NodeID, r Receipt, skipSWA bool) {
	l.verb(verb)
	l.int("node", int(id))
	l.receipt(r)
	l.flag("skip-swa", skipSWA)
	l.end()
}

func (l *opLog) windowUnlock(id NodeID, component Component, r Receipt) {
	l.verb("release-window-lock")
	l.int("node", int(id))
	l.word("component", component.String())
	l.receipt(r)
	l.end()
}

func (l *opLog) component(verb string, id Component) {
	l.verb(verb)
	l.word("component", id.String())
	l.end()
}

func (l *opLog) evictStart(id Component, n int) {
	l.verb("evict-start")
	l.word("component", id.String())
	l.int("n", n)
	l.end()
}

func (l *opLog) evictNext(id Component, totals Units) {
	l.verb("evict-next")
	l.word("component", id.String())
	l.units("totals", totals)
	l.end()
}

func (l *opLog) units(name string, list [NumComponents]int) {
	l.field(name)
	for i, n := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = strconv.AppendInt(l.b, int64(n), 10)
	}
}

func (l *opLog) evictLeaf(id NodeID, writeBack bool) {
	l.verb("evict-leaf")
	l.int("node", int(id))
	l.flag("write-back", writeBack)
	l.end()
}

func (l *opLog) session(verb, id string) {
	l.verb(verb)
	l.string("id", id)
	l.end()
}

func (l *opLog) registerSession(id string, generation int64, last NodeID) {
	l.verb("register-session")
	l.string("id", id)
	l.int("generation", int(generation))
	l.int("node", int(last))
	l.end()
}

func (l *opLog) canary(unlockedOnly, swaResidentOnly bool) {
	l.verb("walk-canary")
	l.flag("unlocked-only", unlockedOnly)
	l.flag("swa-resident-only", swaResidentOnly)
	l.end()
}

func (l *opLog) sanityCheck(writeThrough, loadBack []InFlight) {
	l.verb("sanity-check")
	l.inFlight("write-through", writeThrough)
	l.inFlight("load-back", loadBack)
	l.end()
}

func (l *opLog) inFlight(name string, list []InFlight) {
	if len(list) == 0 {
		return
	}
	l.field(name)
	for i, f := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = strconv.AppendInt(l.b, f.ID, 10)
		l.b = append(l.b, ':')
		l.b = strconv.AppendInt(l.b, int64(f.Node), 10)
	}
}
