// SPDX-License-Identifier: Apache-2.0

package ipiburst

import (
	"fmt"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished, and the measurements taken apart.
type answer struct {
	*experiments.Study[Config, *row]
	Measured []*measurement
}

// Most is the dearest vector that a current kernel has; nil if there is none.
func (a answer) Most() (most *row) {
	for _, r := range a.Rows {
		if r.Protocol == poke.Native && r.Buffered && (most == nil || r.Rounds > most.Rounds) {
			most = r
		}
	}
	return most
}

// Least is the cheapest protocol of the same instruction set and table.
func (a answer) Least() (least *row) {
	most := a.Most()
	for _, r := range a.Rows {
		if most != nil && r.ArchName() == most.ArchName() && r.Source == most.Source &&
			(least == nil || r.Rounds < least.Rounds) {
			least = r
		}
	}
	return least
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
func (a answer) Directions() *directions {
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

// inTheMail is what the mail says of its own counters.
var inTheMail = map[string]float64{
	published.OwnBreakpoints + ", enable": 120, published.OwnBreakpoints + ", disable": 151,
	published.Batched + ", enable": 657, published.Batched + ", disable": 661,
}

// Comparisons are what was published; the mail says nothing of other counters than
// its own.
func (a answer) Comparisons() (out []experiments.Comparison) {
	if a.Config.Published != "" {
		return nil
	}
	for _, m := range a.Measured {
		out = append(out, experiments.Comparison{
			What:      m.Name() + ": interrupts per CPU, in the mail's words, and rounds by its counters",
			Published: inTheMail[m.Name()], Ours: float64(m.Rounds), Exact: true, Source: m.Counts[0].Source,
		})
	}
	for _, r := range a.Rows {
		if r.Source == generated && r.Protocol == poke.Native && r.Buffer.Slots == 256 && r.Buffered {
			out = append(out, experiments.Comparison{
				What: "45,000 functions in vectors of 256: rounds", Published: 528, Ours: float64(r.Rounds), Exact: true,
				Source: "(records / TP_VEC_MAX) x 3, Bristot de Oliveira, linux-kernel, 2019-10-04: 176 batches",
			})
		}
	}
	return out
}

// chart is what every scheme costs the table that all instruction sets share.
func (a answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "A vector of fixed size costs hundreds of interrupts where three would do", Alone: true,
		X: plots.Axis{Label: "interrupts per CPU, enabling or disabling", Log: true}, Y: plots.Axis{Names: []string{}},
	}
	native := plots.Series{Name: "what the current kernel does", Kind: plots.Lying}
	other := plots.Series{Name: "what it did, or could do", Kind: plots.Lying}
	for _, r := range a.Rows {
		if r.Source != a.Config.Records {
			continue
		}
		c.Subtitle = fmt.Sprintf("%s records", results.Thousands(r.Patches))
		to := &other
		if r.Protocol == poke.Native && (!r.Buffered || r.Buffer.Slots == 256) {
			to = &native
		}
		to.X, to.Y = append(to.X, float64(r.IPIsPerCPU)), append(to.Y, float64(len(c.Y.Names)))
		to.Labels = append(to.Labels, results.Thousands(r.IPIsPerCPU))
		c.Y.Names = append(c.Y.Names, r.label())
	}
	c.Series = experiments.Where([]plots.Series{native, other}, func(s plots.Series) bool { return len(s.X) > 0 })
	c.Height = vg.Length(32+6*max(len(c.Y.Names), 4)) * vg.Millimeter
	return c
}

// label names a row in the chart.
func (r *row) label() string {
	switch {
	case r.Protocol == global:
		return r.ArchName() + ": breakpoints, one batch"
	case r.Buffered:
		return r.ArchName() + ": breakpoints, vector " + r.Buffer.String()
	}
	return r.ArchName() + ": word by word"
}
