// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

const prefix = "treecore_"

// metrics counts for Prometheus. What the cache counts itself is read when it is
// asked for.
type metrics struct {
	server   *Server
	registry *prometheus.Registry

	calls    *prometheus.CounterVec
	requests *prometheus.CounterVec
	prompt   prometheus.Counter
	output   prometheus.Counter
	cached   *prometheus.CounterVec
	misses   *prometheus.CounterVec
	first    prometheus.Histogram
	latency  prometheus.Histogram
}

func newMetrics(s *Server) *metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: prefix + name, Help: help}
	}
	seconds := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	m := &metrics{
		server: s, registry: prometheus.NewRegistry(),
		calls:    prometheus.NewCounterVec(counter("http_requests_total", "Calls that generate, by kind and status."), []string{"call", "status"}),
		requests: prometheus.NewCounterVec(counter("requests_total", "Outputs, by what ended them."), []string{"finish"}),
		prompt:   prometheus.NewCounter(counter("prompt_tokens_total", "Tokens of the prompts that were admitted.")),
		output:   prometheus.NewCounter(counter("output_tokens_total", "Tokens generated.")),
		cached:   prometheus.NewCounterVec(counter("cached_tokens_total", "Tokens of prompts that were reused, by the tier they came from."), []string{"tier"}),
		misses:   prometheus.NewCounterVec(counter("match_limits_total", "Matches, by the reason why they were not longer and the component that limited them."), []string{"reason", "limited_by"}),
		first:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "time_to_first_token_seconds", Help: "From the arrival of a request to its first token.", Buckets: seconds}),
		latency:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "request_seconds", Help: "From the arrival of a request to its end, however it ended; those without a token are left out.", Buckets: seconds}),
	}
	for _, tier := range []string{"device", "host", "storage"} {
		m.cached.WithLabelValues(tier)
	}
	m.registry.MustRegister(m.calls, m.requests, m.prompt, m.output, m.cached, m.misses, m.first, m.latency,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), state{s})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: logger(m.server.opts.Log)})
}

func (m *metrics) call(name string, status int) {
	m.calls.WithLabelValues(name, strconv.Itoa(status)).Inc()
}

func (m *metrics) firstToken(d time.Duration) { m.first.Observe(d.Seconds()) }

// ended counts a job that has ended.
func (m *metrics) ended(j *job) {
	p := j.look()
	m.requests.WithLabelValues(p.finish.String()).Inc()
	m.output.Add(float64(len(p.tokens)))
	if len(p.tokens) == 0 {
		return // it was never admitted, or ended before it said anything
	}
	m.prompt.Add(float64(len(j.params.Tokens)))
	m.latency.Observe(p.ended.Sub(j.begun).Seconds())
	t, why := p.reuse.byTier(), p.reuse.match()
	m.cached.WithLabelValues("device").Add(float64(t.Device))
	m.cached.WithLabelValues("host").Add(float64(t.Host))
	m.cached.WithLabelValues("storage").Add(float64(t.Storage))
	m.misses.WithLabelValues(why.Reason, why.LimitedBy).Inc()
}

// state collects what engine, cache and store count themselves.
type state struct{ server *Server }

// snapshot is what the loop tells of itself between two steps.
type snapshot struct {
	cache            cache.Stats
	engine           engine.Stats
	device           [tree.NumComponents]cache.Usage
	host             [tree.NumComponents]cache.HostUsage
	nodes            int
	waiting, running int
	attached         bool
}

func (s *Server) snapshot(ctx context.Context) (x snapshot, err error) {
	err = s.loop.do(ctx, func(e *engine.Engine) {
		c := e.Cache()
		x.cache, x.engine, x.nodes, x.attached = c.Stats(), e.Stats(), c.Tree().NodeCount(), c.Storage() != nil
		x.waiting, x.running = e.Queued()
		for id := range tree.Component(tree.NumComponents) {
			x.device[id], x.host[id] = c.Usage(id), c.HostUsage(id)
		}
	})
	return x, err
}

// Describe describes nothing: which pools there are shows when they are read.
func (c state) Describe(chan<- *prometheus.Desc) {}

// scrapeTimeout is how long a scrape waits for the end of a step.
const scrapeTimeout = 5 * time.Second

func (c state) Collect(out chan<- prometheus.Metric) {
	up := prometheus.NewDesc(prefix+"up", "Whether the engine serves.", nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	x, err := c.server.snapshot(ctx)
	if err != nil {
		out <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 0)
		return
	}
	out <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 1)
	e := emitter{out}
	e.pools(&x)
	e.counters(&x)
	if store, _ := c.server.storage.get(); store != nil {
		e.store(store.Stats())
	}
}
