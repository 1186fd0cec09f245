// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

// emitter writes single values, each under a name of its own or with labels.
type emitter struct{ out chan<- prometheus.Metric }

func (e emitter) emit(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	e.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(prefix+name, help, names, nil), kind, v, values...)
}

func (e emitter) gauge(name, help string, v int, labels ...string) {
	e.emit(prometheus.GaugeValue, name, help, float64(v), labels...)
}

func (e emitter) count(name, help string, v int64, labels ...string) {
	e.emit(prometheus.CounterValue, name+"_total", help, float64(v), labels...)
}

// units counts by component, those that have a pool.
func (e emitter) units(x *snapshot, name, help string, v tree.Units) {
	for id := range tree.Component(tree.NumComponents) {
		if x.device[id].Size > 0 {
			e.count(name, help+" Tokens; states for mamba.", int64(v[id]), "component", id.String())
		}
	}
}

func (e emitter) pools(x *snapshot) {
	const help = "Slots of a pool, by what they are used for: tokens, or states for mamba."
	for id := range tree.Component(tree.NumComponents) {
		slots := func(tier, state string, n int) {
			e.gauge("pool_slots", help, n, "component", id.String(), "tier", tier, "state", state)
		}
		if u := x.device[id]; u.Size > 0 {
			slots("device", "free", u.Free)
			slots("device", "evictable", u.Evictable)
			slots("device", "protected", u.Protected)
			slots("device", "held", u.Held)
		}
		if u := x.host[id]; u.Size > 0 {
			slots("host", "free", u.Free)
			slots("host", "cached", u.Cached)
			slots("host", "held", u.Held)
		}
	}
	e.gauge("tree_nodes", "Nodes of the tree.", x.nodes)
	e.gauge("requests_waiting", "Requests that wait to be admitted.", x.waiting)
	e.gauge("requests_running", "Requests that run.", x.running)
	attached := 0
	if x.attached {
		attached = 1
	}
	e.gauge("storage_attached", "Whether a store is attached.", attached)
}

func (e emitter) counters(x *snapshot) {
	e.count("engine_steps", "Steps of the engine.", x.engine.Steps)
	e.count("engine_retractions", "Requests that made room for others.", x.engine.Retractions)
	for id := range tree.Component(tree.NumComponents) {
		if x.device[id].Size > 0 {
			e.count("mismatched_values", "Values that the model read and that were wrong; anything but 0 is a fault.", x.engine.Mismatched[id], "component", id.String())
		}
	}
	s := &x.cache
	e.count("cache_matches", "Matches.", s.Matches)
	e.count("cache_inserts", "Inserts.", s.Inserts)
	e.count("cache_computed_tokens", "Prompt tokens that were computed.", s.ComputedTokens)
	e.count("cache_reused_tokens", "Prompt tokens that were reused.", s.ReusedTokens)
	e.count("cache_decoded_tokens", "Output tokens that were computed on.", s.DecodedTokens)
	e.units(x, "cache_evicted", "Evicted from the device.", s.Evicted)
	e.units(x, "cache_tombstones", "Nodes that lost only this component.", s.Tombstones)
	e.units(x, "cache_branches_seen", "Branch points that matches found.", s.BranchesSeen)
	e.units(x, "cache_branches_inserted", "Branch points that were published.", s.BranchesInserted)
	e.count("cache_duplicates_freed", "Full slots that turned out to be copies.", s.DuplicatesFreed)
	e.count("cache_out_of_window_freed", "Window slots of requests that left their window.", s.OutOfWindowFreed)
	e.count("cache_states_cached", "Checkpoints that the tree took.", s.StatesCached)
	e.count("cache_states_not_kept", "Checkpoints that found no room.", s.StatesNotKept)
	e.count("cache_reuse_given_up", "Admissions that started from nothing for lack of room.", s.ReuseGivenUp)
	e.count("cache_backups", "Copies to the host.", s.Backups)
	e.count("cache_load_backs", "Loads from the host.", s.LoadBacks)
	e.count("cache_backup_bytes", "Bytes copied to the host.", s.BackedUpBytes)
	e.count("cache_load_back_bytes", "Bytes loaded from the host.", s.LoadedBackBytes)
	e.count("cache_backups_refused", "Copies to the host that found no room.", s.BackupsRefused)
	e.count("cache_load_backs_given_up", "Loads from the host that found no room or were too small.", s.LoadBacksGivenUp)
	e.count("cache_copies_failed", "Copies that failed.", s.CopiesFailed)
	e.units(x, "cache_host_evicted", "Evicted from the host.", s.HostEvicted)
	seconds := func(name, help string, nanoseconds int64) {
		e.emit(prometheus.CounterValue, name+"_seconds_total", help, float64(nanoseconds)/1e9)
	}
	seconds("cache_eviction", "Time spent on evictions.", s.EvictionTime)
	seconds("cache_backup", "Time of copies to the host, which run beside the engine.", s.BackupTime)
	seconds("cache_load_back", "Time of loads from the host, which run beside the engine.", s.LoadBackTime)
	t := &s.Storage
	e.count("storage_prefetches", "Prefetches that were begun.", t.Issued)
	for _, d := range []struct {
		reason string
		n      int64
	}{
		{"too_short", t.DeclinedTooShort}, {"rate_limited", t.DeclinedRateLimited}, {"unbacked", t.DeclinedUnbacked},
		{"insufficient", t.RevokedInsufficient}, {"full_miss", t.RevokedFullMiss}, {"no_room", t.RevokedNoRoom}, {"unanswered", t.RevokedUnanswered},
	} {
		e.count("storage_prefetches_dropped", "Prefetches that were not begun or brought nothing, by reason.", d.n, "reason", d.reason)
	}
	e.count("storage_prefetched_tokens", "Tokens that prefetches brought and the tree did not have.", t.PrefetchedTokens)
	e.count("storage_lost_tokens", "Tokens that were found and did not come.", t.LostTokens)
	e.count("storage_demand_tokens", "Tokens that lookups asked for.", t.DemandTokens)
	e.count("storage_miss_tokens", "Tokens that lookups asked for and the store did not have.", t.MissTokens)
	e.count("storage_writes", "Writes to the store.", t.Writes)
	e.count("storage_written_tokens", "Tokens written to the store.", t.WrittenTokens)
	const failed = "Calls of the store that failed, by kind."
	e.count("storage_failed", failed, t.WritesFailed, "call", "write")
	e.count("storage_failed", failed, t.ReadsFailed, "call", "read")
	e.count("storage_failed", failed, t.LookupsFailed, "call", "lookup")
}

// store counts what the store that is attached has done since it was opened.
func (e emitter) store(s storage.Stats) {
	if s.Pages >= 0 {
		e.gauge("store_pages", "Pages in the store.", int(s.Pages))
	}
	if s.Bytes >= 0 {
		e.gauge("store_bytes", "Bytes in the store.", int(s.Bytes))
	}
	const pages = "Pages that the store was asked for or given, by what became of them."
	e.count("store_answers", pages, int64(s.Hits), "answer", "hit")
	e.count("store_answers", pages, int64(s.Misses), "answer", "miss")
	e.count("store_answers", pages, int64(s.Written), "answer", "written")
	e.count("store_answers", pages, int64(s.Present), "answer", "present")
	e.count("store_answers", pages, int64(s.Failed), "answer", "failed")
	e.count("store_evicted_pages", "Pages that the size cap removed.", int64(s.Evicted))
	for k, n := range s.Errors {
		if n > 0 {
			e.count("store_errors", "Failures of the store, by kind.", int64(n), "kind", storage.Kind(k).String())
		}
	}
}
