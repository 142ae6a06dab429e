// SPDX-License-Identifier: Apache-2.0

// Package ipiburst asks how many interrupts switching the function tracer costs
// each CPU, with vectors of fixed size, with one that grows, and with one batch
// for everything, and takes the measurements of 2019 apart.
package ipiburst

import (
	"context"
	_ "embed"
	"io"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

//go:embed ipi-burst.experiment
var text string

// Experiment is the question.
var Experiment = grid.Must("ipi-burst.experiment", text, grid.More{Fields: fields, Prepare: prepare, Compute: compute})

func fields(c *grid.Config) []*experiments.Field {
	return []*experiments.Field{experiments.File(&c.Own, "published",
		"`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source")}
}

// apart is the published measurements, taken apart.
type apart struct{ Measured []*measurement }

// prepare takes them apart before anything is counted: counters that cannot be cost nothing.
func prepare(_ context.Context, c *grid.Config) (any, error) {
	counts, err := published.Interrupts.Read(c.Own)
	if err != nil {
		return nil, err
	}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	a := &apart{}
	a.Measured, err = split(readings)
	return a, err
}

// compute puts them beside what was counted.
func compute(r *grid.Report) error {
	a := r.More.(*apart)
	r.Documents = []results.Document{
		{Name: "interrupts.txt", Write: func(w io.Writer) error { return writeInterrupts(w, a.Measured) }},
	}
	return experiments.Beside(r.Study, "split", a.Measured)
}

// directions are the four measurements that say why enabling and disabling differ.
type directions struct{ On, Off, NewOn, NewOff *measurement }

// More is what enabling takes more than disabling, beside the records.
func (d *directions) More() int64 { return d.On.Rest.Lo - d.Off.Rest.Lo }

// LeftOn and LeftOff are what the batched kernel's records would take if the rest
// were that of the old kernel.
func (d *directions) LeftOn() int64  { return d.NewOn.Rounds - d.On.Rest.Lo }
func (d *directions) LeftOff() int64 { return d.NewOff.Rounds - d.Off.Rest.Lo }

// Directions are both kernels in both directions; nil if one is missing.
func (a *apart) Directions() *directions {
	find := func(patching, action string) *measurement {
		return experiments.First(a.Measured, func(m *measurement) bool {
			return m.Patching == patching &&
				m.Action == action
		})
	}
	d := &directions{
		find(published.OwnBreakpoints, "enable"), find(published.OwnBreakpoints, "disable"),
		find(published.Batched, "enable"), find(published.Batched, "disable"),
	}
	if d.On == nil || d.Off == nil || d.NewOn == nil || d.NewOff == nil {
		return nil
	}
	return d
}
