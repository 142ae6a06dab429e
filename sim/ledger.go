// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

// LedgerColumns are the columns of a scenario's interrupts, cause by cause.
var LedgerColumns = results.Declare(declared, "ledger", map[string]func(LedgerRow) any{
	"kernel":    func(r LedgerRow) any { return r.kernel.Name() },
	"direction": func(r LedgerRow) any { return r.Switch.name() },
	"buffer":    func(r LedgerRow) any { return results.If(r.Count.Buffered, r.Count.Buffer.String()) },
	"cpus":      func(r LedgerRow) any { return cpus.FormatRoles(r.Count.Roles) },
	"cause":     func(r LedgerRow) any { return results.If(!r.Total(), r.Entry.Cause.String()) },
	"pokes":     func(r LedgerRow) any { return results.If(!r.Total(), r.Entry.Pokes) },
	"ipis_isolated_max": func(r LedgerRow) any {
		return results.If(r.Total() && slices.Contains(r.Count.Roles, cpus.Isolated), r.Entry.Rounds())
	},
	"most": func(r LedgerRow) any { return results.If(!r.Within.OrMore, r.Within.Most) },
})

// LedgerRow is one cause of interrupts of one [Switch], or a total.
type LedgerRow struct {
	*Switch
	Count  *PlanRow
	Entry  ledger.Entry
	IPIs   int
	Within ledger.Range // of the rounds
}

// rowOf is what is sent for an entry, in so many interrupts.
func rowOf(e ledger.Entry, ipis int) LedgerRow {
	r := LedgerRow{Entry: e, IPIs: ipis}
	r.Within.Add(&e)
	return r
}

// Said is what a total comes to, in words.
func (r LedgerRow) Said() string {
	return fmt.Sprintf("%d to %s (%s)", r.Entry.Rounds(), r.Switch.name(), r.Entry.Row)
}

// Total tells whether the row is the sum of a switch in one row of interrupts.
func (r LedgerRow) Total() bool { return r.Entry.Part == "total" }

// Switch is one direction of a combination's scenario: the interrupts of switching a tracer
// on, or off.
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

// Ledger has the rounds in the order in which they are sent: those before the records, the
// records', those after, and the interrupts that each receiver takes in all.
func (d *Switch) Ledger(ctx context.Context) ([]LedgerRow, error) {
	count, err := d.job.Count(ctx)
	if err != nil {
		return nil, err
	}
	others := d.job.Online() - 1
	before, after := ledger.Split(d.entries)
	sent := func(e ledger.Entry) LedgerRow { return rowOf(e, e.Rounds()*others) }
	rows := spelling.Each(before, sent)
	// Lazy rounds leave out CPUs; wakeups never do.
	rows = append(rows, d.records(&count, cpus.Sync, count.Rounds, count.IPIs-count.Stops*others)...)
	rows = append(rows, d.records(&count, cpus.Stop, count.Stops, count.Stops*others)...)
	rows = append(rows, spelling.Each(after, sent)...)
	rows = append(rows, d.totals(rows)...)
	for i := range rows {
		rows[i].Switch, rows[i].Count = d, &count
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
	for _, t := range d.kernel.Totals(len(rows), func(i int) *ledger.Entry { return &rows[i].Entry }) {
		if t.Entries == 0 {
			continue
		}
		total := LedgerRow{Within: t.Within,
			Entry: ledger.Entry{Part: "total", Row: t.Row.Name, Sent: t.Rounds, Source: t.Row.About}}
		for _, r := range rows {
			if r.Entry.Row == t.Row.Name {
				total.IPIs += r.IPIs
			}
		}
		totals = append(totals, total)
	}
	return totals
}

// WriteInterrupts prints what an update did to the interrupt counters, laid out
// as /proc/interrupts: before, after, and the difference.
func WriteInterrupts(w io.Writer, row RunRow, before, after cpus.Counts) error {
	for _, part := range []struct {
		name   string
		counts cpus.Counts
	}{{"before", before}, {"after", after}, {"delta", after.Since(before)}} {
		if _, err := fmt.Fprintf(w, "\n%s %s, buffer %s, %s: %s\n", row.Arch.Traits().Name, row.Protocol, row.Buffer,
			row.Direction, part.name); err != nil {
			return err
		}
		if err := interrupts.Write(w, snapshot(row, part.counts)); err != nil {
			return err
		}
	}
	return nil
}

// counted is a row of the kernel's, and the causes that it counts.
type counted struct {
	interrupts.Row
	causes    []cpus.Cause
	senderToo bool // the sender is counted as well
}

// rowsOf are the rows that show what a run counts, as the kernel lays them out.
func (c *Config) rowsOf() []counted {
	if c.Scenario != nil {
		return c.Scenario.rows(c.Table)
	}
	t := c.Arch.Traits()
	return []counted{ // the waking of stoppers is rescheduling
		{Row: interrupts.Row{Name: t.InterruptRow, Description: t.InterruptName}, causes: []cpus.Cause{cpus.Sync},
			senderToo: t.FirmwareRounds},
		{Row: interrupts.Row{Name: t.StopRow, Description: t.StopName}, causes: []cpus.Cause{cpus.Stop}},
	}
}

// rows are those of the scenario's kernel that its ledger says something of.
func (s *Scenario) rows(t *records.Table) (out []counted) {
	in := map[cpus.Cause]string{cpus.Sync: s.Kernel.SyncRow, cpus.Stop: s.Kernel.StopRow}
	for _, enable := range []bool{true, false} {
		entries, _ := s.Kernel.Ledger(s.Name, enable, t) // what is not known is in no row
		for _, e := range entries {
			in[e.Cause] = e.Row
		}
	}
	for _, r := range s.Kernel.Rows() {
		row := counted{Row: interrupts.Row{Name: r.Name, Description: r.About}, senderToo: r.SenderToo}
		for k := range cpus.NumCauses {
			if cause := cpus.Cause(k); in[cause] == r.Name {
				row.causes = append(row.causes, cause)
			}
		}
		if len(row.causes) > 0 {
			out = append(out, row)
		}
	}
	return out
}

// snapshot lays counters out as the kernel does.
func snapshot(row RunRow, c cpus.Counts) interrupts.Snapshot {
	rows := row.rowsOf()
	s := interrupts.Snapshot{Name: row.Direction}
	for cpu, role := range row.Roles {
		if role == cpus.Offline {
			continue
		}
		s.CPUs = append(s.CPUs, cpu)
		for i := range rows {
			rows[i].Counts = append(rows[i].Counts, rows[i].count(c, cpu))
		}
	}
	s.Rows = spelling.Each(rows, func(r counted) interrupts.Row { return r.Row })
	return s
}

// count is what the row shows for one CPU.
func (r *counted) count(c cpus.Counts, cpu int) (n int64) {
	for _, cause := range r.causes {
		n += int64(c.Taken[cpu][cause])
		if r.senderToo {
			n += int64(c.Rounds[cpu][cause])
		}
	}
	return n
}
