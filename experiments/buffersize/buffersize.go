// SPDX-License-Identifier: Apache-2.0

// Package buffersize asks whether a bigger vector of patches is better, and for
// whom: rounds, time of the update, breakpoints, traps, stolen time and memory.
package buffersize

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// Config says which sizes are tried on which machines: the flags of buffer-size.experiment.
type Config struct{ modelled.Setting }

//go:embed buffer-size.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Columns: append(ranges, frontColumns()...), Measure: measure,
}).Experiment()

// protocol queues in a vector on every instruction set.
const protocol = "breakpoint"

// row is one size on one machine.
type row struct {
	modelled.Update
	Machine experiments.Machine
	base    *row // the size of 2019 on that machine; nil if there is none, or no time
	first   bool // machine that has one
	split   split
	// dominated names the size that is better, for each front; "" where none is.
	dominated [numFronts]string
}

// RoundsShare and UpdateShare are rounds and time over those of the size of 2019; the time is
// empty where there is none.
func (r *row) RoundsShare() float64 { return float64(r.Rounds) / float64(r.base.Rounds) }
func (r *row) UpdateShare() any {
	if !r.timed() {
		return results.Empty
	}
	return float64(r.Modelled.Update) / float64(r.base.Modelled.Update)
}

// timed tells whether the update was not only counted.
func (r *row) timed() bool { return r.Modelled != nil }

// CPUs are the machine's, by role.
func (r *row) CPUs() string { return cpus.FormatRoles(r.Roles) }

// trap is the mean time of a trap, in nanoseconds.
func (r *row) trap() float64 { return float64(r.TrapTime()) / float64(r.Traps) }

// ATrap is that for people; "-" where there was none.
func (r *row) ATrap() string {
	if r.Traps == 0 {
		return "-"
	}
	return results.Fixed(0, r.trap())
}

// UpdateMS, ExposureMS and StolenMS, the mean of a CPU, are modelled times in milliseconds,
// with their ranges.
func (r *row) UpdateMS() string   { return within(r.Modelled.Ranges().Update) }
func (r *row) ExposureMS() string { return within(r.Modelled.Ranges().Exposure) }
func (r *row) StolenMS() string   { return within(r.Modelled.Ranges().Stolen) }

func within(s calibration.Spread) string {
	s = s.Scaled(1e-6)
	return fmt.Sprintf("%.4g (%.3g to %.3g)", s.Likely, s.Low, s.High)
}

// TrapMS is the time of all traps, in milliseconds: it goes as what is stolen.
func (r *row) TrapMS() string { return ms(r.TrapTime()) }

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"update_formula_ns": func(r *row) any { return r.split.update(r.Patches, r.Flushes) },
	"rounds_share":      func(r *row) any { return r.split.share(r.Patches, r.Flushes) },
	"trap_mean_ns":      func(r *row) any { return results.If(r.Traps > 0, r.trap()) },
}

// ranges are how far modelled times may be off.
var ranges = results.Of(sim.RangeColumns, func(r *row) *sim.Ranges { return r.Modelled.Ranges() }).When((*row).timed)

// frontColumns name, for each front, the size that dominates.
func frontColumns() (out results.Columns[*row]) {
	for i, f := range fronts {
		out = append(out, results.Col[*row]{
			Name: f.column, Detail: f.detail, Doc: "size that is no worse in " + f.name + ", and better in one of them",
			Cell: func(r *row) any { return results.OrEmpty(r.dominated[i]) },
		})
	}
	return out
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Buffers)
	a := &answer{s}
	for _, m := range c.Machines {
		rows, err := c.sizes(ctx, s.Lab, m)
		judge(rows)
		first := len(rows) > 0 && rows[0].base != nil && !slices.ContainsFunc(s.Rows, func(r *row) bool { return r.first })
		for _, r := range rows {
			r.first = first
			if err := s.Add(r); err != nil {
				return a.findings(), err
			}
		}
		if err != nil {
			return a.findings(), err
		}
	}
	return a.findings(), nil
}

// sizes goes through the sizes on one machine, and returns those that were finished.
func (s *Config) sizes(ctx context.Context, lab experiments.Lab, m experiments.Machine) (rows []*row, err error) {
	c, err := s.Engine(ctx, lab, m)
	if err != nil {
		return nil, err
	}
	c.Protocol = protocol
	for _, c.Buffer = range s.Buffers {
		out := &row{Machine: m}
		if out.split, err = splitOf(c); err != nil {
			return rows, err
		}
		if out.Update, err = modelled.Enable(ctx, lab, c, s.Limit); err != nil {
			return rows, err
		}
		rows = append(rows, out)
	}
	return rows, nil
}
