// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"slices"
	"strings"

	"github.com/treecore/treecore/tree"
)

// verbSpec is one verb: its fields in written order and how to run it. To add a
// verb, add a row to makeVerbs and to the tables of the package comment.
type verbSpec struct {
	name   string
	fields []fieldSpec
	run    func(e *Executor, c *Call) string
}

func (v *verbSpec) index(field string) int {
	for i := range v.fields {
		if v.fields[i].name == field {
			return i
		}
	}
	return -1
}

func (v *verbSpec) fieldNames() string {
	if len(v.fields) == 0 {
		return "none"
	}
	names := make([]string, len(v.fields))
	for i, f := range v.fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// Verbs returns the names of all verbs in the order of the package comment.
func Verbs() []string {
	names := make([]string, len(verbTable))
	for i := range verbTable {
		names[i] = verbTable[i].name
	}
	return names
}

func findVerb(name string) *verbSpec {
	for i := range verbTable {
		if verbTable[i].name == name {
			return &verbTable[i]
		}
	}
	return nil
}

var verbTable []verbSpec

func init() {
	device, host := makeVerbs(), makeHostVerbs()
	at := slices.IndexFunc(device, func(v verbSpec) bool { return v.name == "flatten-full" })
	verbTable = slices.Insert(device, at, host...)
}

func list(f ...fieldSpec) []fieldSpec { return f }

func withKey(f ...fieldSpec) []fieldSpec { return append(append([]fieldSpec{}, keyFields...), f...) }

func makeVerbs() []verbSpec {
	nodeOnly := list(nodeField)
	return []verbSpec{
		{"reset", nil, func(e *Executor, _ *Call) string { e.Machine.Reset(); return "ok" }},
		{"root", nil, func(e *Executor, _ *Call) string { return e.node(e.Machine.Root()) }},
		{"is-root", nodeOnly, func(e *Executor, c *Call) string { return e.boolean(e.Machine.IsRoot(c.Node)) }},
		{"is-backed-up", nodeOnly, func(e *Executor, c *Call) string { return e.boolean(e.Machine.IsBackedUp(c.Node)) }},
		{"is-full-device-evicted", nodeOnly, func(e *Executor, c *Call) string { return e.boolean(e.Machine.IsFullDeviceEvicted(c.Node)) }},
		{"switches", switchFields, func(e *Executor, c *Call) string { return e.done(e.Machine.SetSwitches(c.Switches)) }},
		{"prefetch-anchor", nodeOnly, func(e *Executor, c *Call) string {
			ns, err := e.Machine.PrefetchAnchor(c.Node)
			return e.or(err, func() string { return namespaceText(ns) })
		}},

		{"match", withKey(), func(e *Executor, c *Call) string {
			r, err := e.Machine.Match(c.Key)
			return e.or(err, func() string { return e.match(&r) })
		}},
		{"empty-match", nil, func(e *Executor, _ *Call) string { r := e.Machine.EmptyMatch(); return e.match(&r) }},
		{"match-full-device-prefix", withKey(), func(e *Executor, c *Call) string {
			r, err := e.Machine.MatchFullDevicePrefix(c.Key)
			return e.or(err, func() string { return e.fullPrefix(r) })
		}},
		{"collect-full-device-slots", list(fromField, untilField), func(e *Executor, c *Call) string {
			s, err := e.Machine.CollectFullDeviceSlots(c.Node, c.Until)
			return e.or(err, func() string { return e.slots(tree.Full, s) })
		}},

		{"begin-insert", insertFields, func(e *Executor, c *Call) string {
			s, err := e.Machine.BeginInsert(c.insertParams())
			return e.or(err, func() string { return e.step(&s) })
		}},
		{"resume-insert", nil, func(e *Executor, _ *Call) string {
			s, err := e.Machine.ResumeInsert()
			return e.or(err, func() string { return e.step(&s) })
		}},
		{"has-ongoing-insert", nil, func(e *Executor, _ *Call) string { return e.boolean(e.Machine.HasOngoingInsert(), nil) }},
		{"end-insert", nil, func(e *Executor, _ *Call) string { return e.actions(e.Machine.EndInsert()) }},
		{"set-device", list(nodeField, componentField, slotsField), func(e *Executor, c *Call) string {
			err := e.Machine.SetComponentDeviceValue(c.Node, c.Component, c.Slots)
			if err == nil && e.stored != nil {
				e.stored(c.Node, c.Component, c.Slots)
			}
			return e.done(err)
		}},
		{"device-value", list(nodeField, componentField), func(e *Executor, c *Call) string {
			s, err := e.Machine.ComponentDeviceValue(c.Node, c.Component)
			return e.or(err, func() string { return e.value(c.Component, s) })
		}},
		{"has-host-value-only", list(nodeField, componentField), func(e *Executor, c *Call) string {
			return e.boolean(e.Machine.ComponentHasHostValueOnly(c.Node, c.Component))
		}},
		{"evict-excess-path-states", nodeOnly, func(e *Executor, c *Call) string {
			return e.evicted(e.Machine.EvictExcessPathStates(c.Node))
		}},
		{"swa-tombstone-ranges", withKey(startField, endField), func(e *Executor, c *Call) string {
			r, err := e.Machine.SWATombstoneRanges(c.Key, c.Start, c.End)
			return e.or(err, func() string { return rangesText(r) })
		}},
		{"attach-swa-window", withKey(startField, endField, slotsField), func(e *Executor, c *Call) string {
			a, err := e.Machine.AttachSWAWindow(c.Key, c.Start, c.End, c.Slots)
			return e.or(err, func() string { return e.actions(a) })
		}},

		{"lock", list(nodeField, skipField), func(e *Executor, c *Call) string {
			r, err := e.Machine.Lock(c.Node, c.Skip)
			return e.or(err, func() string { return e.receipt(r) })
		}},
		{"unlock", list(nodeField, receiptField, skipSWAField), func(e *Executor, c *Call) string {
			return e.done(e.Machine.Unlock(c.Node, c.Receipt, c.SkipSWA))
		}},
		{"release-swa-lock", list(nodeField, receiptField), func(e *Executor, c *Call) string {
			return e.evicted(e.Machine.ReleaseSWALock(c.Node, c.Receipt))
		}},
		{"release-window-lock", list(nodeField, componentField, receiptField), func(e *Executor, c *Call) string {
			return e.evicted(e.Machine.ReleaseWindowLock(c.Node, c.Component, c.Receipt))
		}},
		{"pin-full", nodeOnly, func(e *Executor, c *Call) string { return e.done(e.Machine.PinFull(c.Node)) }},
		{"unpin-full", nodeOnly, func(e *Executor, c *Call) string { return e.done(e.Machine.UnpinFull(c.Node)) }},

		{"evict-start", list(componentField, nField), func(e *Executor, c *Call) string {
			return e.done(e.Machine.EvictStart(c.Component, c.N))
		}},
		{"evict-next", list(componentField, totalsField), func(e *Executor, c *Call) string {
			s, err := e.Machine.EvictNext(c.Component, c.Totals)
			return e.or(err, func() string { return e.evictStep(&s) })
		}},
		{"evict-leaf", list(nodeField, writeBackField), func(e *Executor, c *Call) string {
			r, err := e.Machine.EvictLeaf(c.Node, c.WriteBack)
			return e.or(err, func() string { return e.evictLeaf(&r) })
		}},
		{"demote", nodeOnly, func(e *Executor, c *Call) string { return e.evicted(e.Machine.Demote(c.Node)) }},
		{"evict-end", list(componentField), func(e *Executor, c *Call) string { return e.done(e.Machine.EvictEnd(c.Component)) }},

		{"evictable-size", list(componentField), func(e *Executor, c *Call) string { return e.integer(e.Machine.EvictableSize(c.Component)) }},
		{"protected-size", list(componentField), func(e *Executor, c *Call) string { return e.integer(e.Machine.ProtectedSize(c.Component)) }},
		{"total-size", nil, func(e *Executor, _ *Call) string {
			full, aux := e.Machine.TotalSize()
			return "full=" + e.integer(full) + " aux=" + e.integer(aux)
		}},

		{"open-session", list(idField), func(e *Executor, c *Call) string { return formatInt64(e.Machine.OpenSession(c.ID)) }},
		{"ensure-session", list(idField), func(e *Executor, c *Call) string { return formatInt64(e.Machine.EnsureSession(c.ID)) }},
		{"register-session", list(idField, generation, nodeField), func(e *Executor, c *Call) string {
			return e.done(e.Machine.RegisterSession(c.ID, c.Generation, c.Node))
		}},
		{"release-session", list(idField), func(e *Executor, c *Call) string { e.Machine.ReleaseSession(c.ID); return "ok" }},

		{"flatten-full", nil, func(e *Executor, _ *Call) string { return e.slots(tree.Full, e.Machine.FlattenFull()) }},
		{"flatten-mamba", nil, func(e *Executor, _ *Call) string { return e.slots(tree.Mamba, e.Machine.FlattenMamba()) }},
		{"walk-canary", list(
			flag("unlocked-only", func(c *Call) *bool { return &c.UnlockedOnly }),
			flag("swa-resident-only", func(c *Call) *bool { return &c.SWAResidentOnly }),
		), func(e *Executor, c *Call) string {
			return canaryText(e.Machine.WalkCanary(c.UnlockedOnly, c.SWAResidentOnly))
		}},
		{"dfs-weight-order", list(nodesField), func(e *Executor, c *Call) string {
			order, err := e.Machine.DFSWeightOrder(c.Nodes)
			return e.or(err, func() string { return intsText(order) })
		}},
		{"sanity-check", sanityFields, func(e *Executor, c *Call) string {
			return e.done(e.Machine.SanityCheck(c.WriteThrough, c.LoadBack))
		}},

		{"last-hash", nodeOnly, func(e *Executor, c *Call) string {
			h, ok, err := e.Machine.LastHash(c.Node)
			return e.or(err, func() string {
				if !ok {
					return "absent"
				}
				return h.String()
			})
		}},
		{"prefix-hashes", nodeOnly, func(e *Executor, c *Call) string { return e.hashes(e.Machine.PrefixHashes(c.Node)) }},
		{"hashes", nodeOnly, func(e *Executor, c *Call) string { return e.hashes(e.Machine.Hashes(c.Node)) }},
		{"backfill-hashes", nil, func(e *Executor, _ *Call) string { return e.integer(e.Machine.BackfillHashes()) }},
		{"take-events", nil, func(e *Executor, _ *Call) string { return eventsText(e.Machine.TakeEvents()) }},
		{"record-all-cleared", nil, func(e *Executor, _ *Call) string { e.Machine.RecordAllCleared(); return "ok" }},

		{"contains", nodeOnly, func(e *Executor, c *Call) string { return e.boolean(e.Machine.Contains(c.Node), nil) }},
		{"is-device-evictable-leaf", nodeOnly, func(e *Executor, c *Call) string {
			return e.boolean(e.Machine.IsDeviceEvictableLeaf(c.Node), nil)
		}},
		{"is-host-evictable-leaf", nodeOnly, func(e *Executor, c *Call) string {
			return e.boolean(e.Machine.IsHostEvictableLeaf(c.Node), nil)
		}},
		{"nodes", nil, func(e *Executor, _ *Call) string { return e.nodeList(e.Machine.Nodes()) }},
		{"inspect", nodeOnly, func(e *Executor, c *Call) string {
			info, err := e.Machine.Inspect(c.Node)
			return e.or(err, func() string { return e.inspect(&info) })
		}},
		{"recency", list(componentField, hostField), func(e *Executor, c *Call) string {
			return e.nodeList(e.Machine.RecencyOrder(c.Component, c.Host))
		}},
	}
}
