// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
)

// WriteTable writes the report for people: what was run, then tables of what
// came out, why tokens were missed, what happened to each component, and how
// long the calls took.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	b.WriteByte('\n')
	tables := []table.Writer{r.results(), r.missed(), r.components()}
	if r.Host != nil {
		tables = append(tables, r.hostTable())
	}
	if r.Storage != nil {
		tables = append(tables, r.storageTable(), r.prefetchTable())
		if s := r.Storage.Staging; s != nil {
			tables = append(tables, s.table())
		}
	}
	for _, t := range append(tables, r.calls()) {
		b.WriteString(t.Render())
		b.WriteString("\n\n")
	}
	r.writeFoot(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeHead(b *strings.Builder) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-8s", name)
		fmt.Fprintf(b, format, args...)
		b.WriteByte('\n')
	}
	o := &r.Options
	line("trace", "%s (%s): %s, %s prompt tokens, seed %d", r.Trace, r.Format, plural(int64(r.Requests), "request"), grouped(r.InputTokens), r.Seed)
	line("model", "%s", r.Model)
	pools := grouped(int64(r.Pools.Full)) + " full tokens"
	if o.SWARatio != nil {
		pools += fmt.Sprintf(", %s swa tokens (ratio %g, window %d)", grouped(int64(r.Pools.SWA)), *o.SWARatio, o.Window)
	}
	if o.StateRatio != nil {
		pools += fmt.Sprintf(", %s states (%g of the bytes, grid %d)", grouped(int64(r.Pools.Mamba)), *o.StateRatio, o.CheckpointGrid)
	}
	line("device", "%s: %s; page %d, %s", o.deviceText(), pools, o.PageSize, o.policyText())
	if h := r.Host; h != nil {
		line("host", "%s: %s full tokens, %s; copies at %s/s", h.text(), grouped(int64(h.Pools.Full)), h.WritePolicy, model.FormatSize(int64(h.Bandwidth)))
	}
	if r.Storage != nil {
		line("storage", "%s", r.Storage.text())
	}
	load := fmt.Sprintf("arrival times kept, at most %d requests at once", o.MaxRunning)
	if o.Concurrency > 0 {
		load = plural(int64(o.Concurrency), "request") + " at once, arrival times not kept"
	}
	if o.Order == OrderListed {
		load += ", in listed order"
	}
	line("load", "%s; steps of %s prompt tokens; %g prefill and %g decode tokens/s", load, grouped(int64(o.Chunk)), o.PrefillRate, o.DecodeRate)
	if !o.Branching {
		line("", "branch points ignored")
	}
	if o.KeepOutOfWindow {
		line("", "swa slots kept when they leave the window")
	}
	for _, note := range r.Notes {
		line("note", "%s", note)
	}
}

func (s *Settings) deviceText() string {
	if s.DeviceBytes == nil {
		return "unlimited"
	}
	return model.FormatSize(*s.DeviceBytes)
}

func (s *Settings) policyText() string {
	name := s.Policy
	sep := ":"
	for _, key := range sortedKeys(s.PolicyParams) {
		name += fmt.Sprintf("%s%s=%d", sep, key, s.PolicyParams[key])
		sep = ","
	}
	return name
}

func (r *Report) results() table.Writer {
	t := newTable("result", "", "infinite cache")
	t.AppendRow(table.Row{"token hit rate", percent(r.TokenHitRate), percent(r.Infinite.TokenHitRate)})
	t.AppendRow(table.Row{"block hit rate", percent(r.BlockHitRate), percent(r.Infinite.BlockHitRate)})
	t.AppendRow(table.Row{"request hit rate", percent(r.RequestHitRate), ""})
	t.AppendRow(table.Row{"cached tokens", grouped(r.CachedTokens), ""})
	if r.Storage != nil {
		h := r.HitsByTier
		t.AppendRow(table.Row{"  device / host / storage", grouped(h.Device) + " / " + grouped(h.Host) + " / " + grouped(h.Storage), ""})
	} else if r.Host != nil {
		t.AppendRow(table.Row{"  on the device / from the host", grouped(r.HitsByTier.Device) + " / " + grouped(r.HitsByTier.Host), ""})
	}
	t.AppendRow(table.Row{"computed prompt tokens", grouped(r.ComputedTokens), ""})
	t.AppendRow(table.Row{"requests done", grouped(int64(r.RequestsDone)), ""})
	t.AppendRow(table.Row{"requests refused", grouped(int64(r.RequestsRefused)), ""})
	t.AppendRow(table.Row{"retractions", grouped(int64(r.Retractions)), ""})
	t.AppendRow(table.Row{"branch points seen / inserted", fmt.Sprintf("%s / %s", grouped(int64(r.BranchPoints.Seen)), grouped(int64(r.BranchPoints.Inserted))), ""})
	t.AppendRow(table.Row{"duplicate slots freed", grouped(r.DuplicatesFreed), ""})
	t.AppendRow(table.Row{"time to first token p50 / p99", seconds(r.TimeToFirstToken.P50) + " / " + seconds(r.TimeToFirstToken.P99), ""})
	t.AppendRow(table.Row{"simulated time", seconds(r.SimulatedSeconds), ""})
	return t
}

func (r *Report) missed() table.Writer {
	t := newTable("tokens missed", "", "of input")
	for _, reason := range reasons {
		n := r.MissesByReason[reason]
		if n > 0 {
			t.AppendRow(table.Row{reason, grouped(n), percent(share(n, r.InputTokens))})
		}
		if reason == tree.ReasonNeverSeen.String() && r.SeenBefore > 0 {
			t.AppendRow(table.Row{"  of it in an infinite cache", grouped(r.SeenBefore), percent(share(r.SeenBefore, r.InputTokens))})
		}
		if s := r.Storage; reason == tree.ReasonNeverSeen.String() && s != nil && s.UnseenElsewhere > 0 {
			t.AppendRow(table.Row{"  of it in storage", grouped(s.UnseenElsewhere), percent(share(s.UnseenElsewhere, r.InputTokens))})
		}
	}
	t.AppendFooter(table.Row{"all", grouped(r.InputTokens - r.CachedTokens), percent(share(r.InputTokens-r.CachedTokens, r.InputTokens))})
	return t
}

func (r *Report) components() table.Writer {
	t := newTable("component", "slots", "evicted", "tombstones", "use min", "mean", "max", "use over time")
	t.SetColumnConfigs(append(numbers(2, 7), table.ColumnConfig{Number: 8, Align: text.AlignLeft}))
	for id := tree.Full; id < tree.NumComponents; id++ {
		if len(r.Occupancy) == 0 {
			break
		}
		if _, ok := r.Occupancy[0].of(id); !ok {
			continue
		}
		u := r.usage(id)
		t.AppendRow(table.Row{
			id.String(), grouped(int64(u.slots)), grouped(r.Evictions[id.String()]), grouped(r.Tombstones[id.String()]),
			percent(u.least), percent(u.mean), percent(u.most), u.curve,
		})
	}
	return t
}

func (r *Report) calls() table.Writer {
	t := newTable("call", "count", "p50", "p99")
	for _, row := range []struct {
		name string
		op   Operation
	}{{"match", r.Ops.Match}, {"insert", r.Ops.Insert}, {"lock", r.Ops.Lock}, {"evict", r.Ops.Evict}} {
		t.AppendRow(table.Row{row.name, grouped(row.op.Count), nanoseconds(row.op.P50), nanoseconds(row.op.P99)})
	}
	return t
}

func (r *Report) writeFoot(b *strings.Builder) {
	fmt.Fprintf(b, "tree at its peak: %s in %s, %.2f bytes for each of %s cached tokens\n",
		model.FormatSize(int64(r.TreePeakBytes)), plural(int64(r.TreePeakNodes), "node"), r.TreeBytesPerCachedToken, grouped(int64(r.TreePeakTokens)))
	if r.Storage != nil {
		for _, remark := range r.Storage.Remarks {
			fmt.Fprintf(b, "storage: %s\n", remark)
		}
	}
	fmt.Fprintf(b, "replayed in %s: %s tokens a second\n", seconds(r.WallSeconds), grouped(int64(r.TokensPerSecond)))
	for i, x := range r.Refusals {
		if i == 3 {
			fmt.Fprintf(b, "refused: %s more\n", grouped(int64(r.RequestsRefused-i)))
			break
		}
		name := x.ID
		if name != "" {
			name = " (" + name + ")"
		}
		fmt.Fprintf(b, "refused: request %d%s needs up to %s %s slots, the device has %s\n",
			x.Request, name, grouped(int64(x.Needed)), x.Component, grouped(int64(x.Size)))
	}
}

// WriteTable writes one row a run.
func (s *Sweep) WriteTable(w io.Writer) error {
	if len(s.Runs) == 0 {
		return nil
	}
	var b strings.Builder
	first := s.Runs[0]
	fmt.Fprintf(&b, "%s on %s, page %d, %s: an infinite cache hits %s of the tokens\n\n", first.Trace, first.Model,
		first.Options.PageSize, first.Options.policyText(), percent(first.Infinite.TokenHitRate))
	t := newTable("device", "full slots", "swa slots", "states", "token hits", "request hits", "full evicted", "retracted", "refused", "ttft p50", "ttft p99", "wall")
	for _, r := range s.Runs {
		t.AppendRow(table.Row{
			r.Options.deviceText(), grouped(int64(r.Pools.Full)), dash(r.Pools.SWA), dash(r.Pools.Mamba),
			percent(r.TokenHitRate), percent(r.RequestHitRate), grouped(r.Evictions[tree.Full.String()]),
			grouped(int64(r.Retractions)), grouped(int64(r.RequestsRefused)),
			seconds(r.TimeToFirstToken.P50), seconds(r.TimeToFirstToken.P99), seconds(r.WallSeconds),
		})
	}
	b.WriteString(t.Render() + "\n")
	for _, note := range first.Notes {
		fmt.Fprintf(&b, "note    %s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// newTable begins a table whose first column is text and the rest numbers.
func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format = table.FormatOptions{Header: text.FormatDefault, Footer: text.FormatDefault}
	t.SetStyle(style)
	t.AppendHeader(columns)
	t.SetColumnConfigs(numbers(2, len(columns)))
	return t
}

func numbers(from, to int) []table.ColumnConfig {
	var list []table.ColumnConfig
	for n := from; n <= to; n++ {
		list = append(list, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	return list
}

// grouped writes a number that is not negative with commas: 144,793,823.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return grouped(int64(n))
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// seconds writes a time with three digits or so: 1.23s, 12m30s.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Second:
		return strconv.FormatFloat(s*1000, 'f', 0, 64) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(s, 'f', 2, 64) + "s"
	}
	return d.Round(time.Second).String()
}

func nanoseconds(ns int64) string {
	switch {
	case ns < 10_000:
		return grouped(ns) + " ns"
	case ns < 10_000_000:
		return grouped(ns/1000) + " us"
	}
	return grouped(ns/1_000_000) + " ms"
}
