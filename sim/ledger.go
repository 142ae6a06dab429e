// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

// LedgerColumns are the columns of what a scenario sends, cause by cause.
var LedgerColumns = results.Columns[LedgerRow]{
	{Name: "kernel", Doc: "whose ledger it is", Cell: func(r LedgerRow) any { return r.kernel.Name() }},
	{Name: "scenario", Doc: "what is switched", Cell: func(r LedgerRow) any { return string(r.count.Scenario.Name) }},
	{Name: "direction", Doc: "enable or disable", Cell: func(r LedgerRow) any { return r.Switch.name() }},
	{Name: "protocol", Doc: "how the records are changed", Cell: func(r LedgerRow) any { return r.count.Protocol }},
	{Name: "buffer", Doc: "slots of the vector that they are queued in", Cell: LedgerRow.buffer},
	{Name: "order", Doc: "order in which they are queued",
		Cell: func(r LedgerRow) any { return r.count.Order.String() }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r LedgerRow) any { return cpus.FormatRoles(r.count.Roles) }},
	{Name: "patches", Kind: results.Integer,
		Doc: "records changed", Cell: func(r LedgerRow) any { return r.count.Patches }},
	{Name: "part", Doc: "of the tracer's work; records: their own rounds; total: of the row",
		Cell: func(r LedgerRow) any { return r.entry.Part }},
	{Name: "cause", Doc: "of the interrupts; empty for a total",
		Cell: func(r LedgerRow) any { return results.If(!r.Total(), r.entry.Cause.String()) }},
	{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware, in which they are seen",
		Cell: func(r LedgerRow) any { return results.OrEmpty(r.entry.Row) }},
	{Name: "pokes", Kind: results.Integer, Doc: "keys, sites or calls; empty where there are none to count",
		Cell: func(r LedgerRow) any { return results.If(!r.Total(), r.entry.Pokes) }},
	{Name: "rounds", Kind: results.Integer,
		Doc:  "that are sent for it, each an interrupt of every other CPU: what a receiver takes",
		Cell: func(r LedgerRow) any { return r.entry.Rounds() }},
	{Name: "ipis", Kind: results.Integer,
		Doc: "interrupts that all other CPUs take together", Cell: func(r LedgerRow) any { return r.ipis }},
	{Name: "ipis_per_cpu", Kind: results.Integer,
		Detail: true, Doc: "of a total: interrupts that each CPU but the sender takes",
		Cell: func(r LedgerRow) any { return results.If(r.Total(), r.entry.Rounds()) }},
	{
		Name: "ipis_isolated_max", Kind: results.Integer,
		Detail: true,
		Doc:    "of a total: interrupts that an isolated CPU takes; empty where none is",
		Cell: func(r LedgerRow) any {
			return results.If(r.Total() && slices.Contains(r.count.Roles, cpus.Isolated), r.entry.Rounds())
		},
	},
	{Name: "basis", Detail: true, Doc: "how the number is known: counted, source or assumed; plan: by counting the plan",
		Cell: func(r LedgerRow) any { return results.OrEmpty(string(r.entry.Basis)) }},
	{Name: "source", Detail: true, Doc: "where it stands",
		Cell: func(r LedgerRow) any { return results.OrEmpty(r.entry.Source) }},
	{Name: "least", Kind: results.Integer, Detail: true, Doc: "lower end of the rounds: what was seen, or what the code allows",
		Cell: func(r LedgerRow) any { return r.within.Least }},
	{Name: "most", Kind: results.Integer, Detail: true, Doc: "upper end of the rounds; empty where they are a lower bound",
		Cell: func(r LedgerRow) any { return results.If(!r.within.OrMore, r.within.Most) }},
}

// LedgerRow is one cause of interrupts of one [Switch], or a total.
type LedgerRow struct {
	*Switch
	count  *PlanRow
	entry  ledger.Entry
	ipis   int
	within ledger.Range // of the rounds
}

// rowOf is what is sent for an entry, in so many interrupts.
func rowOf(e ledger.Entry, ipis int) LedgerRow {
	r := LedgerRow{entry: e, ipis: ipis}
	r.within.Add(&e)
	return r
}

// Said is what a total comes to, in words.
func (r LedgerRow) Said() string {
	return fmt.Sprintf("%d to %s (%s)", r.entry.Rounds(), r.Switch.name(), r.entry.Row)
}

// Total tells whether the row is the sum of a switch in one row of interrupts.
func (r LedgerRow) Total() bool { return r.entry.Part == "total" }

func (r LedgerRow) buffer() any {
	if !r.count.Buffered {
		return results.Empty
	}
	return r.count.Buffer.String()
}

// Switch is one direction of a combination's scenario: what a tracer sends when it is
// switched on, or off.
type Switch struct {
	job     *Job
	kernel  *ledger.Kernel
	enable  bool
	entries []ledger.Entry
}

func (d *Switch) name() string {
	if d.enable {
		return "enable"
	}
	return "disable"
}

// Switches are both directions of a scenario; of what only enables, that.
func Switches(c *Config) (out []*Switch, err error) {
	j, err := NewJob(*c)
	if err != nil {
		return nil, err
	}
	for _, enable := range []bool{true, false} {
		entries, err := j.Scenario.Entries(j.Table, enable)
		if err != nil && out == nil {
			return nil, choice.Errorf("%s: %w", choice.Name("scenario"), err)
		}
		if err == nil {
			out = append(out, &Switch{j, c.Scenario.Kernel, enable, entries})
		}
	}
	return out, nil
}

// Ledger is what is sent, in the order in which it is: what precedes the records, the
// records, what follows them, and what each receiver takes in all.
func (d *Switch) Ledger(ctx context.Context) ([]LedgerRow, error) {
	count, err := d.job.Count(ctx)
	if err != nil {
		return nil, err
	}
	others := d.job.Online() - 1
	before, after := ledger.Split(d.entries)
	var rows []LedgerRow
	for _, e := range before {
		rows = append(rows, rowOf(e, e.Rounds()*others))
	}
	// Lazy rounds leave out CPUs; wakeups never do.
	rows = append(rows, d.records(&count, cpus.Sync, count.Rounds, count.IPIs-count.Stops*others)...)
	rows = append(rows, d.records(&count, cpus.Stop, count.Stops, count.Stops*others)...)
	for _, e := range after {
		rows = append(rows, rowOf(e, e.Rounds()*others))
	}
	rows = append(rows, d.totals(rows)...)
	for i := range rows {
		rows[i].Switch, rows[i].count = d, &count
	}
	return rows, nil
}

// records is what the plan sends for the records themselves. That it sends nothing is
// said once.
func (d *Switch) records(count *PlanRow, cause cpus.Cause, rounds, ipis int) []LedgerRow {
	k := d.kernel
	if rounds == 0 && (cause == cpus.Stop || count.Stops > 0) {
		return nil
	}
	e := ledger.Entry{Part: "records", Cause: cause, Pokes: count.Patches, Sent: rounds, Basis: "plan"}
	if rounds > 0 {
		e.Row = k.RowOf(cause)
	}
	if count.Plan == nil && (count.Protocol == k.Protocol || count.Protocol == poke.Native) {
		e.Source = k.Records.Source
	}
	return []LedgerRow{rowOf(e, ipis)}
}

// totals sums rows up, by row of /proc/interrupts.
func (d *Switch) totals(rows []LedgerRow) (totals []LedgerRow) {
	for _, t := range d.kernel.Totals(len(rows), func(i int) *ledger.Entry { return &rows[i].entry }) {
		if t.Entries == 0 {
			continue
		}
		total := LedgerRow{within: t.Within,
			entry: ledger.Entry{Part: "total", Row: t.Row.Name, Sent: t.Rounds, Source: t.Row.About}}
		for _, r := range rows {
			if r.entry.Row == t.Row.Name {
				total.ipis += r.ipis
			}
		}
		totals = append(totals, total)
	}
	return totals
}
