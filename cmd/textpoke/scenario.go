// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// ledgerColumns are the columns of what a scenario sends.
var ledgerColumns = results.Columns[ledgerRow]{
	{Name: "kernel", Doc: "whose ledger it is", Cell: func(r ledgerRow) any { return r.kernel.Name() }},
	{Name: "scenario", Doc: "what is switched", Cell: func(r ledgerRow) any { return string(r.count.Scenario.Name) }},
	{Name: "direction", Doc: "enable or disable", Cell: func(r ledgerRow) any { return directionName(r.enable) }},
	{Name: "protocol", Doc: "how the records are changed", Cell: func(r ledgerRow) any { return r.count.Protocol }},
	{Name: "buffer", Doc: "slots of the vector that they are queued in", Cell: ledgerRow.buffer},
	{Name: "order", Doc: "order in which they are queued",
		Cell: func(r ledgerRow) any { return r.count.Order.String() }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r ledgerRow) any { return cpus.FormatRoles(r.count.Roles) }},
	{Name: "patches", Doc: "records changed", Cell: func(r ledgerRow) any { return r.count.Patches }},
	{Name: "part", Doc: "of the tracer's work; records: their own rounds; total: of the row",
		Cell: func(r ledgerRow) any { return r.part }},
	{Name: "cause", Doc: "of the interrupts; empty for a total",
		Cell: func(r ledgerRow) any { return results.OrEmpty(r.cause) }},
	{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware, in which they are seen",
		Cell: func(r ledgerRow) any { return results.OrEmpty(r.row) }},
	{Name: "pokes", Doc: "keys, sites or calls; empty where there are none to count",
		Cell: func(r ledgerRow) any { return r.pokes }},
	{Name: "rounds", Doc: "that are sent for it, each an interrupt of every other CPU: what a receiver takes",
		Cell: func(r ledgerRow) any { return r.rounds }},
	{Name: "ipis", Doc: "interrupts that all other CPUs take together", Cell: func(r ledgerRow) any { return r.ipis }},
	{Name: "basis", Detail: true, Doc: "how the number is known: counted, source or assumed; plan: by counting the plan",
		Cell: func(r ledgerRow) any { return results.OrEmpty(r.basis) }},
	{Name: "source", Detail: true, Doc: "where it stands",
		Cell: func(r ledgerRow) any { return results.OrEmpty(r.source) }},
}

// ledgerRow is one cause of interrupts of one switch, or a total.
type ledgerRow struct {
	*direction
	count            *sim.PlanRow
	part, cause, row string
	pokes            any // results.Empty in a total
	sent
	basis, source string
}

func (r ledgerRow) buffer() any {
	if !r.count.Buffered {
		return results.Empty
	}
	return r.count.Buffer.String()
}

// printLedger prints what each combination sends, cause by cause in the order in which
// it does, and what each receiver takes.
func printLedger(ctx context.Context, c *common, configs []sim.Config) error {
	var all []*direction
	for i := range configs {
		both, err := switchesOf(&configs[i])
		if err != nil {
			return err
		}
		all = append(all, both...)
	}
	return c.rows(ctx, ledgerColumns.Table("ledger"), len(all), func(i int, o *output) error {
		return all[i].print(ctx, o)
	})
}

// direction is one switch of one combination.
type direction struct {
	job     *sim.Job
	kernel  *ledger.Kernel
	enable  bool
	entries []ledger.Entry
}

// directionName is what commands and columns call a direction.
func directionName(enable bool) string {
	if enable {
		return "enable"
	}
	return "disable"
}

// switchesOf are both directions of a scenario; of what only enables, that.
func switchesOf(c *sim.Config) (out []*direction, err error) {
	j, err := sim.NewJob(*c)
	if err != nil {
		return nil, err
	}
	for _, enable := range []bool{true, false} {
		entries, err := c.Scenario.Entries(enable)
		if err != nil && out == nil {
			return nil, fmt.Errorf("--%w", err)
		}
		if err == nil {
			out = append(out, &direction{j, c.Scenario.Kernel, enable, entries})
		}
	}
	return out, nil
}

// sent is rounds, and the interrupts that they come to.
type sent struct{ rounds, ipis int }

// print adds the ledger's rows: what precedes the records, the records, what
// follows them, and what each receiver takes in all.
func (d *direction) print(ctx context.Context, o *output) error {
	count, err := d.job.Count(ctx)
	if err != nil {
		return err
	}
	others := d.job.Online() - 1
	before, after := ledger.Split(d.entries)
	var rows []ledgerRow
	for _, e := range before {
		rows = append(rows, entryRow(e, others))
	}
	// Lazy rounds leave out CPUs; wakeups never do.
	rows = append(rows, d.records(&count, cpus.Sync, sent{count.Rounds, count.IPIs - count.Stops*others})...)
	rows = append(rows, d.records(&count, cpus.Stop, sent{count.Stops, count.Stops * others})...)
	for _, e := range after {
		rows = append(rows, entryRow(e, others))
	}
	for _, r := range append(rows, d.totals(rows)...) {
		r.direction, r.count = d, &count
		if err := o.add(ledgerColumns.Cells(r)...); err != nil {
			return err
		}
	}
	return nil
}

// entryRow is what the kernel sends besides the records' rounds, to so many CPUs.
func entryRow(e ledger.Entry, others int) ledgerRow {
	return ledgerRow{
		part: e.Part, cause: e.Cause.String(), row: e.Row, pokes: e.Pokes, sent: sent{e.Rounds(), e.Rounds() * others},
		basis: string(e.Basis), source: e.Source,
	}
}

// records is what the plan sends for the records themselves. That it sends nothing is
// said once.
func (d *direction) records(count *sim.PlanRow, cause cpus.Cause, n sent) []ledgerRow {
	k := d.kernel
	if n.rounds == 0 && (cause == cpus.Stop || count.Stops > 0) {
		return nil
	}
	r := ledgerRow{part: "records", cause: cause.String(), pokes: count.Patches, sent: n, basis: "plan"}
	if n.rounds > 0 {
		r.row = k.RowOf(cause)
	}
	if count.Plan == nil && (count.Protocol == k.Protocol || count.Protocol == poke.Native) {
		r.source = k.Records.Source
	}
	return []ledgerRow{r}
}

// totals sums rows up, by row of /proc/interrupts.
func (d *direction) totals(rows []ledgerRow) (totals []ledgerRow) {
	for _, of := range d.kernel.Rows() {
		total, seen := ledgerRow{part: "total", row: of.Name, pokes: results.Empty, source: of.About}, false
		for _, r := range rows {
			if r.row == of.Name {
				total.rounds, total.ipis, seen = total.rounds+r.rounds, total.ipis+r.ipis, true
			}
		}
		if seen {
			totals = append(totals, total)
		}
	}
	return totals
}
