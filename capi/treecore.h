/* Copyright The treecore Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * treecore.h - the C interface of libtreecore, a prefix cache for LLM serving.
 *
 * One call in, one flat buffer out. Every function that takes a tc_buffer
 * returns a code (tc_code) and leaves its result, or on failure an error record,
 * in that buffer: an array of int64_t in memory that the library allocates and
 * grows, and the caller frees once with tc_buffer_free. Use one buffer again and
 * again; a call overwrites what the one before left. A thread has a buffer of its
 * own.
 *
 * Nothing that a caller passes is kept beyond the call, and nothing that the
 * library hands out points into it: cores and nodes are numbers.
 *
 * Calls on one core exclude each other; calls on different cores run side by
 * side. After an error a core is as it was before the call. After TC_INTERNAL
 * from a panic (a fault of the library) the core answers TC_CLOSED, with the
 * first panic's text, until tc_reset or tc_destroy; others go on.
 *
 * What an operation does, when it may be called and what its values mean is
 * written down once, at the method of the same name of the Go package tree
 * (tc_begin_insert is BeginInsert). This file says how it crosses the border.
 *
 * A process that has loaded the library must not go on using it after a fork
 * without exec.
 */
#ifndef TREECORE_H
#define TREECORE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library of another version refuses tc_create;
 * a loader compares it with tc_abi_version() before any other call. */
#define TC_ABI_VERSION 1u

#define TC_COMPONENTS 3

/* ---- Codes ------------------------------------------------------------- */

enum tc_code {
  TC_OK = 0,
  TC_NODE_ACCESS = 1,  /* a node id that is not live; no other argument matters */
  TC_CHECK_FAILED = 2, /* tc_sanity_check found something */
  TC_ARGUMENT = 3,     /* an argument that cannot be right */
  TC_ORDER = 4,        /* a call out of order, a node in another state */
  TC_CONFIG = 5,       /* options that cannot be right */
  TC_RECEIPT = 6,      /* a release that does not mirror its lock */
  TC_INTERNAL = 7,     /* a fault of the library */
  TC_HANDLE = 8,       /* a core that never was or was destroyed */
  TC_VERSION = 9,      /* another version of this interface */
  TC_CLOSED = 10       /* the core had a panic; tc_reset or tc_destroy it */
};

/* An error record:
 *   code, node, string message, int count, count details
 * node is the stale node of TC_NODE_ACCESS, the node of TC_RECEIPT, and for
 * TC_CHECK_FAILED the number of nodes visited; else 0. A detail is
 *   int node, string, string, string
 * TC_CONFIG:                one a bad field: 0, field, value, what is allowed
 * TC_CHECK_FAILED:          one a violation: node, check, what was found, ""
 * TC_ARGUMENT:              0, operation, argument, problem
 * TC_ORDER, TC_INTERNAL:    0, operation, "", problem
 * TC_RECEIPT, TC_NODE_ACCESS: node, operation, "", problem
 * others have no details. */

/* ---- Values ------------------------------------------------------------ */

enum tc_component { TC_FULL = 0, TC_SWA = 1, TC_MAMBA = 2 };
/* A set of components is the sum of 1 << component. */

typedef uint64_t tc_core; /* 0 is no core */
typedef int64_t tc_node;  /* 0 is no node; ids are never given out twice */

/* A result. All zero to begin with. words[0 .. length) is the result of the last
 * call; the rest of capacity is spare. Set the fields to nothing but zero. */
typedef struct tc_buffer {
  int64_t *words;
  uint64_t length;
  uint64_t capacity;
} tc_buffer;

/* Results are made of these, one after the other without gaps:
 *   int      one word; a bool is an int that is 0 or 1
 *   string   byte length, then the bytes, filled up with zero bytes to words
 *   digest   four words: 32 bytes as they are
 *   list of  count, then the items; count -1: the list is absent, which differs
 *            from empty
 *   slots    form, count, data: see tc_slots. Absent slots are 0, 0
 *   frees    six slots: device of each component, then host of each. The device
 *            slots of SWA are the Full slots whose SWA partners are to be freed
 *   evicted  three ints: units freed of each component; int: Full units without
 *            host copy among them; frees
 *   transfer int component, slots device, slots host, list of node,
 *            list of digest (storage keys)
 *   range    two ints: start, end (exclusive)
 *   action   kind, number of words that follow, these words: see tc_action
 * An int64_t on the machine's byte order; a uint64_t crosses as the int64_t of
 * the same bits. */

/* Slots. Numbered slots are 0 to 2^32-1. A run of an opaque buffer (buffer not
 * 0) names entries of a list that only its owner can read. */
enum tc_slot_form {
  TC_SLOTS_ABSENT = 0,  /* no data at all, which differs from an empty list */
  TC_SLOTS_RUNS = 1,    /* data: count tc_run */
  TC_SLOTS_NUMBERS = 2  /* data: count int64_t */
};

typedef struct tc_run {
  int64_t buffer, first, length;
} tc_run;

/* Slots as an argument. All zero is absent, and so is a null pointer to it. */
typedef struct tc_slots {
  const void *data;
  uint64_t count;
  uint32_t form; /* tc_slot_form */
  uint32_t reserved; /* 0 */
} tc_slots;

/* A key. token_bytes is 4 (uint32_t, read in place) or 8 (int64_t, each 0 to
 * 2^32-1, converted). A null extra_key is none, which differs from an empty one;
 * salt may be null. Texts are bytes of a length, without a closing zero. */
enum tc_key_flag { TC_KEY_BIGRAM = 1 };

typedef struct tc_key {
  const void *tokens;
  uint64_t length;
  const char *extra_key;
  uint64_t extra_key_length;
  const char *salt;
  uint64_t salt_length;
  uint32_t token_bytes;
  uint32_t flags; /* tc_key_flag */
} tc_key;

/* What a lock returns, word for word, and its release presents. */
typedef struct tc_receipt {
  int64_t node;    /* anchor; 0: unknown */
  int64_t skipped; /* set of components */
  int64_t boundary[TC_COMPONENTS];
  int64_t host_boundary[TC_COMPONENTS];
  int64_t delta; /* Full units that became protected */
} tc_receipt;

typedef struct tc_transfer {
  tc_slots device;
  tc_slots host;
  const int64_t *nodes;
  uint64_t node_count;
  uint32_t component;
  uint32_t reserved; /* 0 */
} tc_transfer;

typedef struct tc_in_flight {
  int64_t id;
  tc_node node;
} tc_in_flight;

/* What a caller must execute, in the order of the list. The words of each: */
enum tc_action {
  TC_FREE_DEVICE_KV = 1,            /* slots */
  TC_FREE_DEVICE_KV_FULL_ONLY = 2,  /* slots */
  TC_REPLACE_WRITE_THROUGH = 3,     /* int ack, int old, int new, int child */
  TC_BACKUP_KV = 4,                 /* int key length, bool ends at prompt, list of node */
  TC_SWA_REBUILD = 5,               /* int node, slots full */
  TC_RECOVER_SWA = 6,               /* int node, slots kept, slots incoming */
  TC_MAMBA_EVICT_EXCESS = 7,        /* int tail */
  TC_FREE_COMPONENT_DEVICE = 8,     /* int component, slots */
  TC_FREE_COMPONENT_HOST = 9,       /* int component, slots */
  TC_REBUILD_FULL_TO_SWA = 10       /* slots full, slots swa */
};

/* ---- Library ----------------------------------------------------------- */

/* Options. size is sizeof(tc_options) and abi_version TC_ABI_VERSION; all else
 * may be zero, for the defaults of tree.Options. A library takes what is longer
 * than it knows if the rest is zero. */
enum tc_option_flag {
  TC_EAGLE = 1,
  TC_EVENTS = 2,
  TC_SESSIONS = 4,
  TC_NUMBERS = 8 /* slots in results are numbers where no run is opaque */
};

typedef struct tc_parameter {
  const char *name;
  uint64_t name_length;
  int64_t value;
} tc_parameter;

typedef struct tc_options {
  uint32_t size;
  uint32_t abi_version;
  uint32_t components; /* a set; 0: Full */
  uint32_t flags;      /* tc_option_flag */
  int64_t page_size;
  int64_t sliding_window;
  int64_t checkpoint_grid;
  int64_t max_states_per_path;
  const char *policy; /* null: lru */
  uint64_t policy_length;
  const tc_parameter *parameters;
  uint64_t parameter_count;
} tc_options;

enum tc_switch {
  TC_HOST_TIER = 1,
  TC_STORAGE = 2,
  TC_WRITE_BACK = 4,
  TC_SWA_HOST_POOL = 8,
  TC_HOST_BUFFER_ONLY = 16,
  TC_EXTERNAL_LINKER = 32,
  TC_SWA_RING_LAYOUT = 64
};

/* An insert. size is sizeof(tc_insert). */
enum tc_insert_flag { TC_INSERT_CHUNKED = 1, TC_INSERT_TRACK_ADOPTED = 2 };

typedef struct tc_insert {
  uint32_t size;
  uint32_t flags; /* tc_insert_flag */
  tc_key key;
  tc_slots slots; /* absent: the token ids stand in for slots */
  tc_slots mamba_state;
  int64_t prev_prefix_len;
  int64_t swa_evicted_len;
  int64_t swa_branching_len;
  int64_t priority;
  const char *session; /* null: none */
  uint64_t session_length;
} tc_insert;

/* What tc_insert_host returned, for tc_commit_prefetch. Its result begins with
 * these words. */
typedef struct tc_host_inserted {
  int64_t prefix_len;
  int64_t total_len;
  int64_t node; /* 0: none */
  int64_t dropped;
} tc_host_inserted;

/* The first words of the result of tc_match. */
typedef struct tc_match_head {
  int64_t device_len;
  int64_t last_device_node;
  int64_t best_node;
  int64_t last_host_node;
  int64_t host_hit_len;
  int64_t swa_host_hit_len;
  int64_t mamba_host_hit_len;
  int64_t full_hit_len;
  int64_t swa_branching_len;   /* 0: none */
  int64_t mamba_branching_len; /* 0: none */
  int64_t limited;             /* bool */
  int64_t limited_by;          /* component, if limited */
  int64_t reason;              /* tree.Reason */
  int64_t device;
  int64_t host;
  int64_t units;
  int64_t page_remainder;
} tc_match_head;

#ifndef TC_TYPES_ONLY

#ifndef TC_API
#define TC_API extern
#endif

/* The comment at each function is its result. */

TC_API uint32_t tc_abi_version(void);

/* string fingerprint that the library was built with ("" if none), string Go
 * version. The fingerprint is set by the linker flag
 * -X github.com/treecore/treecore/capi/internal/abi.Fingerprint=TEXT. */
TC_API int32_t tc_build(tc_buffer *out);

/* Frees a buffer's memory and makes it all zero. Null and all zero are fine. */
TC_API void tc_buffer_free(tc_buffer *buffer);

/* list of string: the names of the eviction policies */
TC_API int32_t tc_policies(tc_buffer *out);

/* Writes the slot numbers of runs one by one; capacity is what numbers has room
 * for. An opaque run is TC_ARGUMENT, too little room as well. int written */
TC_API int32_t tc_expand_runs(const tc_run *runs, uint64_t run_count, int64_t *numbers, uint64_t capacity, tc_buffer *out);

/* The storage chain of a key. previous is null or the 32 bytes of the digest
 * after which the key goes on. list of digest */
TC_API int32_t tc_hash_pages(const tc_key *key, int64_t page_size, const uint8_t *previous, tc_buffer *out);

/* int core */
TC_API int32_t tc_create(const tc_options *options, tc_buffer *out);

/* Later calls with the handle are TC_HANDLE. nothing */
TC_API int32_t tc_destroy(tc_core core, tc_buffer *out);

/* nothing */
TC_API int32_t tc_reset(tc_core core, tc_buffer *out);

/* set is a sum of tc_switch; all switches each time. nothing */
TC_API int32_t tc_set_switches(tc_core core, uint32_t set, int64_t write_through_threshold, tc_buffer *out);

/* int set of tc_switch, int write-through threshold */
TC_API int32_t tc_switches(tc_core core, tc_buffer *out);

/* Writes every later call as a line of text to a file, which is created or
 * emptied: see internal/ops for the grammar. A null path ends that. A file that
 * cannot be written is TC_ARGUMENT. nothing */
TC_API int32_t tc_set_log(tc_core core, const char *path, uint64_t path_length, tc_buffer *out);

/* ---- Match ------------------------------------------------------------- */

/* tc_match_head, slots, list of action */
TC_API int32_t tc_match(tc_core core, const tc_key *key, tc_buffer *out);

/* as tc_match */
TC_API int32_t tc_empty_match(tc_core core, tc_buffer *out);

/* int matched, int node, int pinned */
TC_API int32_t tc_match_full_device_prefix(tc_core core, const tc_key *key, tc_buffer *out);

/* slots */
TC_API int32_t tc_collect_full_device_slots(tc_core core, tc_node from, tc_node until, tc_buffer *out);

/* ---- Insert ------------------------------------------------------------ */

/* A step: list of action, bool finished, and if it is: int prefix length, int
 * last device node, bool mamba exist, bool swa branch inserted, bool tracked, and
 * if it is: three lists of range, adopted of each component. */
TC_API int32_t tc_begin_insert(tc_core core, const tc_insert *insert, tc_buffer *out);

/* a step */
TC_API int32_t tc_resume_insert(tc_core core, tc_buffer *out);

/* bool */
TC_API int32_t tc_has_ongoing_insert(tc_core core, tc_buffer *out);

/* list of action */
TC_API int32_t tc_end_insert(tc_core core, tc_buffer *out);

/* nothing */
TC_API int32_t tc_set_component_device_value(tc_core core, tc_node node, uint32_t component, const tc_slots *slots, tc_buffer *out);

/* slots */
TC_API int32_t tc_component_device_value(tc_core core, tc_node node, uint32_t component, tc_buffer *out);

/* bool */
TC_API int32_t tc_component_has_host_value_only(tc_core core, tc_node node, uint32_t component, tc_buffer *out);

/* evicted */
TC_API int32_t tc_evict_excess_path_states(tc_core core, tc_node tail, tc_buffer *out);

/* list of range */
TC_API int32_t tc_swa_tombstone_ranges(tc_core core, const tc_key *key, int64_t start, int64_t end, tc_buffer *out);

/* list of action */
TC_API int32_t tc_attach_swa_window(tc_core core, const tc_key *key, int64_t start, int64_t end, const tc_slots *swa, tc_buffer *out);

/* ---- Locks ------------------------------------------------------------- */

/* tc_receipt. skip is a set of components. */
TC_API int32_t tc_lock(tc_core core, tc_node node, uint32_t skip, tc_buffer *out);

/* nothing */
TC_API int32_t tc_unlock(tc_core core, tc_node node, const tc_receipt *receipt, int32_t skip_swa, tc_buffer *out);

/* evicted */
TC_API int32_t tc_release_swa_lock(tc_core core, tc_node node, const tc_receipt *receipt, tc_buffer *out);

/* evicted */
TC_API int32_t tc_release_window_lock(tc_core core, tc_node node, uint32_t component, const tc_receipt *receipt, tc_buffer *out);

/* tc_receipt */
TC_API int32_t tc_lock_host(tc_core core, tc_node node, tc_buffer *out);

/* nothing */
TC_API int32_t tc_unlock_host(tc_core core, tc_node node, const tc_receipt *receipt, tc_buffer *out);

/* nothing */
TC_API int32_t tc_pin_full(tc_core core, tc_node node, tc_buffer *out);

/* nothing */
TC_API int32_t tc_unpin_full(tc_core core, tc_node node, tc_buffer *out);

/* ---- Eviction ---------------------------------------------------------- */

/* nothing */
TC_API int32_t tc_evict_start(tc_core core, uint32_t component, int64_t units, tc_buffer *out);

/* totals has TC_COMPONENTS numbers. int node, bool made progress, int paused
 * node, int component paused for, int units paused, evicted */
TC_API int32_t tc_evict_next(tc_core core, uint32_t component, const int64_t *totals, tc_buffer *out);

/* bool backup wanted, and if it is: int key length, bool ends at prompt, list of
 * node; evicted in any case */
TC_API int32_t tc_evict_leaf(tc_core core, tc_node node, int32_t write_back, tc_buffer *out);

/* nothing */
TC_API int32_t tc_evict_end(tc_core core, uint32_t component, tc_buffer *out);

/* A whole eviction in one crossing, for a caller that does not write back: for
 * each component in order, as far as units[component] is not reached by what went
 * already, start, next, leaf ... end. Under write-back, with no room for a step
 * in between, it is TC_ORDER, and so it is while a walk or an insert is open. units has
 * TC_COMPONENTS numbers. evicted */
TC_API int32_t tc_evict(tc_core core, const int64_t *units, tc_buffer *out);

/* evicted */
TC_API int32_t tc_demote(tc_core core, tc_node node, tc_buffer *out);

/* bool dropped, evicted */
TC_API int32_t tc_drop_subtree_no_host(tc_core core, tc_node node, tc_buffer *out);

/* as tc_evict_next */
TC_API int32_t tc_finish_state_eviction(tc_core core, uint32_t component, tc_node node, tc_buffer *out);

/* evicted, units of the host */
TC_API int32_t tc_evict_host(tc_core core, uint32_t component, int64_t units, tc_buffer *out);

/* ---- Sizes and questions ----------------------------------------------- */

/* three ints: evictable units of each component; three ints: protected units of
 * each; int reclaim digest; bool insert suspended; int root; int nodes; one call
 * for all that a scheduler reads in a step */
TC_API int32_t tc_sizes(tc_core core, tc_buffer *out);

/* int full, int aux. Walks the tree. */
TC_API int32_t tc_total_size(tc_core core, tc_buffer *out);

/* int bytes. Walks the tree. */
TC_API int32_t tc_memory_bytes(tc_core core, tc_buffer *out);

/* int node */
TC_API int32_t tc_root(tc_core core, tc_buffer *out);

/* bool */
TC_API int32_t tc_contains(tc_core core, tc_node node, tc_buffer *out);

/* bool */
TC_API int32_t tc_is_root(tc_core core, tc_node node, tc_buffer *out);

/* bool */
TC_API int32_t tc_is_backed_up(tc_core core, tc_node node, tc_buffer *out);

/* bool */
TC_API int32_t tc_is_full_device_evicted(tc_core core, tc_node node, tc_buffer *out);

/* int parent (0: root), int units */
TC_API int32_t tc_place(tc_core core, tc_node node, tc_buffer *out);

/* bool has extra key, string extra key, string salt */
TC_API int32_t tc_prefetch_anchor(tc_core core, tc_node node, tc_buffer *out);

/* slots */
TC_API int32_t tc_flatten_full(tc_core core, tc_buffer *out);

/* slots */
TC_API int32_t tc_flatten_mamba(tc_core core, tc_buffer *out);

/* list of row: int slot, int position, int previous slot (-1: none) */
TC_API int32_t tc_walk_canary(tc_core core, int32_t unlocked_only, int32_t swa_resident_only, tc_buffer *out);

/* list of int: indices of nodes */
TC_API int32_t tc_dfs_weight_order(tc_core core, const int64_t *nodes, uint64_t node_count, tc_buffer *out);

/* nothing */
TC_API int32_t tc_sanity_check(tc_core core, const tc_in_flight *write_through, uint64_t write_through_count, const tc_in_flight *load_back, uint64_t load_back_count, tc_buffer *out);

/* string: the tree as text for people */
TC_API int32_t tc_draw(tc_core core, tc_buffer *out);

/* list of int: opaque buffers of which the tree holds nothing any more */
TC_API int32_t tc_take_dead_buffers(tc_core core, tc_buffer *out);

/* list of node */
TC_API int32_t tc_nodes(tc_core core, tc_buffer *out);

/* list of node, the most recent first; absent if not configured */
TC_API int32_t tc_recency_order(tc_core core, uint32_t component, int32_t host, tc_buffer *out);

/* list of node */
TC_API int32_t tc_eviction_order(tc_core core, tc_buffer *out);

/* list of node */
TC_API int32_t tc_host_duplicates(tc_core core, tc_buffer *out);

/* bool device leaf of the set, bool host leaf of the set; a stale node is none */
TC_API int32_t tc_evictable_leaf(tc_core core, tc_node node, tc_buffer *out);

/* int node, int parent, list of node (children), bool has extra key, string extra
 * key, string salt, list of int (tokens), int units, bool bigram, int hits, int
 * priority, bool device leaf; for each component: slots device, slots host, int
 * locks, int host locks, int session references, list of string (sessions), bool
 * in device list, bool in host list, int host boundary; int SWA boundary, int
 * write-through pending, int load back pending, bool stored */
TC_API int32_t tc_inspect(tc_core core, tc_node node, tc_buffer *out);

/* ---- Sessions ---------------------------------------------------------- */

/* int generation */
TC_API int32_t tc_open_session(tc_core core, const char *id, uint64_t id_length, tc_buffer *out);

/* int generation */
TC_API int32_t tc_ensure_session(tc_core core, const char *id, uint64_t id_length, tc_buffer *out);

/* nothing */
TC_API int32_t tc_register_session(tc_core core, const char *id, uint64_t id_length, int64_t generation, tc_node last, tc_buffer *out);

/* nothing */
TC_API int32_t tc_release_session(tc_core core, const char *id, uint64_t id_length, tc_buffer *out);

/* ---- Hashes and events ------------------------------------------------- */

/* bool there is one, digest */
TC_API int32_t tc_last_hash(tc_core core, tc_node node, tc_buffer *out);

/* list of digest */
TC_API int32_t tc_prefix_hashes(tc_core core, tc_node node, tc_buffer *out);

/* list of digest */
TC_API int32_t tc_hashes(tc_core core, tc_node node, tc_buffer *out);

/* int filled */
TC_API int32_t tc_backfill_hashes(tc_core core, tc_buffer *out);

/* list of event: int kind (0 stored, 1 removed, 2 all cleared), int medium (0
 * device, 1 host), list of int (blocks), bool has parent, int parent, list of int
 * (tokens), int block size, string salt, string session */
TC_API int32_t tc_take_events(tc_core core, tc_buffer *out);

/* nothing */
TC_API int32_t tc_record_all_cleared(tc_core core, tc_buffer *out);

/* ---- Host tier --------------------------------------------------------- */

/* slots full, list of transfer */
TC_API int32_t tc_build_backup_spec(tc_core core, tc_node node, tc_buffer *out);

/* frees */
TC_API int32_t tc_commit_backup(tc_core core, tc_node node, const tc_slots *full, const tc_transfer *aux, uint64_t aux_count, tc_buffer *out);

/* frees. components is a set. */
TC_API int32_t tc_undo_backup(tc_core core, tc_node node, uint32_t components, int64_t ack, tc_buffer *out);

/* list of node */
TC_API int32_t tc_mark_write_through_pending(tc_core core, const int64_t *nodes, uint64_t node_count, int64_t ack, tc_buffer *out);

/* nothing */
TC_API int32_t tc_finish_write_through(tc_core core, const int64_t *nodes, uint64_t node_count, int64_t ack, tc_buffer *out);

/* bool pinned, transfer full, list of transfer */
TC_API int32_t tc_build_load_back_spec(tc_core core, tc_node node, tc_buffer *out);

/* full is the device slots, spec_full and aux the spec with its device sides
 * filled in; pinned is the spec's. list of action */
TC_API int32_t tc_commit_load_back(tc_core core, tc_node node, const tc_slots *full, const tc_transfer *spec_full, const tc_transfer *aux, uint64_t aux_count, int32_t pinned, tc_buffer *out);

/* nothing */
TC_API int32_t tc_finish_load_back(tc_core core, tc_node node, tc_buffer *out);

/* hashes are hash_count times 32 bytes; null: they were not computed.
 * tc_host_inserted, list of action */
TC_API int32_t tc_insert_host(tc_core core, tc_node anchor, const tc_key *key, const tc_slots *slots, const uint8_t *hashes, uint64_t hash_count, tc_buffer *out);

/* found has TC_COMPONENTS numbers. bool mamba exist, frees, list of action */
TC_API int32_t tc_commit_prefetch(tc_core core, tc_node anchor, const tc_host_inserted *inserted, const tc_transfer *aux, uint64_t aux_count, const int64_t *found, tc_buffer *out);

/* bool backed up; if it is: slots full, list of int (tokens), list of digest,
 * list of digest (prefix), list of transfer */
TC_API int32_t tc_build_storage_spec(tc_core core, tc_node node, int32_t with_prefix, tc_buffer *out);

/* nothing */
TC_API int32_t tc_mark_stored(tc_core core, tc_node from, tc_node until, tc_buffer *out);

/* list of transfer */
TC_API int32_t tc_build_offload(tc_core core, tc_node node, tc_buffer *out);

/* nothing */
TC_API int32_t tc_mark_offload_pending(tc_core core, tc_node node, tc_buffer *out);

/* nothing */
TC_API int32_t tc_finish_offload(tc_core core, const int64_t *nodes, uint64_t node_count, int64_t ack, int32_t success, tc_buffer *out);

/* bool there is one; if there is: int node, int parent, bool parent is root, bool
 * parent has a hash, digest of it, list of digest, list of int (tokens), bool has
 * extra key, string extra key, string salt, bool bigram, int units, list of
 * digest (prefix) */
TC_API int32_t tc_snapshot_buffer_backup(tc_core core, tc_node node, int32_t with_prefix, tc_buffer *out);

/* bool it still holds; if it does: int parent, bool parent is root, bool parent
 * has a hash, digest of it */
TC_API int32_t tc_validate_buffer_backup(tc_core core, tc_node node, int64_t units, tc_buffer *out);

#endif /* TC_TYPES_ONLY */

#ifdef __cplusplus
}
#endif

#endif /* TREECORE_H */
