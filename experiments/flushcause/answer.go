// SPDX-License-Identifier: Apache-2.0

package flushcause

import (
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// of are the rows of one source in one order.
func (a answer) of(source string, order sched.Ordering) []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Source == source && r.Order == order })
}

// inTableOrder are the rows of patches that are queued as their table has them.
func (a answer) inTableOrder() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Order == sched.Table })
}

// real tells whether the row's table is that of a kernel.
func (r *row) real() bool { return r.Table.Arch() != "" }

// dearest is the row whose sort would save most.
func dearest(rows []*row) (out *row) {
	for _, r := range rows {
		if out == nil || r.Saved() > out.Saved() {
			out = r
		}
	}
	return out
}

// Dearest is the row, of those in table order, whose sort would save most.
func (a answer) Dearest() *row { return dearest(a.inTableOrder()) }

// Drawn is the row whose table is drawn: the dearest of a real kernel, or else the
// dearest.
func (a answer) Drawn() *row {
	if r := dearest(experiments.Where(a.inTableOrder(), (*row).real)); r != nil {
		return r
	}
	return a.Dearest()
}

// Saving is what one sort would save each table as it stands.
func (a answer) Saving() (t experiments.Table) {
	t.Columns = []string{"table", "records", "breaks"}
	for _, b := range a.Config.Buffers {
		t.Columns = append(t.Columns, "rounds with "+b.String(), "saved")
	}
	for _, source := range experiments.Distinct(a.Rows, func(r *row) string { return r.Source }) {
		line := make([]string, len(t.Columns))
		line[0] = source
		for i, r := range a.of(source, sched.Table) {
			line[1], line[2] = fmt.Sprint(r.Patches), fmt.Sprint(r.breaks())
			line[3+2*i], line[4+2*i] = fmt.Sprint(r.Rounds), fmt.Sprint(r.Saved())
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// breaks is how often an address of the table is lower than the one before it.
func (r *row) breaks() (n int) {
	for i := 1; i < r.Table.Len(); i++ {
		if r.Table.Addr(i) < r.Table.Addr(i-1) {
			n++
		}
	}
	return n
}

// Comparisons hold the number of full vectors against what was seen in 2019.
func (a answer) Comparisons() (out []experiments.Comparison) {
	for _, r := range a.inTableOrder() {
		if t := r.Arch.Traits(); t.BreakpointLen < t.FetchLen && r.Buffer.Slots == 170 && r.real() {
			out = append(out, experiments.Comparison{
				What: "batches closed because 170 slots were full, " + r.Source, Published: 250, Ours: float64(r.FlushFull),
				Source: "Bristot de Oliveira, linux-kernel, 2019-10-02: \"250+ intermediate text_poke_finish() because of a " +
					"full buffer\"",
			})
		}
	}
	return out
}

// chart is the rounds of one table: an order a series.
func (a answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "Address order decides the rounds, and one sort makes it free",
		X:     plots.Axis{Label: "rounds (interrupts per CPU)"},
		Y:     plots.Axis{Label: "slots of the vector", Names: []string{}},
	}
	d := a.Drawn()
	if d == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("%s: %s records, queued in four orders", d.Source, experiments.Thousands(d.Patches))
	for _, b := range a.Config.Buffers {
		c.Y.Names = append(c.Y.Names, b.String())
	}
	curves := experiments.Curves{Kind: plots.Lying}
	for _, order := range orders {
		for i, r := range a.of(d.Source, order) {
			curves.Add(order.String(), float64(r.Rounds), float64(i), experiments.Thousands(r.Rounds))
		}
	}
	c.Series = curves.Series
	return c
}
