// SPDX-License-Identifier: Apache-2.0

// Package pareto asks which vector of patches to choose: the cheapest that keeps to
// a budget of interrupts on isolated CPUs.
package pareto

import (
	"context"
	_ "embed"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
)

// Config says what can be chosen, on which machines, for which budgets: the flags of
// pareto.experiment.
type Config struct {
	modelled.Setting
	Budgets []float64
	Measure string
}

//go:embed pareto.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.One(&c.Measure,
			"measure", mean, "what budgets are about: `mean` over the update, or burst, the most in one millisecond",
			experiments.OneOf([]string{mean, burst})),
	}
}

// The protocols that queue in a vector.
const (
	withInterrupts = "breakpoint"
	withDeferral   = "breakpoint-lazy"
)

// row is a budget on one machine.
type row struct {
	Machine experiments.Machine
	roles   []cpus.Role
	Budget  float64
	measure string
	Choice  *choice // nil: none keeps to it
	Nearest *choice // of those that are cheaper and do not, the one that takes least; nil if there is none
}

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"cpus":                 func(r *row) any { return cpus.FormatRoles(r.roles) },
	"buffer":               func(r *row) any { return r.Choice.slots() },
	"buffer_bytes":         func(r *row) any { return r.Choice.of(r.Choice.BufferBytes) },
	"buffer_pages":         func(r *row) any { return r.Choice.of(r.Choice.BufferPages) },
	"update_range_low_ns":  func(r *row) any { return r.Choice.end(func(s *sim.Ranges) float64 { return s.Update.Low }) },
	"update_range_high_ns": func(r *row) any { return r.Choice.end(func(s *sim.Ranges) float64 { return s.Update.High }) },
	"exposure_ns":          func(r *row) any { return r.Choice.of(int64(r.Choice.Modelled.Exposure)) },
	"exposure_range_low_ns": func(r *row) any {
		return r.Choice.of(r.Choice.end(func(s *sim.Ranges) float64 { return s.Exposure.Low }))
	},
	"exposure_range_high_ns": func(r *row) any {
		return r.Choice.of(r.Choice.end(func(s *sim.Ranges) float64 { return s.Exposure.High }))
	},
	"entry_range_low_ns": func(r *row) any {
		low, _ := r.Choice.entry()
		return low
	},
	"entry_range_high_ns": func(r *row) any {
		_, high := r.Choice.entry()
		return high
	},
	"cheaper_buffer": func(r *row) any { return r.Nearest.slots() },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Budgets)
	a := &answer{Study: s}
	for _, m := range c.Machines {
		choices, err := c.choices(ctx, s.Lab, m)
		if err != nil { // the cheapest is not known before all are
			return a.findings(), err
		}
		l := &ladder{m, choices}
		a.Done = append(a.Done, l)
		for _, r := range l.rows(c.Budgets) {
			r.measure = c.Measure
			if err := s.Add(r); err != nil {
				return a.findings(), err
			}
		}
	}
	return a.findings(), nil
}

// protocols are what there is to choose from on an instruction set: what it does by
// itself where that queues nothing, and vectors.
func protocols(native *poke.Protocol) []string {
	if native.Batching == poke.Buffered {
		return []string{withInterrupts, withDeferral}
	}
	return []string{poke.Native, withInterrupts, withDeferral}
}
