// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is what Prometheus reads: requests by route and status, streams, what
// the service counts, and the process.
type metrics struct {
	handler  *Handler
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	serve    http.Handler
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
	m.serve = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

func (m *metrics) count(a *answer, method string, took time.Duration) {
	m.requests.WithLabelValues(a.route, methodName(method), strconv.Itoa(a.status)).Inc()
	m.took.WithLabelValues(a.route).Observe(took.Seconds())
}

func (h *Handler) exposition(w http.ResponseWriter, r *http.Request) error {
	h.metrics.serve.ServeHTTP(w, r)
	return nil
}
