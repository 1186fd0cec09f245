// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/engine/symbolic"
	"github.com/treecore/treecore/engine/tiny"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/replay"
	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/tree"
)

const (
	// vocabulary is the bytes and the end of a text.
	vocabulary = 257

	defaultDeviceTokens = 256 << 10
	defaultHostTokens   = 1 << 20
	defaultChunkTokens  = 8192
	// defaultTinyChunk keeps the steps of a model short that does compute.
	defaultTinyChunk  = 256
	defaultMaxRunning = 64

	maxEngineBytes = 8 << 30
	// tokensAState is how many tokens of the device there are for each state.
	tokensAState = 256
)

// engineFlags say what is served, and on how much memory.
type engineFlags struct {
	engine, model             string
	page, chunk, running      int
	deviceTokens, hostTokens  int
	deviceBytes, hostBytes    string
	policy, writePolicy, rank string
	noBranching               bool
}

func (x *engineFlags) add(f *pflag.FlagSet) {
	f.StringVar(&x.model, "model", defaultServed, "model profile, whose kinds of layers the engine has: "+strings.Join(model.Names(), ", ")+", or a YAML file")
	f.StringVar(&x.engine, "engine", "symbolic", "symbolic checks every value it reads, and is fast; tiny is a small network")
	f.IntVar(&x.page, "page-size", 0, "tokens in a page (default: the model's)")
	f.IntVar(&x.deviceTokens, "device-tokens", defaultDeviceTokens, "tokens of full attention on the device")
	f.StringVar(&x.deviceBytes, "device-bytes", "", "instead: memory that the device of the real model would have, as 40GiB")
	f.IntVar(&x.hostTokens, "host-tokens", defaultHostTokens, "tokens of full attention on the host; 0: no host tier")
	f.StringVar(&x.hostBytes, "host-bytes", "", "instead: memory of the host; 0: no host tier")
	f.StringVar(&x.writePolicy, "write-policy", "write-through", "when data is copied to the host: write-through, write-through-selective or write-back")
	f.StringVar(&x.policy, "policy", "lru", "eviction policy, with parameters as name:param=value,...: "+strings.Join(tree.Policies(), ", "))
	f.BoolVar(&x.noBranching, "no-branching", false, "ignore branch points")
	f.IntVar(&x.chunk, "chunk-tokens", 0, fmt.Sprintf("most prompt tokens computed in a step (default: %d, with --engine tiny %d)", defaultChunkTokens, defaultTinyChunk))
	f.IntVar(&x.running, "max-running", defaultMaxRunning, "most requests that run at once")
	f.StringVar(&x.rank, "order", "first-come", "order of admission: first-come, longest-prefix or depth-first")
}

// about describes an engine that was opened.
type about struct {
	profile     *model.Profile
	engine      string
	sizes       string
	tokenLimit  int
	fingerprint storage.Fingerprint
	info        map[string]any
}

// open makes the engine. Errors are about flags.
func (x *engineFlags) open(f *pflag.FlagSet) (*engine.Engine, about, error) {
	none := func(format string, args ...any) (*engine.Engine, about, error) {
		return nil, about{}, fmt.Errorf(format, args...)
	}
	for _, name := range []string{"page-size", "chunk-tokens", "max-running", "device-tokens"} {
		if v := f.Lookup(name); v.Changed && (v.Value.String() == "0" || strings.HasPrefix(v.Value.String(), "-")) {
			return none("--%s is %s: must be more than 0", name, v.Value)
		}
	}
	for _, tier := range []string{"device", "host"} {
		if f.Changed(tier+"-tokens") && f.Changed(tier+"-bytes") {
			return none("--%s-tokens and --%s-bytes both set a size: leave one out", tier, tier)
		}
	}
	p, err := model.Load(x.model)
	if err != nil {
		return none("--model: %w", err)
	}
	if x.page == 0 {
		x.page = p.PageSize
	}
	if x.page > tree.MaxPageSize {
		return none("--page-size is %d: must be 1 to %d", x.page, tree.MaxPageSize)
	}
	if x.chunk == 0 {
		if x.chunk = defaultChunkTokens; x.engine == "tiny" {
			x.chunk = defaultTinyChunk
		}
	}
	m, limit, err := newModel(x.engine, p)
	if err != nil {
		return nil, about{}, err
	}
	o := engine.Options{Model: m, ChunkTokens: x.chunk, MaxRunning: x.running}
	if o.Order, err = engine.ParseOrder(x.rank); err != nil {
		return none("--order: %w", err)
	}
	if o.Cache.Tree.Policy, err = replay.ParsePolicy(x.policy); err != nil {
		return none("--policy: %w", err)
	}
	o.Cache.Tree.PageSize, o.Cache.NoBranching = x.page, x.noBranching
	start := time.Now()
	o.Cache.Now = func() int64 { return int64(time.Since(start)) } // for metrics
	if o.Cache.Pools, err = x.devicePools(p); err != nil {
		return nil, about{}, err
	}
	if o.Cache.Host, err = x.host(f, p); err != nil {
		return nil, about{}, err
	}
	if err := affordable(m.Spec(), o.Cache); err != nil {
		return nil, about{}, err
	}
	e, err := engine.New(o)
	if err != nil {
		return nil, about{}, err
	}
	return e, x.describe(p, m.Spec(), limit, o.Cache), nil
}

// newModel makes the model of an engine with the layers of a profile. limit is the
// number of token ids that it takes; 0: all.
func newModel(name string, p *model.Profile) (m engine.Model, limit int, err error) {
	chunk := 0
	if p.Mamba != nil {
		chunk = p.Mamba.CheckpointGrid
	}
	switch name {
	case "symbolic":
		m, err = symbolic.New(symbolic.Options{Components: p.Components(), Window: p.Window(), Chunk: chunk, Vocabulary: vocabulary})
	case "tiny":
		m, err = tiny.New(tiny.Options{Components: p.Components(), Window: p.Window(), Chunk: chunk, Vocabulary: vocabulary})
		limit = vocabulary
	default:
		err = fmt.Errorf("is %q: must be symbolic or tiny", name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("--engine: %w", err)
	}
	return m, limit, nil
}

// whole rounds up to pages.
func (x *engineFlags) whole(tokens int) int { return (tokens + x.page - 1) / x.page * x.page }

// devicePools says how large the pools of the device are.
func (x *engineFlags) devicePools(p *model.Profile) (cache.PoolSizes, error) {
	if x.deviceBytes != "" {
		bytes, err := model.ParseSize(x.deviceBytes)
		if err != nil {
			return cache.PoolSizes{}, fmt.Errorf("--device-bytes: %w", err)
		}
		sizes, err := p.Pools(bytes, model.Split{PageSize: x.page})
		if err != nil {
			return sizes, fmt.Errorf("--device-bytes: %w", err)
		}
		return sizes, nil
	}
	s := cache.PoolSizes{Full: x.whole(x.deviceTokens)}
	if p.SWA != nil {
		// A step's chunk stands in the pool beside the windows, twice where a
		// checkpoint keeps the window before it.
		least := model.MinSWA(p.Window(), x.page) + 2*x.whole(x.chunk+p.Grid(x.page))
		s.SWA = x.whole(max(int(model.DefaultSWARatio*float64(s.Full)), min(least, s.Full+model.MinSWA(p.Window(), x.page))))
	}
	if p.Mamba != nil {
		s.Mamba = max(s.Full/tokensAState, 64+x.running*(1+model.DefaultTrackBuffers))
	}
	return s, nil
}

// host says what the host tier is like; nil: there is none.
func (x *engineFlags) host(f *pflag.FlagSet, p *model.Profile) (*cache.HostOptions, error) {
	h := &cache.HostOptions{}
	var err error
	if h.Policy, err = cache.ParseWritePolicy(x.writePolicy); err != nil {
		return nil, fmt.Errorf("--write-policy: %w", err)
	}
	switch {
	case x.hostBytes == "0" || x.hostBytes == "" && x.hostTokens == 0:
		for _, name := range []string{"write-policy", "storage"} {
			if f.Changed(name) {
				return nil, fmt.Errorf("--%s needs a host tier: give --host-tokens or --host-bytes more than 0", name)
			}
		}
		return nil, nil
	case x.hostBytes != "":
		bytes, err := model.ParseSize(x.hostBytes)
		if err == nil {
			h.Pools, err = p.HostPools(bytes, model.Split{PageSize: x.page})
		}
		if err != nil {
			return nil, fmt.Errorf("--host-bytes: %w", err)
		}
		return h, nil
	case x.hostTokens < 0:
		return nil, fmt.Errorf("--host-tokens is %d: must be 0 (no host tier) or more", x.hostTokens)
	}
	h.Pools.Full = x.whole(x.hostTokens)
	if p.SWA != nil {
		h.Pools.SWA = x.whole(max(h.Pools.Full/4, p.Window()))
	}
	if p.Mamba != nil {
		h.Pools.Mamba = max(h.Pools.Full/tokensAState, 1)
	}
	return h, nil
}

// affordable refuses memory that no laptop has.
func affordable(s engine.Spec, o cache.Options) error {
	bytes := 0.0
	add := func(p cache.PoolSizes) {
		for id, n := range [...]int{p.Full, p.SWA, p.Mamba} {
			bytes += float64(n) * float64(s.SlotBytes[id])
		}
	}
	add(o.Pools)
	if o.Host != nil {
		add(o.Host.Pools)
	}
	if bytes > maxEngineBytes {
		return fmt.Errorf("the engine's own memory would be %.0f bytes, at most %d are taken: give less by --device-tokens, --host-tokens, --device-bytes or --host-bytes", bytes, int64(maxEngineBytes))
	}
	return nil
}

// describe says what was opened.
func (x *engineFlags) describe(p *model.Profile, s engine.Spec, limit int, o cache.Options) about {
	a := about{profile: p, engine: s.Name, tokenLimit: limit}
	a.sizes = "device " + poolText(p, o.Pools)
	if o.Host != nil {
		a.sizes += ", host " + poolText(p, o.Host.Pools)
	}
	a.sizes += fmt.Sprintf(", page %d", x.page)
	a.fingerprint = storage.Fingerprint{
		Model: p.Name, Revision: x.engine + " " + strconv.Itoa(vocabulary), DType: x.engine, PageSize: x.page,
		Components: s.Components, Window: s.Window, Ranks: 1,
		Layout: fmt.Sprintf("slots of %d, %d and %d bytes, states every %d tokens", s.SlotBytes[0], s.SlotBytes[1], s.SlotBytes[2], s.Chunk),
	}
	a.info = map[string]any{
		"chunk_tokens": x.chunk, "max_running": x.running, "order": x.rank, "policy": x.policy, "no_branching": x.noBranching,
	}
	return a
}

func poolText(p *model.Profile, s cache.PoolSizes) string {
	text := fmt.Sprintf("%d full", s.Full)
	if p.SWA != nil {
		text += fmt.Sprintf(" + %d swa", s.SWA)
	}
	text += " tokens"
	if p.Mamba != nil {
		text += fmt.Sprintf(" + %d states", s.Mamba)
	}
	return text
}
