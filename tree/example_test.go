// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"os"

	"github.com/treecore/treecore/tree"
)

// A prefix is inserted, matched and locked; a match that ends early says why.
func Example() {
	c, err := tree.New(tree.Options{PageSize: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Twelve tokens whose state lies in the slots 100 to 111.
	prompt := []tree.Token{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	if _, err := c.BeginInsert(tree.InsertParams{Key: tree.Key{Tokens: prompt}, Slots: tree.Numbered(100, 12)}); err != nil {
		fmt.Println(err)
		return
	}
	c.EndInsert()

	// The next prompt shares seven tokens: one whole page can be reused.
	m, err := c.Match(tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6, 7, 99, 100, 101}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("reuse %d tokens in slots %v: %v\n", m.DeviceLen, m.DeviceSlots, m.Explanation.Reason)

	// Nobody may evict what a request reads.
	receipt, err := c.Lock(m.LastDeviceNode, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("protected %d, evictable %d\n", c.ProtectedSize(tree.Full), c.EvictableSize(tree.Full))
	if err := c.Unlock(m.LastDeviceNode, receipt, false); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Draw(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// reuse 4 tokens in slots 100..103: never_seen
	// protected 4, evictable 8
	// root #1  3 nodes
	//   #3 [1..4] 4  full=100..103  hits 1
	//     #2 [5..12] 8  full=104..111  hits 1
}

// A sliding window that was tombstoned limits a match, although Full attention
// would reach further.
func ExampleCore_Match_window() {
	c, err := tree.New(tree.Options{Components: tree.SetOf(tree.Full, tree.SWA), SlidingWindow: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt := []tree.Token{1, 2, 3, 4, 5, 6, 7, 8}
	// The request freed the window slots of its first four tokens already.
	step, err := c.BeginInsert(tree.InsertParams{
		Key: tree.Key{Tokens: prompt}, Slots: tree.Numbered(10, 8), SWAEvictedLen: 4,
	})
	for err == nil && step.Result == nil {
		for _, a := range step.Actions {
			if r, ok := a.(tree.SWARebuild); ok { // the pool knows which SWA slots belong to these
				err = c.SetComponentDeviceValue(r.Node, tree.SWA, tree.Numbered(50, r.Full.Len()))
			}
		}
		if err == nil {
			step, err = c.ResumeInsert()
		}
	}
	c.EndInsert()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []int{8, 6} {
		m, err := c.Match(tree.Key{Tokens: prompt[:n]})
		if err != nil {
			fmt.Println(err)
			return
		}
		e := m.Explanation
		fmt.Printf("%d of %d tokens, full alone %d: %v", e.Matched, e.Units, e.FullOnly, e.Reason)
		if e.Limited {
			fmt.Printf(", limited by %v; a window at %d would help", e.LimitedBy, m.SWABranchingLen)
		}
		fmt.Println()
	}
	// Output:
	// 8 of 8 tokens, full alone 8: complete
	// 0 of 6 tokens, full alone 6: window_tombstoned, limited by swa; a window at 6 would help
}
