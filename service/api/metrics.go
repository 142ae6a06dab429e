// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
	"net/http/pprof"
	"reflect"
	runtimepprof "runtime/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/textpoke/textpoke/service"
)

// metrics is what Prometheus reads: requests by route and status, streams, what
// the service counts, and the process.
type metrics struct {
	handler  *Handler
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	serve    http.Handler
	observer service.Observer
}

func newMetrics(h *Handler) *metrics {
	m := &metrics{
		handler: h,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "textpoke_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "textpoke_http_request_seconds", Help: "Time from the end of a request's head to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9), // to 33 s, a little more than requests may wait
		}, []string{"route"}),
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m, m.requests, m.took, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "textpoke_event_streams", Help: "Streams of events that are open.",
		}, func() float64 { return float64(h.streams.Load()) }))
	seconds := func(name, help string) func(time.Duration) {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "textpoke_" + name + "_seconds", Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 3, 12), // to 18 s
		})
		registry.MustRegister(h)
		return func(d time.Duration) { h.Observe(d.Seconds()) }
	}
	carried := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "textpoke_batch_requests",
		Help: "Updates that one batch took up together.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}) // to 1024
	registry.MustRegister(carried, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "textpoke_build_info", Help: "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": h.cfg.Version.Version, "revision": h.cfg.Version.Revision,
			"goversion": h.cfg.Version.Go},
	}, func() float64 { return 1 }))
	accepted := seconds("accept", "Time until an update that was asked for was durable.")
	waited := seconds("wait", "Time from asking until a batch took it up.")
	lived := seconds("live", "Time from asking until the end was durable.")
	m.observer = service.Observer{
		Written: seconds("journal_commit", "Time that a transaction takes to get on the disk."),
		Ended: func(c service.Course) {
			accepted(c.Written.Sub(c.Handed))
			if !c.Began.IsZero() {
				waited(c.Began.Sub(c.Submitted))
			}
			lived(c.Ended.Sub(c.Submitted))
		},
		Carried: func(requests int) { carried.Observe(float64(requests)) },
	}
	m.serve = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// Observer feeds the metrics with a service's events.
func (h *Handler) Observer() service.Observer { return h.metrics.observer }

func (h *Handler) exposition(w http.ResponseWriter, r *http.Request) error {
	h.metrics.serve.ServeHTTP(w, r)
	return nil
}

// stats are the service's counters and present figures, as metrics: fields of service.Stats. A figure that cannot fall is a
// counter.
var stats = []struct{ field, name, help string }{
	{"Requests", "requests_total", "Updates that clients asked for and that were answered, in any way."},
	{"Merged", "merged_total", "Updates that clients asked for and that batches took up."},
	{"Batches", "batches_total", "Batches: what waited and was taken up together."},
	{"Updates", "text_updates_total", "Updates of the text."},
	{"Failed", "text_updates_failed_total", "Updates of the text that failed and left every site as it was."},
	{"Forecasts", "forecasts_total", "Updates of the text that were forecast by the kernel's image."},
	{"Missed", "forecasts_missed_total", "Forecasts that did not hold, or others interrupted every CPU meanwhile."},
	{"Changes", "changes_total", "Records switched."},
	{"Rounds", "rounds_total", "Rounds of interrupts."},
	{"IPIs", "interrupts_total", "Interrupts taken by all CPUs together."},
	{"Violations", "violations", "Broken promises of the text that were seen, as many as are kept."},
	{"Queued", "queued", "Updates on their way."},
	{"Ready", "ready", "1 while updates are accepted and carried out, 0 while the journal cannot be written."},
	{"Journal", "journal_bytes", "The log that holds what must not be lost."},
	{"Lost", "lost_records", "Records that clients wanted at the start and that the table does not have any more."},
	{"Damaged", "damaged_parts", "Parts of the journal's past that could not be read at the start; all else is served."},
	{"Enabled", "enabled_records", "Records that are enabled."},
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, s := range stats {
		out <- prometheus.NewDesc("textpoke_"+s.name, s.help, nil, nil)
	}
}

// Collect implements prometheus.Collector. Before the machine runs there is
// nothing to collect.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	r := m.handler.running.Load()
	if r == nil {
		return
	}
	now := reflect.ValueOf(r.service.Stats())
	for _, s := range stats {
		kind, n := prometheus.GaugeValue, 0.0
		if strings.HasSuffix(s.name, "_total") {
			kind = prometheus.CounterValue
		}
		switch v := now.FieldByName(s.field); {
		case v.CanInt():
			n = float64(v.Int())
		case v.CanUint():
			n = float64(v.Uint())
		case v.Bool():
			n = 1
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("textpoke_"+s.name, s.help, nil, nil), kind, n)
	}
}

//go:embed openapi.json
var document []byte

func (h *Handler) page(w http.ResponseWriter, r *http.Request) error {
	if h.cfg.Page == nil {
		return problem(http.StatusNotFound, "", "this server has no page")
	}
	h.cfg.Page.ServeHTTP(w, r)
	return nil
}

func (h *Handler) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document)
	return nil
}

// healthz tells whether the process is worth keeping: one that has broken down is
// not, though it will end by itself.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) error {
	if now := h.health(); now.Status == "broken" {
		return send(w, http.StatusServiceUnavailable, now)
	}
	return send(w, http.StatusOK, Health{Status: "ok"})
}

func (h *Handler) readyz(w http.ResponseWriter, _ *http.Request) error {
	now, status := h.health(), http.StatusServiceUnavailable
	if now.Status == "ok" {
		status = http.StatusOK
	}
	return send(w, status, now)
}

func (h *Handler) version(w http.ResponseWriter, _ *http.Request) error {
	return send(w, http.StatusOK, h.cfg.Version)
}

// maxProfile is how many seconds a profile may take: less than an answer may.
const maxProfile = 30

// profile answers as /debug/pprof does (https://pkg.go.dev/net/http/pprof), to full tokens only: a
// server without tokens refuses it.
func (h *Handler) profile(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	p.number("seconds", 0, 1, maxProfile)
	p.number("debug", 0, 0, 2)
	if err := p.check(); err != nil {
		return err
	}
	if h.tokens.Load().None() {
		return problem(http.StatusForbidden, "Authorization", "profiles want a full token, and this server has no tokens")
	}
	switch name := r.PathValue("name"); {
	case name == "profile":
		pprof.Profile(w, r)
	case name == "trace":
		pprof.Trace(w, r)
	case runtimepprof.Lookup(name) != nil:
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		return problem(http.StatusNotFound, "name", "%.40q: want profile, trace, heap, goroutine or another of runtime/pprof", name)
	}
	return nil
}
