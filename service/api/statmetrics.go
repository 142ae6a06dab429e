// SPDX-License-Identifier: Apache-2.0

package api

import (
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are the service's counters, and what stands now, as metrics: fields of service.Stats. A figure that cannot fall is
// a counter.
var stats = []struct{ field, name, help string }{
	{"Requests", "requests_total", "Updates that clients asked for and that were answered, in any way."},
	{"Merged", "merged_total", "Updates that clients asked for and that batches took up."},
	{"Batches", "batches_total", "Batches: what waited and was taken up together."},
	{"Updates", "text_updates_total", "Updates of the text."},
	{"Failed", "text_updates_failed_total", "Updates of the text that failed and left every site as it was."},
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
