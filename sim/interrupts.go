// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"io"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/interrupts"
)

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
	senderToo bool // whoever asks is counted as well
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
	for _, r := range rows {
		s.Rows = append(s.Rows, r.Row)
	}
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
