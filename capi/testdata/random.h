/* Copyright The treecore Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls with random arguments, most of them wrong somewhere: null pointers with
 * lengths, forms and flags that are not there, stale nodes, numbers at the ends of
 * their ranges. No call may end the program or panic, and the core goes on
 * serving. (TC_INTERNAL without a panic is what the tree answers to a question
 * over data that wrong calls before it have made.) */

static uint64_t random_state;

static uint64_t draw(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static uint64_t below(uint64_t n) { return (draw() >> 11) % n; }

/* Arguments live here; a call uses a few of each. */
static int64_t words_at[16][32];
static uint32_t words_used;
static tc_slots slots_at[32];
static uint32_t slots_used;
static tc_transfer transfers_at[2][4];
static uint32_t transfers_used;
static tc_receipt last_receipt;
static int64_t newest; /* the highest node seen */

static int64_t some_number(void) {
  static const int64_t ends[] = {0, 1, -1, INT64_MAX, INT64_MIN, UINT32_MAX, (int64_t)UINT32_MAX + 1, 1 << 20};
  return below(4) ? (int64_t)below(12) : ends[below(sizeof ends / sizeof *ends)];
}

static tc_node some_node(void) {
  return below(8) ? newest - (int64_t)below(12) : some_number();
}

static uint32_t some_small(void) { return below(16) ? (uint32_t)below(3) : (uint32_t)draw(); }

static int64_t *some_words(void) {
  if (below(16) == 0) return 0;
  int64_t *w = words_at[words_used++ % 16];
  for (int i = 0; i < 32; i++) w[i] = below(24) ? (int64_t)below(6) : some_number();
  return w;
}

static const int64_t *some_units(void) { return some_words(); }

static const int64_t *some_nodes(void) {
  int64_t *w = some_words();
  for (int i = 0; w && i < 32; i++) w[i] = some_node();
  return w;
}

static const char *some_text(void) {
  static const char *const texts[] = {"abcd", "\xff\xfe\x00z", "    ", 0};
  return texts[below(4)];
}

static const tc_slots *some_slots(tc_slots *into) {
  if (!into) {
    if (below(12) == 0) return 0;
    into = &slots_at[slots_used++ % 32];
  }
  memset(into, 0, sizeof *into);
  into->form = below(24) ? (uint32_t)below(3) : (uint32_t)draw();
  into->data = some_words();
  into->count = below(8);
  return into;
}

static void fill_key(tc_key *k) {
  memset(k, 0, sizeof *k);
  k->tokens = some_words();
  k->length = below(24);
  k->token_bytes = below(24) ? 8 : below(4) ? 4 : (uint32_t)draw();
  if (below(6) == 0) {
    k->extra_key = some_text();
    k->extra_key_length = below(4);
  }
  if (below(6) == 0) {
    k->salt = some_text();
    k->salt_length = below(4);
  }
  if (below(24) == 0) k->flags = (uint32_t)draw();
  if (below(24) == 0) k->flags = TC_KEY_BIGRAM;
}

static const tc_key *some_key(void) {
  static tc_key k;
  if (below(24) == 0) return 0;
  fill_key(&k);
  return &k;
}

static const tc_insert *some_insert(void) {
  static tc_insert p;
  if (below(24) == 0) return 0;
  memset(&p, 0, sizeof p);
  p.size = below(24) ? (uint32_t)sizeof p : (uint32_t)draw();
  fill_key(&p.key);
  if (below(3)) {
    static tc_run run;
    run.first = (int64_t)below(1000);
    run.length = 64;
    run.buffer = below(3) == 0;
    p.slots.form = TC_SLOTS_RUNS;
    p.slots.data = &run;
    p.slots.count = 1;
  } else {
    some_slots(&p.slots);
  }
  static int64_t state;
  state = (int64_t)below(50);
  p.mamba_state.form = TC_SLOTS_NUMBERS;
  p.mamba_state.data = &state;
  p.mamba_state.count = 1;
  if (below(8) == 0) some_slots(&p.mamba_state);
  if (below(4) == 0) p.prev_prefix_len = some_number();
  if (below(4) == 0) p.swa_evicted_len = some_number();
  if (below(4) == 0) p.swa_branching_len = some_number();
  p.priority = some_number();
  p.flags = below(16) ? (uint32_t)below(4) : (uint32_t)draw();
  if (below(8) == 0) {
    p.session = some_text();
    p.session_length = below(4);
  }
  return &p;
}

static const tc_receipt *some_receipt(void) {
  static tc_receipt r;
  if (below(24) == 0) return 0;
  r = last_receipt;
  if (below(2)) {
    int64_t *w = (int64_t *)&r;
    w[below(sizeof r / 8)] = some_number();
  }
  return &r;
}

static const tc_transfer *some_transfers(void) {
  if (below(24) == 0) return 0;
  tc_transfer *t = transfers_at[transfers_used++ % 2];
  for (int i = 0; i < 4; i++) {
    memset(&t[i], 0, sizeof t[i]);
    t[i].component = some_small();
    some_slots(&t[i].device);
    some_slots(&t[i].host);
    t[i].nodes = some_nodes();
    t[i].node_count = below(4);
  }
  return t;
}

static const tc_in_flight *some_in_flight(void) { return (const tc_in_flight *)some_nodes(); }

static const tc_host_inserted *some_inserted(void) { return (const tc_host_inserted *)some_words(); }

/* One line for each function that takes a core. */
static int32_t random_call(uint64_t which, tc_core core, tc_buffer *out) {
  switch (which) {
    case 0: return tc_reset(core, out);
    case 1: return tc_set_switches(core, some_small(), some_number(), out);
    case 2: return tc_switches(core, out);
    case 3: return tc_match(core, some_key(), out);
    case 4: return tc_empty_match(core, out);
    case 5: return tc_match_full_device_prefix(core, some_key(), out);
    case 6: return tc_collect_full_device_slots(core, some_node(), some_node(), out);
    case 7: return tc_begin_insert(core, some_insert(), out);
    case 8: return tc_resume_insert(core, out);
    case 9: return tc_has_ongoing_insert(core, out);
    case 10: return tc_end_insert(core, out);
    case 11: return tc_set_component_device_value(core, some_node(), some_small(), some_slots(0), out);
    case 12: return tc_component_device_value(core, some_node(), some_small(), out);
    case 13: return tc_component_has_host_value_only(core, some_node(), some_small(), out);
    case 14: return tc_evict_excess_path_states(core, some_node(), out);
    case 15: return tc_swa_tombstone_ranges(core, some_key(), some_number(), some_number(), out);
    case 16: return tc_attach_swa_window(core, some_key(), some_number(), some_number(), some_slots(0), out);
    case 17: return tc_lock(core, some_node(), some_small(), out);
    case 18: return tc_unlock(core, some_node(), some_receipt(), (int32_t)below(2), out);
    case 19: return tc_release_swa_lock(core, some_node(), some_receipt(), out);
    case 20: return tc_release_window_lock(core, some_node(), some_small(), some_receipt(), out);
    case 21: return tc_lock_host(core, some_node(), out);
    case 22: return tc_unlock_host(core, some_node(), some_receipt(), out);
    case 23: return tc_pin_full(core, some_node(), out);
    case 24: return tc_unpin_full(core, some_node(), out);
    case 25: return tc_evict_start(core, some_small(), some_number(), out);
    case 26: return tc_evict_next(core, some_small(), some_units(), out);
    case 27: return tc_evict_leaf(core, some_node(), (int32_t)below(2), out);
    case 28: return tc_evict_end(core, some_small(), out);
    case 29: return tc_evict(core, some_units(), out);
    case 30: return tc_demote(core, some_node(), out);
    case 31: return tc_drop_subtree_no_host(core, some_node(), out);
    case 32: return tc_finish_state_eviction(core, some_small(), some_node(), out);
    case 33: return tc_evict_host(core, some_small(), some_number(), out);
    case 34: return tc_sizes(core, out);
    case 35: return tc_total_size(core, out);
    case 36: return tc_memory_bytes(core, out);
    case 37: return tc_root(core, out);
    case 38: return tc_contains(core, some_node(), out);
    case 39: return tc_is_root(core, some_node(), out);
    case 40: return tc_is_backed_up(core, some_node(), out);
    case 41: return tc_is_full_device_evicted(core, some_node(), out);
    case 42: return tc_place(core, some_node(), out);
    case 43: return tc_prefetch_anchor(core, some_node(), out);
    case 44: return tc_flatten_full(core, out);
    case 45: return tc_flatten_mamba(core, out);
    case 46: return tc_walk_canary(core, (int32_t)below(2), (int32_t)below(2), out);
    case 47: return tc_dfs_weight_order(core, some_nodes(), below(6), out);
    case 48: return tc_sanity_check(core, some_in_flight(), below(3), some_in_flight(), below(3), out);
    case 49: return tc_draw(core, out);
    case 50: return tc_take_dead_buffers(core, out);
    case 51: return tc_nodes(core, out);
    case 52: return tc_recency_order(core, some_small(), (int32_t)below(2), out);
    case 53: return tc_eviction_order(core, out);
    case 54: return tc_host_duplicates(core, out);
    case 55: return tc_evictable_leaf(core, some_node(), out);
    case 56: return tc_inspect(core, some_node(), out);
    case 57: return tc_open_session(core, some_text(), below(4), out);
    case 58: return tc_ensure_session(core, some_text(), below(4), out);
    case 59: return tc_register_session(core, some_text(), below(4), some_number(), some_node(), out);
    case 60: return tc_release_session(core, some_text(), below(4), out);
    case 61: return tc_last_hash(core, some_node(), out);
    case 62: return tc_prefix_hashes(core, some_node(), out);
    case 63: return tc_hashes(core, some_node(), out);
    case 64: return tc_backfill_hashes(core, out);
    case 65: return tc_take_events(core, out);
    case 66: return tc_record_all_cleared(core, out);
    case 67: return tc_build_backup_spec(core, some_node(), out);
    case 68: return tc_commit_backup(core, some_node(), some_slots(0), some_transfers(), below(3), out);
    case 69: return tc_undo_backup(core, some_node(), some_small(), some_number(), out);
    case 70: return tc_mark_write_through_pending(core, some_nodes(), below(6), some_number(), out);
    case 71: return tc_finish_write_through(core, some_nodes(), below(6), some_number(), out);
    case 72: return tc_build_load_back_spec(core, some_node(), out);
    case 73: return tc_commit_load_back(core, some_node(), some_slots(0), some_transfers(), some_transfers(), below(3), (int32_t)below(2), out);
    case 74: return tc_finish_load_back(core, some_node(), out);
    case 75: return tc_insert_host(core, some_node(), some_key(), some_slots(0), (const uint8_t *)some_words(), below(5), out);
    case 76: return tc_commit_prefetch(core, some_node(), some_inserted(), some_transfers(), below(3), some_units(), out);
    case 77: return tc_build_storage_spec(core, some_node(), (int32_t)below(2), out);
    case 78: return tc_mark_stored(core, some_node(), some_node(), out);
    case 79: return tc_build_offload(core, some_node(), out);
    case 80: return tc_mark_offload_pending(core, some_node(), out);
    case 81: return tc_finish_offload(core, some_nodes(), below(6), some_number(), (int32_t)below(2), out);
    case 82: return tc_snapshot_buffer_backup(core, some_node(), (int32_t)below(2), out);
    case 83: return tc_validate_buffer_backup(core, some_node(), some_number(), out);
    default: return TC_OK;
  }
}

enum { FUNCTIONS = 84 };

static void random_calls(uint64_t calls, uint64_t seed) {
  tc_buffer out = {0, 0, 0};
  tc_core core = 0;
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
  for (uint64_t i = 0; i < calls; i++) {
    if (i % 5000 == 0) {
      if (core) OK(tc_destroy(core, &out));
      tc_options o = options_of((uint32_t[]){1, 3, 5, 7}[below(4)]);
      o.page_size = (int64_t)below(3);
      o.flags = (uint32_t)below(16);
      while (tc_create(&o, &out) != TC_OK) o.page_size++;
      core = (tc_core)out.words[0];
      newest = 1;
    }
    /* Every second call is one that brings something into the tree. */
    uint64_t which = below(FUNCTIONS);
    int32_t code;
    if (below(4) == 0) {
      code = tc_begin_insert(core, some_insert(), &out);
      if (code == TC_OK && below(8)) code = tc_end_insert(core, &out);
    } else if (below(8) == 0) {
      code = tc_lock(core, some_node(), 0, &out);
      if (code == TC_OK) memcpy(&last_receipt, out.words, sizeof last_receipt);
    } else {
      code = random_call(which, core, &out);
    }
    if (code < TC_OK || code >= TC_HANDLE || (code == TC_INTERNAL && holds((const char *)(out.words + 3), out.words[2], "panic"))) {
      fprintf(stderr, "seed %llu, call %llu (%llu): code %d: %.*s\n", (unsigned long long)seed, (unsigned long long)i,
              (unsigned long long)which, code, (int)out.words[2], (const char *)&out.words[3]);
      exit(1);
    }
    OK(tc_nodes(core, &out));
    if (out.words[0] > 0) {
      for (int64_t n = 1; n <= out.words[0]; n++)
        if (out.words[n] > newest) newest = out.words[n];
    }
  }
  if (core) OK(tc_destroy(core, &out));
  tc_buffer_free(&out);
}
