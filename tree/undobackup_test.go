// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/treecore/treecore/tree"
)

// backUp commits a backup of Full and marks it as in flight.
func backUp(t *testing.T, c *tree.Core, id tree.NodeID, host tree.Slots) {
	t.Helper()
	if _, err := c.CommitBackup(id, host, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.MarkWriteThroughPending([]tree.NodeID{id}, int64(id)); err != nil {
		t.Fatal(err)
	}
}

// X-FL-2, the tree's part: what a failed copy has attached comes off, children
// first, and the nodes can be backed up again.
func TestUndoBackup(t *testing.T) {
	c := mustCore(t, tree.Options{})
	if err := c.SetSwitches(tree.Switches{HostTier: true, WriteThroughThreshold: 1}); err != nil {
		t.Fatal(err)
	}
	a := insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1, 2, 3, 4}}}).LastDeviceNode
	b := insert(t, c, tree.InsertParams{Key: tree.Key{Tokens: []tree.Token{1, 2, 3, 4, 5, 6}}}).LastDeviceNode
	backUp(t, c, a, tree.Numbered(0, 4))
	backUp(t, c, b, tree.Numbered(4, 2))
	full := tree.SetOf(tree.Full)
	var order *tree.OrderError
	if _, err := c.UndoBackup(a, full, int64(a)); !errors.As(err, &order) {
		t.Fatalf("a parent before its child: %v", err)
	}
	var gone *tree.NodeAccessError
	if _, err := c.UndoBackup(99, full, 1); !errors.As(err, &gone) {
		t.Fatalf("%v", err)
	}
	if _, err := c.UndoBackup(c.Root(), full, 1); !errors.As(err, &order) {
		t.Fatalf("the root: %v", err)
	}
	var log bytes.Buffer
	if err := c.SetLog(&log); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		id   tree.NodeID
		want tree.Slots
	}{{b, tree.Numbered(4, 2)}, {a, tree.Numbered(0, 4)}} {
		f, err := c.UndoBackup(x.id, full, int64(x.id))
		if err != nil || !f.Host[tree.Full].Equal(x.want) {
			t.Fatalf("node %d: %v %v", x.id, f, err)
		}
		if backed, err := c.IsBackedUp(x.id); backed || err != nil {
			t.Fatalf("node %d is backed up: %v %v", x.id, backed, err)
		}
	}
	if err := c.SetLog(nil); err != nil || !strings.Contains(log.String(), "undo-backup node=") {
		t.Fatalf("log %q %v", log.String(), err)
	}
	if err := c.SanityCheck(nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(c.HostDuplicates()) != 0 {
		t.Fatalf("duplicates %v", c.HostDuplicates())
	}
	backUp(t, c, a, tree.Numbered(0, 4))
	if err := c.FinishWriteThrough([]tree.NodeID{a}, int64(a)); err != nil {
		t.Fatal(err)
	}
}
