// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tiny

import (
	"errors"
	"slices"
	"testing"

	"github.com/treecore/treecore/tree"
)

func TestOptionsZeroValues(t *testing.T) {
	for _, x := range []struct {
		given  Options
		layers string
		set    tree.ComponentSet
		window int
		chunk  int
		bytes  [tree.NumComponents]int
	}{
		{Options{}, "full,full", sets[0], 0, 0, [tree.NumComponents]int{2 * 2 * 16 * 4, 0, 0}},
		{Options{Window: 9, Chunk: 9}, "full,full", sets[0], 0, 0, [tree.NumComponents]int{2 * 2 * 16 * 4, 0, 0}},
		{Options{Components: sets[1]}, "full,swa,full", sets[1], 32, 0, [tree.NumComponents]int{256, 128, 0}},
		{Options{Components: sets[2]}, "full,mamba,full", sets[2], 0, 16, [tree.NumComponents]int{256, 0, (4*8*8 + 3*3*32) * 4}},
		{Options{Components: sets[3]}, "full,swa,mamba,full", sets[3], 32, 16, [tree.NumComponents]int{256, 128, 2176}},
		{Options{Layers: "Mamba, swa,swa,FULL", KVHeads: 4}, "Mamba, swa,swa,FULL", sets[3], 32, 16, [tree.NumComponents]int{256, 512, 2176}},
		{Options{Heads: 3, HeadDim: 2}, "full,full", sets[0], 0, 0, [tree.NumComponents]int{2 * 2 * 3 * 2 * 4, 0, 0}},
	} {
		m, err := New(x.given)
		if err != nil {
			t.Errorf("%+v: %v", x.given, err)
			continue
		}
		s := m.Spec()
		if m.options.Layers != x.layers || s.Components != x.set || s.Window != x.window || s.Chunk != x.chunk || s.SlotBytes != x.bytes || s.Vocabulary != 512 {
			t.Errorf("%+v: layers %s, %+v", x.given, m.options.Layers, s)
		}
	}
}

// All problems are told at once, each with its field.
func TestBadOptions(t *testing.T) {
	for _, x := range []struct {
		given  Options
		fields []string
	}{
		{Options{Components: tree.SetOf(tree.SWA)}, []string{"Components"}},
		{Options{Components: sets[3] | 1<<5, Hidden: 7}, []string{"Components", "Hidden"}},
		{Options{Layers: "full,,full"}, []string{"Layers"}},
		{Options{Layers: "full,ssm,full"}, []string{"Layers"}},
		{Options{Layers: "full,swa"}, []string{"Layers"}},
		{Options{Components: sets[1], Layers: "full,full"}, []string{"Layers"}},
		{Options{Components: sets[1], Layers: "full,swa,mamba,full"}, []string{"Layers"}},
		{Options{Components: sets[3], Window: -1, Chunk: -1}, []string{"Window", "Chunk"}},
		{Options{Hidden: 12, HeadDim: 3, Vocabulary: 1, Heads: 65}, []string{"Hidden", "HeadDim", "Vocabulary", "Heads"}},
		{Options{Heads: 4, KVHeads: 3}, []string{"KVHeads"}},
		{Options{Heads: 4, KVHeads: -2}, []string{"KVHeads"}},
	} {
		_, err := New(x.given)
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Errorf("%+v: error %v, want some joined", x.given, err)
			continue
		}
		var fields []string
		for _, e := range joined.Unwrap() {
			var bad *tree.ConfigError
			if !errors.As(e, &bad) || bad.Value == "" || bad.Allowed == "" {
				t.Errorf("%+v: error %#v, want a *tree.ConfigError", x.given, e)
				continue
			}
			fields = append(fields, bad.Field)
		}
		if !slices.Equal(fields, x.fields) {
			t.Errorf("%+v: errors of %v, want %v", x.given, fields, x.fields)
		}
	}
}

// Networks that compute differently have different names, so that a storage keeps
// their pages apart.
func TestNamesDiffer(t *testing.T) {
	all := Options{Components: sets[3]}
	names := map[string]bool{}
	for _, change := range []func(*Options){
		func(*Options) {},
		func(o *Options) { o.Components = sets[0] },
		func(o *Options) { o.Layers = "swa,full,mamba,full" },
		func(o *Options) { o.Window = 33 },
		func(o *Options) { o.Hidden = 40 },
		func(o *Options) { o.Heads = 2 },
		func(o *Options) { o.KVHeads = 1 },
		func(o *Options) { o.HeadDim = 10 },
		func(o *Options) { o.Vocabulary = 300 },
		func(o *Options) { o.Seed = 1 },
	} {
		o := all
		change(&o)
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if name := m.Spec().Name; names[name] {
			t.Errorf("%+v: the name %s is another's", o, name)
		} else {
			names[name] = true
		}
	}
}
