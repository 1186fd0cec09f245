// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package client

// #cgo CFLAGS: -I${SRCDIR}/../.. -Wno-attributes
// #cgo LDFLAGS: -lpthread
// #define TC_API extern __attribute__((weak))
// #include <pthread.h>
// #include <treecore.h>
//
// typedef struct loop {
//   int what;
//   uint64_t times;
//   tc_core core;
//   const tc_key *key;
//   tc_buffer *out;
//   int32_t code;
// } loop;
//
// static void *loop_body(void *p) {
//   loop *l = p;
//   for (uint64_t i = 0; i < l->times && l->code == TC_OK; i++) {
//     switch (l->what) {
//     case 0: (void)tc_abi_version(); break;
//     case 1: l->code = tc_has_ongoing_insert(l->core, l->out); break;
//     case 2: l->code = tc_sizes(l->core, l->out); break;
//     case 3: l->code = tc_match(l->core, l->key, l->out); break;
//     case 4:
//       l->code = tc_lock(l->core, l->out->words[1], 0, l->out);
//       if (l->code == TC_OK) {
//         tc_receipt receipt = *(const tc_receipt *)l->out->words;
//         l->code = tc_unlock(l->core, receipt.node, &receipt, 0, l->out);
//         l->out->words[1] = receipt.node;
//       }
//       break;
//     }
//   }
//   return 0;
// }
//
// /* A thread of C makes the calls, as an engine's would. */
// static int32_t loop_run(loop *l) {
//   pthread_t thread;
//   if (pthread_create(&thread, 0, loop_body, l) != 0) return TC_INTERNAL;
//   pthread_join(thread, 0);
//   return l->code;
// }
import "C"

import "github.com/treecore/treecore/tree"

// The calls that Loop makes over and over.
const (
	LoopVersion = iota // no core at all: the bare crossing
	LoopOngoing        // the smallest question to a core
	LoopSizes
	LoopMatch
	LoopLock // lock and unlock of the node that the key matches
)

// Loop makes a call n times on a thread of C.
func (m *Machine) Loop(what int, key tree.Key, n int) error {
	if _, err := m.Match(key); err != nil {
		return err
	}
	l := (*C.loop)(m.memory(C.sizeof_loop))
	l.what, l.times, l.core, l.key, l.out = C.int(what), C.uint64_t(n), m.core, m.key(key), m.out
	return m.done(C.loop_run(l))
}
