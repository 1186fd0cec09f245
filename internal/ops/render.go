// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/treecore/treecore/tree"
)

// words collects the words of one line, leaving out what has its default.
type words []string

func (w *words) add(name, value string) { *w = append(*w, name+"="+value) }

func (w *words) number(name string, v int) {
	if v != 0 {
		w.add(name, strconv.Itoa(v))
	}
}

func (w *words) flag(name string, set bool) {
	if set {
		*w = append(*w, name)
	}
}

func (w words) String() string { return strings.Join(w, " ") }

// match writes best and host-anchor only where they differ from last.
func (e *Executor) match(r *tree.MatchResult) string {
	var w words
	w.add("len", strconv.Itoa(r.DeviceLen))
	w.add("slots", e.slots(tree.Full, r.DeviceSlots))
	w.add("last", e.node(r.LastDeviceNode))
	if r.BestNode != r.LastDeviceNode {
		w.add("best", e.node(r.BestNode))
	}
	if r.LastHostNode != r.LastDeviceNode {
		w.add("host-anchor", e.node(r.LastHostNode))
	}
	w.number("host-hit", r.HostHitLen)
	w.number("swa-host-hit", r.SWAHostHitLen)
	w.number("mamba-host-hit", r.MambaHostHitLen)
	w.add("full-hit", strconv.Itoa(r.FullHitLen))
	w.number("swa-branch", r.SWABranchingLen)
	w.number("mamba-branch", r.MambaBranchingLen)
	text := w.String()
	if len(r.Actions) > 0 {
		text += "; " + e.actions(r.Actions)
	}
	if e.Explain {
		text += "\n" + explanationText(&r.Explanation)
	}
	return text
}

func explanationText(x *tree.Explanation) string {
	limit := "none"
	if x.Limited {
		limit = x.LimitedBy.String()
	}
	return fmt.Sprintf("explain matched=%d full-only=%d limited-by=%s reason=%s device=%d host=%d units=%d page-remainder=%d",
		x.Matched, x.FullOnly, limit, x.Reason, x.Device, x.Host, x.Units, x.PageRemainder)
}

func (e *Executor) fullPrefix(r tree.FullPrefix) string {
	return fmt.Sprintf("matched=%d node=%s pinned=%d", r.Matched, e.node(r.Node), r.Pinned)
}

func (e *Executor) actions(list []tree.Action) string {
	if len(list) == 0 {
		return "no actions"
	}
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = e.action(a)
	}
	return strings.Join(parts, "; ")
}

func (e *Executor) action(a tree.Action) string {
	switch a := a.(type) {
	case tree.FreeDeviceKV:
		return "free " + e.slots(tree.Full, a.Slots)
	case tree.FreeDeviceKVFullOnly:
		return "free-full-only " + e.slots(tree.Full, a.Slots)
	case tree.ReplaceWriteThroughOnNodeSplit:
		return fmt.Sprintf("replace-write-through ack=%d old=%s new=%s child=%s", a.Ack, e.node(a.Old), e.node(a.New), e.node(a.Child))
	case tree.BackupKV:
		return e.backup(&a)
	case tree.SWARebuild:
		return "swa-rebuild " + e.node(a.Node) + " " + e.slots(tree.Full, a.Full)
	case tree.RecoverSWAWithLockedFull:
		return fmt.Sprintf("recover-swa %s kept=%s incoming=%s", e.node(a.Node), e.slots(tree.Full, a.Kept), e.slots(tree.Full, a.Incoming))
	case tree.MambaEvictExcessPathStates:
		return "evict-excess-states " + e.node(a.Tail)
	case tree.FreeComponentDeviceSlot:
		// SWA device frees name Full slots (rule E-11).
		return fmt.Sprintf("free-component %s %s", a.Component, e.slots(payloadOf(a.Component), a.Slots))
	case tree.FreeComponentHostSlot:
		return fmt.Sprintf("free-component-host %s %s", a.Component, formatSlots(a.Slots))
	case tree.RebuildFullToSWAMapping:
		return "map-full-to-swa full=" + e.slots(tree.Full, a.Full) + " swa=" + e.slots(tree.SWA, a.SWA)
	}
	return fmt.Sprintf("unknown action %T", a)
}

func (e *Executor) backup(b *tree.BackupKV) string {
	text := fmt.Sprintf("backup %s key-len=%d", e.nodeList(b.Nodes), b.KeyLen)
	if b.EndsAtPrompt {
		text += " ends-at-prompt"
	}
	return text
}

// payloadOf says whose slots a device free of component c names (rule E-11).
func payloadOf(c tree.Component) tree.Component {
	if c == tree.SWA {
		return tree.Full
	}
	return c
}

func (e *Executor) step(s *tree.InsertStep) string {
	text := e.actions(s.Actions)
	if s.Result != nil {
		text += "; " + e.insertResult(s.Result)
	}
	return text
}

func (e *Executor) insertResult(r *tree.InsertResult) string {
	w := words{"result"}
	w.add("prefix", strconv.Itoa(r.PrefixLen))
	w.add("last", e.node(r.LastDeviceNode))
	w.flag("mamba-exist", r.MambaExist)
	w.flag("swa-branch-inserted", r.SWABranchInserted)
	if r.Adopted != nil {
		w = append(w, "adopted")
		for c := tree.Full; c < tree.NumComponents; c++ {
			if len(r.Adopted[c]) > 0 {
				w.add(c.String(), rangesText(r.Adopted[c]))
			}
		}
	}
	return w.String()
}

func (e *Executor) receipt(r tree.Receipt) string {
	var w words
	w.add("delta", strconv.Itoa(r.Delta))
	if e.nameNode == nil {
		w.add("receipt", formatReceipt(r))
		return w.String()
	}
	w.add("anchor", e.node(r.Node))
	if r.Skipped != 0 {
		w.add("skipped", r.Skipped.String())
	}
	w.add("swa-boundary", e.boundary(r))
	return w.String()
}

// boundary names the node that bears the receipt's boundary: the number itself
// may differ between implementations.
func (e *Executor) boundary(r tree.Receipt) string {
	uuid := r.Boundary[tree.SWA]
	if uuid == 0 {
		return "none"
	}
	id := r.Node
	for id != tree.NoNode {
		info, err := e.Machine.Inspect(id)
		if err != nil {
			break
		}
		if info.SWABoundary == uuid {
			return e.node(id)
		}
		id = info.Parent
	}
	return "lost"
}

func (e *Executor) evicted(v tree.Evicted, err error) string {
	if err != nil {
		return e.fault(err)
	}
	if e.dropped != nil {
		e.dropped(&v)
	}
	if text := e.evictedText(&v); text != "" {
		return text
	}
	return "nothing"
}

func (e *Executor) evictedText(v *tree.Evicted) string {
	var w words
	if v.Freed != (tree.Units{}) {
		w.add("freed", formatUnits(v.Freed))
	}
	w.number("unbacked", v.Unbacked)
	for c := tree.Full; c < tree.NumComponents; c++ {
		if v.Frees.Device[c].Len() > 0 {
			w.add(c.String(), e.slots(payloadOf(c), v.Frees.Device[c]))
		}
	}
	for c := tree.Full; c < tree.NumComponents; c++ {
		if v.Frees.Host[c].Len() > 0 {
			w.add("host-"+c.String(), formatSlots(v.Frees.Host[c]))
		}
	}
	return w.String()
}

func (e *Executor) evictStep(s *tree.EvictStep) string {
	if e.dropped != nil {
		e.dropped(&s.Evicted)
	}
	var w words
	if s.Node != tree.NoNode {
		w.add("leaf", e.node(s.Node))
	}
	if text := e.evictedText(&s.Evicted); text != "" {
		w = append(w, text)
	}
	if s.Paused != tree.NoNode {
		w.add("paused", e.node(s.Paused))
		w.add("for", s.PausedFor.String())
		w.number("units", s.PausedUnits)
	}
	switch {
	case s.MadeProgress && len(w) == 0:
		w = append(w, "progress")
	case !s.MadeProgress:
		w = append(w, "done")
	}
	return w.String()
}

func (e *Executor) evictLeaf(r *tree.EvictLeafResult) string {
	if r.Backup != nil {
		text := e.backup(r.Backup)
		if more := e.evictedText(&r.Evicted); more != "" {
			text += " " + more
		}
		return text
	}
	return e.evicted(r.Evicted, nil)
}

func (e *Executor) violations(err *tree.CheckError) string {
	seen := make([]string, 0, len(err.Violations))
	for _, v := range err.Violations {
		text := v.Check
		if v.Node != tree.NoNode {
			text += "@" + e.node(v.Node)
		}
		seen = append(seen, text)
	}
	slices.Sort(seen)
	return strings.Join(slices.Compact(seen), " ")
}

func (e *Executor) hashes(list []tree.Digest, err error) string {
	if err != nil {
		return e.fault(err)
	}
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = d.String()
	}
	return strings.Join(parts, " ")
}

func namespaceText(n tree.Namespace) string {
	extra, salt := "absent", "absent"
	if n.HasExtraKey || n.ExtraKey != "" {
		extra = strconv.Quote(n.ExtraKey)
	}
	if n.Salt != "" {
		salt = strconv.Quote(n.Salt)
	}
	return "extra=" + extra + " salt=" + salt
}

func rangesText(list []tree.Range) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, r := range list {
		parts[i] = fmt.Sprintf("[%d,%d)", r.Start, r.End)
	}
	return strings.Join(parts, ",")
}

func intsText(list []int) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, ",")
}

func canaryText(rows []tree.CanaryRow) string {
	if len(rows) == 0 {
		return "-"
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "(%d,%d,%d)", r.Slot, r.Position, r.Previous)
	}
	return b.String()
}

func eventsText(list []tree.Event) string {
	if len(list) == 0 {
		return "no events"
	}
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = eventText(&list[i])
	}
	return strings.Join(lines, "\n")
}

func eventText(ev *tree.Event) string {
	medium := "device"
	if ev.Medium == tree.MediumHost {
		medium = "host"
	}
	blocks := make([]string, len(ev.Blocks))
	for i, b := range ev.Blocks {
		blocks[i] = formatInt64(b)
	}
	switch ev.Kind {
	case tree.AllBlocksCleared:
		return "cleared"
	case tree.BlockRemoved:
		return "removed " + medium + " " + strings.Join(blocks, ",")
	}
	w := words{"stored", medium, strings.Join(blocks, ",")}
	parent := "none"
	if ev.HasParent {
		parent = formatInt64(ev.Parent)
	}
	w.add("parent", parent)
	w.add("tokens", formatTokens(ev.Tokens))
	w.add("block-size", strconv.Itoa(ev.BlockSize))
	if ev.CacheSalt != "" {
		w.add("salt", strconv.Quote(ev.CacheSalt))
	}
	if ev.SessionID != "" {
		w.add("session", strconv.Quote(ev.SessionID))
	}
	return w.String()
}
