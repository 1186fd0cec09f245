// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	"github.com/treecore/treecore/model"
)

// FuzzParse looks for profile files that bring the reader down, and for profiles
// that it accepts although sizes cannot be made from them.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "name: x\nfull:\n  bytes_per_token: 1\n", "name: x\nfull: {bytes_per_token: 1}\nswa: {bytes_per_token: 2, window: 3}\n",
		"name: x\nfull: {bytes_per_token: 1}\nmamba: {bytes_per_state: 9, checkpoint_grid: 7}\npage_size: 5\n",
		"- a\n", "a: &x [*x]\n", "name: [", "full: 1.5\n", "%YAML 1.2\n---\n", "\xff\xfe", "name: !!binary aGk=\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := model.Parse("p.yaml", []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "p.yaml") {
				t.Errorf("error without the file: %v", err)
			}
			return
		}
		if p.Name == "" || p.Full.BytesPerToken < 1 || p.PageSize < 1 || p.Mamba != nil && p.Grid(p.PageSize)%p.PageSize != 0 {
			t.Errorf("accepted: %+v", p)
		}
		for _, bytes := range []int64{1, 1 << 30, model.Unlimited} {
			pools, err := p.Pools(bytes, model.Split{})
			if err == nil && (pools.Full < p.PageSize || pools.Full < 0 || pools.SWA < 0 || pools.Mamba < 0) {
				t.Errorf("%d bytes: %+v of %+v", bytes, pools, p)
			}
		}
	})
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"40GiB", "1.5TiB", "0", "unlimited", "-1", "9e99", ".GiB", "1..2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := model.ParseSize(text)
		if err == nil && n < 1 {
			t.Errorf("%q gives %d", text, n)
		}
		if err == nil && n != model.Unlimited {
			again, err := model.ParseSize(model.FormatSize(n))
			if err != nil || float64(again) < 0.99*float64(n) || float64(again) > 1.01*float64(n) {
				t.Errorf("%q gives %d, written %s, read %d, %v", text, n, model.FormatSize(n), again, err)
			}
		}
	})
}
