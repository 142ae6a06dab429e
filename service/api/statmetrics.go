// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/textpoke/textpoke/service"
)

// stat is one of the service's counters, or what stands now, as a metric.
type stat struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*service.Stats) float64
}

func newStat(name, help string, kind prometheus.ValueType, of func(*service.Stats) float64) stat {
	return stat{prometheus.NewDesc("textpoke_"+name, help, nil, nil), kind, of}
}

// stats are all of them. A figure that cannot fall is a counter.
var stats = []stat{
	newStat("requests_total", "Updates that clients asked for and that were answered, in any way.",
		prometheus.CounterValue, func(s *service.Stats) float64 { return float64(s.Requests) }),
	newStat("merged_total", "Updates that clients asked for and that batches took up.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.Merged) }),
	newStat("batches_total", "Batches: what waited and was taken up together.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.Batches) }),
	newStat("text_updates_total", "Updates of the text.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.Updates) }),
	newStat("text_updates_failed_total", "Updates of the text that failed and left every site as it was.",
		prometheus.CounterValue, func(s *service.Stats) float64 { return float64(s.Failed) }),
	newStat("changes_total", "Records switched.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.Changes) }),
	newStat("rounds_total", "Rounds of interrupts.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.Rounds) }),
	newStat("interrupts_total", "Interrupts taken by all CPUs together.", prometheus.CounterValue,
		func(s *service.Stats) float64 { return float64(s.IPIs) }),
	newStat("violations", "Broken promises of the text that were seen, as many as are kept.", prometheus.GaugeValue,
		func(s *service.Stats) float64 { return float64(s.Violations) }),
	newStat("queued", "Updates on their way.", prometheus.GaugeValue,
		func(s *service.Stats) float64 { return float64(s.Queued) }),
	newStat("ready", "1 while updates are accepted and carried out, 0 while the journal cannot be written.",
		prometheus.GaugeValue, func(s *service.Stats) float64 { return one(s.Ready) }),
	newStat("journal_bytes", "The log that holds what must not be lost.",
		prometheus.GaugeValue, func(s *service.Stats) float64 { return float64(s.Journal) }),
	newStat("lost_records", "Records that clients wanted at the start and that the table does not have any more.",
		prometheus.GaugeValue, func(s *service.Stats) float64 { return float64(s.Lost) }),
	newStat("damaged_parts", "Parts of the journal's past that could not be read at the start; all else is served.",
		prometheus.GaugeValue, func(s *service.Stats) float64 { return float64(s.Damaged) }),
	newStat("enabled_records", "Records that are enabled.", prometheus.GaugeValue,
		func(s *service.Stats) float64 { return float64(s.Enabled) }),
}

// one is 1 for what is so.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, s := range stats {
		out <- s.desc
	}
}

// Collect implements prometheus.Collector. Before the machine runs there is
// nothing to collect.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	r := m.handler.running.Load()
	if r == nil {
		return
	}
	now := r.service.Stats()
	for _, s := range stats {
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, s.of(&now))
	}
}
