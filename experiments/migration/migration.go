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
)

// Config says which counts are explained and repeated.
type Config struct {
	// Published is a file in place of the published counts of interrupts.
	Published string
}

//go:embed migration.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, row]{
	Form: declared, Cells: cells, Measure: measure,
}).Experiment()

// row is one CPU of a measurement.
type row struct {
	M   *measurement
	cpu int
}

func (r row) count() published.InterruptCount { return r.M.Counts[r.cpu] }

// cells are those that no field and no method is.
var cells = map[string]func(row) any{
	"cpu":             func(r row) any { return r.count().CPU },
	"delta_published": func(r row) any { return r.count().Delta },
	"sent_rounds":     func(r row) any { return r.M.Why.Sent[r.cpu] },
	"ipis":            func(r row) any { return r.M.taken[r.cpu] },
	"error":           func(r row) any { return r.M.taken[r.cpu] - r.count().Delta },
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
