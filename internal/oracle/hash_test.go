// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/hex"
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestHashes(t *testing.T) {
	for _, c := range []struct {
		id        string
		options   tree.Options
		key       tree.Key
		digests   []string
		eventIDs  []int64
		eventOnly bool
	}{
		{"X-H-1", tree.Options{}, key(1, 2), []string{"67abdd721024f0ff4e0b3f4c2fc13bc5bad42d0b7851d456d88d203d15aaa450", "e95092c4b38d42d1363b9e9b06bc5d6377af1cd06651a9fedac8b36dc9e56114"}, []int64{7470307888890966271, -1634645291211865391}, false},
		{"X-H-2", full(2), key(1, -4), []string{"34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f", "c57b445f90651b9a650e516ab2238c965b21af35608a31c303e6d9e407f2915c"}, []int64{3817746824117602890, -4216701448867210342}, false},
		{"X-H-3", full(4), key(1, -8), []string{"cf97adeedb59e05bfd73a2b4c2a8885708c4f4f70c84c64b27120e72ab733b72", "4ebfa8a1f3c341517621838c6e1b9aa350307e3f00b3cbd1a07ef740f54396d6"}, []int64{-3488128144981237669, 5674439469042975057}, false},
		{"X-H-4", tree.Options{PageSize: 2, Eagle: true}, key(1, -5), []string{"ede8ef26a097f0fd889f9f39f6f5af921370630b164c4a4fa28eb716b2df9269", "678c5307f2a02a2aaf8edbeb80ebac13663f70e14a4fc8d5d62b77e702841e4b"}, []int64{-1303529142941650691, 7461429976246528554}, false},
		{"X-H-5, X-H-6", full(2), tree.Key{Tokens: key(1, -4).Tokens, Namespace: tree.Namespace{Salt: "tenant-a"}}, []string{"1442a1ed9fc6bd4817b1ecb754c025b50460dd6f68dfefa48146fb4a6c31f0d3", "00dedf34fb5f47740f7d63b4cebca8f3bbbeea76296ffd9f35ca2e312fa74a74"}, []int64{31502315585564397, -6358338539514506595}, false},
	} {
		t.Run(c.id, func(t *testing.T) {
			options := c.options
			options.Events = true
			r := newRig(t, options)
			id := r.insert(tree.InsertParams{Key: c.key}).LastDeviceNode
			digests, err := r.Hashes(id)
			r.ok(err)
			var got []string
			for _, d := range digests {
				got = append(got, d.String())
			}
			r.equal("digests", got, c.digests)
			events := r.TakeEvents()
			r.equal("event ids", events[0].Blocks, c.eventIDs)
			last, ok, err := r.LastHash(id)
			r.ok(err)
			r.equal("last", []any{last.String(), ok}, []any{c.digests[1], true})
		})
	}
}

func TestSeeds(t *testing.T) {
	for _, c := range []struct {
		namespace      tree.Namespace
		storage, event string
	}{
		{tree.Namespace{}, "", ""},
		{tree.Namespace{Salt: "tenant-a"}, "9d303df3761a7561353e2ae7459eb4ab12a08abb37951b696aa4f0c059c7caaa", "f5d0f785efe6042a4e4b0297a4d712917e1763c850835e93df58b373fd47fd2c"},
		{tree.Namespace{ExtraKey: "a", HasExtraKey: true}, "ad5aea43603f2a5d7b3cb72eb67799416dc43601e325d412f7afecb939b9046f", ""},
		{tree.Namespace{ExtraKey: "a", HasExtraKey: true, Salt: "b"}, "c8c5acd517d9109ddf84843ef6f4603af6c4fe55b093a70ed9de8e7ee5769282", "-"},
		{tree.Namespace{HasExtraKey: true}, "fd649dd130277fa0773e23e84ddfa4ec779d9df77087968a60d7cefb9050ab1d", ""},
	} {
		if got := hex.EncodeToString(storageSeed(c.namespace)); got != c.storage {
			t.Errorf("%+v: storage seed %s, want %s", c.namespace, got, c.storage)
		}
		if got := hex.EncodeToString(eventSeed(c.namespace)); c.event != "-" && got != c.event {
			t.Errorf("%+v: event seed %s, want %s", c.namespace, got, c.event)
		}
	}
}

func TestHashLists(t *testing.T) { // H-6, A-8
	r := newRig(t, full(2))
	r.add(1, -4)
	_, ok, err := r.LastHash(r.node(1, -4))
	r.ok(err)
	r.equal("not filled", ok, false)
	r.equal("filled", []int{r.BackfillHashes(), r.BackfillHashes()}, []int{1, 0})
	r.add(1, -6)
	r.add(1, 2, 9, 9)
	prefix, err := r.PrefixHashes(r.node(5, 6))
	r.ok(err)
	r.equal("prefix", len(prefix), 2)
	r.equal("filled", r.BackfillHashes(), 2)
	_, ok, err = r.LastHash(r.Root())
	r.ok(err)
	r.equal("root", ok, false)

	r = newRig(t, full(2))
	r.add(1, -4)
	r.ok(r.SetSwitches(tree.Switches{Storage: true, WriteThroughThreshold: 1}))
	r.add(1, -6) // the parent is filled first
	r.equal("filled", r.BackfillHashes(), 0)
}

func TestEvents(t *testing.T) {
	options := full(2)
	options.Events = true
	const h1, h2 = 3817746824117602890, -4216701448867210342
	stored := func(e tree.Event) tree.Event { e.BlockSize = 2; return e }

	r := newRig(t, options) // X-EV-1
	r.add(1, -4)
	r.equal("X-EV-1", r.TakeEvents(), []tree.Event{stored(tree.Event{Blocks: []int64{h1, h2}, Tokens: []tree.Token{1, 2, 3, 4}})})
	r.equal("taken", len(r.TakeEvents()), 0)
	r.add(1, 2, 5, 6) // X-EV-2
	events := r.TakeEvents()
	h3 := events[0].Blocks[0]
	r.equal("X-EV-2", events, []tree.Event{stored(tree.Event{Blocks: []int64{h3}, Parent: h1, HasParent: true, Tokens: []tree.Token{5, 6}})})
	r.equal("X-EV-3", r.victims(6), []string{"3..4", "5..6", "1..2"})
	r.equal("X-EV-3", r.TakeEvents(), []tree.Event{{Kind: tree.BlockRemoved, Blocks: []int64{h2, h3, h1}}})

	r = newRig(t, options) // X-EV-4
	r.add(1, -4)
	r.add(1, -4, 7, 8)
	events = r.TakeEvents()
	r.equal("X-EV-4", []any{len(events), len(events[0].Blocks), events[0].Tokens, events[0].HasParent}, []any{1, 3, key(1, -4, 7, 8).Tokens, false})

	r = newRig(t, options) // X-EV-5
	r.add(1, 2)
	r.add(9, 9)
	r.RecordAllCleared()
	r.RecordAllCleared()
	events = r.TakeEvents()
	r.equal("X-EV-5", []any{len(events), events[2].Kind, events[3].Kind}, []any{4, tree.AllBlocksCleared, tree.AllBlocksCleared})

	for salt, want := range map[string][]int64{"tenant-a": {31502315585564397, -6358338539514506595}, "": {h1, h2}} { // X-EV-6
		r = newRig(t, options)
		namespace := tree.Namespace{Salt: salt, HasExtraKey: salt == ""}
		r.insert(tree.InsertParams{Key: tree.Key{Tokens: key(1, -4).Tokens, Namespace: namespace}})
		r.equal("X-EV-6", r.TakeEvents(), []tree.Event{stored(tree.Event{Blocks: want, Tokens: []tree.Token{1, 2, 3, 4}, CacheSalt: salt})})
	}

	r = newRig(t, options) // X-EV-7
	r.insert(tree.InsertParams{Key: key(1, 2), SessionID: "s1"})
	r.insert(tree.InsertParams{Key: key(1, -4), SessionID: "s2"})
	events = r.TakeEvents()
	r.equal("X-EV-7", []string{events[0].SessionID, events[1].SessionID}, []string{"s1", "s2"})

	r = newRig(t, tree.Options{PageSize: 2, Eagle: true, Events: true}) // EV-1
	r.add(1, -3)
	r.equal("bigrams", r.TakeEvents()[0].Tokens, []tree.Token{1, 2, 2, 3})

	r = newRig(t, full(2))
	r.add(1, 2)
	r.RecordAllCleared()
	r.equal("off", len(r.TakeEvents()), 0)
}
