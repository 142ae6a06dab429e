// SPDX-License-Identifier: Apache-2.0

// Package migration asks what interrupt counters show of a patcher that moves to
// another CPU in the middle, and sends the rounds of the measurements of 2019
// again, from the CPUs that must have sent them.
package migration

import (
	"context"
	_ "embed"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// Config says which counts are explained and repeated.
type Config struct {
	// Published is a file in place of the published counts of interrupts.
	Published string
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, row]{
	Name:  "migration",
	Short: "the patcher moves to another CPU in the middle: the uneven row of 2019, explained and repeated",
	Examples: []string{
		"migration --out migration",
		"migration --published counts.csv --format csv",
	},
	Prose: prose, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.File(&c.Published, "published",
			"`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source"),
	}
}

// row is one CPU of a measurement.
type row struct {
	m   *measurement
	cpu int
}

func (r row) count() published.InterruptCount { return r.m.Counts[r.cpu] }

var columns = results.Columns[row]{
	{Name: "patching", Doc: "which kernel was measured", Cell: func(r row) any { return r.m.Patching }},
	{Name: "action", Doc: "the tracer is switched on (enable) or off", Cell: func(r row) any { return r.m.Action }},
	{Name: "cpu", Kind: results.Integer, Doc: "number of the CPU", Cell: func(r row) any { return r.count().CPU }},
	{Name: "delta_published", Kind: results.Integer, Doc: "interrupts that it took, as published",
		Cell: func(r row) any { return r.count().Delta }},
	{Name: "rounds", Kind: results.Integer, Doc: "rounds that explain all CPUs' interrupts",
		Cell: func(r row) any { return r.m.Why.Rounds }},
	{Name: "senders", Kind: results.Integer,
		Doc: "CPUs that must have sent them", Cell: func(r row) any { return r.m.Why.Senders }},
	{Name: "sent_rounds", Kind: results.Integer, Doc: "rounds that this CPU must have sent, and sends here",
		Cell: func(r row) any { return r.m.Why.Sent[r.cpu] }},
	{Name: "ipis", Kind: results.Integer, Doc: "interrupts that it takes on the live machine",
		Cell: func(r row) any { return r.m.taken[r.cpu] }},
	{Name: "error", Kind: results.Integer, Doc: "that less what was published",
		Cell: func(r row) any { return r.m.taken[r.cpu] - r.count().Delta }},
}

func measure(ctx context.Context, s *experiments.Study[Config, row]) (*experiments.Findings, error) {
	counts, err := published.Interrupts.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	measured, err := explain(readings)
	if err != nil {
		return nil, err
	}
	s.Asked = len(counts)
	a := &answer{}
	for _, m := range measured {
		if err := m.repeat(ctx, s.Lab); err != nil {
			return a.findings(), err
		}
		a.Done = append(a.Done, m)
		for cpu := range m.Counts {
			if err := s.Add(row{m, cpu}); err != nil {
				return a.findings(), err
			}
		}
	}
	return a.findings(), nil
}
