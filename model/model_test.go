// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/tree"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The built-in profiles have the numbers that follow from the models' public
// configurations.
func TestProfiles(t *testing.T) {
	const bf16, fp32 = 2, 4
	kv := func(layers, heads, dim int64) int64 { return layers * 2 * heads * dim * bf16 }
	swa := func(layers, heads, dim int64, window int) *model.SWA {
		return &model.SWA{BytesPerToken: kv(layers, heads, dim), Window: window}
	}
	want := []model.Profile{
		{Name: "gemma-3-27b", Full: model.Full{BytesPerToken: kv(10, 16, 128)}, SWA: swa(52, 16, 128, 1024), PageSize: 16},
		{Name: "gpt-oss-120b", Full: model.Full{BytesPerToken: kv(18, 8, 64)}, SWA: swa(18, 8, 64, 128), PageSize: 16},
		{Name: "gpt-oss-20b", Full: model.Full{BytesPerToken: kv(12, 8, 64)}, SWA: swa(12, 8, 64, 128), PageSize: 16},
		{
			Name: "hybrid-3way", Full: model.Full{BytesPerToken: 8192}, SWA: &model.SWA{BytesPerToken: 8192, Window: 128},
			Mamba: &model.Mamba{BytesPerState: 1 << 20, CheckpointGrid: 64}, PageSize: 64,
		},
		{Name: "llama-3.1-70b", Full: model.Full{BytesPerToken: kv(80, 8, 128)}, PageSize: 16},
		{Name: "llama-3.1-8b", Full: model.Full{BytesPerToken: kv(32, 8, 128)}, PageSize: 16},
		{
			Name: "qwen3-next-80b-a3b", Full: model.Full{BytesPerToken: kv(12, 2, 256)},
			Mamba: &model.Mamba{BytesPerState: 36 * (32*128*128*fp32 + 8192*3*bf16), CheckpointGrid: 64}, PageSize: 64,
		},
	}
	var names []string
	for _, w := range want {
		names = append(names, w.Name)
		got, err := model.Load(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&w, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", w.Name, d)
		}
		if got.Grid(got.PageSize)%got.PageSize != 0 {
			t.Errorf("%s: grid %d is no multiple of its page %d", w.Name, got.Grid(got.PageSize), got.PageSize)
		}
	}
	if d := cmp.Diff(names, model.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestGrid(t *testing.T) {
	for _, c := range []struct{ chunk, page, want int }{
		{64, 64, 64}, {64, 256, 256}, {64, 1, 64}, {64, 48, 192}, {64, 16, 64}, {64, 512, 512},
	} {
		p := model.Profile{Mamba: &model.Mamba{CheckpointGrid: c.chunk}}
		if got := p.Grid(c.page); got != c.want {
			t.Errorf("grid of %d and page %d: %d, want %d", c.chunk, c.page, got, c.want)
		}
	}
	if got := (&model.Profile{}).Grid(16); got != 0 {
		t.Errorf("grid without states: %d", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte("name: mine\nfull:\n  bytes_per_token: 100\nprefill_tokens_per_second: 9000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := model.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Profile{Name: "mine", Full: model.Full{BytesPerToken: 100}, PageSize: 16, PrefillRate: 9000}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	_, err = model.Load("gpt-5")
	var unknown *model.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "gpt-oss-20b") || !strings.Contains(err.Error(), "profile file") {
		t.Errorf("unknown name: %v", err)
	}
	for _, name := range []string{filepath.Join(dir, "none.yaml"), "none.yml", dir + "/"} {
		if _, err := model.Load(name); err == nil || !strings.Contains(err.Error(), name) || errors.As(err, &unknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every mistake in a file is reported with its place.
func TestParseErrors(t *testing.T) {
	const good = "name: x\nfull:\n  bytes_per_token: 1\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "p.yaml:1:1:"},
		{"only a comment", "# nothing\n", "bytes_per_token"},
		{"unknown field", good + "pagesize: 16\n", `p.yaml:4:1: unknown field "pagesize"; fields are name,`},
		{"unknown nested field", good + "swa:\n  windows: 3\n", `p.yaml:5:3: unknown field "windows"`},
		{"field twice", good + "name: y\n", "p.yaml:4:1:"},
		{"wrong type", "name: x\nfull:\n  bytes_per_token: many\n", "p.yaml:3:20:"},
		{"fraction", "name: x\nfull:\n  bytes_per_token: 1.5\n", "p.yaml:3:20:"},
		{"fraction in braces", "name: x\nfull: {bytes_per_token: 1.5}\n", "p.yaml:2:25: bytes_per_token is 1.5, must be a whole number"},
		{"too large", "name: x\nfull:\n  bytes_per_token: 99999999999999999999999\n", "p.yaml:3:20:"},
		{"no YAML", "name: [x\n", "p.yaml:1:"},
		{"list", "- name\n", "p.yaml:1:"},
		{"no name", "full:\n  bytes_per_token: 1\n", `field "name" is ""`},
		{"no full", "name: x\n", `field "full.bytes_per_token" is 0, must be from 1 to`},
		{"negative", "name: x\nfull:\n  bytes_per_token: -1\n", `field "full.bytes_per_token" is -1`},
		{"window", good + "swa:\n  bytes_per_token: 1\n", `field "swa.window" is 0`},
		{"swa bytes", good + "swa:\n  window: 1\n", `field "swa.bytes_per_token" is 0`},
		{"state bytes", good + "mamba:\n  checkpoint_grid: 64\n", `field "mamba.bytes_per_state" is 0`},
		{"grid", good + "mamba:\n  bytes_per_state: 1\n  checkpoint_grid: -64\n", `field "mamba.checkpoint_grid" is -64`},
		{"page", good + "page_size: 1025\n", `field "page_size" is 1025, must be from 1 to 1024`},
		{"prefill rate", good + "prefill_tokens_per_second: -1\n", `field "prefill_tokens_per_second" is -1`},
		{"decode rate", good + "decode_tokens_per_second: .nan\n", `field "decode_tokens_per_second" is NaN`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := model.Parse("p.yaml", []byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "p.yaml") || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line with %q", text, c.want)
			}
		})
	}
	_, err := model.Parse("p.yaml", []byte("page_size: 0\nswa:\n  window: -1\n"))
	for _, field := range []string{"name", "full.bytes_per_token", "swa.bytes_per_token", "swa.window"} {
		if err == nil || !strings.Contains(err.Error(), `"`+field+`"`) {
			t.Errorf("joined errors lack %s: %v", field, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   int64
		format string
	}{
		{"40GiB", 40 << 30, "40GiB"}, {"1.5TiB", 3 << 39, "1.5TiB"}, {"512MiB", 512 << 20, "512MiB"},
		{"10GB", 10_000_000_000, "9.31GiB"}, {"123", 123, "123B"}, {"64 kib", 64 << 10, "64KiB"}, {"7B", 7, "7B"},
		{"unlimited", model.Unlimited, "unlimited"},
	} {
		got, err := model.ParseSize(c.text)
		if err != nil || got != c.want || model.FormatSize(got) != c.format {
			t.Errorf("%s: %d %s %v, want %d %s", c.text, got, model.FormatSize(got), err, c.want, c.format)
		}
	}
	for _, text := range []string{"", "0", "0GiB", "GiB", "40 giga", "-1GiB", "1e3", "0x10", "1.2.3GiB", "NaN", "inf", "9999999PiB", "0.1B", "40GiB/s", "+1"} {
		_, err := model.ParseSize(text)
		var wrong *model.SizeError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "40GiB") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func load(t *testing.T, name string) *model.Profile {
	t.Helper()
	p, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPools(t *testing.T) {
	for _, c := range []struct {
		model string
		bytes int64
		split model.Split
		want  cache.PoolSizes
	}{
		{"llama-3.1-70b", 200 << 30, model.Split{}, cache.PoolSizes{Full: 655360}},
		{"llama-3.1-70b", 200 << 30, model.Split{PageSize: 512}, cache.PoolSizes{Full: 655360}},
		{"llama-3.1-70b", 327680*48 - 1, model.Split{}, cache.PoolSizes{Full: 32}},
		// 24,576 * (1 + 0.1) bytes a token.
		{"gpt-oss-20b", 27034 * 16000, model.Split{}, cache.PoolSizes{Full: 16000, SWA: 1600}},
		{"gpt-oss-20b", 49152 * 16000, model.Split{SWARatio: 1}, cache.PoolSizes{Full: 16000, SWA: 16000}},
		{"qwen3-next-80b-a3b", 77266944 * 200, model.Split{}, cache.PoolSizes{Full: 77266944 * 100 / 24576 / 64 * 64, Mamba: 100}},
		{"qwen3-next-80b-a3b", 77266944 * 200, model.Split{StateRatio: 0.25}, cache.PoolSizes{Full: 77266944 * 150 / 24576 / 64 * 64, Mamba: 50}},
	} {
		got, err := load(t, c.model).Pools(c.bytes, c.split)
		if err != nil || got != c.want {
			t.Errorf("%s %d %+v: %+v %v, want %+v", c.model, c.bytes, c.split, got, err, c.want)
		}
	}
}

// A device that is too small is told how much is needed, and so much is enough.
func TestPoolsTooSmall(t *testing.T) {
	for _, name := range model.Names() {
		for _, page := range []int{1, 16, 64, 1024} {
			for _, ratio := range []float64{0.001, 0.1, 1} {
				p, split := load(t, name), model.Split{PageSize: page, SWARatio: ratio, StateRatio: ratio / 2}
				_, err := p.Pools(1000, split)
				var small *model.TooSmallError
				if !errors.As(err, &small) {
					t.Fatalf("%s page %d: %v", name, page, err)
				}
				got, err := p.Pools(small.Needed, split)
				if err != nil {
					t.Errorf("%s page %d ratio %g: %d bytes are not enough either: %v", name, page, ratio, small.Needed, err)
				}
				if _, err := p.Pools(small.Needed*9/10, split); err == nil {
					t.Errorf("%s page %d ratio %g: %d bytes were asked for, a tenth less does", name, page, ratio, small.Needed)
				}
				if p.SWA != nil && got.SWA < model.MinSWA(p.SWA.Window, page) || p.Mamba != nil && got.Mamba < model.MinStates(2) {
					t.Errorf("%s page %d: pools %+v", name, page, got)
				}
			}
		}
	}
	_, err := load(t, "gpt-oss-20b").Pools(1<<20, model.Split{})
	if want := "model gpt-oss-20b: 1MiB hold 0 swa slots, a running request with its windows takes 400: give at least "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s...", err, want)
	}
}

// A pool of the smallest size that is accepted lets a cache be made.
func TestSmallestPoolsMakeACache(t *testing.T) {
	for _, name := range model.Names() {
		p := load(t, name)
		var small *model.TooSmallError
		if _, err := p.Pools(1, model.Split{}); !errors.As(err, &small) {
			t.Fatal(err)
		}
		pools, err := p.Pools(small.Needed, model.Split{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cache.New(cache.Options{
			Tree: tree.Options{
				Components: p.Components(), PageSize: p.PageSize, SlidingWindow: p.Window(), CheckpointGrid: p.Grid(p.PageSize),
			},
			Pools: pools,
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	p := load(t, "hybrid-3way")
	for _, s := range []model.Split{
		{PageSize: -1}, {PageSize: 1025}, {SWARatio: -0.1}, {SWARatio: 1.1}, {StateRatio: 1}, {StateRatio: -1}, {TrackBuffers: 3},
	} {
		if _, err := p.Pools(1<<30, s); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
