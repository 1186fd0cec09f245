/* Copyright The treecore Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Uses libtreecore as an engine does. A failure prints its line and ends the
 * program with 1. With an argument it only makes that many calls with random
 * arguments; a second argument is the seed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "treecore.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* OK runs a call that must work and shows its message if it does not. */
#define OK(call) must((call), &out, __LINE__)

static void must(int32_t code, const tc_buffer *out, int line) {
  if (code == TC_OK) return;
  fprintf(stderr, "line %d: code %d: %.*s\n", line, code, (int)out->words[2], (const char *)&out->words[3]);
  exit(1);
}

/* ---- A reader of results ------------------------------------------------ */

typedef struct reader {
  const int64_t *at, *end;
} reader;

static reader read_result(const tc_buffer *out) {
  reader r = {out->words, out->words + out->length};
  return r;
}

static int64_t next(reader *r) {
  CHECK(r->at < r->end);
  return *r->at++;
}

typedef struct slots {
  int64_t form, count;
  const int64_t *data;
} slots;

static slots next_slots(reader *r) {
  slots s;
  s.form = next(r);
  s.count = next(r);
  s.data = r->at;
  r->at += s.form == TC_SLOTS_RUNS ? 3 * s.count : s.count;
  CHECK(r->at <= r->end);
  return s;
}

static int holds(const char *text, int64_t bytes, const char *word) {
  int64_t n = (int64_t)strlen(word);
  for (int64_t i = 0; i + n <= bytes; i++)
    if (memcmp(text + i, word, (size_t)n) == 0) return 1;
  return 0;
}

/* ---- A core and a key --------------------------------------------------- */

static tc_options options_of(uint32_t components) {
  tc_options o;
  memset(&o, 0, sizeof o);
  o.size = sizeof o;
  o.abi_version = TC_ABI_VERSION;
  o.components = components;
  o.sliding_window = 4;
  return o;
}

static tc_core create(uint32_t components, tc_buffer *out) {
  tc_options o = options_of(components);
  must(tc_create(&o, out), out, __LINE__);
  CHECK(out->length == 1);
  return (tc_core)out->words[0];
}

static tc_key key_of(const uint32_t *tokens, uint64_t n) {
  tc_key k;
  memset(&k, 0, sizeof k);
  k.tokens = tokens;
  k.length = n;
  k.token_bytes = 4;
  return k;
}

/* insert inserts tokens with the slots first, first + 1, ... and returns the node
 * at which the key ends. */
static tc_node insert(tc_core core, const uint32_t *tokens, uint64_t n, int64_t first, tc_buffer *buffer) {
  tc_buffer out = *buffer;
  tc_run run = {0, first, (int64_t)n};
  tc_insert p;
  tc_node node = 0;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.key = key_of(tokens, n);
  p.slots.form = TC_SLOTS_RUNS;
  p.slots.data = &run;
  p.slots.count = 1;
  for (int32_t code = tc_begin_insert(core, &p, &out);; code = tc_resume_insert(core, &out)) {
    must(code, &out, __LINE__);
    reader r = read_result(&out);
    for (int64_t actions = next(&r); actions > 0; actions--) {
      next(&r);
      r.at += next(&r);
    }
    if (next(&r)) {
      next(&r);
      node = next(&r);
      break;
    }
  }
  OK(tc_end_insert(core, &out));
  *buffer = out;
  return node;
}

/* ---- What is exercised -------------------------------------------------- */

static void library(void) {
  tc_buffer out = {0, 0, 0};
  CHECK(tc_abi_version() == TC_ABI_VERSION);
  OK(tc_build(&out));
  OK(tc_policies(&out));
  CHECK(out.words[0] > 0);

  tc_options o = options_of(1);
  o.abi_version++;
  CHECK(tc_create(&o, &out) == TC_VERSION);
  o = options_of(1);
  o.size = 8;
  CHECK(tc_create(&o, &out) == TC_ARGUMENT);
  CHECK(tc_create(0, &out) == TC_ARGUMENT);
  CHECK(tc_create(&o, 0) == TC_ARGUMENT);

  /* A caller of a later version: longer options, the rest zero or not. */
  struct {
    tc_options known;
    int64_t later;
  } longer;
  memset(&longer, 0, sizeof longer);
  longer.known = options_of(1);
  longer.known.size = sizeof longer;
  OK(tc_create(&longer.known, &out));
  OK(tc_destroy((tc_core)out.words[0], &out));
  longer.later = 1;
  CHECK(tc_create(&longer.known, &out) == TC_ARGUMENT);

  /* All that is wrong with options comes at once, and in words. */
  o = options_of(1);
  o.page_size = -1;
  o.policy = "best";
  o.policy_length = 4;
  CHECK(tc_create(&o, &out) == TC_CONFIG);
  reader r = read_result(&out);
  CHECK(next(&r) == TC_CONFIG);
  CHECK(next(&r) == 0);
  int64_t bytes = next(&r);
  CHECK(holds((const char *)r.at, bytes, "PageSize"));
  r.at += (bytes + 7) / 8;
  CHECK(next(&r) == 2);

  tc_run runs[2] = {{0, 5, 2}, {0, 9, 1}};
  int64_t numbers[3] = {0, 0, 0};
  OK(tc_expand_runs(runs, 2, numbers, 3, &out));
  CHECK(out.words[0] == 3 && numbers[0] == 5 && numbers[1] == 6 && numbers[2] == 9);
  CHECK(tc_expand_runs(runs, 2, numbers, 2, &out) == TC_ARGUMENT);
  runs[0].buffer = 1;
  CHECK(tc_expand_runs(runs, 2, numbers, 3, &out) == TC_ARGUMENT);

  uint32_t tokens[4] = {1, 2, 3, 4};
  tc_key k = key_of(tokens, 4);
  OK(tc_hash_pages(&k, 2, 0, &out));
  CHECK(out.words[0] == 2 && out.length == 9);
  int64_t second[4];
  uint8_t first[32];
  memcpy(first, out.words + 1, 32);
  memcpy(second, out.words + 5, 32);
  k = key_of(tokens + 2, 2);
  OK(tc_hash_pages(&k, 2, first, &out));
  CHECK(out.words[0] == 1 && memcmp(out.words + 1, second, 32) == 0);
  CHECK(tc_hash_pages(&k, 0, 0, &out) == TC_ARGUMENT);
  tc_buffer_free(&out);
  CHECK(out.words == 0 && out.capacity == 0);
  tc_buffer_free(&out);
  tc_buffer_free(0);
}

static void requests(void) {
  tc_buffer out = {0, 0, 0};
  tc_core core = create(1, &out);
  uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  tc_node node = insert(core, tokens, 8, 100, &out);

  int64_t wide[6] = {1, 2, 3, 4, 5, 77};
  tc_key k = key_of(tokens, 6);
  k.tokens = wide;
  k.token_bytes = 8;
  OK(tc_match(core, &k, &out));
  reader r = read_result(&out);
  tc_match_head head;
  memcpy(&head, r.at, sizeof head);
  r.at += sizeof head / 8;
  CHECK(head.device_len == 5 && head.units == 6 && head.full_hit_len == 5);
  CHECK(head.last_device_node != node && head.best_node == head.last_device_node);
  slots s = next_slots(&r);
  CHECK(s.form == TC_SLOTS_RUNS && s.count == 1 && s.data[1] == 100 && s.data[2] == 5);
  CHECK(next(&r) == 0 || r.at[-1] == -1);
  CHECK(r.at == r.end);

  wide[3] = (int64_t)1 << 32;
  CHECK(tc_match(core, &k, &out) == TC_ARGUMENT);
  wide[3] = -1;
  CHECK(tc_match(core, &k, &out) == TC_ARGUMENT);

  /* A locked node stays, and only its own receipt releases it. */
  OK(tc_lock(core, node, 0, &out));
  tc_receipt receipt;
  CHECK(out.length * 8 == sizeof receipt);
  memcpy(&receipt, out.words, sizeof receipt);
  CHECK(receipt.node == node && receipt.delta == 8);
  int64_t want[TC_COMPONENTS] = {100, 0, 0};
  OK(tc_evict(core, want, &out));
  CHECK(out.words[0] == 0);
  CHECK(tc_unlock(core, head.last_device_node, &receipt, 0, &out) == TC_RECEIPT);
  OK(tc_unlock(core, node, &receipt, 0, &out));
  OK(tc_sizes(core, &out));
  CHECK(out.words[0] == 8 && out.words[3] == 0);
  OK(tc_evict(core, want, &out));
  CHECK(out.words[0] == 8 && out.words[3] == 8);
  r = read_result(&out);
  r.at += 4;
  s = next_slots(&r);
  int64_t freed = 0;
  for (int64_t i = 0; i < s.count; i++) freed += s.data[3 * i + 2];
  CHECK(freed == 8);

  /* The node is gone: the record names it, and the next call works. */
  CHECK(tc_is_backed_up(core, node, &out) == TC_NODE_ACCESS);
  CHECK(out.words[0] == TC_NODE_ACCESS && out.words[1] == node);
  OK(tc_sanity_check(core, 0, 0, 0, 0, &out));

  /* Out of order. */
  CHECK(tc_resume_insert(core, &out) == TC_ORDER);
  CHECK(tc_evict_end(core, TC_FULL, &out) == TC_ORDER);
  CHECK(tc_evict_start(core, 3, 1, &out) == TC_ARGUMENT);

  OK(tc_reset(core, &out));
  OK(tc_root(core, &out));
  CHECK(out.words[0] > node);
  OK(tc_destroy(core, &out));
  CHECK(tc_destroy(core, &out) == TC_HANDLE);
  CHECK(tc_root(core, &out) == TC_HANDLE);
  CHECK(tc_root(0, &out) == TC_HANDLE);
  tc_buffer_free(&out);
}

/* An opaque buffer is never read; it is reported when the tree has let go of it. */
static void opaque(void) {
  tc_buffer out = {0, 0, 0};
  tc_core core = create(1, &out);
  uint32_t tokens[4] = {1, 2, 3, 4};
  tc_run run = {7, 0, 4};
  tc_insert p;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.key = key_of(tokens, 4);
  p.slots.form = TC_SLOTS_RUNS;
  p.slots.data = &run;
  p.slots.count = 1;
  OK(tc_begin_insert(core, &p, &out));
  OK(tc_end_insert(core, &out));
  OK(tc_take_dead_buffers(core, &out));
  CHECK(out.words[0] <= 0);
  int64_t want[TC_COMPONENTS] = {4, 0, 0};
  OK(tc_evict(core, want, &out));
  OK(tc_take_dead_buffers(core, &out));
  CHECK(out.words[0] == 1 && out.words[1] == 7);
  OK(tc_destroy(core, &out));
  tc_buffer_free(&out);
}

/* A backup and a load back. */
static void host(void) {
  tc_buffer out = {0, 0, 0};
  tc_core core = create(1, &out);
  OK(tc_set_switches(core, TC_HOST_TIER, 100, &out));
  OK(tc_switches(core, &out));
  CHECK(out.words[0] == TC_HOST_TIER && out.words[1] == 100);
  uint32_t tokens[4] = {1, 2, 3, 4};
  tc_node node = insert(core, tokens, 4, 20, &out);
  OK(tc_build_backup_spec(core, node, &out));
  CHECK(out.words[0] == TC_SLOTS_RUNS && out.words[3] == 20 && out.words[4] == 4);
  int64_t numbers[4] = {0, 1, 2, 3};
  tc_slots to_host = {numbers, 4, TC_SLOTS_NUMBERS, 0};
  OK(tc_commit_backup(core, node, &to_host, 0, 0, &out));
  memset(numbers, 0xff, sizeof numbers);
  OK(tc_mark_write_through_pending(core, &node, 1, 9, &out));
  CHECK(out.words[0] == 1 && out.words[1] == node);
  OK(tc_finish_write_through(core, &node, 1, 9, &out));
  OK(tc_demote(core, node, &out));
  CHECK(out.words[0] == 4);
  CHECK(tc_demote(core, node, &out) == TC_ORDER);
  OK(tc_build_load_back_spec(core, node, &out));
  reader r = read_result(&out);
  CHECK(next(&r) == 0 && next(&r) == TC_FULL);
  next_slots(&r);
  slots s = next_slots(&r);
  CHECK(s.count == 1 && s.data[1] == 0 && s.data[2] == 4);
  int64_t nodes = next(&r);
  CHECK(nodes == 1 && next(&r) == node);
  /* What a result holds can be an argument as it is: runs have one shape. */
  tc_run from_host = {s.data[0], s.data[1], s.data[2]}, to_device = {0, 40, 4};
  tc_transfer full;
  memset(&full, 0, sizeof full);
  full.component = TC_FULL;
  full.host.form = TC_SLOTS_RUNS;
  full.host.data = &from_host;
  full.host.count = 1;
  full.nodes = &node;
  full.node_count = 1;
  tc_slots device = {&to_device, 1, TC_SLOTS_RUNS, 0};
  OK(tc_commit_load_back(core, node, &device, &full, 0, 0, 0, &out));
  OK(tc_finish_load_back(core, node, &out));
  tc_key k = key_of(tokens, 4);
  OK(tc_match(core, &k, &out));
  CHECK(out.words[0] == 4);
  OK(tc_destroy(core, &out));
  tc_buffer_free(&out);
}

/* ---- Threads ------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 300 };

static tc_core shared;

static void *user(void *p) {
  uint32_t number = *(const uint32_t *)p;
  tc_buffer out = {0, 0, 0};
  tc_core own = create(1, &out);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    uint32_t tokens[6] = {number, i, i + 1, i + 2, i + 3, i + 4};
    insert(own, tokens, 6, 6 * (int64_t)i, &out);
    tc_key k = key_of(tokens, 6);
    OK(tc_match(own, &k, &out));
    CHECK(out.words[0] == 6);
    int32_t code = tc_match(shared, &k, &out);
    CHECK(code == TC_OK || code == TC_HANDLE);
    code = tc_sizes(shared, &out);
    CHECK(code == TC_OK || code == TC_HANDLE);
    if (i == ROUNDS / 2 && number == 0) {
      code = tc_destroy(shared, &out);
      CHECK(code == TC_OK);
    }
  }
  OK(tc_sanity_check(own, 0, 0, 0, 0, &out));
  OK(tc_destroy(own, &out));
  tc_buffer_free(&out);
  return 0;
}

static void threads(void) {
  tc_buffer out = {0, 0, 0};
  pthread_t thread[THREADS];
  uint32_t number[THREADS];
  shared = create(1, &out);
  tc_buffer_free(&out);
  for (uint32_t i = 0; i < THREADS; i++) {
    number[i] = i;
    CHECK(pthread_create(&thread[i], 0, user, &number[i]) == 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], 0) == 0);
}

/* Stale ids for ever: an error each, no memory. */
static void stale(void) {
  tc_buffer out = {0, 0, 0};
  tc_core core = create(1, &out);
  for (int64_t i = 0; i < 2000; i++) CHECK(tc_is_root(core, 1000 + i, &out) == TC_NODE_ACCESS);
  uint64_t capacity = out.capacity;
  for (int64_t i = 0; i < 2000; i++) CHECK(tc_is_root(core, 5000 + i, &out) == TC_NODE_ACCESS);
  CHECK(out.capacity == capacity);
  OK(tc_root(core, &out));
  OK(tc_destroy(core, &out));
  tc_buffer_free(&out);
}

#include "random.h"

int main(int count, char **arguments) {
  if (count > 1) {
    random_calls(strtoull(arguments[1], 0, 10), count > 2 ? strtoull(arguments[2], 0, 10) : 1);
    puts("random calls: ok");
    return 0;
  }
  library();
  requests();
  opaque();
  host();
  threads();
  stale();
  random_calls(20000, 1);
  puts("exercise: ok");
  return 0;
}
