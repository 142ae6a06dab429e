// SPDX-License-Identifier: Apache-2.0

// Package kernelinterrupts asks whether what a tracer sends, counted cause by
// cause, is what real kernels were seen to take. It holds the ledgers of package
// kernels against its measurements, row by row, and hides no difference.
package kernelinterrupts

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// Config has no fields: the measurements come with the program.
type Config struct{}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *Row]{
	Name:     "kernel-interrupts",
	Short:    "does the ledger of a tracer's interrupts predict what real kernels take? model against measured, row by row",
	Examples: []string{"kernel-interrupts --out kernel-interrupts", "kernel-interrupts --format csv"},
	Prose:    prose, Columns: columns, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

// Run answers the question.
func Run(ctx context.Context, c Config, lab experiments.Lab) (*experiments.Answer, error) {
	return spec.Run(ctx, c, lab)
}

// Validate tells which field Run would refuse: there is none.
func (c Config) Validate() error { return spec.Validate(c) }

func measure(ctx context.Context, s *experiments.Study[Config, *Row]) (*experiments.Findings, error) {
	measured, err := ledger.Measurements()
	if err != nil {
		return nil, err
	}
	a, err := Compare(ctx, measured)
	if err != nil {
		return nil, err
	}
	s.Asked = len(a.Rows)
	for i := range a.Rows {
		if err := s.Add(&a.Rows[i]); err != nil {
			return nil, err
		}
	}
	report, err := a.report()
	if err != nil {
		return nil, err
	}
	return &experiments.Findings{
		Report: report, Pictures: []experiments.Picture{{Picture: a.chart(report).Picture()}},
		Documents: []results.Document{experiments.CSV("summary", summaryColumns, a.Summaries)},
	}, nil
}

// chart places every toggle by what the ledger says and what the quietest receiver
// took.
func (a *Answer) chart(r *report) *plots.Chart {
	c := &plots.Chart{
		Title:    fmt.Sprintf("The ledger is what quiet kernels take, exactly, in %d of %d cases", r.Exact, r.Comparable),
		Subtitle: "Median over repetitions, of the receiver that took fewest; one mark a toggle and row of interrupts.",
		X:        plots.Axis{Label: "interrupts by the ledger", Log: true},
		Y:        plots.Axis{Label: "interrupts measured", Log: true},
	}
	curves := experiments.Curves{Kind: plots.Points}
	high := 1.0
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if !s.Load.Switches() {
			continue
		}
		name := fmt.Sprintf("%s, %d CPUs", s.Kernel.Name(), s.CPUs)
		curves.Add(name, float64(s.Model), s.Quietest)
		high = max(high, float64(s.Model), s.Quietest)
	}
	c.Series = append(curves.Series, plots.Series{Name: "the same", X: []float64{1, high}, Y: []float64{1, high}})
	return c
}
